"""Values as people write them on a command line, and as they are read there."""

import difflib
import json
import math
import re
import tomllib
import types
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_KIND_NAMES = {int: "a whole number", float: "a number", str: "a text", Path: "a path", type(None): "None"}
_MULTIPLES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_WHOLE_NUMBER = re.compile(r"(?P<number>[+-]?\d[\d_]*(\.\d+)?(e\+?\d{1,2})?)(?P<multiple>[kMG]?)", re.ASCII)


def parse_as(kind: Any, text: str) -> Any:
    """Return the value of type `kind` that `text` stands for on a command line.

    Args:
        kind: int, float, bool, str, Path, a Literal of strings, None, or a union of these.
        text: Whole numbers may be written as 200000000, 200_000_000, 200e6 or 200M.

    Raises:
        ValueError: It stands for none; the message says what is expected, and reads on after the name of the setting.

    Example:
        >>> parse_as(int, "200M"), parse_as(int | None, "none"), parse_as(Literal["mean", "sum"], "sum")
        (200000000, None, 'sum')
    """
    for arm in _arms(kind):
        try:
            return _parse_arm(arm, text)
        except ValueError:
            continue
    expected = _describe_kind(kind)
    raise ValueError(f"must be {expected}{';' if ',' in expected else ','} got {text!r}")


def _arms(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, None first, or the one type that `kind` is."""
    if get_origin(kind) is Annotated:
        return _arms(get_args(kind)[0])
    arms = get_args(kind) if get_origin(kind) in (types.UnionType, Union) else (kind,)
    return tuple(sorted(arms, key=lambda arm: arm is not type(None)))


def _parse_arm(kind: Any, text: str) -> Any:
    if kind is type(None) and text.lower() in ("none", "null"):
        return None
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind is int:
        return _parse_whole_number(text)
    if kind in (float, str, Path):
        return kind(text)
    if get_origin(kind) is Literal and text in get_args(kind):
        return text
    raise ValueError(text)


def _parse_whole_number(text: str) -> int:
    written = _WHOLE_NUMBER.fullmatch(text)
    number = Fraction(written["number"]) * _MULTIPLES[written["multiple"]] if written else None
    if number is None or number.denominator != 1:
        raise ValueError(text)
    return int(number)


def _describe_kind(kind: Any) -> str:
    """Return what a value must be, for a message: `a whole number or None`, `one of mean, sum`."""
    described = []
    for arm in sorted(_arms(kind), key=lambda arm: arm is type(None)):
        choices = ("true", "false") if arm is bool else get_args(arm) if get_origin(arm) is Literal else ()
        listed = ", ".join(map(str, choices))
        described.append(f"one of {listed}" if len(choices) > 1 else listed or _KIND_NAMES[arm])
    return " or ".join(described)


MOST_IN_A_FIGURE = 100
"""Letters of a title or a label."""


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


def format_value_as_text(value: Any) -> str:
    """Return the text that `read_value` reads as `value`.

    Raises:
        ValueError: No text means that.

    Example:
        >>> [format_value_as_text(value) for value in (0.001, [0, 1], True, None, "8x8", "1")]
        ['0.001', '[0, 1]', 'true', 'none', '8x8', '"1"']
    """
    if value is None:
        return "none"
    bare = isinstance(value, str) and read_value(value) == value
    text = value if bare else json.dumps(value, default=repr, ensure_ascii=False)
    if read_value(text) != value:
        raise ValueError(f"{value!r} cannot be written as text")
    return text


def printable(text: str) -> str:
    r"""Return a text of somebody else with what a terminal or a file would choke on written as Python escapes it.

    Example:
        >>> printable("ε: a\tb\x1b[2J")
        'ε: a\\tb\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def as_plotted(text: str) -> str:
    r"""Return a text of somebody else as a figure has room for it, and so that Matplotlib reads no formula in it.

    Example:
        >>> as_plotted(r"costs $\frac$")
        'costs \\$\\frac\\$'
    """
    short = text if len(text) <= MOST_IN_A_FIGURE else f"{text[: MOST_IN_A_FIGURE - 1]}…"
    shown = printable(short).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown  # which no legend shows


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


def format_count(number: int, noun: str) -> str:
    """Return how many there are of what `noun` names one of.

    Example:
        >>> format_count(1, "run"), format_count(2000, "run")
        ('1 run', '2,000 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_number(value: float) -> str:
    """Return a number to four significant digits, and large ones to the last whole digit.

    Example:
        >>> [format_number(value) for value in (-0.0058333, 0.0, 99.5, 187.4321, 28539.3)]
        ['-0.005833', '0', '99.5', '187.4', '28,539']
    """
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").removesuffix(".") if decimals else text
