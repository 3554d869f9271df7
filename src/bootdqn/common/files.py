"""Files that are either whole or not there."""

import json
import os
from pathlib import Path
from typing import Any


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader, or a crash, never sees half of it."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def write_json_atomically(path: Path, value: Any) -> None:
    """Write `value` as indented JSON; infinities and NaN are refused, since JSON has none."""
    write_text_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")
