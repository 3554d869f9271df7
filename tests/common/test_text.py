"""Values as people write and read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.common.text import did_you_mean, format_count, format_number, format_value_as_text, read_value


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
    assert read_value(text) == value


PRINTABLE = st.text(st.characters(exclude_categories=["C"]))
NUMBERS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.none() | PRINTABLE | NUMBERS | st.lists(PRINTABLE | NUMBERS, max_size=3) | st.sampled_from(["none", "1", "tru"])
)
def test_what_is_written_is_read_as_the_same(value):
    read = read_value(format_value_as_text(value))
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": 1}, [None], object(), 1j])
def test_what_no_text_means_is_refused(value):
    with pytest.raises(ValueError, match="cannot be written as text"):
        format_value_as_text(value)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("trian", "; did you mean 'train'?"),
        ("DEMO", "; did you mean 'demo'?"),
        ("cartpole", "; did you mean 'CartPole'?"),
        ("xyzzy", ""),
        ("", ""),
    ],
)
def test_an_unknown_word_is_answered_with_the_closest_known_one(word, hint):
    known = ("train", "demo", "CartPole")
    assert did_you_mean(word, known) == hint
    assert did_you_mean(word, known, "choose one") == (hint or "; choose one")


def test_one_thing_is_not_many():
    assert [format_count(number, "run") for number in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]


@given(st.floats(1e-6, 1e12), st.sampled_from([-1, 1]))
def test_a_rounded_number_has_four_digits_that_count_and_every_whole_one(size, sign):
    text = format_number(sign * size)
    assert float(text.replace(",", "")) == pytest.approx(sign * size, rel=5e-4)
    if size >= 1000:
        assert text.lstrip("-") == f"{size:,.0f}"
    else:
        assert float(text) == float(f"{sign * size:.4g}")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (200.0, "200"), (-0.005, "-0.005"), (999.96, "1,000"), (float("nan"), "nan")]
)
def test_a_rounded_number_has_no_digits_that_say_nothing(value, text):
    assert format_number(value) == text
