"""Files that are either whole or not there."""

import json
import os
import uuid
from pathlib import Path
from typing import Any


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader, or a crash, never sees half of it."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader, or a crash, never sees half of it."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")  # two may be writing the same file
    try:
        with part.open("wb") as file:
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


def sync_folder(folder: Path) -> None:
    """See the names in `folder` safely on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
