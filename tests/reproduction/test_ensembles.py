"""Measurements of an ensemble, against a slow computation; and the judges of the two claims about them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from reference.tables import deep_sea_table, evaluations_table
from reference.verdicts import Verdicts
from reproduction.ensemble_claims import by_cell, ensembles_table
from reproduction.ensembles import densities_and_sizes, rarity, rarity_within
from reproduction.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence

SPARSER, RARE = "Gain is sparser than EVOI, which is denser but lower.", "Heads disagree more in rare states."
COLUMNS = [
    "strategy", "size", "prior_scale", "seed", "step", "rarity", "rarity_among_visited", "rarity_at_shallow_depths",
    "rarity_at_deep_ones", "gain_density", "evoi_density", "gain_size", "evoi_size",
]  # fmt: skip
Q_VALUES = arrays(np.float64, (4, 3, 2), elements=st.integers(-3, 3).map(float))


def slow_gain(q):
    """The paper's equation 1 for one state, entry by entry."""
    mean = [sum(row[a] for row in q) / len(q) for a in range(len(q[0]))]
    best = max(range(len(mean)), key=lambda a: (mean[a], -a))
    second = max(mean[a] for a in range(len(mean)) if a != best)
    return [
        [max(second - row[a], 0) if a == best else max(row[a] - mean[best], 0) for a in range(len(row))] for row in q
    ]


def disputed_by(*spread):
    """Q-values of two heads that disagree about each state by `spread`."""
    return np.array([[[-s, 0.0], [s, 0.0]] for s in spread])


@given(Q_VALUES)
def test_densities_and_sizes_are_counts_and_means_over_every_entry(q):
    gains = [value for state in q for row in slow_gain(state) for value in row]
    evois = [np.mean(column) for state in q for column in zip(*slow_gain(state), strict=True)]
    found = densities_and_sizes(q)
    for name, values in (("gain", gains), ("evoi", evois)):
        positive = [value for value in values if value > 0]
        assert found[f"{name}_density"] == pytest.approx(len(positive) / len(values))
        assert found[f"{name}_size"] == pytest.approx(np.mean(positive) if positive else 0)


@given(Q_VALUES)
def test_gain_is_never_denser_than_evoi_nor_lower(q):
    found = densities_and_sizes(q)
    assert found["gain_density"] <= found["evoi_density"]
    assert found["gain_size"] >= found["evoi_size"] - 1e-12


def test_rarity_is_minus_one_where_heads_disagree_the_more_the_rarer_a_state_is():
    q = disputed_by(0.1, 0.2, 0.5, 3.0)
    assert rarity(q, np.array([90, 20, 3, 0])) == pytest.approx(-1)
    assert rarity(q, np.array([0, 3, 20, 90])) == pytest.approx(1)


def test_rarity_does_not_see_what_all_heads_agree_about():
    rng = np.random.default_rng(0)
    q, visits = rng.normal(size=(20, 5, 3)), rng.integers(0, 50, 20)
    assert rarity(q + rng.normal(size=(20, 1, 3)), visits) == pytest.approx(rarity(q, visits))


def test_within_groups_only_states_of_one_group_are_compared():
    """The visits of each group are opposed to its disagreement, while both are far larger in the second."""
    q, visits, groups = disputed_by(1, 2, 3, 11, 12, 13), np.array([3, 2, 1, 30, 20, 10]), np.array([0, 0, 0, 1, 1, 1])
    assert rarity(q, visits) > 0
    assert rarity_within(groups, q, visits) == pytest.approx(-1)


def test_within_groups_is_the_mean_of_spearmans_correlations():
    rng = np.random.default_rng(0)
    groups, q, visits = rng.integers(0, 4, 30), rng.normal(size=(30, 5, 2)), rng.integers(0, 6, 30)
    spread = q.std(axis=1).mean(axis=1)
    each = [spearmanr(visits[groups == group], spread[groups == group]).statistic for group in range(4)]
    assert rarity_within(groups, q, visits) == pytest.approx(np.mean(each))


def test_a_large_group_counts_no_more_than_a_small_one():
    q, visits = disputed_by(*range(1, 24)), np.array([1, 2, 3, *range(20, 0, -1)])
    assert rarity_within(np.array([0] * 3 + [1] * 20), q, visits) == pytest.approx(0)


def test_a_group_of_two_is_ignored():
    q, visits = disputed_by(1, 2, 3, 4, 5), np.array([1, 2, 5, 4, 3])
    assert rarity_within(np.array([0, 0, 1, 1, 1]), q, visits) == pytest.approx(-1)


def test_within_one_group_is_spearmans_correlation():
    rng = np.random.default_rng(1)
    q, visits = rng.normal(size=(20, 5, 2)), rng.integers(0, 9, 20)
    expected = spearmanr(visits, q.std(axis=1).mean(axis=1)).statistic
    assert rarity_within(np.zeros(20), q, visits) == pytest.approx(expected)


def test_a_group_visited_equally_often_is_ignored():
    q, visits = disputed_by(1, 2, 3, 5, 4, 9), np.array([3, 1, 2, 7, 7, 7])
    groups = np.array([0, 0, 0, 1, 1, 1])
    assert rarity_within(groups, q, visits) == pytest.approx(rarity(q[:3], visits[:3]))
    assert np.isnan(rarity_within(groups, q, np.full(6, 7)))


def some(rarities=(-0.5, -0.4, -0.6), *, gain=(0.2, 0.9), evoi=(0.6, 0.3)):
    rows = [
        (strategy, size, 0.0, seed, 1000, correlation, 0.25, 0.125, -0.75, gain[0], evoi[0], gain[1], evoi[1])
        for strategy, size in product(("greedy", "evoi:reduce=sum"), (10, 20))
        for seed, correlation in enumerate(rarities)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def row_of(claim, ensembles):
    return Verdicts(Evidence.among(deep_sea_table([]), evaluations_table([]), ensembles))[claim]


def verdict(claim, ensembles):
    return row_of(claim, ensembles)["here"]


def test_rare_states_are_judged_by_every_cell():
    assert verdict(RARE, some()) == SUPPORTED
    assert verdict(RARE, some((-0.5, 0.1, 0.2))) == OPEN
    assert verdict(RARE, some((0.5, 0.4, 0.6))) == CONTRADICTED
    assert verdict(RARE, some((-0.5, -0.4))) == OPEN, "two seeds are too few"
    some_unlike = some()
    some_unlike.loc[some_unlike.strategy == "greedy", "rarity"] = 0.3 + some_unlike.seed / 100
    assert verdict(RARE, some_unlike) == MIXED
    assert "every seed below 0 in 2 and above it in 2 of 4 cells" in row_of(RARE, some_unlike)["what these runs say"]


def test_sparsity_is_reported_to_follow_from_the_formulas():
    assert verdict(SPARSER, some()) == SUPPORTED
    reason = row_of(SPARSER, some())["what these runs say"]
    assert "20 % of gains and 60 % of EVOIs are positive; these are 0.900 and 0.300 on average" in reason
    assert "cannot be otherwise" in reason


def test_without_measurements_both_stay_open():
    assert verdict(SPARSER, None) == verdict(RARE, None) == OPEN


def test_the_table_has_a_row_a_cell_in_the_order_of_the_paper():
    shown = ensembles_table(some())
    assert [(row[0], row[2]) for row in shown.rows] == [
        ("10", "BootDQN"), ("10", "BootDQN-EVOI"), ("20", "BootDQN"), ("20", "BootDQN-EVOI"),
    ]  # fmt: skip
    assert all(row[3:] == ("3", "-0.50", "-0.60 to -0.40", "+0.25", "", "+0.12", "", "-0.75", "") for row in shown.rows)


def test_an_ensemble_with_a_prior_has_its_own_rows_and_decides_no_claim():
    with_prior = some().assign(prior_scale=3.0, rarity=0.5 + some().seed / 10)
    both = pd.concat([some(), with_prior])
    assert verdict(RARE, both) == SUPPORTED
    assert verdict(RARE, with_prior) == OPEN
    assert "BootDQN-EVOI + prior 3" in [row[2] for row in ensembles_table(both).rows]


def test_cells_hold_their_seeds_in_order():
    assert [list(cell.seed) for _, cell in by_cell(some()[::-1])] == [[0, 1, 2]] * 4
