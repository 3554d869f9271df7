"""What the paper says about ensembles while they learn, in numbers: how rare states and sparse bonuses look."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from bootdqn.analysis.statistics import interval_of_mean
from bootdqn.analysis.tables import Table
from bootdqn.common.algorithms import algorithm, algorithm_order
from bootdqn.common.specs import Array
from bootdqn.exploration.information import evoi, gain


@dataclass(frozen=True)
class Measured:
    """An ensemble at one moment of its training on DeepSea."""

    strategy: str
    size: int
    seed: int
    step: int
    rarity: float
    """Spearman's rank correlation, over all states, of how often one was visited with how much the heads disagree."""
    gain_density: float
    """The share of positive gains, over states that were visited, heads and actions."""
    evoi_density: float
    """The same of EVOI, the mean over heads."""
    gain_size: float
    """The mean of the positive gains."""
    evoi_size: float
    """The same of EVOI."""


def rarity(q: Array, visits: Array) -> float:
    """Return the rank correlation of visits (S,) with the heads' disagreement about Q-values (S, K, A).

    How much heads disagree about a state is the standard deviation over heads, averaged over actions.
    """
    return float(spearmanr(visits, q.std(axis=1).mean(axis=-1)).statistic)


def densities_and_sizes(q: Array) -> dict[str, float]:
    """Return how many of the gains, and of the EVOIs, of Q-values (S, K, A) are positive, and how large those are."""
    found = {}
    for name, bonus in (("gain", gain(q)), ("evoi", evoi(q))):
        found[f"{name}_density"] = float((bonus > 0).mean())
        found[f"{name}_size"] = float(bonus[bonus > 0].mean()) if (bonus > 0).any() else 0.0
    return found


Cell = tuple[str, int, int]


def by_cell(measured: Sequence[Measured]) -> dict[Cell, list[Measured]]:
    """Return the measurements by strategy, size and step, one a seed."""
    found: dict[Cell, list[Measured]] = {}
    for one in sorted(measured, key=lambda m: (m.size, m.step, algorithm_order(m.strategy), m.seed)):
        found.setdefault((one.strategy, one.size, one.step), []).append(one)
    return found


def table(measured: Sequence[Measured]) -> Table:
    """Return the means over seeds."""
    rows = []
    for (strategy, size, step), cell in by_cell(measured).items():
        rarities = [one.rarity for one in cell]
        interval = interval_of_mean(rarities)
        means = {name: float(np.mean([getattr(one, name) for one in cell])) for name in _SHOWN}
        rows.append((
            str(size), f"{step:,}", algorithm(strategy).label, str(len(cell)), f"{np.mean(rarities):.2f}",
            "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}",
            f"{means['gain_density']:.0%}", f"{means['evoi_density']:.0%}",
            f"{means['gain_size']:.3f}", f"{means['evoi_size']:.3f}",
        ))  # fmt: skip
    return Table("ensembles", "Rare states and sparse bonuses", _COLUMNS, rows, text_columns=("algorithm",))


_SHOWN = ("gain_density", "evoi_density", "gain_size", "evoi_size")
_COLUMNS = (
    "N",
    "steps",
    "algorithm",
    "seeds",
    "correlation of visits and disagreement",
    "95 % interval",
    "positive gains",
    "positive EVOIs",
    "mean positive gain",
    "mean positive EVOI",
)
