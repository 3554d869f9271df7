"""Text for people: in messages, tables, figures and terminals."""

import difflib
import math
from collections.abc import Iterable

MAX_LABEL = 100
"""Characters of a title or a label in a figure."""


def escape_unprintable(text: str) -> str:
    r"""Return a text from outside with its unprintable characters escaped as in Python.

    Example:
        >>> escape_unprintable("ε: a\tb\x1b[2J")
        'ε: a\\tb\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def figure_label(text: str) -> str:
    r"""Return a text from outside as a label of a figure: shortened, escaped, and without formulas for Matplotlib.

    Example:
        >>> figure_label(r"costs $\frac$")
        'costs \\$\\frac\\$'
    """
    short = text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"
    label = escape_unprintable(short).replace("$", r"\$")
    return f" {label}" if label.startswith("_") else label  # legends hide labels that start with _


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message about an unknown `word`: the closest known one, or else `otherwise`.

    Also close is the only one that begins with the word, if that has three letters or more.

    Example:
        >>> did_you_mean("Evio", ["greedy", "evoi"]), did_you_mean("x", ["greedy", "evoi"], "see the list")
        ("; did you mean 'evoi'?", '; see the list')
    """
    by_lower_case = {name.lower(): name for name in known}
    word = word.lower()
    longer = [name for name in by_lower_case if len(word) > 2 and name.startswith(word)]
    close = difflib.get_close_matches(word, by_lower_case, n=1) or (longer if len(longer) == 1 else [])
    hint = f"did you mean {by_lower_case[close[0]]!r}?" if close else otherwise
    return f"; {hint}" if hint else ""


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where due.

    Example:
        >>> format_count(1, "run"), format_count(2000, "run")
        ('1 run', '2,000 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_bytes(size: float) -> str:
    """Return a size in TiB, GiB, MiB or KiB.

    Example:
        >>> [format_bytes(size) for size in (4 * 2**40, 3 * 2**30, 5 * 2**20, 200 * 2**10)]
        ['4.0 TiB', '3.0 GiB', '5 MiB', '200 KiB']
    """
    if size >= 2**40:
        return f"{size / 2**40:.1f} TiB"
    if size >= 2**30:
        return f"{size / 2**30:.1f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 or not size else f"{size / 2**10:.0f} KiB"


def format_duration(seconds: float) -> str:
    """Return a time span in its two largest units.

    Example:
        >>> [format_duration(seconds) for seconds in (45, 725, 12_000, 187_200)]
        ['45s', '12m 05s', '3h 20m', '2d 4h']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def format_number(value: float) -> str:
    """Return a number to four significant digits, but never fewer than all before the decimal point.

    Example:
        >>> [format_number(value) for value in (-0.0058333, 0.0, 99.5, 187.4321, 28539.3)]
        ['-0.005833', '0', '99.5', '187.4', '28,539']
    """
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").removesuffix(".") if decimals else text


def format_difference(value: float) -> str:
    """Return a number as `format_number` does, with its sign, a minus as people write it.

    Example:
        >>> [format_difference(value) for value in (-1.5, 0.0, 2.0)]
        ['−1.5', '0', '+2']
    """
    sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    return f"{sign}{format_number(abs(value))}"
