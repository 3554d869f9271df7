"""Files that are whole or not there, in directories that may come from somebody else.

Nothing in a run directory is read, written or removed through a symbolic link, and nothing but a regular file is ever
opened: a named pipe or a device may have no end. Paths up to the run directory are the user's own choice and may be
links.
"""

import contextlib
import json
import os
import re
import stat
import uuid
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from bootdqn.common.errors import DamagedFileError

BLOCK = 2**16
"""Bytes that are read at a time from the end of a file."""
_REMEDY = "remove it, or copy the run again from where it was made"


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader, or a crash, never sees half of it."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader, or a crash, never sees half of it.

    What stands at `path` is replaced, never written into, so a link there leads nowhere.
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
    """Write `value` as indented JSON; infinities and NaN are refused, since JSON has none."""
    write_text_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def is_present(path: Path) -> bool:
    """Return whether anything has this name, be it a link that leads nowhere."""
    return os.path.lexists(path)


def open_regular(path: Path, flags: int = os.O_RDONLY, *, alone: bool = False) -> int:
    """Open a regular file and return its descriptor.

    Args:
        path: The file; the last part of its name is not followed if it is a link.
        flags: As for `os.open`.
        alone: Refuse a file that has further names (hard links), since writing would change all of them.

    Raises:
        DamagedFileError: It is something else than a regular file.
        OSError: It is not there, or cannot be opened.
    """
    with contextlib.suppress(FileNotFoundError):
        _check_regular(path, os.lstat(path), alone=alone)  # to open a device alone may have effects
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
        DamagedFileError: It is something else, or larger than `max_bytes`.
        OSError: It is not there, or cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > max_bytes:
            raise DamagedFileError(f"{path} has {size:,} bytes, such a file has {max_bytes:,} at most; {_REMEDY}")
        return file.read(size)


def read_lines(path: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a regular file; a last one that breaks off, as a crash leaves it, is passed over.

    Raises:
        DamagedFileError: It is something else, or a line is longer than `max_bytes`.
        OSError: It is not there, or cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        while (line := file.readline(max_bytes + 1)).endswith(b"\n"):
            yield line
        if len(line) > max_bytes:
            raise _line_too_long(path, max_bytes)


def read_lines_backwards(path: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a regular file, the last whole one first; raises what `read_lines` does."""
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
    """Raise a DamagedFileError unless `path` is a regular file or not there; `alone` as for `open_regular`."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        _check_regular(path, os.lstat(path), alone=alone)


def check_directory(path: Path) -> None:
    """Raise a DamagedFileError unless `path` is a directory, and no link to one, or not there."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISDIR(mode):
            raise DamagedFileError(f"{path} is {_kind_of(mode)}, not a directory; {_REMEDY}")


def is_directory(path: Path) -> bool:
    """Return whether `path` is a directory, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def make_directory(path: Path) -> None:
    """Make the directory `path` unless it is there; an OSError where it cannot be made, or something has its name."""
    if not is_directory(path):
        path.mkdir()


def list_directory(path: Path) -> list[str]:
    """Return the names in the directory `path`, sorted; none where it is not there.

    Raises:
        DamagedFileError: It is something else than a directory.
        OSError: It cannot be read.
    """
    check_directory(path)
    return sorted(entry.name for entry in path.iterdir()) if is_directory(path) else []


def remove_file(path: Path) -> None:
    """Remove a regular file, if it is there; a DamagedFileError where something else has its name."""
    check_file(path)
    path.unlink(missing_ok=True)


def remove_files(directory: Path, names: re.Pattern[str], keep: Container[str] = ()) -> None:
    """Remove from `directory` the regular files whose whole names match `names`, but those to `keep`.

    Whatever else is in it is left alone, and so is all of it where `directory` is a link.
    """
    for path in _matching(directory, names, keep):
        if path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


def remove_directory(directory: Path, names: re.Pattern[str]) -> None:
    """Remove from `directory` the regular files whose names match, and itself where nothing else is in it."""
    remove_files(directory, names)
    with contextlib.suppress(OSError):
        directory.rmdir()


def remove_directories(parent: Path, names: re.Pattern[str], files: re.Pattern[str], keep: Container[str] = ()) -> None:
    """Remove from `parent` the directories whose names match `names`, but those to `keep`, with the `files` in them."""
    for path in _matching(parent, names, keep):
        remove_directory(path, files)


def sync_folder(folder: Path) -> None:
    """See the names in `folder` safely on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line_too_long(path: Path, max_bytes: int) -> DamagedFileError:
    return DamagedFileError(f"{path}: a line has more than {max_bytes:,} bytes")


def _matching(directory: Path, names: re.Pattern[str], keep: Container[str]) -> list[Path]:
    found = list(directory.iterdir()) if is_directory(directory) else []
    return [path for path in found if names.fullmatch(path.name) and path.name not in keep]


def _check_regular(path: Path, found: os.stat_result, *, alone: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise DamagedFileError(f"{path} is {_kind_of(found.st_mode)}, not a file; {_REMEDY}")
    if alone and found.st_nlink > 1:
        raise DamagedFileError(
            f"{path} has {found.st_nlink} names (hard links), and writing would change the file under all of them; "
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
