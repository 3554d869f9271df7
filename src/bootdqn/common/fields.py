"""Fields of configurations and commands: the values that they take, and how they are given on the command line.

A field declares its valid values in its type, as in `batch_size: Annotated[int, Range(ge=1)] = 128`. `parse_as` reads a
value from text, and `check_fields` checks those of a dataclass, whether they come from flags, Python, a sweep file or
`config.json`.
"""

import json
import math
import re
import tomllib
import types
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Flag:
    """Annotation of a field whose name and type do not determine how it is given on the command line."""

    name: str | None = None
    """Name of the flag (None: the field's own, with hyphens)."""
    positional: bool = False
    """Whether the value is given by its position, without a flag."""
    repeated: bool = False
    """Whether each value of a tuple has a flag of its own, as in `--import a --import b`."""
    metavar: str | None = None
    """Name of the value in the help (None: derived from the type)."""

    def name_for(self, field: str) -> str:
        """Return the name of a field on the command line: `--batch-size`, or `RUN_DIR` where it is positional."""
        if self.positional:
            return self.metavar or field.upper()
        return f"--{self.name or field.replace('_', '-')}"


@dataclass(frozen=True)
class Range:
    """Annotation of the numbers that a field takes: finite ones that are >= ge, > gt, <= le and < lt.

    Example:
        >>> str(Range(ge=1)), str(Range(ge=0, le=1)), str(Range(gt=0, le=1)), str(Range())
        ('at least 1', 'between 0 and 1', 'positive and at most 1', 'finite')
    """

    ge: float = -math.inf
    gt: float = -math.inf
    le: float = math.inf
    lt: float = math.inf

    def accepts(self, value: Any) -> bool:
        """Return whether `value` is in the range."""
        return bool(self.ge <= value <= self.le and self.gt < value < self.lt)

    def __str__(self) -> str:
        if math.isfinite(self.ge) and math.isfinite(self.le):
            return f"between {self.ge} and {self.le}"
        bounds = (("at least", self.ge), ("above", self.gt), ("at most", self.le), ("below", self.lt))
        words = [f"{word} {bound}" for word, bound in bounds if math.isfinite(bound)]
        return " and ".join("positive" if one == "above 0" else one for one in words) or "finite"


@dataclass(frozen=True)
class Pattern:
    """Annotation of the texts and paths that a field takes: those that `regex` matches as a whole."""

    regex: str
    description: str
    """The texts in words, to read on after "must be"."""

    def accepts(self, value: Any) -> bool:
        """Return whether `value` matches."""
        return re.fullmatch(self.regex, str(value), re.ASCII | re.DOTALL) is not None

    def __str__(self) -> str:
        return self.description


Constraint = Range | Pattern
PositiveInt = Annotated[int, Range(ge=1)]
NonNegativeInt = Annotated[int, Range(ge=0)]
Probability = Annotated[float, Range(ge=0, le=1)]

_KIND_NAMES = {int: "a whole number", float: "a number", str: "a text", Path: "a path", type(None): "None"}
_NUMBERS = {int: Integral, float: Real}
_MULTIPLES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_WHOLE_NUMBER = re.compile(r"(?P<number>[+-]?\d[\d_]*(\.\d+)?(e\+?\d{1,2})?)(?P<multiple>[kMG]?)", re.ASCII)


def check_fields(instance: Any, *, as_flags: bool = True) -> None:
    """Check every field of a dataclass against its type; NumPy's numbers, ints for floats and lists are converted.

    To be called in `__post_init__`. Fields that are dataclasses themselves are left to their own.

    Args:
        instance: The dataclass, frozen or not.
        as_flags: Whether messages name a field as its flag, `--batch-size`, or as it is in Python, `batch_size`.

    Raises:
        ValueError: A field does not take its value: `--batch-size must be at least 1, got 0`.
    """
    for name, flag, kind in _fields_of(instance.__class__):
        value = getattr(instance, name)
        checked = check_value(flag.name_for(name) if as_flags else name, kind, value)
        if checked is not value:
            object.__setattr__(instance, name, checked)


def check_value(name: str, kind: Any, value: Any) -> Any:
    """Return `value` as a `kind`, the annotated type of a field.

    Raises:
        ValueError: It is of another type or out of range; the message begins with `name`.

    Example:
        >>> check_value("--sizes", tuple[PositiveInt, ...], [1, 2]), check_value("--discount", Probability, 1)
        ((1, 2), 1.0)
    """
    item = item_kind(kind)
    if item is not None:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{name} must be a list, got {value!r}")
        return tuple(check_value(name, item, entry) for entry in value)
    for arm, constraints in _arms(kind):
        try:
            checked = _as_type(arm, value)
        except (TypeError, OverflowError):
            continue
        for constraint in constraints:
            if not constraint.accepts(checked):
                given = value if isinstance(value, Path) else repr(value)
                raise ValueError(f"{name} must be {constraint}, got {given}")
        return checked
    raise ValueError(f"{name} {_mismatch(kind, value)}")


def parse_as(kind: Any, text: str) -> Any:
    """Return the value of type `kind` that `text` stands for on a command line; its range is left to `check_fields`.

    Args:
        kind: int, float, bool, str, Path, a Literal of strings, None, or a union of these; a tuple of one of them, with
            commas between numbers; or Any, for what the text means in TOML, else the text itself.
        text: Whole numbers may be written as 200000000, 200_000_000, 200e6 or 200M.

    Raises:
        ValueError: It stands for none; the message states what is expected, and reads on after the name of the setting.

    Example:
        >>> parse_as(int, "200M"), parse_as(int | None, "none"), parse_as(tuple[int, ...], "50,50")
        (200000000, None, (50, 50))
        >>> [parse_as(Any, text) for text in ("1e-3", "[0, 1]", "true", "none", "8x8")]
        [0.001, [0, 1], True, None, '8x8']
    """
    item = item_kind(kind)
    if item is not None:
        numbers = all(arm in (int, float) for arm, _ in _arms(item))
        return tuple(parse_as(item, part) for part in (text.split(",") if numbers else [text]))
    for arm, _ in _arms(kind):
        with suppress(ValueError):
            return _parse(arm, text)
    raise ValueError(_mismatch(kind, text))


def format_literal(value: Any) -> str:
    """Return the text that `parse_as(Any, text)` reads as `value`.

    Raises:
        ValueError: No text means that.

    Example:
        >>> [format_literal(value) for value in (0.001, [0, 1], True, None, "8x8", "1")]
        ['0.001', '[0, 1]', 'true', 'none', '8x8', '"1"']
    """
    if value is None:
        return "none"
    bare = isinstance(value, str) and parse_as(Any, value) == value
    text = value if bare else json.dumps(value, default=repr, ensure_ascii=False)
    if parse_as(Any, text) != value:
        raise ValueError(f"{value!r} cannot be written as text")
    return text


def item_kind(kind: Any) -> Any:
    """Return the type of a tuple's items; None where `kind` is no tuple."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_args(bare)[0] if get_origin(bare) is tuple else None


def types_in(kind: Any) -> set[Any]:
    """Return the types that an annotated type allows: those of a union, without their constraints.

    Example:
        >>> types_in(Probability | None) == {float, type(None)}
        True
    """
    return {arm for arm, _ in _arms(kind)}


def constraints_of(kind: Any) -> list[Constraint]:
    """Return the constraints that are declared in an annotated type."""
    item = item_kind(kind)
    arms = _arms(kind if item is None else item)
    return [constraint for _, constraints in arms for constraint in constraints if constraint != Range()]


@cache
def _fields_of(cls: type) -> list[tuple[str, Flag, Any]]:
    """Return the name, the flag and the annotated type of each field of a dataclass that is no dataclass itself."""
    kinds = get_type_hints(cls, include_extras=True)
    names = [field.name for field in dataclass_fields(cls)]
    return [(name, flag_of(kinds[name]), kinds[name]) for name in names if not is_dataclass(kinds[name])]


def flag_of(kind: Any) -> Flag:
    """Return the flag that is declared in an annotated type, or else the default."""
    return next((note for note in getattr(kind, "__metadata__", ()) if isinstance(note, Flag)), Flag())


def _arms(kind: Any) -> Iterator[tuple[Any, tuple[Constraint, ...]]]:
    """Yield the members of a union, None first, or the one type that `kind` is, each with its constraints."""
    members = get_args(kind) if get_origin(kind) in (types.UnionType, Union) else (kind,)
    for member in sorted(members, key=lambda one: one is not type(None)):
        if get_origin(member) is Annotated:
            notes = tuple(note for note in member.__metadata__ if isinstance(note, Constraint))
            for arm, constraints in _arms(get_args(member)[0]):
                yield arm, constraints + notes
        else:
            yield member, (Range(),) if member is float else ()


def _as_type(kind: Any, value: Any) -> Any:
    """Return `value` as a `kind`; a TypeError where it is none. Numbers may be NumPy's, and booleans are no numbers."""
    if kind in _NUMBERS and type(value) is not bool and isinstance(value, _NUMBERS[kind]):
        return kind(value)
    if get_origin(kind) is Literal:
        matches = isinstance(value, str) and value in get_args(kind)
    else:
        matches = isinstance(value, Path) if kind is Path else type(value) is kind
    if not matches:
        raise TypeError(value)
    return value


def _parse(kind: Any, text: str) -> Any:
    if kind is Any:
        return _parse_literal(text)
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


def _parse_literal(text: str) -> Any:
    if text.lower() in ("none", "null"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        content = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return content["value"] if content.keys() == {"value"} else text


def _parse_whole_number(text: str) -> int:
    match = _WHOLE_NUMBER.fullmatch(text)
    number = Fraction(match["number"]) * _MULTIPLES[match["multiple"]] if match else None
    if number is None or number.denominator != 1:
        raise ValueError(text)
    return int(number)


def _mismatch(kind: Any, value: Any) -> str:
    """Return the message about a value of another type: `must be a whole number or None, got 'x'`."""
    described = []
    for arm, _ in sorted(_arms(kind), key=lambda one: one[0] is type(None)):
        choices = ("true", "false") if arm is bool else get_args(arm) if get_origin(arm) is Literal else ()
        listed = ", ".join(map(str, choices))
        described.append(f"one of {listed}" if len(choices) > 1 else listed or _KIND_NAMES[arm])
    expected = " or ".join(described)
    return f"must be {expected}{';' if ',' in expected else ','} got {value!r}"
