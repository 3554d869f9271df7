"""The two readings of DeepSea's updates are compared by the rule that its sweep states."""

import json

import numpy as np
import pandas as pd
import pytest

from bootdqn.config.variants import Variant
from reproduction import readings
from reproduction.evidence import CONTRADICTED, OPEN, SUPPORTED, Verdict


def slowly_solved_recently(bad, window):
    """Count every window anew."""
    for end in range(window, len(bad) + 1):
        if 10 * sum(bad[end - window : end]) < 9 * window:
            return end
    return None


@pytest.mark.parametrize("seed", range(20))
def test_the_regret_of_the_last_episodes_is_that_of_every_window_counted_anew(seed):
    rng = np.random.default_rng(seed)
    bad = [bool(one) for one in rng.random(300) < rng.choice([0.85, 0.9, 0.95, 1.0])]
    for window in (10, 20, 100):
        assert readings.solved_recently(bad, window) == slowly_solved_recently(bad, window)


def test_exactly_nine_tenths_of_bad_episodes_are_not_below_nine_tenths():
    assert readings.solved_recently([True] * 90 + [False] * 10) is None
    assert readings.solved_recently([True] * 90 + [False] * 11) == 101
    assert readings.solved_recently([False] * 99) is None, "a running average of 100 episodes needs 100 episodes"


def verdicts(*statuses):
    return [Verdict(status, "") for status in statuses]


@pytest.mark.parametrize(
    ("every_step", "per_episode", "expected"),
    [
        ((SUPPORTED, SUPPORTED, CONTRADICTED), (SUPPORTED, SUPPORTED, SUPPORTED), "per_episode"),
        ((SUPPORTED, SUPPORTED, CONTRADICTED), (SUPPORTED, SUPPORTED, OPEN), "per_episode"),
        ((SUPPORTED, SUPPORTED, CONTRADICTED), (SUPPORTED, OPEN, OPEN), "every_step"),
        ((SUPPORTED, SUPPORTED, OPEN), (SUPPORTED, OPEN, SUPPORTED), None),
        ((OPEN, OPEN, OPEN), (OPEN, OPEN, OPEN), None),
    ],
)
def test_the_reading_that_supports_more_claims_is_preferred_then_the_one_that_contradicts_fewer(
    every_step, per_episode, expected
):
    given = {"every_step": verdicts(*every_step), "per_episode": verdicts(*per_episode)}
    assert readings.preferred(given) == expected


def runs_of(episodes):
    """Return runs at N = 30 with five seeds of each strategy; None stands for a run that was not solved."""
    rows = [
        {
            "size": 30,
            "seed": seed,
            "budget": 100_000,
            "variant": Variant(strategy),
            "strategy": strategy,
            "solved_at_strict": solved,
        }
        for strategy, of_seeds in episodes.items()
        for seed, solved in enumerate(of_seeds)
    ]
    runs = pd.DataFrame(rows)
    return runs.assign(solved_at=runs.solved_at_strict)


def test_claims_are_judged_in_the_order_of_the_table():
    first, second, third = [10, 20, 30, 40, 50], [110, 120, 130, 140, 150], [None] * 5
    found = readings.judged(
        runs_of({"evoi:reduce=sum": first, "gain": second, "greedy": third, "ucb": third}),
    )
    assert [verdict.status for verdict in found] == [SUPPORTED] * 3
    found = readings.judged(
        runs_of({"evoi:reduce=sum": second, "gain": first, "greedy": third, "ucb": third}),
    )
    assert [verdict.status for verdict in found] == [SUPPORTED, SUPPORTED, CONTRADICTED]


def test_claims_can_be_judged_at_a_size_where_every_algorithm_has_four_seeds():
    five = runs_of({strategy: [1, 2, 3, 4, 5] for strategy in readings.STRATEGIES})
    assert readings.enough_seeds(five)
    assert readings.enough_seeds(five[(five.strategy != "gain") | (five.seed < 4)])
    assert not readings.enough_seeds(five[(five.strategy != "gain") | (five.seed < 3)])
    assert not readings.enough_seeds(five[five.strategy != "ucb"])


def test_both_rules_stand_beside_each_other():
    so_far = runs_of({"gain": [400, 600, None, 200, 800], "greedy": [None] * 5})
    recently = so_far.assign(solved_at_strict=[150.0, 250.0, 90_000.0, 150.0, 350.0, *[None] * 5])
    rows = readings.by_two_rules(so_far, recently).splitlines()[2:]
    assert rows == [
        "| 30 | BootDQN | ≥ 100,000 (0/5) | ≥ 100,000 (0/5) |",
        "| 30 | BootDQN-Gain | ≥ 20,400 (4/5) | 18,180 (5/5) |",
    ]


def test_the_committed_file_has_every_run_of_the_four_algorithms():
    recent = json.loads((readings.studies.RESULTS / readings.PER_EPISODE / readings.RECENT).read_text())
    runs = readings.reading_runs(readings.PER_EPISODE)
    assert set(runs.run) <= set(recent)
    assert min(episode for episode in recent.values() if episode) >= readings.WINDOW
