"""Strategies as text: the notation of the command line, and its error messages."""

import doctest
import importlib
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bootdqn.exploration
from bootdqn import Boltzmann, Evoi, Gain, Greedy, Ids, Ucb, format_strategy, parse_strategy

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
STRATEGIES = st.one_of(
    st.just(Greedy()),
    st.builds(Ucb, NUMBERS),
    st.builds(Gain, NUMBERS),
    st.builds(Evoi, st.sampled_from(["mean", "sum"]), NUMBERS),
    st.builds(Ids, NUMBERS, st.floats(0, exclude_min=True, allow_infinity=False)),
    st.builds(Boltzmann, st.floats(1e-37, 1e38)),
)


@given(STRATEGIES)
def test_what_is_formatted_is_parsed_to_the_same_strategy(strategy):
    text = format_strategy(strategy)
    assert parse_strategy(text) == strategy
    assert format_strategy(parse_strategy(text)) == text
    assert type(parse_strategy(text)) is type(strategy)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("greedy", Greedy()),
        ("ucb", Ucb()),
        ("ucb:scale=0.5", Ucb(0.5)),
        ("gain", Gain()),
        ("gain:scale=2.0", Gain(2.0)),
        ("evoi", Evoi()),
        ("evoi:reduce=sum", Evoi("sum")),
        ("evoi:scale=-0.25", Evoi(scale=-0.25)),
        ("evoi:reduce=sum,scale=3.0", Evoi("sum", 3.0)),
        ("ids", Ids()),
        ("ids:regret_scale=1.0,noise_variance=1e-06", Ids(1.0, 1e-6)),
        ("boltzmann", Boltzmann()),
        ("boltzmann:temperature=0.1", Boltzmann(0.1)),
    ],
)
def test_the_text_of_a_strategy_leaves_out_its_defaults(text, strategy):
    assert parse_strategy(text) == strategy
    assert format_strategy(strategy) == text


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("evoi:scale=3,reduce=sum", Evoi("sum", 3.0)),
        ("evoi:reduce=mean", Evoi()),
        ("ucb:scale=1", Ucb()),
        ("gain:scale=1e3", Gain(1000.0)),
    ],
)
def test_order_defaults_and_notation_are_free(text, strategy):
    assert parse_strategy(text) == strategy
    assert isinstance(strategy.scale, float)


OWN = "; --strategy-from MODULE.CLASS imports one of your own"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evio", "unknown strategy 'evio'; did you mean 'evoi'?"),
        ("Evoi", "unknown strategy 'Evoi'; did you mean 'evoi'?"),
        (" evoi", "unknown strategy ' evoi'; did you mean 'evoi'?"),
        ("gian", "unknown strategy 'gian'; did you mean 'gain'?"),
        ("greddy", "unknown strategy 'greddy'; did you mean 'greedy'?"),
        ("ubc", "unknown strategy 'ubc'; did you mean 'ucb'?"),
        ("idss:regret_scale=1", "unknown strategy 'idss'; did you mean 'ids'?"),
        ("thompson", "unknown strategy 'thompson'; known: greedy, ucb, gain, evoi, ids, vote, boltzmann" + OWN),
        ("", "unknown strategy ''; known: greedy, ucb, gain, evoi, ids, vote, boltzmann" + OWN),
        (":scale=1", "unknown strategy ''; known: greedy, ucb, gain, evoi, ids, vote, boltzmann" + OWN),
        ("own.Mine", "unknown strategy 'own.Mine'; import a class of your own by --strategy-from own.Mine"),
        ("own.Mine:scale=1", "unknown strategy 'own.Mine'; import a class of your own by --strategy-from own.Mine"),
        ("evoi:reduc=sum", "evoi has no parameter 'reduc'; did you mean 'reduce'?"),
        ("gain:scael=2", "gain has no parameter 'scael'; did you mean 'scale'?"),
        ("ids:noise=2", "ids has no parameter 'noise'; did you mean 'noise_variance'?"),
        ("ids:regretscale=2", "ids has no parameter 'regretscale'; did you mean 'regret_scale'?"),
        ("ucb:name=x", "ucb has no parameter 'name'; known: scale"),
        ("evoi:=1", "evoi has no parameter ''; known: reduce, scale"),
        ("greedy:scale=1", "greedy has no parameter 'scale'; known: none"),
        ("evoi:reduce", "write the parameters of a strategy as evoi:parameter=value, got 'evoi:reduce'"),
        ("evoi:scale=1,", "write the parameters of a strategy as evoi:parameter=value, got 'evoi:scale=1,'"),
        ("evoi:scale=1,scale=2", "scale is given twice in 'evoi:scale=1,scale=2'"),
        ("evoi:reduce=median", "reduce must be one of mean, sum; got 'median'"),
        ("evoi:reduce=", "reduce must be one of mean, sum; got ''"),
        ("gain:scale=two", "scale must be a number, got 'two'"),
        ("gain:scale=", "scale must be a number, got ''"),
        ("gain:scale=1=2", "scale must be a number, got '1=2'"),
        ("gain:scale=nan", "scale must be finite, got nan"),
        ("gain:scale=-inf", "scale must be finite, got -inf"),
        ("gain:scale=1e999", "scale must be finite, got inf"),
        ("ids:noise_variance=0", "noise_variance must be positive, got 0.0"),
        ("boltzman", "unknown strategy 'boltzman'; did you mean 'boltzmann'?"),
        ("boltzmann:temperature=0", "temperature must be between 1e-37 and 1e+38, got 0.0"),
        ("ids:noise_variance=-2", "noise_variance must be positive, got -2.0"),
    ],
)
def test_a_syntax_error_is_named_with_the_remedy(text, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        parse_strategy(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("module", [info.name for info in pkgutil.iter_modules(bootdqn.exploration.__path__)])
def test_the_examples_in_the_docstrings_run(module):
    results = doctest.testmod(importlib.import_module(f"bootdqn.exploration.{module}"))
    assert results.failed == 0
    assert results.attempted or module not in ("information", "notation")
