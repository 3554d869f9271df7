"""The names and colours of the algorithms, the same in every table and figure.

Colours are Okabe and Ito's, and two of Tol's, which people with any kind of colour vision can tell apart.
"""

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
    if strategy in _KNOWN:
        return _KNOWN[strategy]
    name, _, parameters = strategy.partition(":")
    base = _KNOWN.get(name, Algorithm(name, "")).label
    colour = _UNKNOWN_COLOURS[sum(strategy.encode()) % len(_UNKNOWN_COLOURS)]
    return Algorithm(f"{base} ({parameters})" if parameters else base, colour)


def on_atari(strategy: str) -> Algorithm:
    """Return how to show the strategy of an Atari run, where the paper's EVOI is the mean over heads."""
    if strategy == "evoi":
        return _KNOWN["evoi:reduce=sum"]
    if strategy == "evoi:reduce=sum":
        return Algorithm("BootDQN-EVOI (sum)", _KNOWN["evoi"].colour)
    return algorithm(strategy)


def algorithm_order(strategy: str) -> tuple[int, str]:
    """Return a sort key that puts the known strategies first, in the paper's order."""
    known = list(_KNOWN)
    return (known.index(strategy) if strategy in known else len(known), strategy)
