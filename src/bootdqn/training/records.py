"""What a run writes down: `metrics.jsonl` from the stream of rounds alone, `timing.jsonl` from the clock."""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import open_regular, read_lines
from bootdqn.common.json_files import RECORD, parse_json_object
from bootdqn.training.averages import UpdateAverages
from bootdqn.training.loop import Episode, Round
from bootdqn.training.sinks import Sinks


class JsonLines:
    """A file of one JSON object a line, whole lines only.

    Lines wait in memory until they are flushed. Where that fails, the file is cut back to the last whole line and the
    lines go on waiting, so that a full disk costs nothing but memory once there is room again.
    """

    def __init__(self, path: Path) -> None:
        """Open `path`, made if it is missing, to go on at its end."""
        self._path = path
        self._handle = open_regular(path, os.O_RDWR | os.O_CREAT, alone=True)
        self.position = os.fstat(self._handle).st_size
        """Bytes on disk."""
        self._waiting: list[bytes] = []

    def cut(self, position: int) -> None:
        """Forget what lies beyond `position`.

        Raises:
            DamagedFileError: The file is shorter than that.
        """
        if not 0 <= position <= os.fstat(self._handle).st_size:
            raise DamagedFileError(f"{self._path} is shorter than its checkpoint says; --restart begins the run again")
        os.ftruncate(self._handle, position)
        self.position = position
        self._waiting.clear()

    def write(self, record: dict[str, Any]) -> None:
        """Append one record."""
        self._waiting.append(json.dumps(record, allow_nan=False).encode() + b"\n")

    def flush(self, *, sync: bool = False) -> None:
        """Hand everything written so far to the operating system, and with `sync` see it safely on the disk."""
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
        """Close the file; what was not flushed is lost."""
        os.close(self._handle)


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
    if episode.bonus:
        record["bonus"] = episode.bonus
    if "bad_episode" in episode.info:
        record["bad"] = bool(episode.info["bad_episode"])
    return record


class Records:
    """The metrics of one run, written as the rounds come in."""

    def __init__(self, path: Path, log_every: int, sinks: Sinks) -> None:
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
        self._sinks.write(record)

    def flush(self, *, sync: bool = False) -> None:
        """Hand everything written so far to the operating system, and with `sync` see it safely on the disk."""
        self._file.flush(sync=sync)

    def get_state(self) -> dict[str, Any]:
        """Return the counts, the sums and the length of the file, which has been flushed."""
        return {"episodes": self.episodes, "position": self._file.position, **self._averages.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from there; what the file holds beyond is cut off."""
        self._file.cut(int(state["position"]))
        self.episodes = int(state["episodes"])
        self._averages.set_state(state)

    def close(self) -> None:
        """Close the file and the sinks; what was not flushed is lost."""
        self._file.close()
        self._sinks.close()


def timing_until(path: Path, step: int) -> tuple[int, float]:
    """Return how many bytes of the timing in `path` are records up to `step`, and the seconds of the last one.

    It is not synced, so after a power cut there may be anything at its end, which does not count.
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
    """Seconds of this run, and steps a second over the last stretch."""

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
