"""Judges of the paper's claims about ensembles while they learn."""

import numpy as np

from bootdqn.common.text import format_count
from bootdqn.report.ensembles import Measured, by_cell
from bootdqn.report.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence, Verdict
from bootdqn.report.statistics import FEWEST_FOR_INTERVAL

_NOT_LOOKED_INTO = "run folders do not hold it; reproduction/ensembles.py of the repository measures it"


def gain_is_sparser(evidence: Evidence) -> Verdict:
    """Say how much sparser and larger gain is; that it is follows from what the two are.

    A positive gain makes its EVOI positive, and the mean over heads spreads the same total over no fewer numbers: both
    hold for any ensemble, with "no less" for "more". By sum EVOI is never lower.
    """
    found = [one for one in evidence.ensembles if not one.prior_scale]
    if not found:
        return Verdict(OPEN, _NOT_LOOKED_INTO)
    shares = [float(np.mean([getattr(one, name) for one in found])) for name in ("gain_density", "evoi_density")]
    sizes = [float(np.mean([getattr(one, name) for one in found])) for name in ("gain_size", "evoi_size")]
    says = (
        f"{_looked_into(found)}: {100 * shares[0]:.0f} % of gains and {100 * shares[1]:.0f} % of EVOIs are positive; "
        f"these are {sizes[0]:.3f} and {sizes[1]:.3f} on average. It cannot be otherwise: it follows from the "
        "formulas (for EVOI by mean; by sum it is denser and higher)"
    )
    return Verdict(SUPPORTED, says, "ensembles")


def rare_states_are_disputed(evidence: Evidence) -> Verdict:
    """Judge whether visits and disagreement are opposed in every kind of ensemble, with every one of its seeds.

    Kinds in which they are, and others in which they go together, are mixed evidence. Ensembles with a prior, which the
    paper has not, are not asked.
    How it is among states of one depth is said, and does not count: the paper speaks of all states.
    """
    asked = [one for one in evidence.ensembles if not one.prior_scale]
    found = by_cell(asked)
    if not found:
        return Verdict(OPEN, _NOT_LOOKED_INTO)
    everywhere = _Correlations([[one.rarity for one in cell] for cell in found.values()])
    shallow = _Correlations([[one.rarity_at_shallow_depths for one in cell] for cell in found.values()])
    deep = _Correlations([[one.rarity_at_deep_ones for one in cell] for cell in found.values()])
    says = (
        f"{_looked_into(asked)}: visits and disagreement have a rank correlation of {everywhere} "
        f"(strategy, N, step); among states of one depth, {shallow} in the upper half of the grid, "
        f"and {deep} in the lower"
    )
    if everywhere.above_zero:
        return Verdict(MIXED if everywhere.below_zero else CONTRADICTED, says, "ensembles")
    return Verdict(SUPPORTED if everywhere.below_zero == len(found) else OPEN, says, "ensembles")


class _Correlations:
    """One correlation a cell and seed: how far they are from zero."""

    def __init__(self, cells: list[list[float]]) -> None:
        enough = [cell for cell in cells if len(cell) >= FEWEST_FOR_INTERVAL]
        self._means = [float(np.mean(cell)) for cell in cells]
        self.below_zero = sum(max(cell) < 0 for cell in enough)
        self.above_zero = sum(min(cell) > 0 for cell in enough)

    def __str__(self) -> str:
        return (
            f"{min(self._means):+.2f} to {max(self._means):+.2f}, "
            f"every seed below 0 in {self.below_zero} and above it in {self.above_zero} of {len(self._means)} cells"
        )


def _looked_into(found: list[Measured]) -> str:
    sizes, steps = sorted({one.size for one in found}), sorted({one.step for one in found})
    seeds = format_count(len({one.seed for one in found}), "seed")
    return f"DeepSea, N = {' and '.join(map(str, sizes))}, after {' and '.join(f'{s:,}' for s in steps)} steps, {seeds}"
