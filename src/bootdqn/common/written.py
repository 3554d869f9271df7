"""Values as people write them on a command line, and as they are read there."""

import difflib
import json
import math
import tomllib
from collections.abc import Iterable
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


def write_value(value: Any) -> str:
    """Return the text that `read_value` reads as `value`.

    Raises:
        ValueError: No text means that.

    Example:
        >>> [write_value(value) for value in (0.001, [0, 1], True, None, "8x8", "1")]
        ['0.001', '[0, 1]', 'true', 'none', '8x8', '"1"']
    """
    if value is None:
        return "none"
    bare = isinstance(value, str) and read_value(value) == value
    text = value if bare else json.dumps(value, default=repr, ensure_ascii=False)
    if read_value(text) != value:
        raise ValueError(f"{value!r} cannot be written as text")
    return text


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message about an unknown `word`: the known one closest to it, or `otherwise`.

    Example:
        >>> did_you_mean("Evio", ["greedy", "evoi"]), did_you_mean("x", ["greedy", "evoi"], "see the list")
        ("; did you mean 'evoi'?", '; see the list')
    """
    by_lower_case = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower_case, n=1)
    hint = f"did you mean {by_lower_case[close[0]]!r}?" if close else otherwise
    return f"; {hint}" if hint else ""


def counted(number: int, noun: str) -> str:
    """Return how many there are of what `noun` names one of.

    Example:
        >>> counted(1, "run"), counted(2000, "run")
        ('1 run', '2,000 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rounded(value: float) -> str:
    """Return a number to four significant digits, and large ones to the last whole digit.

    Example:
        >>> [rounded(value) for value in (-0.0058333, 0.0, 99.5, 187.4321, 28539.3)]
        ['-0.005833', '0', '99.5', '187.4', '28,539']
    """
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").removesuffix(".") if decimals else text
