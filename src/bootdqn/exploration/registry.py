"""Strategies by name: those of the package, the user's own, and `name:parameter=value` as text."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from bootdqn.common.errors import UsageError
from bootdqn.common.fields import parse_as
from bootdqn.common.specs import Array
from bootdqn.common.text import did_you_mean
from bootdqn.common.user_code import UserCodeNotImportedError, import_code, is_module_name
from bootdqn.exploration.strategies import STRATEGIES, Strategy

PARAMETER_TYPES = (float, int, bool, str)


def can_be_written(kind: Any) -> bool:
    """Return whether a parameter may be of type `kind`: float, int, bool, str, or a Literal of strings."""
    if get_origin(kind) is Literal:
        return all(isinstance(choice, str) for choice in get_args(kind))
    return kind in PARAMETER_TYPES


def format_value(key: str, value: Any) -> str:
    """Return the text that `parse_as` reads as `value`."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "," in text:
        raise ValueError(f"{key} must not contain a comma, which separates parameters; got {text!r}")
    return text


StrategyT = TypeVar("StrategyT", bound=type[Any])
_ADDED: dict[str, type[Strategy]] = {}
_ORIGINS: dict[type[Strategy], str] = {}
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def known() -> Mapping[str, type[Strategy]]:
    """Return every strategy by its name: those of this package, then those of the user's own."""
    return {strategy.name: strategy for strategy in STRATEGIES} | _ADDED


def register_strategy(strategy: StrategyT, origin: str | None = None) -> StrategyT:
    """Make a strategy known under its `name`, so that `parse_strategy` and every configuration take it.

    It is returned, so that this can be a decorator, above `@dataclass(frozen=True)`.

    Args:
        strategy: A frozen dataclass with a `name`, a default for every parameter, and the methods of `Strategy`.
        origin: Where it is imported from, MODULE.CLASS (None: where it was defined).

    Raises:
        ValueError: It is not of that kind, or its name is taken.
    """
    _check_class(strategy)
    origin = origin or f"{strategy.__module__}.{strategy.__qualname__}"
    origin = re.sub(r"^__mp_main__\.", "__main__.", origin)  # a worker process calls the same script so
    _check_name(strategy, origin)
    _check_parameters(strategy)
    _try_out(strategy)
    _ADDED[strategy.name] = strategy
    _ORIGINS[strategy] = origin
    return strategy


def load_strategy(origin: str, folder: Path | None = None) -> type[Strategy]:
    """Import the strategy MODULE.CLASS, as `--strategy-from` asks, and register it.

    Raises:
        ValueError: `origin` is not of that form.
        UsageError: There is none there, or it is not fit to be one.
    """
    flag = f"--strategy-from {origin}"
    _check_origin(origin)
    if advice := script_advice(origin):
        raise UsageError(advice)
    module_name, _, name = origin.rpartition(".")
    module = import_code(module_name, flag, folder)
    if not hasattr(module, name):
        hint = did_you_mean(name, vars(module))
        raise UsageError(f"{flag}: {module_name} ({getattr(module, '__file__', None)}) has no {name!r}{hint}")
    strategy: type[Strategy] = getattr(module, name)
    try:
        return register_strategy(strategy, origin)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error


def registered_origins() -> tuple[str, ...]:
    """Return where the registered strategies came from, in their order."""
    return tuple(_ORIGINS[strategy] for strategy in _ADDED.values())


def registered_modules() -> tuple[str, ...]:
    """Return the modules in which the registered strategies are defined, in their order."""
    return tuple(strategy.__module__ for strategy in _ADDED.values())


def origin_of(strategy: type[Strategy]) -> str | None:
    """Return where a registered strategy came from; None for one of this package."""
    return _ORIGINS.get(strategy)


def registered_name(origin: str) -> str:
    """Return the name of the registered strategy that came from `origin`.

    Raises:
        CodeNotImportedError: None did.
        ValueError: None can, from there.
    """
    for strategy in _ADDED.values():
        if _ORIGINS[strategy] == origin:
            return strategy.name
    _check_origin(origin)
    if advice := script_advice(origin):
        raise ValueError(advice)
    raise UserCodeNotImportedError(f"--strategy-from {origin}")


def script_advice(origin: str) -> str:
    """Return what to do about a strategy from a script or notebook, which cannot be imported; nothing for any other."""
    if not origin.startswith("__main__."):
        return ""
    return (
        f"{origin} is a class of a script or notebook, where no command such as bootdqn inspect finds it again: define "
        "it in a module (a file of its own), or open the run from a program that registers it"
    )


def _check_origin(origin: str) -> None:
    if not is_module_name(origin) or "." not in origin:
        raise ValueError(f"--strategy-from must be MODULE.CLASS, as in my_strategy.MyStrategy; got {origin!r}")


def _check_class(strategy: Any) -> None:
    if not isinstance(strategy, type):
        raise ValueError(f"a strategy is a class, got {strategy!r}")
    word = strategy.__name__
    if "__dataclass_params__" not in vars(strategy) or not strategy.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ValueError(f"{word} must be a frozen dataclass; write @dataclass(frozen=True) above it")
    for method in ("scores", "select"):
        if not callable(getattr(strategy, method, None)):
            raise ValueError(f"{word} has no method {method}; let it inherit from bootdqn.Strategy, and write scores")
    if strategy.scores is Strategy.scores:  # type: ignore[attr-defined]
        raise ValueError(f"{word} has no method scores; write scores(self, q, head), which returns (..., A)")


def _check_name(strategy: Any, origin: str) -> None:
    word, name = strategy.__name__, getattr(strategy, "name", None)
    if "name" in {field.name for field in dataclasses.fields(strategy)}:
        raise ValueError(f"{word}.name must not be a parameter; write name: ClassVar[str] = ...")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f'{word} needs a name for the command line, as in name: ClassVar[str] = "mine"; got {name!r}')
    if name in {built_in.name for built_in in STRATEGIES}:
        raise ValueError(f"{name!r} is a strategy of bootdqn; give {word} another name")
    other = _ADDED.get(name, strategy)
    if other is not strategy and _ORIGINS[other] != origin:
        raise ValueError(f"{name!r} is the name of {_ORIGINS[other]} already; give {word} another one")


def _check_parameters(strategy: Any) -> None:
    word = strategy.__name__
    try:
        kinds = get_type_hints(strategy)
    except NameError as error:
        raise ValueError(f"the types of {word}'s parameters cannot be found: {error}") from error
    for field in dataclasses.fields(strategy):
        if not can_be_written(kinds[field.name]):
            raise ValueError(
                f"{word}.{field.name} must be a float, int, bool, str or a Literal of strings, to be written on the "
                f"command line; got {kinds[field.name]}"
            )
        if field.default is dataclasses.MISSING or not field.init:
            raise ValueError(f"{word}.{field.name} needs a plain default; write {field.name}: ... = ...")


def _try_out(strategy: Any) -> None:
    """Raise a ValueError unless the strategy, with its defaults, answers as it should: for one state, and for two."""
    rng = np.random.default_rng(0)
    tries: tuple[tuple[tuple[int, ...], Any], ...] = (((), 3), ((2,), np.asarray([0, 9])))
    for states, head in tries:
        _try_on(strategy, rng.normal(size=(*states, 10, 4)).astype(np.float32), head)


def _try_on(strategy: Any, q: Array, head: Any) -> None:
    said = f"{strategy.__name__}.%s, given q of shape {q.shape} and head {head},"
    states = q.shape[:-2]
    scores = _answer(said % "scores", lambda: strategy().scores(q, head), q, (*states, 4))
    if scores.dtype.kind not in "biuf" or np.isnan(scores).any():
        raise ValueError(f"{said % 'scores'} must return numbers that are not NaN, returned {scores}")
    actions = _answer(said % "select", lambda: strategy().select(q, head, np.random.default_rng(1)), q, states)
    if not (actions.dtype.kind in "iu" and np.isin(actions, range(4)).all()):
        raise ValueError(f"{said % 'select'} must return actions 0..3, returned {actions}")


def _answer(said: str, ask: Callable[[], Any], q: Array, shape: tuple[int, ...]) -> Array:
    """Return what `ask` answers, after checking that it has this shape, is the same again, and leaves `q` alone."""
    before = q.copy()
    try:
        answer, again = np.asarray(ask()), np.asarray(ask())
    except Exception as error:
        raise ValueError(f"{said} raised {type(error).__name__}: {error}") from error
    if answer.shape != shape:
        raise ValueError(f"{said} must return shape {shape}, returned {answer.shape}")
    if not np.array_equal(q, before):
        raise ValueError(f"{said} must not change q; let it write into a copy")
    if answer.tobytes() != again.tobytes():
        raise ValueError(f"{said} must answer the same again; draw in select, from the rng that it is given")
    return answer


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
