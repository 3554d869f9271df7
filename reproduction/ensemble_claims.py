"""Measurements of ensembles while they learn (by `ensembles.py`): a table, and judges of the paper's claims.

A table of measurements has a row for each ensemble and step, with the columns that `ensembles.measure` describes.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from bootdqn.common.text import format_count
from bootdqn.config.variants import Variant, algorithm_order, label
from bootdqn.reports.statistics import MIN_FOR_INTERVAL, interval_of_mean
from bootdqn.reports.tables import Table
from reproduction.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence, Verdict

_NOT_MEASURED = "run directories do not hold it; reproduction/ensembles.py of the repository measures it"
CORRELATIONS = {
    "rarity": "all states",
    "rarity_among_visited": "visited states",
    "rarity_at_shallow_depths": "of one depth, upper half",
    "rarity_at_deep_ones": "lower half",
}
"""Columns of the measurements, and those of the table."""
Cell = tuple[int, int, float, str]


def by_cell(measured: pd.DataFrame) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Yield the measurements by size, step, prior's scale and strategy, in order, one a seed."""
    order = {strategy: place for place, strategy in enumerate(sorted(set(measured.strategy), key=algorithm_order))}
    columns = ["size", "step", "prior_scale", "order", "seed"]
    ordered = measured.assign(order=measured.strategy.map(order)).sort_values(columns)
    yield from ordered.groupby(["size", "step", "prior_scale", "strategy"], sort=False)


def ensembles_table(measured: pd.DataFrame) -> Table:
    """Return how visits and disagreement go together, on average over seeds."""
    rows = []
    for (size, step, prior_scale, strategy), cell in by_cell(measured):
        variant = Variant(strategy, (("prior_scale", prior_scale),) if prior_scale else ())
        correlations = [text for name in CORRELATIONS for text in _mean_and_interval(list(cell[name]))]
        rows.append((str(size), f"{step:,}", label(variant), str(len(cell)), *correlations))
    headings = [heading for name in CORRELATIONS.values() for heading in (name, "95 % interval")]
    columns = ("N", "steps", "algorithm", "seeds", *headings)
    return Table("ensembles", "Visits and disagreement", columns, rows, text_columns=("algorithm",))


def _mean_and_interval(values: Sequence[float]) -> tuple[str, str]:
    interval = interval_of_mean(values)
    return f"{np.mean(values):+.2f}", "" if interval is None else f"{interval[0]:+.2f} to {interval[1]:+.2f}"


def gain_is_sparser(evidence: Evidence) -> Verdict:
    """Describe how much sparser and larger gain is; that it is follows from the formulas.

    A positive gain makes its EVOI positive, and the mean over heads spreads the same total over no fewer numbers: both
    hold for any ensemble, with "no less" for "more". By sum EVOI is never lower.
    """
    measured = _without_prior(evidence)
    if measured.empty:
        return Verdict(OPEN, _NOT_MEASURED)
    means = measured[["gain_density", "evoi_density", "gain_size", "evoi_size"]].mean()
    reason = (
        f"{_described(measured)}: {100 * means.gain_density:.0f} % of gains and {100 * means.evoi_density:.0f} % of "
        f"EVOIs are positive; these are {means.gain_size:.3f} and {means.evoi_size:.3f} on average. It cannot be "
        "otherwise: it follows from the formulas (for EVOI by mean; by sum it is denser and higher)"
    )
    return Verdict(SUPPORTED, reason)


def rare_states_are_disputed(evidence: Evidence) -> Verdict:
    """Judge whether visits and disagreement are opposed in every kind of ensemble, with every one of its seeds.

    Kinds in which they are, and others in which they go together, are mixed evidence. Ensembles with a prior, which the
    paper has not, are not asked.
    How it is among states of one depth is said, and does not count: the paper speaks of all states.
    """
    measured = _without_prior(evidence)
    if measured.empty:
        return Verdict(OPEN, _NOT_MEASURED)
    cells = [cell for _, cell in by_cell(measured)]
    everywhere, shallow, deep = (
        _Correlations([list(cell[name]) for cell in cells])
        for name in ("rarity", "rarity_at_shallow_depths", "rarity_at_deep_ones")
    )
    reason = (
        f"{_described(measured)}: visits and disagreement have a rank correlation of {everywhere} "
        f"(strategy, N, step); among states of one depth, {shallow} in the upper half of the grid, "
        f"and {deep} in the lower"
    )
    if everywhere.above_zero:
        return Verdict(MIXED if everywhere.below_zero else CONTRADICTED, reason)
    return Verdict(SUPPORTED if everywhere.below_zero == len(cells) else OPEN, reason)


class _Correlations:
    """One correlation a cell and seed: how far they are from zero."""

    def __init__(self, cells: list[list[float]]) -> None:
        enough = [cell for cell in cells if len(cell) >= MIN_FOR_INTERVAL]
        self._means = [float(np.mean(cell)) for cell in cells]
        self.below_zero = sum(max(cell) < 0 for cell in enough)
        self.above_zero = sum(min(cell) > 0 for cell in enough)

    def __str__(self) -> str:
        return (
            f"{min(self._means):+.2f} to {max(self._means):+.2f}, "
            f"every seed below 0 in {self.below_zero} and above it in {self.above_zero} of {len(self._means)} cells"
        )


def _without_prior(evidence: Evidence) -> pd.DataFrame:
    measured = evidence.ensembles
    return measured if measured.empty else measured[measured.prior_scale == 0]


def _described(measured: pd.DataFrame) -> str:
    sizes, steps = sorted(set(measured["size"])), sorted(set(measured.step))
    seeds = format_count(measured.seed.nunique(), "seed")
    return f"DeepSea, N = {' and '.join(map(str, sizes))}, after {' and '.join(f'{s:,}' for s in steps)} steps, {seeds}"
