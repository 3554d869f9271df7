"""Atomic writes, and safe reads of files and JSON in directories that somebody else may have written to."""

import contextlib
import json
import os
import re
import stat
import uuid
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bootdqn.common.errors import DamagedFileError

BLOCK = 2**16
"""Bytes read at a time from the end of a file."""
_REMEDY = "remove it, or copy the run directory again"


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader, or a crash, never sees half of it."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader, or a crash, never sees half of it.

    An existing file is replaced, never written into, so a link at `path` is not followed.
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")  # two may be writing the same file
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def write_json_atomically(path: Path, value: Any) -> None:
    """Write `value` as indented JSON; a ValueError for infinities and NaN, which JSON does not have."""
    write_text_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def is_present(path: Path) -> bool:
    """Return whether anything has this name, even a broken link."""
    return os.path.lexists(path)


def open_regular(path: Path, flags: int = os.O_RDONLY, *, alone: bool = False) -> int:
    """Open a regular file and return its descriptor.

    Args:
        path: The file; the last part of its name is not followed if it is a link.
        flags: As for `os.open`.
        alone: Whether to reject a file with further names (hard links), since writing would change all of them.

    Raises:
        DamagedFileError: It is no regular file.
        OSError: It does not exist, or cannot be opened.
    """
    with contextlib.suppress(FileNotFoundError):
        _check_regular(path, os.lstat(path), alone=alone)  # opening a device may have effects
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        _check_regular(path, os.fstat(handle), alone=alone)
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        DamagedFileError: It is no regular file, or larger than `max_bytes`.
        OSError: It does not exist, or cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > max_bytes:
            raise DamagedFileError(f"{path} has {size:,} bytes, the limit is {max_bytes:,}; {_REMEDY}")
        return file.read(size)


def read_lines(path: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a regular file; an incomplete last line, as a crash leaves it, is skipped.

    Raises:
        DamagedFileError: It is no regular file, or a line is longer than `max_bytes`.
        OSError: It does not exist, or cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        while (line := file.readline(max_bytes + 1)).endswith(b"\n"):
            yield line
        if len(line) > max_bytes:
            raise _line_too_long(path, max_bytes)


def read_lines_backwards(path: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a regular file, the last complete one first; raises as `read_lines` does."""
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
            if len(rest) > max_bytes:
                raise _line_too_long(path, max_bytes)
        if ended:
            yield rest


def check_file(path: Path, *, alone: bool = False) -> None:
    """Raise a DamagedFileError if `path` exists and is no regular file; `alone` as for `open_regular`."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        _check_regular(path, os.lstat(path), alone=alone)


def check_directory(path: Path) -> None:
    """Raise a DamagedFileError if `path` exists and is no directory; a link to one is none."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISDIR(mode):
            raise DamagedFileError(f"{path} is {_kind_of(mode)}, not a directory; {_REMEDY}")


def is_directory(path: Path) -> bool:
    """Return whether `path` is a directory; a link to one is none."""
    return path.is_dir() and not path.is_symlink()


def make_directory(path: Path) -> None:
    """Create the directory `path` unless it exists; an OSError where it cannot be created."""
    if not is_directory(path):
        path.mkdir()


def list_directory(path: Path) -> list[str]:
    """Return the names in the directory `path`, sorted; none where it does not exist.

    Raises:
        DamagedFileError: It is no directory.
        OSError: It cannot be read.
    """
    check_directory(path)
    return sorted(entry.name for entry in path.iterdir()) if is_directory(path) else []


def remove_file(path: Path) -> None:
    """Remove a regular file, if it exists; a DamagedFileError where it is something else."""
    check_file(path)
    path.unlink(missing_ok=True)


def remove_files(directory: Path, names: re.Pattern[str], keep: Container[str] = ()) -> None:
    """Remove from `directory` the regular files whose full names match `names`, except those to `keep`.

    Nothing else is removed, and nothing at all where `directory` is a link.
    """
    for path in _matching(directory, names, keep):
        if path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


def remove_directory(directory: Path, names: re.Pattern[str]) -> None:
    """Remove from `directory` the regular files whose names match, and the directory itself if it is empty then."""
    remove_files(directory, names)
    with contextlib.suppress(OSError):
        directory.rmdir()


def remove_directories(parent: Path, names: re.Pattern[str], files: re.Pattern[str], keep: Container[str] = ()) -> None:
    """Call `remove_directory` for the directories in `parent` whose names match, except those to `keep`."""
    for path in _matching(parent, names, keep):
        remove_directory(path, files)


def sync_directory(directory: Path) -> None:
    """Flush the names in `directory` to the disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line_too_long(path: Path, max_bytes: int) -> DamagedFileError:
    return DamagedFileError(f"{path}: a line has more than {max_bytes:,} bytes")


def _matching(directory: Path, names: re.Pattern[str], keep: Container[str]) -> list[Path]:
    paths = list(directory.iterdir()) if is_directory(directory) else []
    return [path for path in paths if names.fullmatch(path.name) and path.name not in keep]


def _check_regular(path: Path, status: os.stat_result, *, alone: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DamagedFileError(f"{path} is {_kind_of(status.st_mode)}, not a file; {_REMEDY}")
    if alone and status.st_nlink > 1:
        raise DamagedFileError(
            f"{path} has {status.st_nlink} names (hard links), and writing would change the file under all of them; "
            "copy the run directory with cp -r and use the copy"
        )


def _kind_of(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a directory",
        stat.S_IFREG: "a file",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


MAX_DEPTH = 32
MAX_NUMBER = 1e100
"""No sum of rewards, which are float32, comes near it, and its square is finite."""
MAX_TEXT = 9_000
"""Characters that are kept of a text from outside."""


class Limits(NamedTuple):
    """Limits of the content of one kind of file."""

    max_bytes: int
    """Of the file, or of a line where each holds one object."""
    max_text: int
    """Characters of any text in it."""
    integer_bits: int = 63
    """Beside the sign."""


CONFIG = Limits(max_bytes=2**18, max_text=10_000)
RECORD = Limits(max_bytes=2**24, max_text=10_000)
SUMMARY = Limits(max_bytes=2**24, max_text=2**20)
PROVENANCE = Limits(max_bytes=2**28, max_text=2**20)
CHECKPOINT = Limits(max_bytes=2**28, max_text=2**28, integer_bits=128)
"""The states of random streams have 128 bits, and environments are saved as text."""


def read_json_object(path: Path, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in `path`.

    Raises:
        DamagedFileError: It cannot be read, is no JSON object, or exceeds the limits.
    """
    try:
        content = read_regular(path, limits.max_bytes)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from error
    return parse_json_object(content, str(path), limits)


def parse_json_object(content: bytes, where: str, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in `content`; a DamagedFileError that starts with `where` if there is none."""
    try:
        value = json.loads(content.decode()) if content.strip() else None
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        kind = type(value).__name__ if content.strip() else "nothing"
        raise DamagedFileError(f"{where}: expected a JSON object, found {kind}")
    if problem := _problem_with(value, limits, MAX_DEPTH):
        raise DamagedFileError(f"{where}: {problem}")
    return value


def sanitize_text(text: str) -> str:
    """Return a text from outside, such as an error's, as one that every file of a run can store."""
    escaped = text.encode(errors="backslashreplace").decode().replace("\0", "\\0")
    return escaped if len(escaped) <= MAX_TEXT else f"{escaped[:MAX_TEXT]}..."


def _problem_with(value: Any, limits: Limits, depth: int) -> str:
    """Return the reason why a value is rejected, or an empty text."""
    kind = type(value)
    if kind is int:
        return "" if value.bit_length() <= limits.integer_bits else f"a number has {value.bit_length():,} bits"
    if kind is float:
        return "" if -MAX_NUMBER <= value <= MAX_NUMBER else f"a number is {value}"
    if kind is str:
        return _problem_with_text(value, limits.max_text)
    if kind is dict or kind is list:
        if depth == 0:
            return f"it is nested more than {MAX_DEPTH} deep"
        for item in value if kind is list else (*value, *value.values()):
            if problem := _problem_with(item, limits, depth - 1):
                return problem
    return ""


def _problem_with_text(text: str, max_text: int) -> str:
    if len(text) > max_text:
        return f"a text has {len(text):,} characters, at most {max_text:,} are read: {text[:20]!r}..."
    if "\0" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
        return f"a text contains NUL or unpaired surrogates: {text[:200]!r}"
    return ""
