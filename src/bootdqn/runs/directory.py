"""The schema of a run folder: which file holds what. Training writes it; analysis reads it and imports no training."""

import contextlib
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from bootdqn.common.errors import DamagedFileError, UsageError
from bootdqn.common.files import (
    CONFIG,
    PROVENANCE,
    RECORD,
    SUMMARY,
    check_directory,
    check_file,
    is_present,
    list_directory,
    parse_json_object,
    read_json_object,
    read_lines,
    read_lines_backwards,
)

SNAPSHOT_NAME = re.compile(r"step-([0-9]{12,18})\.safetensors")


_NUMBER, _MAYBE_NUMBER, _MAYBE_COUNT = (int, float), (int, float, NoneType), (int, NoneType)
_TYPES_IN_SUMMARY: dict[str, tuple[type, ...]] = {
    "status": (str,),
    "error": (str,),
    "seconds": _NUMBER,
    **dict.fromkeys(("steps", "episodes", "updates", "frames", "evaluations"), (int,)),
    **dict.fromkeys(("solved_at", "solved_at_strict"), _MAYBE_COUNT),
    **dict.fromkeys(("recent_return", "max_evaluation", "last_evaluation"), _MAYBE_NUMBER),
}
"""What each entry of a summary is, where it is there."""


@dataclass(frozen=True)
class RunDirectory:
    """One run: one configuration, one seed, one folder."""

    path: Path

    @property
    def config(self) -> Path:
        """The complete configuration, one flat JSON object whose keys are the command line's flags."""
        return self.path / "config.json"

    @property
    def provenance(self) -> Path:
        """Versions, commit, arguments and machine: how these numbers came about."""
        return self.path / "provenance.json"

    @property
    def metrics(self) -> Path:
        """One JSON object a line, told apart by `kind`; a function of the configuration alone."""
        return self.path / "metrics.jsonl"

    @property
    def timing(self) -> Path:
        """One JSON object a line: what depends on the clock."""
        return self.path / "timing.jsonl"

    @property
    def weights(self) -> Path:
        """The online networks as they were last saved, for looking at: safetensors, no code inside."""
        return self.path / "weights.safetensors"

    @property
    def checkpoints(self) -> Path:
        """What a stopped run goes on from; gone when it is finished, unless it was asked to stay."""
        return self.path / "checkpoints"

    @property
    def snapshots(self) -> Path:
        """The online networks at chosen moments, for looking at."""
        return self.path / "snapshots"

    @property
    def tensorboard(self) -> Path:
        """TensorBoard's event files, where they were asked for."""
        return self.path / "tensorboard"

    @property
    def lock(self) -> Path:
        """Which process trains in the folder; gone when none does."""
        return self.path / "lock.json"

    @property
    def summary(self) -> Path:
        """How the run ended; absent while it is under way."""
        return self.path / "summary.json"

    def check(self) -> None:
        """Check that every file of the run that is there is a regular file, and every directory no link to another.

        Whatever writes to a run directory asks this first.

        Raises:
            DamagedFileError: One is something else, which is named.
        """
        for file in (self.config, self.provenance, self.weights, self.lock, self.summary):
            check_file(file)
        for file in (self.metrics, self.timing):
            check_file(file, alone=True)  # they are written in place
        for directory in (self.checkpoints, self.checkpoints / "segments", self.snapshots, self.tensorboard):
            check_directory(directory)
        check_directory(self.path / "wandb")

    def read_config(self) -> dict[str, Any]:
        """Return the configuration: texts, numbers, truth values, null, and lists of those."""
        config = read_json_object(self.config, CONFIG)
        for name, value in config.items():
            items = value if isinstance(value, list) and name != "environment" else [value]
            if any(isinstance(item, list | dict) for item in items):
                raise DamagedFileError(f"{self.config}: {name:.50} is {value!r:.100}, which no setting is")
        return config

    def read_summary(self) -> dict[str, Any] | None:
        """Return the summary, whose values are of their types, or None where the run has not ended yet."""
        if not is_present(self.summary):
            return None
        summary = read_json_object(self.summary, SUMMARY)
        for name, types in _TYPES_IN_SUMMARY.items():
            if name in summary and type(summary[name]) not in types:
                raise DamagedFileError(f"{self.summary}: {name} is {summary[name]!r:.100}")
        return summary

    def read_provenance(self) -> dict[str, Any]:
        """Return how the run came about; nothing where somebody has removed that."""
        return read_json_object(self.provenance, PROVENANCE) if is_present(self.provenance) else {}

    def read_metrics(self, kind: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the records of `kind`, or all. A half-written last line, as a crash leaves it, is passed over.

        Raises:
            DamagedFileError: A line is not a JSON object in UTF-8.
        """
        if not is_present(self.metrics):
            return
        for number, line in enumerate(read_lines(self.metrics, RECORD.max_bytes), start=1):
            record = parse_json_object(line, f"{self.metrics}, line {number}", RECORD)
            if kind is None or record.get("kind") == kind:
                yield record

    def last_metrics(self, kind: str | None = None) -> dict[str, Any] | None:
        """Return the last record of `kind`, or of any, reading no more of the file than its end; None where none is.

        Raises:
            DamagedFileError: A line on the way is not a JSON object in UTF-8.
        """
        records = _records_backwards(self.metrics)
        return next((record for record in records if kind is None or record.get("kind") == kind), None)

    def last_timing(self) -> dict[str, Any] | None:
        """Return the last record of `timing.jsonl`; None where there is none."""
        return next(_records_backwards(self.timing), None)


def _records_backwards(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records in `path`, the last first; none where it is not there."""
    if is_present(path):
        for line in read_lines_backwards(path, RECORD.max_bytes):
            yield parse_json_object(line, f"the end of {path}", RECORD)


def find_runs(root: Path, most_directories: float = math.inf) -> list[RunDirectory]:
    """Return every run folder at or below `root`, in the order of their paths, also where config.json is lost.

    Links to directories are not followed, and what cannot be read, such as paths that are too long, is passed over.

    Args:
        root: Where to look.
        most_directories: Look into so many, and leave the others out.
    """
    names = {file.name for file in (RunDirectory(root).config, RunDirectory(root).summary, RunDirectory(root).metrics)}
    found, waiting, seen = [], [root], 0
    while waiting and seen < most_directories:  # no recursion: somebody may have nested thousands
        seen += 1
        with contextlib.suppress(OSError), os.scandir(path := waiting.pop()) as entries:
            for entry in entries:
                if entry.name in names:
                    found.append(path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
    return [RunDirectory(path) for path in sorted(set(found))]


def find_weights(path: Path, weights: str | Path | int | None) -> Path | None:
    """Return the file of `weights` of the run `path`: the step of a snapshot, or a file (None: no choice was made).

    Raises:
        UsageError: There is no such snapshot or file; the message lists the snapshots.
    """
    if weights is None:
        return None
    if isinstance(weights, str | Path) and Path(weights).is_file():
        return Path(os.path.realpath(weights))  # a link that the user names is followed
    snapshots = find_snapshots(path)
    if str(weights).isdecimal() and int(str(weights)) in snapshots:
        return snapshots[int(str(weights))]
    no_file = "no such file, and " if isinstance(weights, str | Path) else ""
    known = ", ".join(map(str, snapshots)) or "none: train with --snapshot-every"
    raise UsageError(f"weights {weights} of {path}: {no_file}no snapshot after that step; there are {known}")


def find_snapshots(path: Path) -> dict[int, Path]:
    """Return the snapshots of the run `path` by their step."""
    folder = RunDirectory(path).snapshots
    found = (SNAPSHOT_NAME.fullmatch(name) for name in list_directory(folder))
    return {int(name[1]): folder / name[0] for name in found if name}
