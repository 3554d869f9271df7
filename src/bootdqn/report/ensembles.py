"""What the paper says about ensembles while they learn, in numbers: how rare states and sparse bonuses look."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bootdqn.common.specs import Array
from bootdqn.config.variants import Variant, algorithm_order, label
from bootdqn.exploration.formulas import disagreement, evoi, gain
from bootdqn.report.statistics import interval_of_mean
from bootdqn.report.tables import Table

INTERVAL = "95 % interval"
SMALLEST_GROUP = 3
"""States whose ranks say something: two are always in one order or the other."""


@dataclass(frozen=True)
class Measured:
    """An ensemble at one moment of its training on DeepSea."""

    strategy: str
    size: int
    prior_scale: float
    seed: int
    step: int
    rarity: float
    """Spearman's rank correlation, over all states, of how often one was visited with how much the heads disagree."""
    rarity_among_visited: float
    """The same over the states that were visited at all."""
    rarity_at_shallow_depths: float
    """The same among the states of one depth, on average over the depths of the upper half of the grid."""
    rarity_at_deep_ones: float
    """The same for the lower half."""
    gain_density: float
    """The share of positive gains, over states that were visited, heads and actions."""
    evoi_density: float
    """The same of EVOI, the mean over heads."""
    gain_size: float
    """The mean of the positive gains."""
    evoi_size: float
    """The same of EVOI."""


def rarity(q: Array, visits: Array) -> float:
    """Return the rank correlation of visits (S,) with the heads' disagreement about Q-values (S, K, A)."""
    return float(spearmanr(visits, disagreement(q)).statistic)


def rarity_within(groups: Array, q: Array, visits: Array) -> float:
    """Return the mean, over groups of states (S,), of the same among the states of each.

    A group counts once, however large; one of fewer than three states, or whose states were all visited equally often,
    has no say. Where none has, it is NaN.
    """
    found = []
    for group in np.unique(groups):
        here = groups == group
        if here.sum() >= SMALLEST_GROUP and len(np.unique(visits[here])) > 1:
            found.append(rarity(q[here], visits[here]))
    return float(np.mean(found)) if found else float("nan")


def densities_and_sizes(q: Array) -> dict[str, float]:
    """Return how many of the gains, and of the EVOIs, of Q-values (S, K, A) are positive, and how large those are."""
    found = {}
    for name, bonus in (("gain", gain(q)), ("evoi", evoi(q))):
        found[f"{name}_density"] = float((bonus > 0).mean())
        found[f"{name}_size"] = float(bonus[bonus > 0].mean()) if (bonus > 0).any() else 0.0
    return found


Cell = tuple[str, int, float, int]


def by_cell(measured: Sequence[Measured]) -> dict[Cell, list[Measured]]:
    """Return the measurements by strategy, size, prior's scale and step, one a seed."""
    found: dict[Cell, list[Measured]] = {}
    for one in sorted(measured, key=_order):
        found.setdefault((one.strategy, one.size, one.prior_scale, one.step), []).append(one)
    return found


def table(measured: Sequence[Measured]) -> Table:
    """Return how visits and disagreement go together, on average over seeds."""
    rows = []
    for (strategy, size, prior_scale, step), cell in by_cell(measured).items():
        variant = Variant(strategy, (("prior_scale", prior_scale),) if prior_scale else ())
        rows.append(
            (
                str(size),
                f"{step:,}",
                label(variant),
                str(len(cell)),
                *_mean_and_interval([one.rarity for one in cell]),
                *_mean_and_interval([one.rarity_among_visited for one in cell]),
                *_mean_and_interval([one.rarity_at_shallow_depths for one in cell]),
                *_mean_and_interval([one.rarity_at_deep_ones for one in cell]),
            )
        )
    compared = [
        heading
        for name in ("all states", "visited states", "of one depth, upper half", "lower half")
        for heading in (name, INTERVAL)
    ]
    columns = ("N", "steps", "algorithm", "seeds", *compared)
    return Table("ensembles", "Visits and disagreement", columns, rows, text_columns=("algorithm",))


def _mean_and_interval(values: Sequence[float]) -> tuple[str, str]:
    interval = interval_of_mean(values)
    return f"{np.mean(values):+.2f}", "" if interval is None else f"{interval[0]:+.2f} to {interval[1]:+.2f}"


def _order(one: Measured) -> tuple[Any, ...]:
    return one.size, one.step, one.prior_scale, algorithm_order(one.strategy), one.seed
