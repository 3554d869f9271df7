"""What a run writes down: `metrics.jsonl` from the stream of rounds alone, `timing.jsonl` from the clock."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from bootdqn.common.errors import UsageError
from bootdqn.training.loop import Episode, Round
from bootdqn.training.sinks import Sink


class JsonLines:
    """A file of one JSON object a line, whole lines only."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8")

    def write(self, record: dict[str, Any]) -> None:
        """Append one record."""
        self._file.write(json.dumps(record, allow_nan=False) + "\n")

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close."""
        self._file.close()


class UpdateAverages:
    """Means over the updates since the last `update` record."""

    def __init__(self, log_every: int) -> None:
        self._log_every = log_every
        self.updates = 0
        self._loss = 0.0
        self._td_error = 0.0

    def add(self, round_: Round) -> Iterator[dict[str, Any]]:
        """Take in one round; yield the records that are due."""
        for update in round_.updates:
            self.updates += 1
            loss = float(update.head_loss.mean())
            if not math.isfinite(loss):
                raise UsageError(f"the loss is not finite after step {round_.step:,}; lower --learning-rate")
            self._loss += loss
            self._td_error += float(update.td_error.mean())
            if self.updates % self._log_every == 0:
                yield self._record(round_.step)

    def _record(self, step: int) -> dict[str, Any]:
        record = {
            "kind": "update",
            "step": step,
            "updates": self.updates,
            "loss": self._loss / self._log_every,
            "td_error": self._td_error / self._log_every,
        }
        self._loss = self._td_error = 0.0
        return record


def episode_record(number: int, step: int, episode: Episode) -> dict[str, Any]:
    """Return the record of a finished episode, the `number`-th of the run."""
    record: dict[str, Any] = {
        "kind": "episode",
        "episode": number,
        "step": step,
        "return": episode.total_reward,
        "length": episode.length,
        "head": episode.head,
    }
    if "bad_episode" in episode.info:
        record["bad"] = bool(episode.info["bad_episode"])
    return record


class Records:
    """The metrics of one run, written as the rounds come in."""

    def __init__(self, path: Path, log_every: int, sinks: Sequence[Sink] = ()) -> None:
        self._file = JsonLines(path)
        self._averages = UpdateAverages(log_every)
        self._sinks = sinks
        self.episodes = 0

    @property
    def updates(self) -> int:
        """How many updates were recorded."""
        return self._averages.updates

    def add_round(self, round_: Round) -> None:
        """Write what a round has to say."""
        for episode in round_.finished:
            self.episodes += 1
            self.add(episode_record(self.episodes, round_.step, episode))
        for record in self._averages.add(round_):
            self.add(record)

    def add(self, record: dict[str, Any]) -> None:
        """Write one record."""
        self._file.write(record)
        for sink in self._sinks:
            sink.write(record)

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close."""
        self._file.close()
        for sink in self._sinks:
            sink.close()


class Clock:
    """Seconds of this run, and steps a second over the last stretch."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._start = self._last = time.monotonic()
        self._last_step = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def tick(self, step: int) -> dict[str, Any] | None:
        """Return a timing record when the interval is over."""
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
