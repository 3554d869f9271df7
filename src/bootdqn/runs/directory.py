"""The files of a run directory. Training writes them; reports read them and import no training."""

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
CHECKPOINT_NAME = re.compile(r"step-([0-9]{12})")

_NUMBER, _MAYBE_NUMBER, _MAYBE_COUNT = (int, float), (int, float, NoneType), (int, NoneType)
_TYPES_IN_SUMMARY: dict[str, tuple[type, ...]] = {
    "status": (str,),
    "error": (str,),
    "seconds": _NUMBER,
    "experiment": (str,),
    **dict.fromkeys(("steps", "episodes", "updates", "frames", "evaluations", "bad_episodes"), (int,)),
    **dict.fromkeys(("total_return", "best_episode"), _NUMBER),
    **dict.fromkeys(("solved_at", "solved_at_strict"), _MAYBE_COUNT),
    **dict.fromkeys(("recent_return", "max_evaluation", "last_evaluation"), _MAYBE_NUMBER),
}
"""The types of the entries of a summary, all of them optional."""


@dataclass(frozen=True)
class RunDirectory:
    """The directory of one run: one configuration, one seed."""

    path: Path

    @property
    def config(self) -> Path:
        """The complete configuration, one flat JSON object whose keys are the command line's flags."""
        return self.path / "config.json"

    @property
    def provenance(self) -> Path:
        """Versions, commit, arguments and machine that the numbers come from."""
        return self.path / "provenance.json"

    @property
    def metrics(self) -> Path:
        """One JSON object per line, of several kinds (`kind`); a function of the configuration alone."""
        return self.path / "metrics.jsonl"

    @property
    def timing(self) -> Path:
        """One JSON object per line: measurements that depend on the clock."""
        return self.path / "timing.jsonl"

    @property
    def weights(self) -> Path:
        """The online networks as they were last saved, as safetensors: no code inside."""
        return self.path / "weights.safetensors"

    @property
    def checkpoints(self) -> Path:
        """Checkpoints to resume from; removed when the run is finished, unless the last is to be kept."""
        return self.path / "checkpoints"

    @property
    def snapshots(self) -> Path:
        """The online networks at earlier steps, for inspection."""
        return self.path / "snapshots"

    @property
    def tensorboard(self) -> Path:
        """TensorBoard's event files, with --tensorboard."""
        return self.path / "tensorboard"

    @property
    def lock(self) -> Path:
        """The process that trains in the directory; absent when none does."""
        return self.path / "lock.json"

    @property
    def summary(self) -> Path:
        """The status and results of the run; absent while it is under way."""
        return self.path / "summary.json"

    def check(self) -> None:
        """Check that the files of the run are regular files and its directories no links, before anything is written.

        Raises:
            DamagedFileError: One is something else.
        """
        for file in (self.config, self.provenance, self.weights, self.lock, self.summary):
            check_file(file)
        for file in (self.metrics, self.timing):
            check_file(file, alone=True)  # they are written in place
        for directory in (self.checkpoints, self.checkpoints / "segments", self.snapshots, self.tensorboard):
            check_directory(directory)
        check_directory(self.path / "wandb")

    def read_config(self) -> dict[str, Any]:
        """Return the flat configuration: strings, numbers, booleans, None, and lists of those."""
        config = read_json_object(self.config, CONFIG)
        for name, value in config.items():
            items = value if isinstance(value, list) and name != "environment" else [value]
            if any(isinstance(item, list | dict) for item in items):
                expected = "a string, number, boolean, null or a list of those"
                raise DamagedFileError(f"{self.config}: {name:.50} must be {expected}, got {value!r:.100}")
        return config

    def read_summary(self) -> dict[str, Any] | None:
        """Return the summary, its types checked, or None where the run has not ended."""
        if not is_present(self.summary):
            return None
        summary = read_json_object(self.summary, SUMMARY)
        for name, types in _TYPES_IN_SUMMARY.items():
            if name in summary and type(summary[name]) not in types:
                raise DamagedFileError(f"{self.summary}: {name} is {summary[name]!r:.100}")
        return summary

    def read_provenance(self) -> dict[str, Any]:
        """Return the provenance; empty where the file was removed."""
        return read_json_object(self.provenance, PROVENANCE) if is_present(self.provenance) else {}

    def read_metrics(self, kind: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the records of `kind`, or all. A partial last line, as a crash leaves it, is skipped.

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
        """Return the last record of `kind`, or of any, reading only the end of the file; None where there is none.

        Raises:
            DamagedFileError: A line after it is not a JSON object in UTF-8.
        """
        records = _records_backwards(self.metrics)
        return next((record for record in records if kind is None or record.get("kind") == kind), None)

    def last_timing(self) -> dict[str, Any] | None:
        """Return the last record of `timing.jsonl`; None where there is none."""
        return next(_records_backwards(self.timing), None)

    def last_checkpoint(self) -> int | None:
        """Return the step of the newest checkpoint, complete or damaged; None where there is none."""
        steps = [int(name[1]) for name in map(CHECKPOINT_NAME.fullmatch, list_directory(self.checkpoints)) if name]
        return max(steps, default=None)


def _records_backwards(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records in `path`, the last first; none where the file is missing."""
    if is_present(path):
        for line in read_lines_backwards(path, RECORD.max_bytes):
            yield parse_json_object(line, f"the end of {path}", RECORD)


def find_runs(root: Path, most_directories: float = math.inf) -> list[RunDirectory]:
    """Return every run directory at or below `root`, ordered by path, also those that have lost their config.json.

    Links to directories are not followed, and directories that cannot be read are skipped.

    Args:
        root: The directory to search.
        most_directories: The most directories to search.
    """
    names = {file.name for file in (RunDirectory(root).config, RunDirectory(root).summary, RunDirectory(root).metrics)}
    runs, directories, searched = [], [root], 0
    while directories and searched < most_directories:  # no recursion: there may be thousands of levels
        searched += 1
        with contextlib.suppress(OSError), os.scandir(path := directories.pop()) as entries:
            for entry in entries:
                if entry.name in names:
                    runs.append(path)
                if entry.is_dir(follow_symlinks=False):
                    directories.append(Path(entry.path))
    return [RunDirectory(path) for path in sorted(set(runs))]


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
    snapshots = RunDirectory(path).snapshots
    matches = (SNAPSHOT_NAME.fullmatch(name) for name in list_directory(snapshots))
    return {int(match[1]): snapshots / match[0] for match in matches if match}
