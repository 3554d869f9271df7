"""Strategies as text, as the command line and `config.json` have them: `name:parameter=value,parameter=value`."""

from collections.abc import Iterable
from dataclasses import fields
from typing import get_type_hints

from bootdqn.common.written import did_you_mean, parse_as
from bootdqn.exploration.parameters import format_value
from bootdqn.exploration.registry import known, origin_of, registered_name
from bootdqn.exploration.strategies import Strategy


def parse_strategy(text: str) -> Strategy:
    """Read a strategy as the command line writes it: `name` or `name:parameter=value,parameter=value`.

    Example:
        >>> parse_strategy("evoi:reduce=sum")
        Evoi(reduce='sum', scale=1.0)
    """
    name, _, parameters = text.partition(":")
    strategies = known()
    if name not in strategies:
        raise ValueError(f"unknown strategy {name!r}{did_you_mean(name, strategies, _listed(strategies))}")
    strategy = strategies[name]
    types = get_type_hints(strategy)
    names = [field.name for field in fields(strategy)]
    values = {}
    for part in parameters.split(",") if parameters else []:
        key, separator, value = part.partition("=")
        if not separator:
            raise ValueError(f"write the parameters of a strategy as {name}:parameter=value, got {text!r}")
        if key not in names:
            raise ValueError(f"{name} has no parameter {key!r}{did_you_mean(key, names, _listed(names))}")
        if key in values:
            raise ValueError(f"{key} is given twice in {text!r}")
        try:
            values[key] = parse_as(types[key], value)
        except ValueError as error:
            raise ValueError(f"{key} {error}") from None
    return strategy(**values)


def parse_strategy_from(text: str, origin: str | None) -> tuple[Strategy, str | None]:
    """Return the strategy that `text` describes, and where it came from; None stands for this package, or any place.

    Raises:
        ValueError: `text` is wrong, or `origin` is not where such a strategy came from.
        CodeNotImportedError: Nothing was imported from `origin`.
    """
    name = None if origin is None else registered_name(origin)
    strategy = parse_strategy(text)
    found = origin_of(type(strategy))
    if origin not in (None, found):
        raise ValueError(
            f"--strategy {text} is not --strategy-from {origin}, whose name is {name}; leave one of them out"
        )
    return strategy, found


def format_strategy(strategy: Strategy) -> str:
    """Write a strategy as `parse_strategy` reads it, leaving out parameters that have their default value."""
    changed = [
        f"{field.name}={format_value(field.name, getattr(strategy, field.name))}"
        for field in fields(strategy)
        if getattr(strategy, field.name) != field.default
    ]
    return strategy.name + (":" + ",".join(changed) if changed else "")


def _listed(names: Iterable[str]) -> str:
    return f"known: {', '.join(names) or 'none'}"
