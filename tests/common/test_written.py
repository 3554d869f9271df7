"""Values as people write and read them."""

import pytest

from bootdqn.common.written import counted, read_value


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


def test_one_thing_is_not_many():
    assert [counted(number, "run") for number in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
