"""The judges of the paper's claims about DeepSea: exact rank tests decide, and few seeds leave it open."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bootdqn.config.variants import Variant
from bootdqn.reports.statistics import can_differ, rank_test
from reference.tables import DeepSeaRun, deep_sea_table, evaluations_table
from reference.verdicts import Verdicts
from reproduction.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence

GAIN_IN_DEEP_SEA = "Gain beats the baselines on DeepSea."
SCALES_BEST = "EVOI (sum) scales best on DeepSea: it beats Gain, too."
PRIORITISED = "Both methods would benefit from prioritised replay."
SAYS = "what these runs say"


def verdicts(runs):
    return Verdicts(Evidence.among(deep_sea_table(runs), evaluations_table([])))


def race(cap=1000, claim=GAIN_IN_DEEP_SEA, **solved):
    results = [
        DeepSeaRun(Variant({"evoi": "evoi:reduce=sum"}.get(name, name)), 20, seed, cap, value, value)
        for name, values in solved.items()
        for seed, value in enumerate(values)
    ]
    found = verdicts(results)[claim]
    return found["here"], found["what these runs say"].rpartition("; ")[2]


def around(mean):
    return [mean - 20, mean - 10, mean, mean + 10, mean + 20]


NONE_SOLVED = [None] * 5


def wins(ours, theirs):
    """How often one of ours is lower than one of theirs; a tie counts half."""
    return sum((a < b) + 0.5 * (a == b) for a, b in itertools.product(ours, theirs))


def chance(ours, theirs):
    """Of all ways to deal the values to two groups, the share that is as far to one side or further, twice."""
    values = [*ours, *theirs]
    dealt = [
        wins([values[n] for n in chosen], [value for n, value in enumerate(values) if n not in chosen])
        for chosen in itertools.combinations(range(len(values)), len(ours))
    ]
    found = wins(ours, theirs)
    tails = sum(one <= found for one in dealt), sum(one >= found for one in dealt)
    return min(1.0, 2 * min(tails) / len(dealt))


few_values = st.lists(st.integers(0, 6), min_size=2, max_size=5)


@given(few_values, few_values)
def test_the_rank_test_tries_every_way_to_deal_the_values(ours, theirs):
    lower, found = rank_test(ours, theirs)
    assert found == pytest.approx(chance(ours, theirs))
    assert lower == (wins(ours, theirs) > len(ours) * len(theirs) / 2)


@given(st.lists(st.integers(0, 10_000), min_size=24, max_size=40, unique=True), st.integers(8, 16))
def test_the_rank_test_of_many_values_without_ties_is_scipys(values, number):
    ours, theirs = values[:number], values[number:]
    found = stats.mannwhitneyu(ours, theirs, alternative="two-sided", method="exact")
    assert rank_test(ours, theirs)[1] == pytest.approx(found.pvalue, rel=1e-9)


def test_the_rank_test_of_many_values_with_ties_agrees_with_a_permutation_test():
    rng = np.random.default_rng(0)
    ours, theirs = [500, 700, 900, *[1001] * 12], [600, 650, 800, 850, 870, 880, 890, *[1001] * 8]
    dealt = np.array([wins(mixed[:15], mixed[15:]) for mixed in (rng.permutation(ours + theirs) for _ in range(4000))])
    found = wins(ours, theirs)
    share = 2 * min((dealt <= found).mean(), (dealt >= found).mean())
    assert rank_test(ours, theirs)[1] == pytest.approx(share, abs=4 * 2 * (share / 2 / 4000) ** 0.5)


def test_a_single_run_decides_nothing():
    assert rank_test([1], [2, 3, 4, 5, 6, 7, 8]) == (False, 1.0)
    assert race(gain=[1], greedy=around(500), ucb=around(500))[0] == OPEN


@given(st.integers(2, 6), st.integers(2, 6))
def test_seeds_are_enough_where_the_clearest_order_would_be_significant(ours, theirs):
    clearest = chance(range(ours), range(10, 10 + theirs))
    assert can_differ(ours, theirs, level=0.05) == (clearest < 0.05)


def test_means_in_an_order_decide_nothing_where_the_runs_are_mixed():
    assert race(gain=around(101), greedy=around(99), ucb=around(100))[0] == OPEN
    assert race(gain=around(101), greedy=around(500), ucb=around(100))[0] == OPEN
    assert race(gain=around(101), greedy=around(500), ucb=around(500))[0] == SUPPORTED


def test_one_baseline_that_is_better_contradicts():
    assert race(gain=around(510), greedy=around(99), ucb=around(898))[0] == CONTRADICTED
    assert race(gain=NONE_SOLVED, greedy=around(99), ucb=NONE_SOLVED)[0] == CONTRADICTED
    assert race(gain=[600, 700, None], greedy=around(99), ucb=around(650))[0] == OPEN, "p = 0.036, of two rivals"


def test_a_run_that_was_not_solved_is_slower_than_one_solved_at_the_cap_and_level_with_another():
    """Four of five solved against none of five: the fifth may be any of six, on either side, in 252 ways to deal."""
    solved_late = [1000] * 4 + [None]
    assert chance([0, 0, 0, 0, 1], [1] * 5) == pytest.approx(2 * 6 / 252)
    assert race(gain=solved_late, greedy=NONE_SOLVED, ucb=NONE_SOLVED)[0] == SUPPORTED
    assert race(gain=[1000] * 3 + [None] * 2, greedy=NONE_SOLVED, ucb=NONE_SOLVED)[0] == OPEN
    assert race(gain=NONE_SOLVED, greedy=NONE_SOLVED, ucb=NONE_SOLVED) == (OPEN, "seeds: 5, 5, 5, the paper 15")


@pytest.mark.parametrize(("seeds", "expected"), [(2, OPEN), (3, OPEN), (4, SUPPORTED)])
def test_three_seeds_of_each_decide_nothing(seeds, expected):
    found, _ = race(gain=[1] * seeds, greedy=[900] * seeds, ucb=[900] * seeds)
    assert found == expected


def test_evoi_scales_best_only_if_it_is_ahead_of_gain_as_well():
    claim = SCALES_BEST
    baselines = {"greedy": NONE_SOLVED, "ucb": NONE_SOLVED}
    assert race(claim=claim, evoi=around(300), gain=around(500), **baselines)[0] == SUPPORTED
    assert race(claim=claim, evoi=around(500), gain=around(300), **baselines)[0] == CONTRADICTED
    assert race(claim=claim, evoi=around(300), gain=around(305), **baselines)[0] == OPEN
    assert race(claim=claim, evoi=around(300), **baselines)[0] == OPEN, "Gain was not run"


def solved(strategy, size, episodes, cap=1000, **settings):
    """Runs of a strategy that solved it after so many episodes, a seed each; None are those that did not."""
    variant = Variant(strategy, tuple(settings.items()))
    return [DeepSeaRun(variant, size, seed, cap, value, value) for seed, value in enumerate(episodes)]


def of_all(size, gain, greedy, ucb, cap=1000):
    named = {"gain": gain, "greedy": greedy, "ucb": ucb}
    return [one for name, episodes in named.items() for one in solved(name, size, episodes, cap)]


def test_it_takes_all_the_baselines_and_seeds_that_are_enough():
    assert race(gain=around(100), greedy=NONE_SOLVED)[0] == OPEN, "UCB was not run"
    assert race(gain=[100, 101], greedy=[None] * 2, ucb=[None] * 2)[0] == OPEN
    assert verdicts([])[GAIN_IN_DEEP_SEA]["here"] == OPEN


def test_the_largest_size_that_has_enough_seeds_decides():
    few_at_30, many_at_10 = of_all(30, [None] * 2, [50] * 2, [50] * 2), of_all(10, around(500), around(50), around(50))
    found = verdicts(few_at_30 + many_at_10 + of_all(20, around(100), NONE_SOLVED, NONE_SOLVED))
    assert found[GAIN_IN_DEEP_SEA]["here"] == SUPPORTED
    assert found[GAIN_IN_DEEP_SEA][SAYS].startswith("N = 20, cap 1,000")
    larger_cap = of_all(30, [None] * 2, [50] * 2, [50] * 2, cap=5000)
    found = verdicts(larger_cap + of_all(20, [100] * 2, [None] * 2, [None] * 2))
    assert found[GAIN_IN_DEEP_SEA][SAYS].startswith("N = 30, cap 5,000"), "none has enough"


def test_smaller_grids_are_reported_individually_and_do_not_decide():
    ahead = of_all(20, around(100), around(500), NONE_SOLVED)
    behind, level = of_all(10, around(500), around(100), around(100)), of_all(5, *[around(100)] * 3)
    too_few = of_all(15, [9], [900], [900])
    found = verdicts(ahead + behind + level + too_few)[GAIN_IN_DEEP_SEA]
    assert found["here"] == SUPPORTED
    assert found[SAYS].endswith(". On smaller grids it does not hold at N = 10, it is open at N = 5")
    assert "smaller" not in verdicts(ahead)[GAIN_IN_DEEP_SEA][SAYS]


def test_the_largest_size_decides_and_not_the_largest_cap():
    large = of_all(30, around(100), around(500), around(500))
    small = of_all(5, *[around(100)] * 3, cap=100_000)
    found = verdicts(large + small)[GAIN_IN_DEEP_SEA]
    assert found["here"] == SUPPORTED
    assert found[SAYS].startswith("N = 30, cap 1,000: ")
    assert found[SAYS].endswith(". On smaller grids it is open at N = 5")


def test_a_rival_that_is_ahead_on_a_larger_grid_contradicts_whether_or_not_the_others_were_run_there():
    at_20 = of_all(20, around(500), *[around(900)] * 2) + solved("evoi:reduce=sum", 20, around(100))
    at_30 = solved("gain", 30, around(300)) + solved("evoi:reduce=sum", 30, NONE_SOLVED)
    found = verdicts(at_20 + at_30)[SCALES_BEST]
    assert found["here"] == CONTRADICTED
    assert found[SAYS] == (
        "N = 30, cap 1,000: BootDQN-EVOI ≥ 1,000 episodes (0/5 solved), BootDQN-Gain 300 "
        "episodes (5/5 solved); p = 0.008; seeds: 5, 5, the paper 15. On smaller grids it holds at N = 20"
    )
    of_three = solved("gain", 30, around(300)) + solved("evoi:reduce=sum", 30, [None] * 3)
    assert verdicts(at_20 + of_three)[SCALES_BEST]["here"] == CONTRADICTED, "p = 0.036, of one rival"
    the_other_way = solved("gain", 30, NONE_SOLVED) + solved("evoi:reduce=sum", 30, around(300))
    found = verdicts(at_20 + the_other_way)[SCALES_BEST]
    assert (found["here"], found[SAYS][:7]) == (SUPPORTED, "N = 20,"), "BootDQN and UCB were not run at N = 30"


def test_grids_larger_than_the_papers_are_reported_and_do_not_decide():
    at_30 = of_all(30, around(500), *[around(900)] * 2) + solved("evoi:reduce=sum", 30, around(100))
    larger = [
        one
        for size in (50, 40)
        for one in solved("gain", size, around(300)) + solved("evoi:reduce=sum", size, [None] * 5)
    ]
    found = verdicts(at_30 + larger)[SCALES_BEST]
    assert found["here"] == SUPPORTED
    each = "BootDQN-EVOI ≥ 1,000 episodes (0/5 solved), BootDQN-Gain 300 episodes (5/5 solved)"
    assert found[SAYS].endswith(
        f". Beyond the paper's sizes, and not judged: N = 40, cap 1,000: {each}; N = 50, cap 1,000: {each}"
    )
    found = verdicts(larger)[SCALES_BEST]
    assert found["here"] == OPEN
    assert found[SAYS].startswith("no DeepSea runs of all of them at one size up to N = 30. Beyond the paper's sizes")


def test_a_smaller_grid_is_judged_by_the_largest_cap_that_has_enough_seeds():
    holds = [one for size in (20, 10) for one in of_all(size, around(100), around(500), around(500), cap=5000)]
    the_other_way = of_all(10, around(500), around(100), around(100))
    found = verdicts(holds + the_other_way)[GAIN_IN_DEEP_SEA]
    assert found[SAYS].endswith(". On smaller grids it holds at N = 10")


def prioritised(gain, evoi):
    """The verdict where both need about 500 episodes without it."""
    runs = solved("gain", 10, around(500)) + solved("gain", 10, gain, replay="prioritized")
    runs += solved("evoi:reduce=sum", 20, around(500)) + solved("evoi:reduce=sum", 20, evoi, replay="prioritized")
    return verdicts(runs)[PRIORITISED]


@pytest.mark.parametrize(
    ("gain", "evoi", "expected"),
    [
        (around(100), around(100), SUPPORTED),
        (around(900), around(900), CONTRADICTED),
        (around(100), around(900), MIXED),
        (around(100), around(505), OPEN),
        (around(900), NONE_SOLVED, CONTRADICTED),
        (around(100), [100, 110, 120, None, None], OPEN),
    ],
)
def test_a_setting_helps_where_every_pair_differs_significantly(gain, evoi, expected):
    assert prioritised(gain, evoi)["here"] == expected


def test_the_effect_of_a_setting_is_reported_for_each_pair():
    assert prioritised(around(900), around(505))[SAYS] == (
        "N = 10, BootDQN-Gain: 900 instead of 500 episodes; N = 20, BootDQN-EVOI: 505 instead of 500 episodes; "
        "p < 0.05 in 1 of 2"
    )


def test_a_setting_without_its_counterpart_or_with_few_seeds_is_left_open():
    alone = solved("gain", 10, around(100), replay="prioritized")
    few = solved("gain", 20, [100], replay="prioritized") + solved("gain", 20, around(500))
    other_cap = alone + solved("gain", 10, around(500), cap=77)
    with_more = solved("gain", 10, around(100), prior_scale=3.0, replay="prioritized") + solved("gain", 10, around(500))
    for runs in (alone, few, other_cap, with_more):
        found = verdicts(runs)[PRIORITISED]
        assert (found["here"], found[SAYS]) == (OPEN, "no DeepSea runs with and without it")
