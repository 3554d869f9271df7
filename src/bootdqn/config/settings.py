"""Settings: a configuration as one flat mapping.

That is `config.json`, its keys are the flags of the command line, and a sweep varies them.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_type_hints

from bootdqn.common.fields import flag_of, format_literal
from bootdqn.common.text import did_you_mean
from bootdqn.common.user_code import UserCodeNotImportedError
from bootdqn.config.defaults import DEFAULTS, ENVIRONMENTS, preset_settings, with_preset
from bootdqn.config.envs import check_minigrid_id
from bootdqn.config.train import TrainConfig, config_parts, replace_known, resolve

_VERSION = re.compile(r"-v\d+$")
"""Version of a Gymnasium id."""
_RESULT_NEUTRAL_SETTINGS = frozenset({"snapshot_every", "preset"})
"""Settings that the numbers of a run do not depend on."""
_DERIVED = frozenset({"update_every", "target_every", "mapping_seed", "max_episodes"})
"""Settings that `resolve` fills in where they are None."""
BUDGET_SYNONYMS = (
    *("max_episodes", "total_steps", "total_frames"),
    *("episodes", "steps", "timesteps", "total_timesteps", "frames"),
)
"""Names of a budget; each environment has one of the first three."""
_SYNONYMS = {
    **dict.fromkeys(("heads", "k", "n_heads", "ensemble_size"), "num_heads"),
    **dict.fromkeys(("lr", "step_size"), "learning_rate"),
    **dict.fromkeys(("buffer_size", "replay_size", "memory_size"), "replay_capacity"),
    "gamma": "discount",
    "tau": "target_rate",
    "n": "size",
    "num_seeds": "seed",
}
"""Settings by the names that papers and other libraries have for them, in lower case."""


def to_flat(config: TrainConfig[Any]) -> dict[str, Any]:
    """Return the configuration as one mapping, ready for JSON."""
    flat: dict[str, Any] = {"environment": config.env.kind}
    for part in config_parts(config).values():
        for field in fields(part):
            value = getattr(part, field.name)
            flat[field.name] = list(value) if isinstance(value, tuple) else value
    return flat


def from_flat(flat: Mapping[str, Any]) -> TrainConfig[Any]:
    """Return the configuration that `flat` describes; settings that it leaves out have the environment's defaults.

    Raises:
        ValueError: An unknown setting (the message suggests the closest), or a value that its field does not take.
        UserCodeNotImportedError: It needs user code; the message lists all flags that import it.
    """
    default = with_preset(ENVIRONMENTS[_environment_of(flat)], flat.get("preset", "paper"))
    remaining = {key: value for key, value in flat.items() if key != "environment"}
    if isinstance(options := remaining.get("env_options"), Mapping):
        remaining["env_options"] = [f"{name}={format_literal(value)}" for name, value in options.items()]
    parts, missing = {}, list[str]()
    for part_name, part in config_parts(default).items():
        try:
            parts[part_name] = replace_known(part, remaining)
        except UserCodeNotImportedError as error:
            missing += error.flags
    known = [field.name for part in config_parts(default).values() for field in fields(part)]
    remaining = {name: value for name, value in remaining.items() if name not in known}
    if missing:
        raise UserCodeNotImportedError(*missing)
    if remaining:
        unknown = next(iter(remaining))
        meant = setting_synonyms(default.env.kind).get(str(unknown).lower())
        hint = f"; did you mean {meant!r}?" if meant else did_you_mean(str(unknown), known)
        raise ValueError(f"unknown setting {unknown!r}{hint}")
    return replace(default, **parts)


def default_settings() -> dict[str, dict[str, Any]]:
    """Return the default settings of each environment by its kind, as flat mappings; reports compare runs with them."""
    return {kind: to_flat(config) for kind, config in DEFAULTS.items()}


def describe_settings(config: TrainConfig[Any]) -> str:
    """Return the preset of a run with what it sets, and the settings that differ from it, as one line."""
    preset, kind = config.run.preset, config.env.kind
    base = with_preset(DEFAULTS[kind], preset)
    flat, default = to_flat(resolve(config)), to_flat(base)
    task: dict[str, Any] = {name: flat[name] for name in ("size", "bsuite_id", "seed") if name in flat}
    parts = {name: replace_known(part, task) for name, part in config_parts(base).items()}
    resolved = to_flat(resolve(replace(base, **parts)))  # with the defaults that depend on the task
    different = {
        name: value
        for name, value in flat.items()
        if value != default[name] and (name in task or value != resolved[name])
    }
    of_preset = _listed({name: flat[name] for name in preset_settings(preset, kind) if name not in different})
    text = f"preset {preset} ({of_preset})" if of_preset else f"preset {preset}"
    return f"{text} with {_listed(different)}" if different else text


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def with_changes(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return flat settings with changes.

    In a complete configuration, as in `config.json`, what `resolve` filled in follows the changes: with another seed
    DeepSea has that seed's map of actions. A mapping of a few settings is taken as it is written.

    Raises:
        ValueError: The preset of a complete configuration is changed, whose settings would stay as they are.
    """
    if not _is_complete(settings):
        return {**settings, **changes}
    if changes.get("preset", settings["preset"]) != settings["preset"]:
        raise ValueError(
            f"preset {changes['preset']!r} sets nothing in a complete configuration: name the environment and what "
            f"differs, as in bootdqn.train({settings['environment']!r}, preset={changes['preset']!r}, ...)"
        )
    chosen = {name: value for name, value in settings.items() if name not in _DERIVED}
    unresolved, resolved = to_flat(from_flat(chosen)), to_flat(resolve(from_flat(chosen)))
    derived = (_DERIVED & settings.keys()) - {name for name, value in unresolved.items() if value is not None}
    followed = {name for name in derived if resolved[name] == settings[name]}
    return {name: value for name, value in settings.items() if name not in followed} | dict(changes)


def _is_complete(settings: Mapping[str, Any]) -> bool:
    """Return whether every setting of the environment is there."""
    environment = settings.get("environment")
    return environment in DEFAULTS and to_flat(DEFAULTS[environment]).keys() <= settings.keys()


def setting_types(environment: Any) -> dict[str, Any]:
    """Return the annotated type of every setting of an environment; none where there is no such environment."""
    parts = config_parts(ENVIRONMENTS[environment]).values() if environment in ENVIRONMENTS else ()
    hints = {type(part): get_type_hints(type(part), include_extras=True) for part in parts}
    return {field.name: types[field.name] for part, types in hints.items() for field in fields(part)}


def setting_synonyms(environment: str) -> dict[str, str]:
    """Return settings of an environment's kind by names that they do not have, in lower case, to suggest the settings.

    The names are those of flags (`id` of `bsuite_id`), of other environments, of papers and of other libraries.

    Example:
        >>> [setting_synonyms("gym")[name] for name in ("lr", "steps", "env")]
        ['learning_rate', 'total_steps', 'env_id']
    """
    types, env = setting_types(environment), ENVIRONMENTS[environment].env
    tasks = dict.fromkeys(("env", "env_id", "env_name", "game"), env.required_field)
    by_flag = {flag_of(kind).name: name for name, kind in types.items()}
    synonyms = _SYNONYMS | dict.fromkeys(BUDGET_SYNONYMS, env.budget) | tasks | by_flag
    return {word: name for word, name in synonyms.items() if word and name in types and word not in types}


def _environment_of(flat: Mapping[str, Any]) -> str:
    """Return the environment that the settings are for, one of `ENVIRONMENTS`.

    Raises:
        ValueError: It is missing or unknown, or the settings do not choose a task of it.
    """
    name = flat.get("environment")
    if name is None:
        close = difflib.get_close_matches("environment", map(str, flat), n=1)
        hint = f"; {close[0]!r} is no setting" if close else ""
        raise ValueError(f"environment is missing: one of {', '.join(ENVIRONMENTS)}{hint}")
    if not isinstance(name, str) or name not in ENVIRONMENTS:
        raise ValueError(f"environment must be one of {', '.join(ENVIRONMENTS)}; got {name!r}")
    env = ENVIRONMENTS[name].env
    if env.required_field and env.required_field not in flat:
        example = getattr(env, env.required_field)
        raise ValueError(f"the environment {name} needs {env.required_field}, as in {env.required_field} = {example!r}")
    if name == "minigrid":
        check_minigrid_id(flat["env_id"])
    return name


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ between two flat configurations, with both values.

    A setting that one of them lacks, because an earlier version wrote it, has its default there. Settings that change
    no number are ignored. An `env_id` without version, as sweep files may have it, stands for any.
    """
    first, second = _completed(first), _completed(second)
    keys = sorted({*first, *second} - _RESULT_NEUTRAL_SETTINGS)
    different = {key: (first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)}
    if "env_id" in different and _same_environment(*different["env_id"]):
        del different["env_id"]
    return different


def _same_environment(first: Any, second: Any) -> bool:
    """Return whether two ids are those of one environment, where one of them has no version."""
    names = [_VERSION.sub("", str(env_id)) for env_id in (first, second)]
    return names[0] == names[1] in (first, second)


def budget_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, int, int] | None:
    """Return the name and both values of the budget (episodes, frames or steps) if two runs differ in it alone.

    A run does not depend on its budget before it ends, so one with a smaller budget is the beginning of one with a
    larger budget.
    """
    different = differences(old, new)
    if len(different) != 1 or old.get("environment") not in DEFAULTS:
        return None
    budget = DEFAULTS[old["environment"]].env.budget
    before, after = different.get(budget, (None, None))
    return (budget, before, after) if type(before) is type(after) is int else None


def _completed(flat: Mapping[str, Any]) -> dict[str, Any]:
    kind = flat.get("environment")
    return (to_flat(DEFAULTS[kind]) if kind in DEFAULTS else {}) | dict(flat)
