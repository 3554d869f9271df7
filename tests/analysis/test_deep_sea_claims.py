"""The judges of the paper's claims about DeepSea: intervals decide, and what the cap hides is left open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.analysis.deep_sea import Result
from bootdqn.analysis.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence
from bootdqn.common.variants import Variant
from reference.verdicts import verdicts

GAIN_IN_DEEP_SEA = "Gain beats the baselines on DeepSea."
PRIORITISED = "Both methods would benefit from prioritised replay."
SAYS = "what these runs say"


def race(cap=1000, claim=GAIN_IN_DEEP_SEA, **solved):
    results = [
        Result(Variant({"evoi": "evoi:reduce=sum"}.get(name, name)), 20, seed, cap, value, value)
        for name, values in solved.items()
        for seed, value in enumerate(values)
    ]
    found = verdicts(Evidence.among(results, []))[claim]
    return found["here"], found["what these runs say"].rpartition("; ")[2]


def around(mean):
    return [mean - 10, mean, mean + 10]


def test_means_in_an_order_decide_nothing_where_intervals_overlap():
    assert race(gain=around(101), greedy=around(99), ucb=around(100)) == (OPEN, "the intervals overlap")
    assert race(gain=around(101), greedy=around(500), ucb=around(100)) == (OPEN, "the intervals overlap")


def test_one_baseline_that_is_better_contradicts():
    assert race(gain=around(510), greedy=around(99), ucb=around(898))[0] == CONTRADICTED
    assert race(gain=[None] * 3, greedy=around(99), ucb=[None] * 3)[0] == CONTRADICTED
    assert race(gain=[600, 700, None], greedy=around(99), ucb=around(650))[0] == CONTRADICTED


def test_runs_that_reached_the_cap_leave_open_what_lies_beyond_it():
    cap = "runs that reached the cap leave it open"
    assert race(gain=around(900), greedy=[100] * 9 + [None], ucb=[None] * 3) == (OPEN, cap)
    assert race(gain=[100] * 9 + [None], greedy=around(900), ucb=around(800)) == (OPEN, cap)


points = st.integers(1, 5)


@given(points, points, points, st.booleans(), st.booleans(), st.booleans())
def test_cells_without_spread_are_judged_by_their_one_value(ours, one, other, unsolved, one_unsolved, other_unsolved):
    """Results that are all equal have no interval; an unsolved cell stands at the cap of 5, or beyond."""
    mine, rivals = (
        (5 if unsolved else ours),
        [(5 if u else v, u) for v, u in ((one, one_unsolved), (other, other_unsolved))],
    )
    if not unsolved and all(mine < value for value, _ in rivals):
        expected = SUPPORTED
    elif any(value < mine and not capped for value, capped in rivals):
        expected = CONTRADICTED
    else:
        expected = OPEN
    values = (("gain", ours, unsolved), ("greedy", one, one_unsolved), ("ucb", other, other_unsolved))
    found, why = race(cap=5, **{name: [None if capped else value] * 3 for name, value, capped in values})
    assert found == expected
    assert (why == "the intervals overlap") == (expected == OPEN and any(value == mine for value, _ in rivals))


def test_evoi_scales_best_only_if_it_is_ahead_of_gain_as_well():
    claim, baselines = (
        "EVOI (sum) scales best on DeepSea: it beats Gain, too.",
        {"greedy": [None] * 3, "ucb": [None] * 3},
    )
    assert race(claim=claim, evoi=around(300), gain=around(500), **baselines)[0] == SUPPORTED
    assert race(claim=claim, evoi=around(500), gain=around(300), **baselines)[0] == CONTRADICTED
    assert race(claim=claim, evoi=around(300), gain=around(305), **baselines) == (OPEN, "the intervals overlap")
    assert race(claim=claim, evoi=around(300), **baselines)[0] == OPEN


def solved(strategy, size, episodes, cap=1000, **settings):
    """Runs of a strategy that solved it after so many episodes, a seed each; None are those that did not."""
    variant = Variant(strategy, tuple(settings.items()))
    return [Result(variant, size, seed, cap, value, value) for seed, value in enumerate(episodes)]


def of_all(size, gain, greedy, ucb, cap=1000):
    named = {"gain": gain, "greedy": greedy, "ucb": ucb}
    return [one for name, episodes in named.items() for one in solved(name, size, episodes, cap)]


def test_smaller_grids_are_told_each_by_itself_and_do_not_decide():
    ahead = of_all(20, around(100), around(500), [None] * 3)
    behind, level = of_all(10, around(500), around(100), around(100)), of_all(5, *[around(100)] * 3)
    too_few = of_all(15, [9], [900], [900])
    found = verdicts(Evidence.among(ahead + behind + level + too_few, []))[GAIN_IN_DEEP_SEA]
    assert found["here"] == SUPPORTED
    assert found[SAYS].endswith(". On smaller grids it does not hold at N = 10, it is open at N = 5")
    assert "smaller" not in verdicts(Evidence.among(ahead, []))[GAIN_IN_DEEP_SEA][SAYS]


def test_a_smaller_grid_is_judged_by_the_largest_cap_that_has_enough_seeds():
    holds = [one for size in (20, 10) for one in of_all(size, around(100), around(500), around(500), cap=5000)]
    the_other_way = of_all(10, around(500), around(100), around(100))
    found = verdicts(Evidence.among(holds + the_other_way, []))[GAIN_IN_DEEP_SEA]
    assert found[SAYS].endswith(". On smaller grids it holds at N = 10")


def prioritised(gain, evoi):
    """The verdict where both need about 500 episodes without it."""
    runs = solved("gain", 10, around(500)) + solved("gain", 10, gain, replay="prioritized")
    runs += solved("evoi:reduce=sum", 20, around(500)) + solved("evoi:reduce=sum", 20, evoi, replay="prioritized")
    return verdicts(Evidence.among(runs, []))[PRIORITISED]


@pytest.mark.parametrize(
    ("gain", "evoi", "expected"),
    [
        (around(100), around(100), SUPPORTED),
        (around(900), around(900), CONTRADICTED),
        (around(100), around(900), MIXED),
        (around(100), around(505), OPEN),
        (around(900), [None] * 3, CONTRADICTED),
        (around(100), [100, 110, None], OPEN),
    ],
)
def test_a_setting_helps_where_every_interval_is_below_the_one_without(gain, evoi, expected):
    assert prioritised(gain, evoi)["here"] == expected


def test_what_a_setting_does_is_told_for_each_pair():
    assert prioritised(around(900), around(505))[SAYS] == (
        "N = 10, BootDQN-Gain: 900 instead of 500 episodes; N = 20, BootDQN-EVOI: 505 instead of 500 episodes; "
        "intervals apart in 1 of 2"
    )


def test_a_setting_without_its_counterpart_or_with_few_seeds_is_left_open():
    alone = solved("gain", 10, around(100), replay="prioritized")
    few = solved("gain", 20, [100], replay="prioritized") + solved("gain", 20, around(500))
    other_cap = alone + solved("gain", 10, around(500), cap=77)
    with_more = solved("gain", 10, around(100), prior_scale=3.0, replay="prioritized") + solved("gain", 10, around(500))
    for runs in (alone, few, other_cap, with_more):
        found = verdicts(Evidence.among(runs, []))[PRIORITISED]
        assert (found["here"], found[SAYS]) == (OPEN, "no DeepSea runs with and without it")
