"""Files that are either whole or not there."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bootdqn.common.errors import UsageError


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader, or a crash, never sees half of it."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader, or a crash, never sees half of it."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


@contextmanager
def held_exclusively(folder: Path) -> Iterator[None]:
    """Hold `folder` against every other process of this machine that asks the same; no file is left behind.

    Raises:
        UsageError: Another process holds it.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"{folder} is in use by another process; wait for it or choose another folder") from None
    finally:
        os.close(handle)


def write_json_atomically(path: Path, value: Any) -> None:
    """Write `value` as indented JSON; infinities and NaN are refused, since JSON has none."""
    write_text_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")
