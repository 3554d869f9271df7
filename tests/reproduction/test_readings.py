"""The two readings of DeepSea's updates are compared by the rule that its sweep states."""

import json

import numpy as np
import pandas as pd
import pytest

from bootdqn.config.variants import Variant
from reference.run_directories import write_deep_sea
from reproduction import readings
from reproduction.evidence import CONTRADICTED, OPEN, SUPPORTED, Verdict


def slowly_solved_recently(bad, window):
    """Count every window anew."""
    for end in range(1, len(bad) + 1):
        last = bad[max(end - window, 0) : end]
        if 10 * sum(last) < 9 * len(last) and last.count(False) >= 10:
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


def test_until_there_is_a_window_of_episodes_all_so_far_count():
    assert readings.solved_recently([False] * 9) is None, "with the strict rule's ten good episodes"
    assert readings.solved_recently([False] * 10) == 10
    assert readings.solved_recently([True] * 50 + [False] * 40) == 60


def test_a_directory_without_metrics_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "results/deep-sea").mkdir(parents=True)
    monkeypatch.setattr(readings.archive, "RESULTS", tmp_path / "results")
    kept = tmp_path / "results/deep-sea/recent.json"
    write_deep_sea(tmp_path / "runs/a", bad=[False] * 12)
    readings.main([str(tmp_path / "runs")])
    assert json.loads(kept.read_text()) == {"a": 10}
    (tmp_path / "runs/a/metrics.jsonl").unlink()
    readings.main([str(tmp_path / "runs")])
    assert json.loads(kept.read_text()) == {"a": 10}


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
    recent = json.loads((readings.archive.RESULTS / readings.PER_EPISODE / readings.RECENT).read_text())
    runs = readings.reading_runs(readings.PER_EPISODE)
    assert set(runs.run) <= set(recent)
