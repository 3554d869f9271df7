"""Checkpoints on disk: written atomically, verified when they are read, and incremental.

    checkpoints/
      step-000000012345/       one checkpoint: manifest.json, state.json, and arrays as safetensors
      segments/                segments of the replay buffer, named by their digest in the manifests that need them

A segment that has not changed since the last checkpoint is not written again. A checkpoint is written to a directory
under another name, synced, and renamed. The last two are kept.
"""

import base64
import contextlib
import hashlib
import json
import math
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bootdqn import __version__
from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import (
    CHECKPOINT,
    check_directory,
    is_directory,
    list_directory,
    make_directory,
    read_json_object,
    remove_directories,
    remove_directory,
    remove_files,
    sync_directory,
    write_bytes_atomically,
)
from bootdqn.common.specs import Array
from bootdqn.common.tensor_files import MAX_BYTES, Digest, digest_of, read_tensors, write_tensors
from bootdqn.replay.buffer import ReplayBuffer
from bootdqn.runs.directory import CHECKPOINT_NAME

FORMAT, FORMAT_VERSION = "bootdqn checkpoint", 3
KEPT = 2
_ARRAYS = r"[a-z]+\.safetensors"
_PART = r"\.[0-9a-f]{32}\.part"
_FILE_OF_CHECKPOINT = re.compile(rf"manifest\.json|state\.json|{_ARRAYS}|\.(manifest|state)\.json\.[0-9a-f]{{8}}\.part")
_FILE_OF_SEGMENTS = re.compile(rf"[0-9a-f]{{64}}\.safetensors|{_PART}")
_CHECKPOINT = re.compile(rf"{CHECKPOINT_NAME.pattern}|{_PART}")
"""Names of checkpoints; nothing else is ever removed."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


class State(NamedTuple):
    """The state of a run apart from the contents of its replay buffer."""

    values: dict[str, Any]
    """JSON values, and bytes."""
    arrays: dict[str, dict[str, Array]]
    """Arrays by name, by file."""


class LoadedCheckpoint(NamedTuple):
    """A checkpoint that was read and verified."""

    path: Path
    state: State
    segments: dict[int, "Segment"]

    @property
    def step(self) -> int:
        """The environment steps before it was made."""
        return int(self.state.values["step"])


class Segment(NamedTuple):
    """A segment of the replay buffer on disk."""

    version: int
    digest: Digest


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        """Use the directory `path`; a checkpoint of more than `max_bytes` is damaged, and not read."""
        self._path, self._max_bytes = path, max_bytes
        self._segments: dict[int, Segment] = {}
        self._kept: dict[int, set[str]] = {}

    def exist(self) -> bool:
        """Return whether there is any checkpoint, valid or damaged."""
        return bool(self._directories())

    def count(self) -> int:
        """Return the number of checkpoints, valid, damaged or partial."""
        return sum(_CHECKPOINT.fullmatch(name) is not None for name in list_directory(self._path))

    def save(self, step: int, state: State, replay: ReplayBuffer) -> int:
        """Write a checkpoint and return how many bytes were written; an OSError leaves earlier ones as they are."""
        if step in self._kept:
            return 0
        part = self._path / f".{uuid.uuid4().hex}.part"
        try:
            make_directory(self._path)
            make_directory(self._segments_path)
            segments, written = self._save_segments(replay)
            part.mkdir()
            files = {f"{name}.safetensors": write_tensors(part / f"{name}.safetensors", arrays)
                     for name, arrays in state.arrays.items()}  # fmt: skip
            text = json.dumps(encode(state.values)).encode()
            write_bytes_atomically(part / "state.json", text)
            files["state.json"] = Digest(hashlib.sha256(text).hexdigest(), len(text))
            write_bytes_atomically(part / "manifest.json", _manifest(step, files, segments))
            sync_directory(part)
            final = self._directory(step)
            remove_directory(final, _FILE_OF_CHECKPOINT)  # a damaged one: a valid one of this step is in `_kept`
            part.rename(final)
            sync_directory(self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                remove_directory(part, _FILE_OF_CHECKPOINT)
            self._remove_old()
            raise
        self._segments = segments
        self._kept[step] = {segment.digest.sha256 for segment in segments.values()}
        self._remove_old()
        return written + sum(digest.size for digest in files.values())

    def load(self, warn: Callable[[str], None]) -> LoadedCheckpoint:
        """Return the newest valid checkpoint.

        Args:
            warn: Called with a line about each newer one that is damaged.

        Raises:
            DamagedFileError: There is no valid checkpoint.
        """
        problems = []
        for directory in self._directories():
            try:
                loaded = self._read(directory)
            except DamagedFileError as error:
                problems.append(f"{directory.name} is damaged ({error})")
                continue
            for problem in problems:
                warn(f"CHECKPOINT {problem}; resuming from {directory.name}")
            self._remember(loaded)
            return loaded
        raise DamagedFileError(
            f"no checkpoint in {self._path} can be used: {'; '.join(problems)}. --restart starts the run again"
        )

    def load_segments(self, loaded: LoadedCheckpoint, replay: ReplayBuffer) -> None:
        """Restore the segments of the replay buffer of a checkpoint.

        Raises:
            DamagedFileError: They do not fit this replay buffer.
        """
        for index, segment in loaded.segments.items():
            path = self._segment_file(segment)
            try:
                replay.set_segment(index, read_tensors(path), segment.version)
            except (ValueError, OverflowError) as error:
                raise DamagedFileError(f"{path} is not a segment of this replay buffer: {error}") from error

    def remove(self) -> None:
        """Remove all checkpoints; other files stay, and then so does the directory."""
        self._remove_all_but(set(), set())
        for empty in (self._segments_path, self._path):
            with contextlib.suppress(OSError):
                empty.rmdir()
        self._segments, self._kept = {}, {}

    def keep_last(self) -> None:
        """Remove all but the newest checkpoint."""
        self._remove_old(count=1)

    @property
    def _segments_path(self) -> Path:
        return self._path / "segments"

    def _directory(self, step: int) -> Path:
        return self._path / f"step-{step:012d}"

    def _directories(self) -> list[Path]:
        """Return the directories of checkpoints, the newest first."""
        return [self._path / name for name in reversed(list_directory(self._path)) if CHECKPOINT_NAME.fullmatch(name)]

    def _segment_file(self, segment: Segment) -> Path:
        return self._segments_path / f"{segment.digest.sha256}.safetensors"

    def _save_segments(self, replay: ReplayBuffer) -> tuple[dict[int, Segment], int]:
        """Write the segments that have changed; return all segments, and how many bytes were written."""
        segments, written = {}, 0
        for index, version in enumerate(replay.segment_versions):
            saved = self._segments.get(index)
            if saved is not None and saved.version == version:
                segments[index] = saved
            elif version:
                part = self._segments_path / f".{uuid.uuid4().hex}.part"
                try:
                    segment = Segment(version, write_tensors(part, replay.get_segment(index)))
                    part.rename(self._segment_file(segment))
                finally:
                    part.unlink(missing_ok=True)
                segments[index] = segment
                written += segment.digest.size
        sync_directory(self._segments_path)
        return segments, written

    def _remember(self, loaded: LoadedCheckpoint) -> None:
        self._segments = loaded.segments
        for directory in self._directories():
            with contextlib.suppress(DamagedFileError):
                step, _, segments = _read_manifest(directory)
                if directory <= loaded.path:
                    self._kept[step] = {segment.digest.sha256 for segment in segments.values()}

    def _remove_old(self, count: int = KEPT) -> None:
        """Remove old checkpoints as far as the disk allows; an error costs room, not the new checkpoint."""
        self._kept = dict(sorted(self._kept.items())[-count:])
        if not self._kept:
            return
        needed = {f"{sha256}.safetensors" for sha256s in self._kept.values() for sha256 in sha256s}
        with contextlib.suppress(OSError):
            self._remove_all_but({self._directory(step).name for step in self._kept}, needed)

    def _remove_all_but(self, directories: set[str], segments: set[str]) -> None:
        """Remove all checkpoints but these; nothing where the directory is a link."""
        if is_directory(self._path):
            remove_directories(self._path, _CHECKPOINT, _FILE_OF_CHECKPOINT, keep=directories)
            remove_files(self._segments_path, _FILE_OF_SEGMENTS, keep=segments)

    def _read(self, directory: Path) -> LoadedCheckpoint:
        """Return the checkpoint in `directory`, every byte of it verified."""
        check_directory(directory)
        check_directory(self._segments_path)
        step, files, segments = _read_manifest(directory)
        expected = {directory / name: digest for name, digest in files.items()}
        expected |= {self._segment_file(segment): segment.digest for segment in segments.values()}
        if (size := sum(digest.size for digest in expected.values())) > self._max_bytes:
            raise DamagedFileError(f"it has {size:,} bytes, and one of this run has {self._max_bytes:,} at most")
        for path, digest in expected.items():
            if (path.is_file() and path.stat().st_size != digest.size) or digest_of(path) != digest:
                raise DamagedFileError(f"{path.name} does not match its SHA-256 checksum")
        values = _read_values(directory / "state.json", step)
        names = [name.removesuffix(".safetensors") for name in files if name != "state.json"]
        arrays = {name: read_tensors(directory / f"{name}.safetensors") for name in names}
        return LoadedCheckpoint(directory, State(values, arrays), segments)


def _manifest(step: int, files: Mapping[str, Digest], segments: Mapping[int, Segment]) -> bytes:
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "bootdqn": __version__,
        "step": step,
        "files": {name: digest._asdict() for name, digest in files.items()},
        "segments": [
            {"index": index, "version": segment.version, **segment.digest._asdict()}
            for index, segment in segments.items()
        ],
    }
    return json.dumps(content | {"checksum": _checksum(content)}, indent=1).encode()


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_manifest(directory: Path) -> tuple[int, dict[str, Digest], dict[int, Segment]]:
    """Return the step, the files and the segments of a checkpoint; its names never lead out of the directory."""
    path = directory / "manifest.json"
    content = read_json_object(path, CHECKPOINT)
    try:
        checksum = content.pop("checksum", None)
        if content["format"] != FORMAT:
            raise DamagedFileError(f"{path}: not a checkpoint")
        if content["format_version"] != FORMAT_VERSION:
            raise DamagedFileError(
                f"{path}: of format {content['format_version']}, and this version reads {FORMAT_VERSION}: resume with "
                "the version that made it, whose commit is in provenance.json"
            )
        if checksum != _checksum(content):
            raise DamagedFileError(f"{path} does not match its SHA-256 checksum")
        files = {_plain_name(name): _digest(value) for name, value in content["files"].items()}
        segments = {
            int(entry["index"]): Segment(int(entry["version"]), _digest(entry)) for entry in content["segments"]
        }
        if "state.json" not in files or directory.name != f"step-{content['step']:012d}":
            raise DamagedFileError(f"{path}: does not belong to this directory")
        return int(content["step"]), files, segments
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise DamagedFileError(f"{path}: {type(error).__name__}: {error}") from error


def _read_values(path: Path, step: int) -> dict[str, Any]:
    try:
        values = decode(read_json_object(path, CHECKPOINT))
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path}: {error}") from error
    if not isinstance(values, dict) or values.get("step") != step:
        raise DamagedFileError(f"{path} is not the state after step {step}")
    return values


def _plain_name(name: str) -> str:
    if name != "state.json" and not re.fullmatch(_ARRAYS, name):
        raise ValueError(f"{name!r} is not the name of a checkpoint's file")
    return name


def _digest(value: Mapping[str, Any]) -> Digest:
    if not _SHA256.fullmatch(value["sha256"]):
        raise ValueError(f"{value['sha256']!r} is not a digest")
    return Digest(value["sha256"], int(value["size"]))


def encode(value: Any) -> Any:
    """Return `value` with bytes as base64, for JSON."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def decode(value: Any) -> Any:
    """Return the value that `encode` was given; a ValueError if there is none."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a number is {value}")
    if isinstance(value, dict):
        if value.keys() == {"base64"} and isinstance(value["base64"], str):
            return base64.b64decode(value["base64"], validate=True)
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value
