"""The comparison that the answer rests on: the difference, its interval and its test, against SciPy's own."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bootdqn.config.variants import Variant
from bootdqn.reports.comparisons import Comparison, comparisons_table
from bootdqn.reports.statistics import interval_of_difference
from bootdqn.reports.suites import ATARI
from reference.tables import DeepSeaRun, deep_sea_table, evaluations_table


def result(strategy, size, seed, solved=100):
    return DeepSeaRun(Variant(strategy), size, seed, 2000, solved, solved)


def first_row(runs):
    no_gym = pd.DataFrame(columns=["task", "budget"])
    table = comparisons_table(deep_sea_table(runs), {ATARI: evaluations_table([])}, no_gym)
    return None if table is None else dict(zip(table.columns, table.rows[0], strict=True))


def test_the_best_is_compared_with_the_next_at_the_largest_size_from_four_seeds_on():
    ours, theirs = (100, 110, 120, 130), (200, 240, 260, 300)
    runs = [result("gain", 10, seed, solved=value) for seed, value in enumerate(ours)]
    runs += [result("greedy", 10, seed, solved=value) for seed, value in enumerate(theirs)]
    runs += [result("greedy", 5, seed, solved=20) for seed in range(4)]
    row = first_row(runs)
    assert row["task"] == "DeepSea, N = 10"
    assert (row["best"], row["next"]) == ("BootDQN-Gain: 115", "BootDQN: 250")
    assert row["difference"] == "\N{MINUS SIGN}135"
    assert row["rank test"] == f"p = {stats.mannwhitneyu(ours, theirs, method='exact').pvalue:.3f}"
    assert row["seeds"] == "4 and 4"


def test_a_difference_to_runs_that_reached_the_cap_is_a_bound():
    runs = [result("gain", 10, seed, solved=100 + seed) for seed in range(4)]
    runs += [result("greedy", 10, seed, solved=None) for seed in range(4)]
    row = first_row(runs)
    assert row["next"] == "BootDQN: ≥ 2,000"
    assert row["difference"].startswith("≤ \N{MINUS SIGN}1,898")
    assert row["95 % interval"].startswith("≤ \N{MINUS SIGN}1,89")
    few = Comparison("task", "episodes", "a", "b", (2000, 100), (2000, 2000), True, True).row()
    assert few[4:7] == ("", "", "too few seeds")


def test_an_interval_of_a_difference_is_that_of_resampled_means():
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(10, 3, 12), rng.normal(4, 2, 9)
    low, high = interval_of_difference(list(ours), list(theirs))
    means = [rng.choice(ours, 12).mean() - rng.choice(theirs, 9).mean() for _ in range(20_000)]
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.15)
    assert interval_of_difference([1.0, 2.0], [1.0, 2.0, 3.0]) is None
    assert interval_of_difference([1.0] * 3, [2.0] * 3) is None


def test_one_algorithm_alone_has_no_comparison():
    assert first_row([result("gain", 10, seed) for seed in range(4)]) is None
    assert first_row([]) is None
