"""User strategies: which are accepted, the errors for the others, and their notation as text."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn import Gain, Strategy, format_strategy, head_values, parse_strategy, register_strategy
from bootdqn.common.errors import UsageError
from bootdqn.common.user_code import UserCodeNotImportedError
from bootdqn.exploration.registry import known_strategies, parse_strategy_from, registered_class_paths, registered_name
from bootdqn.exploration.strategies import STRATEGIES

pytestmark = pytest.mark.usefixtures("user_code")
HERE = __name__


@dataclass(frozen=True)
class Every(Strategy):
    """Has a parameter of every kind."""

    name: ClassVar[str] = "every"
    scale: float = 1.0
    count: int = 3
    bold: bool = False
    word: str = "none"
    rule: Literal["first", "last"] = "first"

    def scores(self, q, head):
        return head_values(q, head)


VALUES = st.builds(
    Every,
    st.floats(allow_nan=False),
    st.integers(),
    st.booleans(),
    st.text().filter(lambda text: "," not in text),
    st.sampled_from(["first", "last"]),
)


def make(word="Mine", bases=(Strategy,), **body):
    """Return a frozen dataclass with the given body, a good strategy but for what the body changes."""
    good = {"name": "mine", "scores": lambda _self, q, head: head_values(q, head), "__annotations__": {}}
    content = {key: value for key, value in (good | body).items() if value is not ...}
    return dataclass(frozen=True)(type(word, bases, content))


def with_field(kind, default=...):
    return make(__annotations__={"x": kind}, **({} if default is ... else {"x": default}))


def write_into_q(_self, q, head):
    q -= q.mean()
    return head_values(q, head)


def write_into_q_and_choose(_self, q, _head, _rng):
    q[..., 0] = 0
    return q[..., 0, :].argmax(axis=-1)


def resampled(_self, q, head):
    return head_values(q, head) + np.random.default_rng().normal(size=4)


# What is taken


@given(VALUES)
def test_what_is_formatted_is_parsed_to_the_same_strategy(strategy):
    register_strategy(Every)
    text = format_strategy(strategy)
    parsed = parse_strategy(text)
    assert parsed == strategy
    assert [type(value) for value in vars(parsed).values()] == [type(value) for value in vars(strategy).values()]
    assert format_strategy(parsed) == text


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("every", Every()),
        ("every:count=-7,bold=true", Every(count=-7, bold=True)),
        ("every:bold=TRUE", Every(bold=True)),
        ("every:word=a=b: c,rule=last", Every(word="a=b: c", rule="last")),
        ("every:word=", Every(word="")),
        ("every:scale=1e3", Every(scale=1000.0)),
    ],
)
def test_parameters_of_every_kind_are_read(text, strategy):
    register_strategy(Every)
    assert parse_strategy(text) == strategy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("every:count=1.5", "count must be a whole number, got '1.5'"),
        ("every:count=", "count must be a whole number, got ''"),
        ("every:bold=yes", "bold must be one of true, false; got 'yes'"),
        ("every:rule=second", "rule must be one of first, last; got 'second'"),
        ("every:scale=x", "scale must be a number, got 'x'"),
        ("every:name=x", "every has no parameter 'name'; known: scale, count, bold, word, rule"),
        ("evry", "unknown strategy 'evry'; did you mean 'every'?"),
    ],
)
def test_a_syntax_error_is_named_as_for_the_strategies_of_the_package(text, message):
    register_strategy(Every)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        parse_strategy(text)
    assert str(caught.value) == message


def test_a_comma_in_a_text_cannot_be_written():
    with pytest.raises(ValueError, match="word must not contain a comma"):
        format_strategy(Every(word="a,b"))


def test_ones_own_strategies_are_known_after_those_of_the_package():
    register_strategy(Every)
    assert list(known_strategies().values()) == [*STRATEGIES, Every]
    assert all(strategy.name == name for name, strategy in known_strategies().items())


def test_it_is_a_decorator_and_acts():
    @register_strategy
    @dataclass(frozen=True)
    class Least(Strategy):
        name: ClassVar[str] = "least"

        def scores(self, q, head):
            return -head_values(q, head)

    assert Least.name == "least"
    assert int(parse_strategy("least").select(np.array([[1.0, 0.0, 2.0]]), 0)) == 1


def test_a_sampling_strategy_gets_the_stream_and_may_follow_the_protocol_without_inheriting():
    @dataclass(frozen=True)
    class Uniform:
        name: ClassVar[str] = "uniform"

        def scores(self, q, head):  # noqa: ARG002
            return np.zeros((*q.shape[:-2], q.shape[-1]))

        def select(self, q, head, rng=None):  # noqa: ARG002
            return rng.integers(q.shape[-1], size=q.shape[:-2])

    register_strategy(Uniform)
    q = np.zeros((50, 2, 3))
    chosen = parse_strategy("uniform").select(q, np.zeros(50, int), np.random.default_rng(1))
    np.testing.assert_array_equal(chosen, np.random.default_rng(1).integers(3, size=50))


def test_a_subclass_of_a_strategy_of_the_package_is_one_of_its_own():
    mine = make(bases=(Gain,), scores=..., name="twice-gain")
    register_strategy(mine)
    assert type(parse_strategy("twice-gain:scale=2")) is mine


# Errors


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Every(), "a strategy is a class, got Every"),
        ("mine", "a strategy is a class, got 'mine'"),
        (type("Mine", (Strategy,), {"name": "mine"}), "Mine must be a frozen dataclass; write @dataclass"),
        (dataclass(type("Mine", (), {"name": "mine"})), "Mine must be a frozen dataclass"),
        (type("Mine", (Gain,), {"name": "mine"}), "Mine must be a frozen dataclass"),
        (make(scores=...), "Mine has no method scores; write scores"),
        (make(bases=(), scores=...), "Mine has no method scores; let it inherit"),
        (make(bases=()), "Mine has no method select; let it inherit from bootdqn.Strategy"),
        (make(name=...), "Mine needs a name for the command line"),
        (make(name="my:own"), "Mine needs a name for the command line"),
        (make(name=""), "Mine needs a name"),
        (make(name=3), "Mine needs a name"),
        (make(__annotations__={"name": str}), "Mine.name must not be a parameter; write name: ClassVar"),
        (make(name="evoi"), "'evoi' is a strategy of bootdqn; give Mine another name"),
        (make(bases=(Gain,)), None),
        (with_field(float), "Mine.x needs a plain default; write x"),
        (with_field(float, field(default_factory=float)), "Mine.x needs a plain default"),
        (with_field(float, field(default=1.0, init=False)), "Mine.x needs a plain default"),
        (with_field(list, None), "Mine.x must be a float, int, bool, str or a Literal of strings"),
        (with_field(float | None, None), "Mine.x must be a float, int, bool, str"),
        (with_field(Literal[1, 2], 1), "Mine.x must be a float, int, bool, str"),
        (with_field("Unknown", 1), "the types of Mine's parameters cannot be found: name 'Unknown'"),
        (make(scores=lambda _self, q, _head: q), r"Mine.scores, given q of shape \(10, 4\) and head 3, must return"),
        (make(scores=lambda _self, q, head: q[head]), r"Mine.scores, given q of shape \(2, 10, 4\) and head \[0 9\],"),
        (make(select=lambda _self, q, _head, _rng: q[..., 0, 0]), r"Mine.select, .* must return actions 0..3"),
        (make(select=lambda _self, q, _head, _rng: np.full(q.shape[:-2], 4)), "must return actions 0..3, returned 4"),
        (
            make(scores=lambda _self, q, _head: np.full_like(q[..., 0, :], np.nan)),
            "must return numbers that are not NaN",
        ),
        (make(scores=lambda _self, q, _head: q[..., 0, :].astype(str)), "must return numbers that are not NaN"),
        (make(scores=write_into_q), r"Mine.scores, given .* must not change q; let it write into a copy"),
        (make(select=write_into_q_and_choose), r"Mine.select, given .* must not change q"),
        (
            make(scores=lambda _self, q, _head: np.random.rand(*q.shape[:-2], 4)),  # noqa: NPY002 - as users do
            "must return the same again; sample in sel",
        ),
        (make(scores=resampled), r"Mine.scores, given .* from the rng that it is given"),
        (make(__post_init__=lambda _self: 1 / 0), "raised ZeroDivisionError: division by zero"),
    ],
)
def test_an_invalid_strategy_is_an_error_with_the_reason(strategy, message):
    if message is None:
        assert register_strategy(strategy) is strategy
        return
    with pytest.raises(ValueError, match=message):
        register_strategy(strategy)
    assert registered_class_paths() == ()


def test_a_name_is_for_one_strategy_only_but_a_class_may_be_written_anew():
    first, second = make(), make()
    for class_path in ("a.Mine", "b.Mine", "a.Mine"):
        register_strategy(first, class_path)
    assert registered_class_paths() == ("a.Mine",)
    with pytest.raises(ValueError, match=r"'mine' is the name of a.Mine already; give Mine another one"):
        register_strategy(second, "c.Mine")
    register_strategy(second, "a.Mine")
    assert type(parse_strategy("mine")) is second


# Where they came from


def test_a_strategy_knows_where_it_came_from_and_one_of_the_package_is_from_nowhere():
    register_strategy(Every)
    class_path = f"{HERE}.Every"
    assert registered_class_paths() == (class_path,)
    assert registered_name(class_path) == "every"
    assert parse_strategy_from("every:count=1", None) == (Every(count=1), class_path)
    assert parse_strategy_from("every", class_path) == (Every(), class_path)
    assert parse_strategy_from("gain", None) == (Gain(), None)


def test_a_script_has_one_name_in_every_process():
    mine = make()
    mine.__module__ = "__mp_main__"
    register_strategy(mine)
    assert registered_class_paths() == ("__main__.Mine",)


def test_a_strategy_of_a_script_that_ended_is_not_asked_for_by_a_flag_that_cannot_work(user_code):
    user_code.forget()
    advice = r"__main__.Mine is a class of a script or notebook.*define it in a module \(a file of its own\)"
    with pytest.raises(ValueError, match=advice) as caught:
        parse_strategy_from("mine", "__main__.Mine")
    assert not isinstance(caught.value, UserCodeNotImportedError)
    assert "--strategy-from" not in str(caught.value)
    with pytest.raises(UsageError, match=advice):
        user_code.load_strategy("__main__.Mine")


def test_a_claim_that_is_not_true_is_an_error():
    register_strategy(Every)
    with pytest.raises(ValueError, match=r"--strategy gain is not --strategy-from .*Every, whose name is every"):
        parse_strategy_from("gain", f"{HERE}.Every")
    with pytest.raises(UserCodeNotImportedError, match=r"add --strategy-from other.Every$"):
        parse_strategy_from("every", "other.Every")
    for bad in ("every", "x; rm -rf .Every", "../x.Every", "x.Every\n", ".Every", ""):
        with pytest.raises(ValueError, match=r"--strategy-from must be MODULE.CLASS"):
            parse_strategy_from("every", bad)


@pytest.mark.parametrize(
    ("text", "class_path", "message"),
    [
        (None, "mod.Mine", "no module 'mod' is installed, or in /"),
        (None, "mod.deep.Mine", "no module 'mod' is installed"),
        ("x = 1", "mod.Mine", r"mod \(.*mod.py\) has no 'Mine'"),
        ("Mien = 1", "mod.Mine", "did you mean 'Mien'"),
        ("Mine = 1", "mod.Mine", "--strategy-from mod.Mine: a strategy is a class, got 1"),
        ("import nothing_like_it", "mod.Mine", r"cannot be imported: ModuleNotFoundError: .*nothing_like_it.*line 1\)"),
        ("x = 1\n1 / 0", "mod.Mine", r"cannot be imported: ZeroDivisionError: division by zero \(.*mod.py, line 2\)"),
        ("def", "mod.Mine", r"cannot be imported: SyntaxError: .*\(mod.py, line 1\)"),
        ("import sys; sys.exit(3)", "mod.Mine", "cannot be imported: SystemExit: 3"),
    ],
)
def test_a_module_without_a_strategy_is_an_error_with_the_reason(user_code, text, class_path, message):
    if text is not None:
        user_code.write("mod", text)
    with pytest.raises(UsageError, match=message):
        user_code.load_strategy(class_path)


def test_the_current_directory_takes_no_other_modules_place(user_code):
    user_code.write("math", "Mine = 1")
    with pytest.raises(UsageError, match=r"math .* has no 'Mine'"):
        user_code.load_strategy("math.Mine")
    assert math.pi > 3
