"""Statistics against slow and obvious computations."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.reports.statistics import (
    can_differ,
    holm,
    interquartile_mean,
    interval_of_mean,
    intervals_of_means,
    moving_average,
    performance_profile,
    probability_of_improvement,
    rank_test,
    seeds_to_differ,
    stratified_difference,
    stratified_interval,
)

numbers = st.floats(-1e3, 1e3)


@given(st.lists(numbers, min_size=1, max_size=40))
def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end(values):
    cut = len(values) // 4
    kept = sorted(values)[cut : len(values) - cut]
    assert interquartile_mean(values) == pytest.approx(sum(kept) / len(kept), abs=1e-9)


@given(st.lists(numbers, min_size=1, max_size=30), st.integers(1, 12))
def test_a_moving_average_is_the_mean_of_what_is_there(values, window):
    slow = [np.mean(values[max(0, end - window) : end]) for end in range(1, len(values) + 1)]
    assert moving_average(values, window) == pytest.approx(slow, abs=1e-7)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=4), st.data())
def test_the_probability_of_improvement_counts_pairs(ours, data):
    theirs = [data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)) for _ in ours]
    chances = []
    for one, other in zip(ours, theirs, strict=True):
        won = [1.0 if a > b else 0.5 if a == b else 0.0 for a in one for b in other]
        chances.append(sum(won) / len(won))
    found = probability_of_improvement(ours, theirs)
    assert found == pytest.approx(sum(chances) / len(chances))
    assert probability_of_improvement(theirs, ours) == pytest.approx(1 - found)


def test_a_profile_is_the_fraction_above():
    assert performance_profile([1, 2, 3, 4], np.array([0.0, 2.0, 3.5, 9.0])).tolist() == [1.0, 0.5, 0.25, 0.0]


def test_intervals_hold_the_mean_and_are_the_same_every_time():
    low, high = interval_of_mean([1.0, 2.0, 4.0, 8.0])
    assert 1 <= low < 3.75 < high <= 8
    assert interval_of_mean([1.0, 2.0, 4.0, 8.0]) == (low, high)


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 5.0], [3.0, 3.0, 3.0]])
def test_there_is_no_interval_of_too_little(values):
    assert interval_of_mean(values) is None


@given(st.integers(3, 6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_intervals_along_a_curve_are_those_of_its_points(runs, length, random):
    values = np.array([[random.uniform(-5, 5) for _ in range(length)] for _ in range(runs)])
    low, high = intervals_of_means(values)
    for column, ends in zip(values.T, zip(low, high, strict=True), strict=True):
        expected = interval_of_mean(column.tolist()) or (column[0], column[0])
        assert ends == pytest.approx(expected, abs=1e-12)
    assert intervals_of_means(values[:2]) is None


@pytest.mark.parametrize(
    "strata",
    [
        [[0.0], [100.0]],
        [[3.0, 5.0]],
        [[1.0, 2.0], [3.0, 4.0]],
        [[1.0, 2.0, 3.0], [4.0]],
        [[0.0, 0.0, 0.0], [100.0, 100.0, 100.0]],
    ],
)
def test_there_is_no_stratified_interval_of_too_little(strata):
    assert stratified_interval(strata, interquartile_mean) is None


def test_a_stratified_interval_resamples_within_strata():
    """Two strata far apart: the mean over both varies by half of what varies within the one that does."""
    low, high = stratified_interval([[0.0, 0.0, 0.0], [98.0, 100.0, 102.0]], np.mean)
    assert 49 <= low < 50 < high <= 51
    low, high = stratified_interval([[0.0, 2.0, 4.0], [100.0, 102.0, 104.0]], interquartile_mean)
    assert low < 52 < high


def test_a_stratified_interval_holds_the_middle_95_per_cent():
    """The mean of 200 values, resampled within two strata far apart, is almost normal: 1.96 standard errors a side."""
    strata = [np.arange(100.0), np.arange(1000.0, 1100.0)]
    low, high = stratified_interval(strata, np.mean)
    standard_error = np.sqrt(np.arange(100.0).var() / 200)
    assert np.array([low, high]) == pytest.approx(
        549.5 + 1.96 * standard_error * np.array([-1, 1]), abs=0.15 * standard_error
    )


def test_a_stratified_difference_is_that_of_the_groups_and_wider_at_a_smaller_level():
    ours, theirs = [[5.0, 6.0, 7.0], [15.0, 16.0, 17.0]], [[1.0, 2.0, 3.0], [11.0, 12.0, 13.0]]

    def difference(one, other, axis):
        return one.mean(axis=axis) - other.mean(axis=axis)

    low, high = stratified_difference(ours, theirs, difference)
    assert 3 < low < 4 < high < 5, "the strata differ by 10, which no resample mixes"
    wider = stratified_difference(ours, theirs, difference, level=0.001)
    assert wider[0] < low
    assert high < wider[1]
    assert stratified_difference(ours, [[1.0, 2.0]], difference) is None
    assert stratified_difference([[1.0] * 3], [[2.0] * 3], difference) is None


def test_holms_correction_is_that_by_hand():
    """Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2 = 0.06, and 0.04 x 1, which is no less than the one before it."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.6]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@given(st.lists(st.sampled_from([0.0, 0.001, 0.008, 0.02, 0.029, 0.3, 0.9, 1.0]) | st.floats(0, 1), max_size=6))
def test_holms_correction_is_the_closed_test_by_bonferronis(p_values):
    """A hypothesis is rejected where Bonferroni's test rejects every set of hypotheses that contains it."""
    slow = [0.0] * len(p_values)
    for number in range(1, len(p_values) + 1):
        for chosen in combinations(range(len(p_values)), number):
            by_bonferroni = min(1.0, number * min(p_values[one] for one in chosen))
            for one in chosen:
                slow[one] = max(slow[one], by_bonferroni)
    assert holm(p_values) == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("comparisons", [1, 2, 12, 20])
def test_so_many_seeds_differ_after_correction_and_one_fewer_does_not(comparisons):
    enough = seeds_to_differ(0.05 / comparisons)
    for number in (enough - 1, enough):
        _, p = rank_test(range(number), range(number, 2 * number))
        assert (comparisons * p < 0.05) == (number == enough) == can_differ(number, number, 0.05 / comparisons)
