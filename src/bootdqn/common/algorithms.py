"""The names and colours of the algorithms, the same in every table and figure.

Colours are Okabe and Ito's, and two of Tol's, which people with any kind of colour vision can tell apart.
"""

import re
from dataclasses import dataclass


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
