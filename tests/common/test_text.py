"""Values as people write and read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.common.text import did_you_mean, format_count, format_number


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
def test_the_closest_known_word_is_suggested_for_an_unknown_one(word, hint):
    known = ("train", "demo", "CartPole")
    assert did_you_mean(word, known) == hint
    assert did_you_mean(word, known, "choose one") == (hint or "; choose one")


def test_counts_of_one_are_singular():
    assert [format_count(number, "run") for number in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]


@given(st.floats(1e-6, 1e12), st.sampled_from([-1, 1]))
def test_a_rounded_number_has_four_significant_digits_and_all_integer_digits(size, sign):
    text = format_number(sign * size)
    assert float(text.replace(",", "")) == pytest.approx(sign * size, rel=5e-4)
    if size >= 1000:
        assert text.lstrip("-") == f"{size:,.0f}"
    else:
        assert float(text) == float(f"{sign * size:.4g}")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (200.0, "200"), (-0.005, "-0.005"), (999.96, "1,000"), (float("nan"), "nan")]
)
def test_a_rounded_number_has_no_superfluous_digits(value, text):
    assert format_number(value) == text
