"""The schema of a run folder: which file holds what. Training writes it; analysis reads it and imports no training."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bootdqn.common.errors import DamagedFileError, UsageError
from bootdqn.common.files import check_directory, check_file, is_present, list_directory, open_regular, read_regular

MAX_JSON_BYTES = 256 * 2**20
SNAPSHOT_NAME = re.compile(r"step-([0-9]{12})\.safetensors")
BLOCK = 2**16
"""Bytes that are read at a time from the end of a file."""


@dataclass(frozen=True)
class RunFolder:
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

    def read_config(self) -> dict[str, Any]:
        """Return the configuration."""
        return read_json_object(self.config)

    def read_summary(self) -> dict[str, Any] | None:
        """Return the summary, or None where the run has not ended yet."""
        return read_json_object(self.summary) if is_present(self.summary) else None

    def read_metrics(self, kind: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the records of `kind`, or all. A half-written last line, as a crash leaves it, is passed over.

        Raises:
            DamagedFileError: A line is not a JSON object in UTF-8.
        """
        if not is_present(self.metrics):
            return
        with os.fdopen(open_regular(self.metrics), "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                record = _record(line, f"{self.metrics}, line {number}")
                if kind is None or record.get("kind") == kind:
                    yield record

    def last_metrics(self, kind: str | None = None) -> dict[str, Any] | None:
        """Return the last record of `kind`, or of any, reading no more of the file than its end; None where none is.

        Raises:
            DamagedFileError: A line on the way is not a JSON object in UTF-8.
        """
        if not is_present(self.metrics):
            return None
        records = (_record(line, f"the end of {self.metrics}") for line in _lines_from_the_end(self.metrics))
        return next((record for record in records if kind is None or record.get("kind") == kind), None)


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{where}: {error}") from error
    if not isinstance(record, dict):
        raise DamagedFileError(f"{where}: expected a JSON object, found {type(record).__name__}")
    return record


def _lines_from_the_end(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, the last whole one first."""
    with os.fdopen(open_regular(path), "rb") as file:
        position, rest, ended = file.seek(0, os.SEEK_END), b"", False
        while position:
            size = min(BLOCK, position)
            position -= size
            file.seek(position)
            rest, *lines = (file.read(size) + rest).split(b"\n")
            if lines and not ended:
                lines.pop()  # half-written, or nothing
                ended = True
            yield from reversed(lines)
        if ended:
            yield rest


def find_runs(root: Path) -> list[RunFolder]:
    """Return every run folder at or below `root`, in the order of their paths, also where config.json is lost."""
    names = (file.name for file in (RunFolder(root).config, RunFolder(root).summary, RunFolder(root).metrics))
    return [RunFolder(path) for path in sorted({file.parent for name in names for file in root.rglob(name)})]


def find_weights(path: Path, checkpoint: str | int | None) -> Path | None:
    """Return the file of weights that `checkpoint` stands for in the run `path`: a step with a snapshot, or a file.

    Raises:
        UsageError: There is none; those that there are are named.
    """
    if checkpoint is None:
        return None
    if isinstance(checkpoint, str) and Path(checkpoint).is_file():
        return Path(checkpoint)
    found = find_snapshots(path)
    if str(checkpoint).isdecimal() and int(checkpoint) in found:
        return found[int(checkpoint)]
    no_file = "no such file, and " if isinstance(checkpoint, str) else ""
    known = ", ".join(map(str, found)) or "none: train with --snapshot-every"
    raise UsageError(f"checkpoint {checkpoint} of {path}: {no_file}no snapshot after that step; there are {known}")


def find_snapshots(path: Path) -> dict[int, Path]:
    """Return the snapshots of the run `path` by their step."""
    folder = RunFolder(path).snapshots
    steps = {SNAPSHOT_NAME.fullmatch(name): folder / name for name in list_directory(folder)}
    return {int(name[1]): file for name, file in steps.items() if name}


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`, or raise a `DamagedFileError` that names it."""
    try:
        value = json.loads(read_regular(path, MAX_JSON_BYTES).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise DamagedFileError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value
