"""Values of fields: read from text, and checked against the field's type, wherever they come from."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.common.fields import (
    Flag,
    NonNegativeInt,
    Pattern,
    PositiveInt,
    Probability,
    Range,
    check_fields,
    format_literal,
    parse_as,
)


@dataclass(frozen=True)
class Part:
    anything: int = 0


@dataclass(frozen=True)
class Example:
    batch_size: PositiveInt = 1
    steps: PositiveInt | Literal["log"] | None = None
    rate: Annotated[float, Range(gt=0, lt=2)] = 1.0
    cost: float = 0.0
    minutes: Annotated[float, Range(ge=0)] | None = None
    sizes: tuple[Annotated[int, Range(ge=1, le=9)], ...] = (1,)
    loud: bool = False
    rule: Literal["mean", "sum"] = "mean"
    page: Annotated[Path, Pattern(r".+\.html", "an .html file")] = Path("a.html")
    modules: Annotated[tuple[str, ...], Flag(name="import")] = ()
    where: Annotated[str, Flag(positional=True, metavar="PLACE")] = ""
    part: Part = field(default_factory=Part)

    def __post_init__(self):
        check_fields(self)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("batch_size", 0, "--batch-size must be at least 1, got 0"),
        ("batch_size", -(10**400), "--batch-size must be at least 1, got -10"),
        ("batch_size", 1.0, "--batch-size must be a whole number, got 1.0"),
        ("batch_size", True, "--batch-size must be a whole number, got True"),
        ("batch_size", None, "--batch-size must be a whole number, got None"),
        ("steps", 0, "--steps must be at least 1, got 0"),
        ("steps", "lgo", "--steps must be a whole number or log or None, got 'lgo'"),
        ("rate", 0, "--rate must be positive and below 2, got 0"),
        ("rate", 2.0, "--rate must be positive and below 2, got 2.0"),
        ("rate", math.nan, "--rate must be finite, got nan"),
        ("rate", 10**400, "--rate must be a number, got 10"),
        ("rate", "1", "--rate must be a number, got '1'"),
        ("cost", -math.inf, "--cost must be finite, got -inf"),
        ("minutes", math.inf, "--minutes must be finite, got inf"),
        ("minutes", -1, "--minutes must be at least 0, got -1"),
        ("sizes", 3, "--sizes must be a list, got 3"),
        ("sizes", [1, 10], "--sizes must be between 1 and 9, got 10"),
        ("sizes", ["1"], "--sizes must be a whole number, got '1'"),
        ("loud", 1, "--loud must be one of true, false; got 1"),
        ("rule", "max", "--rule must be one of mean, sum; got 'max'"),
        ("rule", ["mean"], "--rule must be one of mean, sum; got ['mean']"),
        ("page", Path("a.txt"), "--page must be an .html file, got a.txt"),
        ("modules", ("a", 1), "--import must be a text, got 1"),
        ("where", None, "PLACE must be a text, got None"),
    ],
)
def test_a_value_that_a_field_does_not_take_is_named_with_its_flag(name, value, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below
        Example(**{name: value})
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("batch_size", 10**400, 10**400),
        ("steps", "log", "log"),
        ("steps", None, None),
        ("rate", 1, 1.0),
        ("minutes", 0, 0.0),
        ("sizes", [9, 1], (9, 1)),
        ("sizes", (np.int64(9),), (9,)),
        ("rate", np.float32(0.5), 0.5),
        ("sizes", (), ()),
    ],
)
def test_a_value_that_a_field_takes_has_the_type_of_the_field(name, value, taken):
    found = getattr(Example(**{name: value}), name)
    assert (type(found), found) == (type(taken), taken)


def test_a_strategy_names_its_parameters_as_in_python():
    with pytest.raises(ValueError, match=r"^batch_size must be at least 1"):
        check_fields(_unchecked(batch_size=0), as_flags=False)


def _unchecked(**values):
    example = object.__new__(Example)
    for name, value in (vars(Example()) | values).items():
        object.__setattr__(example, name, value)
    return example


def test_a_range_is_described_by_its_bounds():
    ranges = (Range(gt=0), Range(gt=0.5, lt=2), Range(ge=-1, lt=0), Range(le=3), Range(ge=1e-37, le=1e38))
    assert list(map(str, ranges)) == [
        "positive",
        "above 0.5 and below 2",
        "at least -1 and below 0",
        "at most 3",
        "between 1e-37 and 1e+38",
    ]


BOUNDS = st.integers(-3, 3) | st.floats(-3, 3)


@given(BOUNDS, BOUNDS, st.integers(-4, 4) | st.floats())
def test_a_range_takes_the_numbers_between_its_bounds(low, high, value):
    finite = math.isfinite(value)
    assert Range(ge=low, le=high).accepts(value) == (finite and low <= value <= high)
    assert Range(gt=low, lt=high).accepts(value) == (finite and low < value < high)
    assert Range(gt=low, le=high).accepts(value) == (finite and low < value <= high)
    assert Range().accepts(value) == finite


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (NonNegativeInt, "-3", -3),
        (Probability, "2", 2.0),
        (PositiveInt | None, "NULL", None),
        (tuple[PositiveInt, ...], "50,1k", (50, 1000)),
        (tuple[str, ...], "a,b", ("a,b",)),
        (Annotated[Path, Pattern("x", "x")], "y", Path("y")),
    ],
)
def test_text_is_read_by_the_type_alone(kind, text, value):
    assert parse_as(kind, text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 0.001),
        ("[0, 1]", [0, 1]),
        ("true", True),
        ("None", None),
        ("8x8", "8x8"),
        ("1\nx = 2", "1\nx = 2"),
    ],
)
def test_a_value_is_what_it_means_or_else_its_text(text, value):
    assert parse_as(Any, text) == value


PRINTABLE = st.text(st.characters(exclude_categories=["C"]))
NUMBERS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.none() | PRINTABLE | NUMBERS | st.lists(PRINTABLE | NUMBERS, max_size=3) | st.sampled_from(["none", "1", "tru"])
)
def test_a_written_value_is_read_back_unchanged(value):
    read = parse_as(Any, format_literal(value))
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": 1}, [None], object(), 1j])
def test_values_that_cannot_be_written_as_text_are_an_error(value):
    with pytest.raises(ValueError, match="cannot be written as text"):
        format_literal(value)
