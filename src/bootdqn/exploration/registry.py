"""The strategies by name: parsing and formatting text such as `evoi:reduce=sum`, and registering user strategies."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from bootdqn.common.errors import UsageError
from bootdqn.common.fields import parse_as
from bootdqn.common.specs import Array
from bootdqn.common.text import did_you_mean
from bootdqn.common.user_code import UserCodeNotImportedError, import_code, is_module_name
from bootdqn.exploration.strategies import STRATEGIES, Strategy

StrategyT = TypeVar("StrategyT", bound=type[Any])
_REGISTERED: dict[str, type[Strategy]] = {}
_CLASS_PATHS: dict[type[Strategy], str] = {}
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def known_strategies() -> Mapping[str, type[Strategy]]:
    """Return every strategy by its name: those of this package, then those that users registered."""
    return {strategy.name: strategy for strategy in STRATEGIES} | _REGISTERED


# Text to strategy and back


def parse_strategy(text: str) -> Strategy:
    """Return the strategy that `text` describes: `name` or `name:parameter=value,parameter=value`.

    Raises:
        ValueError: There is no such strategy or parameter, or a value is not valid.

    Example:
        >>> parse_strategy("evoi:reduce=sum")
        Evoi(reduce='sum', scale=1.0)
    """
    name, _, parameters = text.partition(":")
    strategies = known_strategies()
    if name not in strategies:
        hint = f"{_listed(strategies)}; --strategy-from MODULE.CLASS imports one of your own"
        if "." in name and is_module_name(name):
            raise ValueError(f"unknown strategy {name!r}; import a class of your own by --strategy-from {name}")
        raise ValueError(f"unknown strategy {name!r}{did_you_mean(name, strategies, hint)}")
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


def format_strategy(strategy: Strategy) -> str:
    """Return the text that `parse_strategy` reads as `strategy`, without parameters that have their default value.

    Raises:
        ValueError: A parameter is a text with a comma.

    Example:
        >>> from bootdqn.exploration.strategies import Evoi
        >>> format_strategy(Evoi(reduce="sum", scale=1.0))
        'evoi:reduce=sum'
    """
    changed = [
        f"{field.name}={_format_value(field.name, getattr(strategy, field.name))}"
        for field in fields(strategy)
        if getattr(strategy, field.name) != field.default
    ]
    return strategy.name + (":" + ",".join(changed) if changed else "")


def parse_strategy_from(text: str, class_path: str | None) -> tuple[Strategy, str | None]:
    """Return the strategy that `text` describes, and the path of its class, MODULE.CLASS (None: one of this package).

    Args:
        text: The strategy, as for `parse_strategy`.
        class_path: The path of its class, MODULE.CLASS, if it must have a certain one (None: any).

    Raises:
        ValueError: `text` is not valid, or describes a strategy of another class.
        UserCodeNotImportedError: No strategy was registered from `class_path`.
    """
    name = None if class_path is None else registered_name(class_path)
    strategy = parse_strategy(text)
    registered_path = _CLASS_PATHS.get(type(strategy))
    if class_path not in (None, registered_path):
        raise ValueError(
            f"--strategy {text} is not --strategy-from {class_path}, whose name is {name}; leave one of them out"
        )
    return strategy, registered_path


def _format_value(key: str, value: Any) -> str:
    """Return the text that `parse_as` reads as `value`."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "," in text:
        raise ValueError(f"{key} must not contain a comma, which separates parameters; got {text!r}")
    return text


def _listed(names: Iterable[str]) -> str:
    return f"known: {', '.join(names) or 'none'}"


# Registration


def register_strategy(strategy: StrategyT, class_path: str | None = None) -> StrategyT:
    """Register a strategy under its `name`, for `parse_strategy`, configurations and the command line.

    Can be used as a decorator above `@dataclass(frozen=True)`.

    Args:
        strategy: A frozen dataclass with a `name`, a default for every parameter, and the methods of `Strategy`.
        class_path: MODULE.CLASS that imports it (None: where it is defined).

    Returns:
        The same class.

    Raises:
        ValueError: It is not such a class, its name is taken, or its methods return something else than they should.
    """
    _check_class(strategy)
    class_path = class_path or f"{strategy.__module__}.{strategy.__qualname__}"
    class_path = re.sub(r"^__mp_main__\.", "__main__.", class_path)  # the name of the same script in a worker process
    _check_name(strategy, class_path)
    _check_parameters(strategy)
    _check_results(strategy)
    _REGISTERED[strategy.name] = strategy
    _CLASS_PATHS[strategy] = class_path
    return strategy


def load_strategy(class_path: str, directory: Path | None = None) -> type[Strategy]:
    """Import the strategy MODULE.CLASS, for `--strategy-from`, and register it.

    Args:
        class_path: MODULE.CLASS.
        directory: Searched after the installed modules (None: the current one).

    Raises:
        ValueError: `class_path` is not of that form.
        UsageError: There is no such class, or it cannot be registered.
    """
    flag = f"--strategy-from {class_path}"
    _check_class_path(class_path)
    if warning := script_warning(class_path):
        raise UsageError(warning)
    module_name, _, name = class_path.rpartition(".")
    module = import_code(module_name, flag, directory)
    if not hasattr(module, name):
        hint = did_you_mean(name, vars(module))
        raise UsageError(f"{flag}: {module_name} ({getattr(module, '__file__', None)}) has no {name!r}{hint}")
    strategy: type[Strategy] = getattr(module, name)
    try:
        return register_strategy(strategy, class_path)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error


def registered_class_paths() -> tuple[str, ...]:
    """Return the paths of the registered classes, MODULE.CLASS, in order."""
    return tuple(_CLASS_PATHS[strategy] for strategy in _REGISTERED.values())


def registered_modules() -> tuple[str, ...]:
    """Return the modules that define the registered strategies, in order."""
    return tuple(strategy.__module__ for strategy in _REGISTERED.values())


def registered_name(class_path: str) -> str:
    """Return the name of the registered strategy of the class MODULE.CLASS.

    Raises:
        UserCodeNotImportedError: There is none.
        ValueError: `class_path` is not MODULE.CLASS, or cannot be imported.
    """
    for strategy in _REGISTERED.values():
        if _CLASS_PATHS[strategy] == class_path:
            return strategy.name
    _check_class_path(class_path)
    if warning := script_warning(class_path):
        raise ValueError(warning)
    raise UserCodeNotImportedError(f"--strategy-from {class_path}")


def script_warning(class_path: str) -> str:
    """Return a warning about a strategy of a script or notebook, which cannot be imported; empty for others."""
    if not class_path.startswith("__main__."):
        return ""
    return (
        f"{class_path} is a class of a script or notebook, where no command such as bootdqn inspect finds it again: "
        "define it in a module (a file of its own), or open the run from a program that registers it"
    )


def _check_class_path(class_path: str) -> None:
    file = Path(class_path)
    if not is_module_name(class_path) or "." not in class_path or file.suffix == ".py":
        module = file.stem if file.suffix == ".py" and is_module_name(file.stem) else "my_strategy"
        raise ValueError(f"--strategy-from must be MODULE.CLASS, as in {module}.MyStrategy; got {class_path!r}")


def _check_class(strategy: Any) -> None:
    if not isinstance(strategy, type):
        raise ValueError(f"a strategy is a class, got {strategy!r}")
    class_name = strategy.__name__
    if "__dataclass_params__" not in vars(strategy) or not strategy.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ValueError(f"{class_name} must be a frozen dataclass; write @dataclass(frozen=True) above it")
    for method in ("scores", "select"):
        if not callable(getattr(strategy, method, None)):
            raise ValueError(
                f"{class_name} has no method {method}; let it inherit from bootdqn.Strategy, and write scores"
            )
    if strategy.scores is Strategy.scores:  # type: ignore[attr-defined]
        raise ValueError(f"{class_name} has no method scores; write scores(self, q, head), which returns (..., A)")


def _check_name(strategy: Any, class_path: str) -> None:
    class_name, name = strategy.__name__, getattr(strategy, "name", None)
    if "name" in {field.name for field in fields(strategy)}:
        raise ValueError(f"{class_name}.name must not be a parameter; write name: ClassVar[str] = ...")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f'{class_name} needs a name for the command line, as in name: ClassVar[str] = "mine"; got {name!r}'
        )
    if name in {built_in.name for built_in in STRATEGIES}:
        raise ValueError(f"{name!r} is a strategy of bootdqn; give {class_name} another name")
    other = _REGISTERED.get(name, strategy)
    if other is not strategy and _CLASS_PATHS[other] != class_path:
        raise ValueError(f"{name!r} is the name of {_CLASS_PATHS[other]} already; give {class_name} another one")


def _check_parameters(strategy: Any) -> None:
    class_name = strategy.__name__
    try:
        kinds = get_type_hints(strategy)
    except NameError as error:
        raise ValueError(f"the types of {class_name}'s parameters cannot be found: {error}") from error
    for field in fields(strategy):
        if not _is_parameter_type(kinds[field.name]):
            raise ValueError(
                f"{class_name}.{field.name} must be a float, int, bool, str or a Literal of strings, to be written "
                f"on the command line; got {kinds[field.name]}"
            )
        if field.default is MISSING or not field.init:
            raise ValueError(f"{class_name}.{field.name} needs a plain default; write {field.name}: ... = ...")


def _is_parameter_type(kind: Any) -> bool:
    """Return whether a parameter may be of type `kind`: float, int, bool, str, or a Literal of strings."""
    if get_origin(kind) is Literal:
        return all(isinstance(choice, str) for choice in get_args(kind))
    return kind in (float, int, bool, str)


def _check_results(strategy: Any) -> None:
    """Call the methods with default parameters, for one state and for two, and check what they return."""
    rng = np.random.default_rng(0)
    cases: tuple[tuple[tuple[int, ...], Any], ...] = (((), 3), ((2,), np.asarray([0, 9])))
    for states, head in cases:
        q = rng.normal(size=(*states, 10, 4)).astype(np.float32)
        call = f"{strategy.__name__}.%s, given q of shape {q.shape} and head {head},"
        scores = _call_twice(strategy, "scores", call % "scores", q, head, (*states, 4))
        if scores.dtype.kind not in "biuf" or np.isnan(scores).any():
            raise ValueError(f"{call % 'scores'} must return numbers that are not NaN, returned {scores}")
        actions = _call_twice(strategy, "select", call % "select", q, head, states)
        if not (actions.dtype.kind in "iu" and np.isin(actions, range(4)).all()):
            raise ValueError(f"{call % 'select'} must return actions 0..3, returned {actions}")


def _call_twice(strategy: Any, method: str, call: str, q: Array, head: Any, shape: tuple[int, ...]) -> Array:
    """Return the result of a method; check its shape, that a second call returns the same, and that q is unchanged."""
    before, results = q.copy(), []
    try:
        for _ in range(2):
            rng = (np.random.default_rng(1),) if method == "select" else ()
            results.append(np.asarray(getattr(strategy(), method)(q, head, *rng)))
    except Exception as error:
        raise ValueError(f"{call} raised {type(error).__name__}: {error}") from error
    if results[0].shape != shape:
        raise ValueError(f"{call} must return shape {shape}, returned {results[0].shape}")
    if not np.array_equal(q, before):
        raise ValueError(f"{call} must not change q; let it write into a copy")
    if results[0].tobytes() != results[1].tobytes():
        raise ValueError(f"{call} must return the same again; sample in select, from the rng that it is given")
    return results[0]
