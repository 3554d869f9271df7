"""Values as people write them on a command line."""

import tomllib
from typing import Any


def read_value(text: str) -> Any:
    """Return what `text` means in TOML, None for none or null, or the text itself where it means nothing.

    Example:
        >>> [read_value(text) for text in ("1e-3", "[0, 1]", "true", "none", "8x8")]
        [0.001, [0, 1], True, None, '8x8']
    """
    if text.lower() in ("none", "null"):
        return None
    try:
        content = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return content["value"] if content.keys() == {"value"} else text
