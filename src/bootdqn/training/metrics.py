"""Metrics of a run: `metrics.jsonl` from the loop's stream alone, `timing.jsonl` from the clock."""

import contextlib
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import RECORD, open_regular, parse_json_object, read_lines
from bootdqn.common.specs import Array
from bootdqn.exploration.formulas import disagreement, evoi
from bootdqn.training.loggers import Loggers
from bootdqn.training.loop import EpisodeResult, StepActions, StepResult

MEASURE_BATCH_SIZE = 256


class ActionStatistics:
    """Means over steps of how often the active head was overruled, the EVOI of the action, and the heads' disagreement.

    Steps are measured in batches for speed. Sums are accumulated per step in order, so they do not depend on the
    boundaries of the batches.
    """

    def __init__(self) -> None:
        self._pending: list[StepActions] = []
        self._steps = 0
        self._sums = {"overruled": 0.0, "evoi": 0.0, "disagreement": 0.0}

    def add(self, acting: StepActions) -> None:
        """Add one step in every environment."""
        self._pending.append(acting)
        if len(self._pending) == MEASURE_BATCH_SIZE:
            self._measure()

    def means_and_reset(self) -> dict[str, float | None]:
        """Return the means since the last call; None where they are not finite, or no step was taken."""
        self._measure()
        means = {name: total / self._steps if self._steps else math.nan for name, total in self._sums.items()}
        self._steps, self._sums = 0, dict.fromkeys(self._sums, 0.0)
        return {name: value if math.isfinite(value) else None for name, value in means.items()}

    def get_state(self) -> dict[str, Any]:
        """Return the sums, ready for JSON: as text, since JSON has no infinity."""
        self._measure()
        return {"steps": self._steps} | {name: repr(total) for name, total in self._sums.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the sums."""
        self._pending.clear()
        self._steps = int(state["steps"])
        self._sums = {name: float(state[name]) for name in self._sums}

    def _measure(self) -> None:
        if not self._pending:
            return
        acting = StepActions(*(np.concatenate(arrays) for arrays in zip(*self._pending, strict=True)))
        self._pending.clear()
        self._steps += len(acting.actions)
        for name, measured in _measures(acting).items():
            for value in measured.tolist():
                self._sums[name] += value


def _measures(acting: StepActions) -> dict[str, Array]:
    """Return the measures of each of S steps (S,)."""
    q, (steps, _, num_actions) = acting.q, acting.q.shape
    step = np.arange(steps)
    with np.errstate(all="ignore"):  # infinities become None
        evoi_of_action = evoi(q)[step, acting.actions] if num_actions > 1 else np.zeros(steps)
        disagreements: Array = disagreement(q)
    overruled = acting.actions != q[step, acting.heads].argmax(axis=-1)
    return {"overruled": overruled, "evoi": evoi_of_action, "disagreement": disagreements}


class UpdateAverages:
    """Means over the updates since the last `update` record."""

    def __init__(self, log_every: int) -> None:
        self._log_every = log_every
        self.updates = 0
        self._averaged = 0
        self._loss = 0.0
        self._td_error = 0.0
        self._acting = ActionStatistics()

    def add(self, result: StepResult) -> Iterator[dict[str, Any]]:
        """Add one step in every environment; yield the records that are due."""
        self._acting.add(result.acting)
        for update in result.updates:
            self.updates += 1
            self._averaged += 1
            self._loss += float(update.head_loss.mean())
            self._td_error += float(update.td_error.mean())
            if is_record_due(self.updates, self._log_every):
                yield self._record(result.step)

    def get_state(self) -> dict[str, Any]:
        """Return the sums, ready for JSON."""
        sums = {"updates": self.updates, "averaged": self._averaged, "loss": self._loss, "td_error": self._td_error}
        return sums | {"acting": self._acting.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the sums."""
        self.updates, self._averaged = int(state["updates"]), int(state["averaged"])
        if not 0 <= self._averaged <= self.updates:
            raise ValueError(f"it averages over {self._averaged:,} of {self.updates:,} updates")
        self._loss, self._td_error = float(state["loss"]), float(state["td_error"])
        self._acting.set_state(state["acting"])

    def _record(self, step: int) -> dict[str, Any]:
        means = {"loss": self._loss / self._averaged, "td_error": self._td_error / self._averaged}
        self._averaged, self._loss, self._td_error = 0, 0.0, 0.0
        return {"kind": "update", "step": step, "updates": self.updates} | means | self._acting.means_and_reset()


def is_record_due(updates: int, log_every: int) -> bool:
    """Return whether an `update` record is due after so many updates.

    One is due every `log_every` updates, and before the first of these after 10, 20, ..., 90, 100, 200, ... updates, so
    that a short run has records as well.
    """
    power_of_ten = 10 ** max(1, len(str(updates)) - 1)
    return updates % (power_of_ten if updates < log_every else log_every) == 0


class JsonLines:
    """A file of one JSON object a line, whole lines only.

    Lines are kept in memory until they are flushed. If that fails, the file is cut back to its last whole line and the
    lines stay in memory, so that a full disk loses nothing.
    """

    def __init__(self, path: Path) -> None:
        """Open `path` to append; it is made if it is missing."""
        self._path = path
        self._handle = open_regular(path, os.O_RDWR | os.O_CREAT, alone=True)
        self.position = os.fstat(self._handle).st_size
        """Bytes on disk."""
        self._waiting: list[bytes] = []

    def cut(self, position: int) -> None:
        """Cut the file at `position`.

        Raises:
            DamagedFileError: The file is shorter than that.
        """
        if not 0 <= position <= os.fstat(self._handle).st_size:
            raise DamagedFileError(
                f"{self._path} has fewer bytes than its checkpoint recorded (truncated?); start again with --restart"
            )
        os.ftruncate(self._handle, position)
        self.position = position
        self._waiting.clear()

    def write(self, record: dict[str, Any]) -> None:
        """Append one record."""
        self._waiting.append(json.dumps(record, allow_nan=False).encode() + b"\n")

    def flush(self, *, sync: bool = False) -> None:
        """Write all pending records, and with `sync` wait until they are on the disk."""
        content = memoryview(b"".join(self._waiting))
        try:
            done = 0
            while done < len(content):
                done += os.pwrite(self._handle, content[done:], self.position + done)
            if sync:
                os.fsync(self._handle)
        except OSError:
            os.ftruncate(self._handle, self.position)
            raise
        self.position += len(content)
        self._waiting.clear()

    def close(self) -> None:
        """Close the file; pending records are lost."""
        os.close(self._handle)


def episode_record(number: int, step: int, episode: EpisodeResult) -> dict[str, Any]:
    """Return the record of a finished episode, the `number`-th of the run."""
    record: dict[str, Any] = {
        "kind": "episode",
        "episode": number,
        "step": step,
        "return": episode.total_reward,
        "length": episode.length,
        "head": episode.head,
    }
    if episode.bonus:
        record["bonus"] = episode.bonus
    if "bad_episode" in episode.info:
        record["bad"] = bool(episode.info["bad_episode"])
    return record


class MetricsWriter:
    """Writes the metrics of one run, step by step."""

    def __init__(self, path: Path, log_every: int, loggers: Loggers) -> None:
        self._file = JsonLines(path)
        self._averages = UpdateAverages(log_every)
        self._loggers = loggers
        self.episodes = 0

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return self._averages.updates

    def add_step(self, result: StepResult) -> None:
        """Write the records that are due after one step in every environment."""
        for episode in result.finished:
            self.episodes += 1
            self.add(episode_record(self.episodes, result.step, episode))
        for record in self._averages.add(result):
            self.add(record)

    def add(self, record: dict[str, Any]) -> None:
        """Write one record."""
        self._file.write(record)
        self._loggers.write(record)

    def flush(self, *, sync: bool = False) -> None:
        """Write all pending records, and with `sync` wait until they are on the disk."""
        self._file.flush(sync=sync)

    def get_state(self) -> dict[str, Any]:
        """Return the counts, the sums and the length of the file; flush it first."""
        return {"episodes": self.episodes, "position": self._file.position, **self._averages.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore them; records beyond that length are cut off."""
        self._file.cut(int(state["position"]))
        self.episodes = int(state["episodes"])
        self._averages.set_state(state)

    def close(self) -> None:
        """Close the file and the loggers; pending records are lost."""
        self._file.close()
        self._loggers.close()


def read_timing_up_to(path: Path, step: int) -> tuple[int, float]:
    """Return how many bytes of the timing in `path` are records up to `step`, and the seconds of the last one.

    The file is not synced, so after a power cut its end may be damaged; that does not count.
    """
    length, seconds = 0, 0.0
    with contextlib.suppress(DamagedFileError, TypeError, KeyError):
        for line in read_lines(path, RECORD.max_bytes):
            record = parse_json_object(line, str(path), RECORD)
            if not (record["step"] <= step and record["seconds"] >= 0):
                break
            length, seconds = length + len(line), max(seconds, float(record["seconds"]))
    return length, seconds


class Clock:
    """Seconds of this run, and steps per second over the last interval."""

    def __init__(self, interval: float, *, seconds: float = 0.0, step: int = 0) -> None:
        self._interval = interval
        self._last = time.monotonic()
        self._start = self._last - seconds
        self._last_step = step

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def tick(self, step: int) -> dict[str, Any] | None:
        """Return a timing record if the interval has passed."""
        now = time.monotonic()
        if now - self._last < self._interval:
            return None
        record = {
            "seconds": round(now - self._start, 3),
            "step": step,
            "steps_per_second": round((step - self._last_step) / (now - self._last), 1),
        }
        self._last, self._last_step = now, step
        return record
