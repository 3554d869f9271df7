"""Names and colours of algorithms, and of variants: a strategy plus the settings that are not the default."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bootdqn.common.text import printable


@dataclass(frozen=True)
class Algorithm:
    """How a strategy is shown."""

    label: str
    colour: str


_KNOWN = {
    "greedy": Algorithm("BootDQN", "#0072B2"),
    "ucb": Algorithm("BootDQN-UCB", "#E69F00"),
    "gain": Algorithm("BootDQN-Gain", "#009E73"),
    "evoi": Algorithm("BootDQN-EVOI (mean)", "#CC79A7"),
    "evoi:reduce=sum": Algorithm("BootDQN-EVOI", "#D55E00"),
    "ids": Algorithm("DQN-IDS", "#56B4E9"),
    "vote": Algorithm("BootDQN-Vote", "#999933"),
    "boltzmann": Algorithm("BootDQN-Boltzmann", "#882255"),
}
_UNKNOWN_COLOURS = ("#7F7F7F", "#8C564B", "#9467BD", "#17BECF", "#BCBD22")


def algorithm(strategy: str) -> Algorithm:
    """Return how to show the strategy written `strategy` on the command line, known or not.

    The paper's EVOI is the sum over heads on DeepSea; for its Atari runs, where it is the mean, see `on_atari`.
    """
    base, parameters = family(strategy)
    colour = _UNKNOWN_COLOURS[sum(base.encode()) % len(_UNKNOWN_COLOURS)]
    return _with_parameters(_KNOWN.get(base, Algorithm(base, colour)), parameters)


def on_atari(strategy: str) -> Algorithm:
    """Return how to show the strategy of an Atari run, where the paper's EVOI is the mean over heads."""
    base, parameters = family(strategy)
    if base == "evoi":
        return _with_parameters(_KNOWN["evoi:reduce=sum"], parameters)
    if base == "evoi:reduce=sum":
        return _with_parameters(Algorithm("BootDQN-EVOI (sum)", _KNOWN["evoi"].colour), parameters)
    return algorithm(strategy)


def family(strategy: str) -> tuple[str, tuple[str, ...]]:
    """Return the strategy that `strategy` is a form of, and the parameters that make it one.

    Example: `evoi:reduce=sum,scale=2.0` is `evoi:reduce=sum` with `scale=2.0`.
    """
    name, parameters = _split(strategy)
    known = [one for one in _KNOWN if _split(one)[0] == name and _split(one)[1] <= parameters]
    base = max(known, key=lambda one: len(_split(one)[1]), default=name)
    return base, tuple(sorted(parameters - _split(base)[1]))


def algorithm_order(strategy: str) -> tuple[int, str]:
    """Return a sort key that puts the known strategies first, in the paper's order, each before its other forms."""
    known, (base, _) = list(_KNOWN), family(strategy)
    return (known.index(base) if base in known else len(known), strategy)


def _split(strategy: str) -> tuple[str, frozenset[str]]:
    name, _, parameters = strategy.partition(":")
    return name, frozenset(parameters.split(",")) if parameters else frozenset()


def _with_parameters(shown: Algorithm, parameters: tuple[str, ...]) -> Algorithm:
    """Put the parameters into the brackets at the end of the label."""
    if not parameters:
        return shown
    said = ", ".join(re.sub(r"\.0$", "", parameter) for parameter in parameters)
    label = f"{shown.label[:-1]}, {said})" if shown.label.endswith(")") else f"{shown.label} ({said})"
    return Algorithm(label, shown.colour)


NOT_PART_OF_VARIANT = frozenset(
    {"environment", "strategy", "seed", "device", "threads", "engine", "log_every", "snapshot_every"}
)
"""Settings that runs of one variant may differ in: at most, rounding depends on them."""
OF_THE_TASK = {
    "deep-sea": frozenset(
        {"size", "max_episodes", "stop_when_solved", "eval_every_steps", "eval_episodes", "eval_max_steps", "vote"}
    ),
    "atari": frozenset({"game", "total_frames"}),
    "gym": frozenset({"env_id", "env_options", "total_steps"}),
}
"""Settings that say what is to be learnt and for how long, or that no result depends on: told apart by other means."""
_WHERE_FROM = ("strategy_from", "imports")
"""Settings that tell whose code was run: part of what a run is, not of its name."""


@dataclass(frozen=True)
class Variant:
    """A strategy, and by name the settings that differ from the environment's defaults."""

    strategy: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Return a setting; None where it has its default."""
        return dict(self.settings).get(name)

    def without(self, *names: str) -> "Variant":
        """Return the variant with some settings at their default."""
        return Variant(self.strategy, tuple((name, value) for name, value in self.settings if name not in names))

    @property
    def plain(self) -> bool:
        """Whether it is nothing but one of the strategies that have a name of their own."""
        return not self.without(*_WHERE_FROM).settings and not family(self.strategy)[1]


def variant_of(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Variant:
    """Return the variant of a run.

    A setting that `config` lacks, because it was written before there was one, has its default. On DeepSea a target
    copy every N steps and a map by the run's own seed are the defaults, and an update every N steps is one an episode.

    Args:
        config: The run's settings, as in `config.json`.
        defaults: The environment's.

    Raises:
        KeyError: There is no strategy in `config`.
    """
    kind, size = str(config.get("environment")), config.get("size")
    passed_over = NOT_PART_OF_VARIANT | OF_THE_TASK.get(kind, frozenset())
    changed = {name: value for name, value in config.items() if name not in passed_over and value != defaults.get(name)}
    if kind == "deep-sea":
        for name, resolved in (("target_every", size), ("mapping_seed", config.get("seed"))):
            if changed.get(name) == resolved:
                changed.pop(name, None)
        if "update_every" in changed and changed["update_every"] == size:
            changed["update_every"] = "episode"
    return Variant(str(config["strategy"]), tuple((name, _frozen(changed[name])) for name in sorted(changed)))


def label(variant: Variant, named: Callable[[str], Algorithm] = algorithm) -> str:
    """Return a variant's name: the strategy's, and what is different about the agent."""
    settings = {name: value for name, value in variant.settings if name not in _WHERE_FROM}
    text = named(variant.strategy).label
    if is_dqn(variant):
        text = "Double DQN" if settings.pop("double_q", True) else "DQN"
        settings.pop("num_heads")
    added = [_filled(_ADDED[name], settings.pop(name)) for name in _ADDED if name in settings]
    if settings.get("replay") == "prioritized":
        added.append("prioritised")
        settings.pop("replay")
    changed = [_epsilon(settings)] if "epsilon" in settings else []
    for name, value in settings.items():
        form = _CHANGED.get((name, value)) or _CHANGED.get(name)
        changed.append(_filled(form, value) if form else f"{name}={_said(value)}")
    return printable("".join([text, *(f" + {one}" for one in added), *(f", {one}" for one in changed)]))


def variant_order(variant: Variant, named: Callable[[str], Algorithm] = algorithm) -> tuple[Any, ...]:
    """Return a sort key: by strategy, in the paper's order, the plain form first, then by how much is different."""
    base, parameters = family(variant.strategy)
    words = re.split(r"(\d+(?:\.\d+)?)", label(variant, named))
    natural = tuple((float(word), "") if number % 2 else (0.0, word) for number, word in enumerate(words))
    return (algorithm_order(base), is_dqn(variant), len(parameters) + len(variant.settings), natural)


def nameless(variant: Variant) -> tuple[str, ...]:
    """Return the settings that a label can only write out as they are."""
    named = {*_ADDED, *_CHANGED, *_EPSILON, *_WHERE_FROM, "replay", "double_q", "deterministic"}
    return tuple(name for name, _ in variant.settings if name not in named)


def is_dqn(variant: Variant) -> bool:
    """Whether it is one network that explores by chance: DQN, and not an ensemble."""
    return variant.strategy == "greedy" and variant["num_heads"] == 1 and bool(variant["epsilon"])


_ADDED = {
    "prior_scale": "prior {}",
    "n_step": "{}-step",
    "target_rate": "soft target {}",
    "info_bonus": "bonus {}",
}
_EPSILON = ("epsilon", "epsilon_end", "epsilon_steps")
_CHANGED: dict[Any, str] = {
    ("double_q", False): "single Q",
    ("deterministic", False): "windy",
    "mapping_seed": "fixed map {}",
    "mask_probability": "masks p = {}",
    "num_heads": "K = {}",
    "update_every": "update every {}",
}


def _epsilon(settings: dict[str, Any]) -> str:
    """Take the three settings of random actions out of `settings` and say them in one phrase."""
    start, end, steps = (settings.pop(name, None) for name in _EPSILON)
    text = f"ε {_said(start)}"
    text += "" if end is None else f" to {_said(end)}"
    return text if steps is None else f"{text} in {steps:,} steps"


def _filled(form: str, value: Any) -> str:
    return form.replace("{}", _said(value))


def _said(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "x".join(map(_said, value)) if isinstance(value, tuple) else str(value)


def _frozen(value: Any) -> Any:
    """Return a value of JSON as one that can be a key."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return str(value) if isinstance(value, dict) else value
