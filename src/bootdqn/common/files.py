"""Files that are either whole or not there."""

import json
import os
from pathlib import Path
from typing import Any


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


def write_json_atomically(path: Path, value: Any) -> None:
    """Write `value` as indented JSON; infinities and NaN are refused, since JSON has none."""
    write_text_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")
