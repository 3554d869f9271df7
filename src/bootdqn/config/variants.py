"""Labels and colours of algorithms, and labels of variants: a strategy plus the settings that are not the default."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bootdqn.common.text import escape_unprintable
from bootdqn.config.defaults import EXPLORER


@dataclass(frozen=True)
class Algorithm:
    """Label and colour of a strategy in reports."""

    label: str
    colour: str


_ALGORITHMS = {
    "greedy": Algorithm("BootDQN", "#0072B2"),
    "ucb": Algorithm("BootDQN-UCB", "#E69F00"),
    "gain": Algorithm("BootDQN-Gain", "#009E73"),
    "evoi": Algorithm("BootDQN-EVOI (mean)", "#CC79A7"),
    "evoi:reduce=sum": Algorithm("BootDQN-EVOI", "#D55E00"),
    "ids": Algorithm("DQN-IDS", "#56B4E9"),
    "vote": Algorithm("BootDQN-Vote", "#999933"),
    "boltzmann": Algorithm("BootDQN-Boltzmann", "#882255"),
}
_ALGORITHMS_ON_GAMES = _ALGORITHMS | {
    "evoi": _ALGORITHMS["evoi:reduce=sum"],
    "evoi:reduce=sum": Algorithm("BootDQN-EVOI (sum)", _ALGORITHMS["evoi"].colour),
}
GAME_ENVIRONMENTS = ("atari", "minatar")
"""Environments where the paper's EVOI is the mean over heads, and results are the scores of evaluations."""
_OTHER_COLOURS = ("#7F7F7F", "#8C564B", "#9467BD", "#17BECF", "#BCBD22")


def algorithm(strategy: str, environment: str = "") -> Algorithm:
    """Return the label and colour of a strategy, built in or not.

    Args:
        strategy: Its text on the command line.
        environment: Where it acts, as on the command line. The paper's EVOI, `BootDQN-EVOI`, is the sum over heads on
            DeepSea and the mean on Atari, so the label of either depends on it.
    """
    base, parameters = base_strategy(strategy)
    algorithms = _ALGORITHMS_ON_GAMES if environment in GAME_ENVIRONMENTS else _ALGORITHMS
    colour = _OTHER_COLOURS[sum(base.encode()) % len(_OTHER_COLOURS)]
    return _with_parameters(algorithms.get(base, Algorithm(base, colour)), parameters)


def base_strategy(strategy: str) -> tuple[str, tuple[str, ...]]:
    """Return the labelled strategy that `strategy` is a form of, and its further parameters.

    Example: `evoi:reduce=sum,scale=2.0` is `evoi:reduce=sum` with `scale=2.0`.
    """
    name, parameters = _split(strategy)
    matching = [text for text in _ALGORITHMS if _split(text)[0] == name and _split(text)[1] <= parameters]
    base = max(matching, key=lambda text: len(_split(text)[1]), default=name)
    return base, tuple(sorted(parameters - _split(base)[1]))


def algorithm_order(strategy: str) -> tuple[int, str]:
    """Return a sort key: labelled strategies first, in the paper's order, each before its other forms."""
    labelled, (base, _) = list(_ALGORITHMS), base_strategy(strategy)
    return (labelled.index(base) if base in labelled else len(labelled), strategy)


def _split(strategy: str) -> tuple[str, frozenset[str]]:
    name, _, parameters = strategy.partition(":")
    return name, frozenset(parameters.split(",")) if parameters else frozenset()


def _with_parameters(shown: Algorithm, parameters: tuple[str, ...]) -> Algorithm:
    """Put the parameters into the brackets at the end of the label."""
    if not parameters:
        return shown
    listed = ", ".join(re.sub(r"\.0$", "", parameter) for parameter in parameters)
    label = f"{shown.label[:-1]}, {listed})" if shown.label.endswith(")") else f"{shown.label} ({listed})"
    return Algorithm(label, shown.colour)


NOT_PART_OF_VARIANT = frozenset(
    {"environment", "preset", "strategy", "seed", "device", "threads", "engine", "log_every", "snapshot_every"}
)
"""Settings that runs of one variant may differ in; at most rounding depends on them."""
TASK_SETTINGS = {
    "deep-sea": frozenset(
        {"size", "max_episodes", "stop_when_solved", "eval_every_steps", "eval_episodes", "eval_max_steps", "vote"}
    ),
    "atari": frozenset({"game", "total_frames"}),
    "bsuite": frozenset(
        {"bsuite_id", "max_episodes", "stop_when_solved", "eval_every_steps", "eval_episodes", "eval_max_steps", "vote"}
    ),
    "minatar": frozenset({"game", "total_steps"}),
    "gym": frozenset({"env_id", "env_options", "total_steps"}),
}
"""Settings of the task and the budget, or that no result depends on; reports distinguish runs by them otherwise."""
_FEWEST_OF_PRESET = 2
"""A preset that sets fewer settings than this beside the strategy is labelled by them."""
_USER_CODE = ("strategy_from", "imports")
"""Settings that import user code: part of a variant, but not of its label."""


@dataclass(frozen=True)
class Variant:
    """A strategy, and the settings that differ from the environment's defaults."""

    strategy: str
    settings: tuple[tuple[str, Any], ...] = ()
    environment: str = field(default="", compare=False)
    """As on the command line; only the label depends on it. Variants are compared on one task."""

    def __getitem__(self, name: str) -> Any:
        """Return the value of a setting; None where it is the default."""
        return dict(self.settings).get(name)

    def without(self, *names: str) -> "Variant":
        """Return the variant with some settings at their defaults."""
        return replace(self, settings=tuple((name, value) for name, value in self.settings if name not in names))

    @property
    def plain(self) -> bool:
        """Whether it is a labelled strategy with default settings."""
        return not self.without(*_USER_CODE).settings and not base_strategy(self.strategy)[1]


def variant_of(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Variant:
    """Return the variant of a run.

    A setting that `config` lacks, because an earlier version wrote it, has its default. On DeepSea an update and a
    target copy every N steps, and a mapping by the run's seed, are the defaults.
    The settings of the preset `explorer`, if the run has all of them, are one setting, `preset`.

    Args:
        config: Settings of the run, as in `config.json`.
        defaults: Default settings of its environment.

    Raises:
        KeyError: `config` has no strategy.
    """
    kind, size = str(config.get("environment")), config.get("size")
    ignored = NOT_PART_OF_VARIANT | TASK_SETTINGS.get(kind, frozenset())
    changed = {name: value for name, value in config.items() if name not in ignored and value != defaults.get(name)}
    explorer = {name: value for name, value in EXPLORER.get(kind, {}).items() if name != "strategy"}
    if len(explorer) >= _FEWEST_OF_PRESET and explorer.items() <= (dict(defaults) | dict(config)).items():
        changed = {name: value for name, value in changed.items() if name not in explorer} | {"preset": "explorer"}
    if kind == "deep-sea":
        for name, resolved in (("update_every", size), ("target_every", size), ("mapping_seed", config.get("seed"))):
            if changed.get(name) == resolved:
                changed.pop(name, None)
    settings = tuple((name, _hashable(changed[name])) for name in sorted(changed))
    return Variant(str(config["strategy"]), settings, kind)


def label(variant: Variant) -> str:
    """Return the label of a variant: that of its strategy, and its settings."""
    settings = {name: value for name, value in variant.settings if name not in _USER_CODE}
    text = algorithm(variant.strategy, variant.environment).label
    if is_dqn(variant):
        text = "Double DQN" if settings.pop("double_q", True) else "DQN"
        settings.pop("num_heads")
    added = [_fill(_ADDITIONS[name], settings.pop(name)) for name in _ADDITIONS if name in settings]
    if settings.get("replay") == "prioritized":
        added.append("prioritised")
        settings.pop("replay")
    changed = [_epsilon(settings)] if "epsilon" in settings else []
    for name, value in settings.items():
        form = _CHANGES.get((name, value)) or _CHANGES.get(name)
        changed.append(_fill(form, value) if form else f"{name}={_format(value)}")
    return escape_unprintable("".join([text, *(f" + {one}" for one in added), *(f", {one}" for one in changed)]))


def variant_order(variant: Variant) -> tuple[Any, ...]:
    """Return a sort key: by strategy, in the paper's order, then by the number of settings that differ."""
    base, parameters = base_strategy(variant.strategy)
    words = re.split(r"(\d+(?:\.\d+)?)", label(variant))
    natural = tuple((float(word), "") if number % 2 else (0.0, word) for number, word in enumerate(words))
    return (algorithm_order(base), is_dqn(variant), len(parameters) + len(variant.settings), natural)


def unnamed_settings(variant: Variant) -> tuple[str, ...]:
    """Return the settings for which labels have no words, only `name=value`."""
    named = {*_ADDITIONS, *_CHANGES, *_EPSILON, *_USER_CODE, "replay", "double_q", "deterministic"}
    return tuple(name for name, _ in variant.settings if name not in named)


def is_dqn(variant: Variant) -> bool:
    """Return whether it is DQN: a single network that explores by epsilon."""
    return variant.strategy == "greedy" and variant["num_heads"] == 1 and bool(variant["epsilon"])


_ADDITIONS = {
    "preset": "{}",
    "prior_scale": "prior {}",
    "embedding_scale": "embedding {}",
    "n_step": "{}-step",
    "target_rate": "soft target {}",
    "info_bonus": "bonus {}",
}
_EPSILON = ("epsilon", "epsilon_end", "epsilon_steps")
_CHANGES: dict[Any, str] = {
    ("double_q", False): "single Q",
    ("deterministic", False): "windy",
    "mapping_seed": "fixed map {}",
    "mask_probability": "masks p = {}",
    "num_heads": "K = {}",
    ("update_every", 1): "update every step",
    "update_every": "update every {}",
}


def _epsilon(settings: dict[str, Any]) -> str:
    """Remove the settings of epsilon from `settings` and return them as one phrase."""
    start, end, steps = (settings.pop(name, None) for name in _EPSILON)
    text = f"ε {_format(start)}"
    text += "" if end is None else f" to {_format(end)}"
    return text if steps is None else f"{text} in {steps:,} steps"


def _fill(form: str, value: Any) -> str:
    return form.replace("{}", _format(value))


def _format(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "x".join(map(_format, value)) if isinstance(value, tuple) else str(value)


def _hashable(value: Any) -> Any:
    """Return a JSON value as one that can be hashed."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return str(value) if isinstance(value, dict) else value
