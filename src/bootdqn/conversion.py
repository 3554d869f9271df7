"""Arguments of Python as the command line has them: settings in one flat mapping, strategies as text."""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bootdqn.common.fields import format_literal
from bootdqn.config.settings import with_changes
from bootdqn.exploration.registry import format_strategy, known_strategies


def settings_from(environment: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings as one flat mapping.

    Raises:
        ValueError: `environment` is neither a name nor a mapping; the message shows how to call `train`.
    """
    changes = _flat_settings(settings)
    if isinstance(environment, str):
        return {"environment": environment} | changes
    if isinstance(environment, Mapping):
        return with_changes(_flat_settings(environment), changes)
    raise ValueError(
        f"environment must be a name or a mapping of settings, as in bootdqn.train('deep-sea', size=10); "
        f"got {environment!r}"
    )


def _flat_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as `config.json` has them: a strategy and options as text, numbers as Python's own."""
    flat = {key: as_python(value) for key, value in settings.items()}
    if "strategy" in flat:
        flat["strategy"] = strategy_text(flat["strategy"])
    options = flat.get("env_options")
    if isinstance(options, Mapping):
        flat["env_options"] = {name: as_python(value) for name, value in options.items()}
    return flat


def strategy_text(strategy: Any) -> Any:
    """Return the text of a strategy that is an object; anything else as it is."""
    if type(strategy) in known_strategies().values():
        return format_strategy(strategy)
    if is_dataclass(strategy) and not isinstance(strategy, type):
        raise ValueError(f"{type(strategy).__name__} is not known yet: write @bootdqn.register_strategy above it")
    if isinstance(strategy, type):
        raise ValueError(f"strategy must be an object or a text, got a class; write {strategy.__name__}()")
    return strategy


def as_python(value: Any) -> Any:
    """Return NumPy's numbers and arrays, alone or in a list, as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [as_python(item) for item in value] if isinstance(value, list | tuple) else value


def as_path(file: str | Path | None) -> Path | None:
    """Return a file's name as a path."""
    return None if file is None else Path(file)


def as_overrides(overrides: Sequence[str] | Mapping[str, Any]) -> Sequence[str]:
    """Return the settings that a sweep changes as `key=value`, as on the command line."""
    if not isinstance(overrides, Mapping):
        return [overrides] if isinstance(overrides, str) else overrides
    return [f"{key}={format_literal(as_python(value))}" for key, value in overrides.items()]
