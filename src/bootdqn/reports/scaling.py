"""How far algorithms get on DeepSea: the laws by which the size of the grid decides whether and when it is solved.

Both are fitted by maximum likelihood, with intervals of the profile likelihood: the values that a likelihood-ratio test
at the 5 % level does not reject. Runs that reached the cap are censored observations, and an algorithm that solved
everything has a lower limit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, special, stats

from bootdqn.config.variants import label, variant_order
from bootdqn.reports.deep_sea import episodes_to_solve
from bootdqn.reports.statistics import LEVEL
from bootdqn.reports.tables import Table

MIN_SIZES = 3
"""On fewer sizes there is no law."""
LITERATURE = {"BootDQN": 0.80, "BootDQN + prior": 0.87}
"""psi of other implementations (Knyazhitskiy 2025, A Unified Scaling Law for Bootstrapped DQNs)."""
_DROP = stats.chi2.ppf(1 - LEVEL, 1) / 2
"""How far below its maximum the log-likelihood is at the ends of an interval."""
_PRECISION = 1e-5
_STEEPEST = 20.0
"""Exponents of N are looked for between minus this and this."""
_LARGEST_INVERSE_SCATTER = 1e3
"""Episodes are whole numbers: that they lie on a line to within a thousandth says nothing more."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A fitted value and its 95 % interval."""

    value: float
    low: float
    high: float


def fit_psi(sizes: Sequence[int], solved: Sequence[bool], num_heads: int) -> Estimate:
    """Fit `P(solved) = 1 - (1 - psi^N)^K`: one of K heads makes N right moves, each with probability psi.

    Args:
        sizes: N of each run.
        solved: Whether it was solved.
        num_heads: K of all runs.

    Returns:
        psi: 1 where all runs were solved, 0 where none was.
    """
    n, yes = np.asarray(sizes, float), np.asarray(solved, bool)

    def log_likelihood(psi: float) -> float:
        log_unsolved = num_heads * np.log1p(-np.clip(psi**n, 0, 1 - 1e-16))
        chances = np.where(yes, np.log(np.clip(-np.expm1(log_unsolved), 1e-300, None)), log_unsolved)
        return float(chances.sum())

    best = 1.0 if yes.all() else 0.0 if not yes.any() else _peak(log_likelihood, 0.0, 1.0)
    return _interval(log_likelihood, best, 0.0, 1.0)


def fit_exponent(sizes: Sequence[int], episodes: Sequence[float], solved: Sequence[bool]) -> Estimate | None:
    """Fit `episodes = c N^b` with log-normal scatter; a run that was not solved has more episodes than it counts.

    Args:
        sizes: N of each run.
        episodes: Episodes until it was solved, or its cap.
        solved: Whether it was solved.

    Returns:
        b, or None where fewer than two sizes were solved.
    """
    log_n, log_episodes = np.log(np.asarray(sizes, float)), np.log(np.asarray(episodes, float))
    yes = np.asarray(solved, bool)
    if len(set(log_n[yes])) < 2:
        return None

    def profile(exponent: float) -> float:
        return _best_of_level_and_scatter(log_episodes - exponent * log_n, yes)

    best = _peak(profile, -_STEEPEST, _STEEPEST)
    return _interval(profile, best, -_STEEPEST, _STEEPEST)


def _best_of_level_and_scatter(values: Values, exact: NDArray[np.bool_]) -> float:
    """Return the highest log-likelihood of a normal distribution whose inexact values are lower bounds.

    In the inverse scatter, and the level times it, this likelihood is concave (Olsen 1978).
    """

    def loss(parameters: Values) -> tuple[float, Values]:
        level, inverse = parameters
        z, above = inverse * known - level, inverse * bounds - level
        log_above = special.log_ndtr(-above)
        hazard = np.exp(-above * above / 2 - log_above) / np.sqrt(2 * np.pi)
        total = len(z) * np.log(inverse / np.sqrt(2 * np.pi)) - z @ z / 2 + log_above.sum()
        by_level = z.sum() + hazard.sum()
        by_inverse = len(z) / inverse - z @ known - hazard @ bounds
        return -float(total), -np.array([by_level, by_inverse])

    known, bounds = values[exact], values[~exact]
    inverse = 1 / max(float(np.std(values)), 1e-2)
    start = np.array([float(np.mean(values)) * inverse, inverse])
    found = optimize.minimize(loss, start, jac=True, bounds=[(None, None), (1e-3, _LARGEST_INVERSE_SCATTER)])
    return -float(found.fun)


def _peak(log_likelihood: Callable[[float], float], low: float, high: float) -> float:
    found = optimize.minimize_scalar(lambda x: -log_likelihood(x), bounds=(low, high), options={"xatol": _PRECISION})
    return float(found.x)


def _interval(log_likelihood: Callable[[float], float], best: float, low: float, high: float) -> Estimate:
    """Return `best` and the values around it, within two limits, whose log-likelihood is not too far below its."""
    least = log_likelihood(best) - _DROP

    def end(limit: float) -> float:
        if best == limit or log_likelihood(limit) >= least:
            return limit
        return float(optimize.brentq(lambda x: log_likelihood(x) - least, best, limit, xtol=_PRECISION))

    return Estimate(best, end(low), end(high))


def scaling_table(runs: pd.DataFrame, name: str = "scaling") -> Table | None:
    """Return psi and the exponent of each algorithm that was run on enough sizes; None where there is none."""
    rows = []
    for variant in sorted(set(runs.variant), key=variant_order):
        mine = runs[runs.variant == variant]
        if mine["size"].nunique() < MIN_SIZES:
            continue
        sizes, solved = list(mine["size"]), list(mine.solved_at_strict.notna())
        num_heads = int(mine.num_heads.iloc[0])
        psi = fit_psi(sizes, solved, num_heads)
        exponent = fit_exponent(sizes, list(episodes_to_solve(mine)), solved)
        rows.append(
            (
                label(variant),
                str(num_heads),
                f"{min(sizes)} to {max(sizes)}",
                f"{sum(solved)}/{len(mine)}",
                *_format_psi(psi),
                *(("", "") if exponent is None else _format_exponent(exponent)),
            )
        )
    if not rows:
        return None
    rows += [(f"{who}, literature", "any", "", "", f"{psi:.2f}", "", "", "") for who, psi in LITERATURE.items()]
    columns = ("algorithm", "K", "N", "solved", "psi", "95 % interval", "b", "95 % interval of b")
    return Table(
        name,
        "How far it gets",
        columns,
        rows,
        "Two laws, fitted to all sizes by maximum likelihood: the probability that a run is solved before its cap, "
        "1 - (1 - psi^N)^K, and the episodes until then, which grow as N^b. Runs that reached the cap count as "
        "lower bounds. Where all runs were solved, psi has only a lower limit. The intervals are of the profile "
        "likelihood. The psi of the literature is of finding the treasure once (Knyazhitskiy 2025).",
        text_columns=("algorithm",),
    )


def _format_psi(psi: Estimate) -> tuple[str, str]:
    if psi.value == 1:
        return "1", f"≥ {psi.low:.3f}"
    return (f"{psi.value:.3f}", f"{psi.low:.3f} to {psi.high:.3f}") if psi.value else ("0", f"≤ {psi.high:.3f}")


def _format_exponent(exponent: Estimate) -> tuple[str, str]:
    return f"{exponent.value:.1f}", f"{exponent.low:.1f} to {exponent.high:.1f}"
