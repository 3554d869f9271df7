"""The laws of how far algorithms get: against slow computations, and against runs made by the law itself."""

import numpy as np
import pytest
from scipy import optimize, stats

from bootdqn.config.variants import Variant
from bootdqn.reports.scaling import fit_exponent, fit_psi, scaling_table
from reference.tables import DeepSeaRun, deep_sea_table

SIZES = [10, 20, 30, 40, 50]


def within_drop(log_likelihood, grid):
    """Return the best value of a grid, and the ends of those that a likelihood-ratio test does not reject."""
    found = np.array([log_likelihood(value) for value in grid])
    kept = grid[2 * (found.max() - found) <= 3.841]
    return grid[found.argmax()], kept[0], kept[-1]


def test_psi_is_where_the_likelihood_of_all_runs_is_highest():
    sizes, solved = [10, 10, 20, 20, 30, 30, 30], [True, True, True, False, True, False, False]

    def log_likelihood(psi):
        chances = [1 - (1 - psi**n) ** 5 for n in sizes]
        return sum(np.log(p if yes else 1 - p) for p, yes in zip(chances, solved, strict=True))

    found = fit_psi(sizes, solved, num_heads=5)
    expected = within_drop(log_likelihood, np.linspace(0.3, 0.999, 700))
    assert (found.value, found.low, found.high) == pytest.approx(expected, abs=0.0011)


def test_psi_has_one_limit_where_all_or_none_were_solved():
    sizes = np.repeat(SIZES, 3)
    everything, nothing = fit_psi(sizes, [True] * 15, 20), fit_psi(sizes, [False] * 15, 20)
    assert (everything.value, everything.high) == (1, 1)
    assert np.prod([1 - (1 - everything.low**n) ** 20 for n in sizes]) == pytest.approx(np.exp(-3.8415 / 2), rel=1e-2)
    assert (nothing.value, nothing.low) == (0, 0)
    assert np.prod([(1 - nothing.high**n) ** 20 for n in sizes]) == pytest.approx(np.exp(-3.8415 / 2), rel=1e-2)


def test_the_interval_of_psi_holds_the_truth_about_as_often_as_it_says():
    rng, psi, num_heads, sizes = np.random.default_rng(0), 0.9, 10, np.repeat(SIZES, 10)
    chance = 1 - (1 - psi**sizes) ** num_heads
    fits = [fit_psi(sizes, rng.random(len(sizes)) < chance, num_heads) for _ in range(200)]
    held = sum(fit.low <= psi <= fit.high for fit in fits)
    assert stats.binom.cdf(held, 200, 0.95) > 0.001
    assert stats.binom.sf(held - 1, 200, 0.95) > 0.001


def test_without_unsolved_runs_the_exponent_is_that_of_least_squares():
    rng = np.random.default_rng(1)
    sizes = np.repeat(SIZES, 4)
    episodes = 3 * sizes**1.7 * np.exp(0.2 * rng.normal(size=len(sizes)))
    found = fit_exponent(sizes, episodes, [True] * len(sizes))
    line = stats.linregress(np.log(sizes), np.log(episodes))
    assert found.value == pytest.approx(line.slope, abs=1e-3)
    residuals = (len(sizes) - 2) * np.expm1(3.8415 / len(sizes))  # where n log(RSS(b) / RSS) is 3.84
    half = line.stderr * np.sqrt(residuals)
    assert (found.low, found.high) == pytest.approx((line.slope - half, line.slope + half), abs=2e-3)


def test_runs_that_reached_the_cap_are_lower_bounds():
    rng = np.random.default_rng(2)
    sizes = np.repeat(SIZES, 40)
    true = 2 * sizes**2.0 * np.exp(0.5 * rng.normal(size=len(sizes)))
    cap = 2500
    solved, counted = true < cap, np.minimum(true, cap)
    assert not solved.all()
    found = fit_exponent(sizes, counted, solved)
    assert found.low < 2 < found.high
    assert stats.linregress(np.log(sizes), np.log(counted)).slope < found.low


def test_with_unsolved_runs_the_exponent_is_where_a_slow_search_finds_it():
    sizes, solved = np.array([10, 10, 20, 20, 30, 30, 40, 40]), np.array([True] * 4 + [True, False, False, False])
    episodes = np.array([90, 130, 400, 310, 800, 1000, 1000, 1000])

    def profile(exponent):
        values = np.log(episodes) - exponent * np.log(sizes)

        def loss(parameters):
            level, scatter = parameters[0], np.exp(parameters[1])
            known = stats.norm.logpdf(values[solved], level, scatter).sum()
            return -(known + stats.norm.logsf(values[~solved], level, scatter).sum())

        return -optimize.minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).fun

    found = fit_exponent(sizes, episodes, solved)
    expected = within_drop(profile, np.arange(1.0, 4.0, 0.01))
    assert (found.value, found.low, found.high) == pytest.approx(expected, abs=0.011)


def test_a_law_needs_sizes():
    assert fit_exponent([10, 10, 20], [100, 120, 500], [True, True, False]) is None
    table = deep_sea_table(DeepSeaRun(Variant("gain"), size, 0, 500, 100, 100) for size in (10, 20))
    assert scaling_table(table) is None


def test_the_table_has_a_row_for_each_algorithm_and_the_literature():
    runs = [DeepSeaRun(Variant("gain"), n, seed, 10_000, 9 * n + seed, 9 * n + seed) for n in SIZES for seed in (0, 1)]
    runs += [DeepSeaRun(Variant("greedy"), n, 0, 10_000, None, None) for n in SIZES]
    rows = scaling_table(deep_sea_table(runs)).rows
    assert [row[0] for row in rows] == [
        "BootDQN", "BootDQN-Gain", "BootDQN, literature", "BootDQN + prior, literature",
    ]  # fmt: skip
    greedy, gain = rows[:2]
    assert greedy[3:5] == ("0/5", "0")
    assert greedy[5].startswith("≤ ")
    assert greedy[6:] == ("", "")
    assert gain[1:5] == ("20", "10 to 50", "10/10", "1")
    assert gain[6] == "1.0"
