"""Statistics over few runs: intervals by the bootstrap, interquartile means, and comparisons that need no mean."""

from collections.abc import Callable, Sequence
from itertools import count
from math import comb

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]
LEVEL = 0.05
"""Significance level of the tests."""
RESAMPLES = 2000
SEED = 0
MIN_FOR_INTERVAL = 3
"""Minimum number of runs for a bootstrap interval; at three it equals the range and undercovers."""


def interval_of_mean(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the mean; None where the values are fewer than three or all equal."""
    found = intervals_of_means(np.asarray(values, float)[:, None]) if len(set(values)) > 1 else None
    return None if found is None else (float(found[0][0]), float(found[1][0]))


def interval_of_difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the mean of ours less that of theirs, each resampled by itself.

    None where one has fewer than three values, or all of each are equal.
    """
    samples = [np.asarray(values, float) for values in (ours, theirs)]
    if min(map(len, samples)) < MIN_FOR_INTERVAL or all(len(set(values)) < 2 for values in (ours, theirs)):
        return None

    def difference(one: Values, other: Values, axis: int) -> Values:
        return np.asarray(one.mean(axis=axis) - other.mean(axis=axis))

    low, high = _bootstrap(samples, difference, axis=-1)
    return float(low), float(high)


def intervals_of_means(values: Values) -> tuple[Values, Values] | None:
    """Return the lower and upper ends (T,) of 95 % bootstrap intervals of the mean over runs; None below three.

    Args:
        values: One row a run (runs, T). Each resample takes whole rows.
    """
    return _bootstrap([values], np.mean, axis=0) if len(values) >= MIN_FOR_INTERVAL else None


def stratified_interval(
    strata: Sequence[Sequence[float]], statistic: Callable[..., Values]
) -> tuple[float, float] | None:
    """Return the 95 % interval of a statistic of all values, resampled within each stratum (each game).

    None where a stratum has fewer than three values: one alone never varies, so the interval would hold its game for
    certain. None also where no stratum has two different ones.

    Args:
        strata: The values of each stratum.
        statistic: Maps values (rows, n) to one number a row, with `axis`, such as `numpy.mean`.
    """
    return stratified_difference(strata, [], lambda ours, _, axis: statistic(ours, axis=axis))


def stratified_difference(
    ours: Sequence[Sequence[float]],
    theirs: Sequence[Sequence[float]],
    difference: Callable[..., Values],
    level: float = LEVEL,
) -> tuple[float, float] | None:
    """Return the interval of a statistic of two groups, each resampled within each of its strata.

    None where `stratified_interval` has none.

    Args:
        ours: The values of each stratum of the first group.
        theirs: Those of the second.
        difference: Maps the values of both (rows, n) to one number a row, with `axis`.
        level: The interval covers 1 - `level`.
    """
    strata = [*ours, *theirs]
    if any(len(stratum) < MIN_FOR_INTERVAL for stratum in strata) or all(len(set(one)) < 2 for one in strata):
        return None

    def of_all(*resampled: Values, axis: int) -> Values:
        groups = resampled[: len(ours)], resampled[len(ours) :]
        return difference(*(np.concatenate(group, axis=axis) if group else None for group in groups), axis=axis)

    low, high = _bootstrap([np.asarray(stratum, float) for stratum in strata], of_all, axis=-1, level=level)
    return float(low), float(high)


def _bootstrap(
    samples: Sequence[Values], statistic: Callable[..., Values], axis: int, level: float = LEVEL
) -> tuple[Values, Values]:
    found = stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=1 - level,
        axis=axis,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return np.asarray(found.confidence_interval.low, float), np.asarray(found.confidence_interval.high, float)


def interquartile_mean(values: Sequence[float] | Values, axis: int = -1) -> Values:
    """Return the mean of the middle half along an axis."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=axis), float)


def probability_of_improvement(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """Return the probability that a run of ours beats one of theirs on a random game; a tie counts half.

    Args:
        ours: For each game, the scores of its runs.
        theirs: The same games in the same order.
    """
    pairs = zip(ours, theirs, strict=True)
    return float(np.mean([stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)) for a, b in pairs]))


def rank_test(ours: Sequence[float], theirs: Sequence[float]) -> tuple[bool, float]:
    """Return whether our values are the lower ones, and the two-sided p-value of Mann and Whitney's exact test.

    The permutation distribution of U, in which ties count half: twice the smaller tail, over every way to split the
    values into two groups. A single value says nothing: its p-value is 1.
    """
    if min(len(ours), len(theirs)) < 2:
        return False, 1.0
    ranks = np.rint(2 * stats.rankdata([*ours, *theirs])).astype(int)  # twice, as ties have halves
    ways = _ways_to_split(ranks, len(ours))
    found, middle = ranks[: len(ours)].sum(), len(ours) * (len(ranks) + 1)
    tail = min(ways[: found + 1].sum(), ways[found:].sum()) / ways.sum()
    return bool(found < middle), min(1.0, 2 * float(tail))


def _ways_to_split(ranks: NDArray[np.int64], number: int) -> Values:
    """Return in how many ways each sum, from 0 on, comes of `number` of the ranks.

    SciPy's exact test allows no ties, and runs that reached the cap are tied; its permutation test is exact for few
    values only.
    """
    ways = np.zeros((number + 1, ranks.sum() + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    return np.asarray(ways[number])


def format_p_value(p: float) -> str:
    """Return a p-value as people write it.

    Example:
        >>> format_p_value(0.03571), format_p_value(0.0002)
        ('p = 0.036', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def can_differ(ours: int, theirs: int, level: float = LEVEL) -> bool:
    """Return whether groups of so many values, all of one below all of the other, differ significantly.

    A single value is not compared, however many there are on the other side.
    """
    return min(ours, theirs) > 1 and 2 / comb(ours + theirs, ours) < level


def seeds_to_differ(level: float = LEVEL) -> int:
    """Return how many values each of two groups needs, so that they can differ significantly.

    Example:
        >>> seeds_to_differ(), seeds_to_differ(0.05 / 12)
        (4, 6)
    """
    return next(number for number in count(2) if can_differ(number, number, level))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of several tests corrected by Holm's method (1979), in their order.

    The i-th smallest of m is multiplied by m - i + 1; none is then below that of a smaller one, and none above 1. Where
    those below a level count as differences, the probability that one or more is false is at most the level, however
    the tests depend on each other.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    return [float(p) for p in corrected]


def performance_profile(values: Sequence[float], thresholds: Values) -> Values:
    """Return for each threshold the fraction of the values above it."""
    return np.asarray(stats.ecdf(values).sf.evaluate(thresholds), float)


def moving_average(values: Sequence[float] | Values, window: int = 10) -> Values:
    """Return the mean of each value and up to `window` - 1 before it."""
    return np.asarray(pd.Series(values, dtype=float).rolling(window, min_periods=1).mean())


def smoothed(values: Sequence[float] | Values, widest: int = 10) -> Values:
    """Return the moving average over `widest` values, or over a tenth of them where that is fewer.

    So a short series stays as it was.
    """
    return moving_average(values, min(widest, max(1, len(values) // 10)))
