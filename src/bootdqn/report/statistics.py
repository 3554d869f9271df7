"""Statistics over few runs: intervals by the bootstrap, interquartile means, and comparisons that need no mean."""

from collections.abc import Callable, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]
RESAMPLES = 2000
SEED = 0
FEWEST_FOR_INTERVAL = 3
"""Runs. The interval of two would be their range, and that of three is: it covers less than it says."""


def interval_of_mean(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the mean; None where the values are fewer than three or all equal."""
    found = intervals_of_means(np.asarray(values, float)[:, None]) if len(set(values)) > 1 else None
    return None if found is None else (float(found[0][0]), float(found[1][0]))


def intervals_of_means(values: Values) -> tuple[Values, Values] | None:
    """Return the lower and upper ends (T,) of 95 % bootstrap intervals of the mean over runs; None below three.

    Args:
        values: One row a run (runs, T). Each draw takes whole rows.
    """
    if len(values) < FEWEST_FOR_INTERVAL:
        return None
    rng = np.random.default_rng(SEED)
    found = stats.bootstrap((values,), np.mean, n_resamples=RESAMPLES, axis=0, method="percentile", rng=rng)
    return np.asarray(found.confidence_interval.low, float), np.asarray(found.confidence_interval.high, float)


def interquartile_mean(values: Sequence[float]) -> float:
    """Return the mean of the middle half."""
    return float(interquartile_means(np.asarray(values, float)[None])[0])


def interquartile_means(values: Values) -> Values:
    """Return the mean of the middle half of each row of `values` (rows, n)."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=1), float)


def stratified_interval(
    strata: Sequence[Sequence[float]], statistic: Callable[[Values], Values]
) -> tuple[float, float] | None:
    """Return the 95 % interval of a statistic of all values, drawing again within each stratum (each game).

    None where a stratum has fewer than three values: one alone never varies, so the interval would hold its game for
    certain. None also where no stratum has two different ones.

    Args:
        strata: The values of each stratum.
        statistic: Maps rows of values (rows, n) to one number a row.
    """
    if any(len(stratum) < FEWEST_FOR_INTERVAL for stratum in strata) or all(len(set(one)) < 2 for one in strata):
        return None
    rng = np.random.default_rng(SEED)
    drawn = [rng.choice(np.asarray(stratum, float), (RESAMPLES, len(stratum))) for stratum in strata]
    low, high = np.percentile(statistic(np.concatenate(drawn, axis=1)), [2.5, 97.5])
    return float(low), float(high)


def probability_of_improvement(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """Return the chance that a run of ours beats one of theirs on a game drawn at random; a tie counts half.

    Args:
        ours: For each game, the scores of its runs.
        theirs: The same games in the same order.
    """
    chances = []
    for one, other in zip(ours, theirs, strict=True):
        difference = np.subtract.outer(np.asarray(one, float), np.asarray(other, float))
        chances.append(float((difference > 0).mean() + 0.5 * (difference == 0).mean()))
    return float(np.mean(chances))


def rank_test(ours: Sequence[float], theirs: Sequence[float]) -> tuple[bool, float]:
    """Return whether our values are the lower ones, and how often chance alone sets two groups so far apart.

    The permutation test of Mann and Whitney's U, in which ties count half: twice the smaller tail, over every way to
    deal the values to two groups. A single value says nothing, so that is 1.
    """
    if min(len(ours), len(theirs)) < 2:
        return False, 1.0
    ranks = np.rint(2 * stats.rankdata([*ours, *theirs])).astype(int)  # twice, as ties have halves
    ways = _ways_to_deal(ranks, len(ours))
    found, middle = ranks[: len(ours)].sum(), len(ours) * (len(ranks) + 1)
    tail = min(ways[: found + 1].sum(), ways[found:].sum()) / ways.sum()
    return bool(found < middle), min(1.0, 2 * float(tail))


def _ways_to_deal(ranks: NDArray[np.int64], number: int) -> Values:
    """Return in how many ways each sum, from 0 on, comes of `number` of the ranks.

    SciPy counts them only where no two values are level, and those of runs that reached the cap are.
    """
    ways = np.zeros((number + 1, ranks.sum() + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    return np.asarray(ways[number])


def said_chance(chance: float) -> str:
    """Return a test's chance as people write it.

    Example:
        >>> said_chance(0.03571), said_chance(0.0002)
        ('p = 0.036', 'p < 0.001')
    """
    return "p < 0.001" if chance < 0.001 else f"p = {chance:.3f}"


def can_differ(ours: int, theirs: int, level: float) -> bool:
    """Return whether groups of so many values, all of one below all of the other, would be told apart at `level`."""
    return 2 / comb(ours + theirs, ours) < level


def performance_profile(values: Sequence[float], thresholds: Values) -> Values:
    """Return for each threshold the fraction of the values above it."""
    fractions: Values = (np.asarray(values, float)[:, None] > thresholds).mean(axis=0)
    return fractions


def moving_average(values: Sequence[float], window: int = 10) -> Values:
    """Return the mean of each value and up to `window` - 1 before it."""
    total = np.cumsum(np.concatenate([[0.0], np.asarray(values, float)]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: Values = (total[ends] - total[starts]) / (ends - starts)
    return means


def smoothed(values: Sequence[float], widest: int = 10) -> Values:
    """Return the moving average over `widest` values, or over a tenth of them where that is fewer.

    So a short series is drawn as it was.
    """
    return moving_average(values, min(widest, max(1, len(values) // 10)))
