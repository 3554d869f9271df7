"""The choice of MinAtar's learning rate, by the rule that was written before the runs."""

import pandas as pd
import pytest

from bootdqn.sweeps.sweep_file import load_sweep
from reproduction.minatar_learning_rate import SWEEP, choose, scores_of_runs


def test_only_episodes_that_end_in_the_last_25_000_steps_count():
    runs = pd.DataFrame({"run": ["a"], "game": ["breakout"], "learning_rate": [0.1], "seed": [100], "budget": [75_000]})
    episodes = pd.DataFrame({"run": "a", "step": [40_000, 50_000, 50_001, 75_000], "return": [9.0, 9.0, 1.0, 2.0]})
    assert scores_of_runs(episodes, runs).score.tolist() == [1.5]


def test_games_count_alike_and_the_smaller_rate_wins_a_tie():
    rows = [("a", 0.1, 100.0), ("a", 0.2, 50.0), ("b", 0.1, 1.0), ("b", 0.2, 2.0), ("a", 0.3, 60.0), ("b", 0.3, 1.7)]
    scores = pd.DataFrame(
        [(*row, seed) for row in rows for seed in (0, 1)], columns=["game", "learning_rate", "score", "seed"]
    )
    relative, chosen = choose(scores)
    assert relative.to_dict() == pytest.approx({0.1: 0.75, 0.2: 0.75, 0.3: (0.6 + 0.85) / 2})
    assert chosen == 0.1


def test_the_choice_uses_no_seed_and_no_strategy_of_the_study():
    choice, study = load_sweep(str(SWEEP)).runs(), load_sweep("paper-minatar").runs()
    assert {run.config.actor.strategy for run in choice} == {"greedy"}
    assert not {run.config.run.seed for run in choice} & {run.config.run.seed for run in study}
