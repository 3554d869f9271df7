"""When a run is evaluated and how: counted in frames, by its own settings, from seeds of its own."""

import gymnasium
import numpy as np
import pytest

from bootdqn.config.settings import from_flat
from bootdqn.training.evaluation import Evaluator

RANKED = np.array([[[2, 1, 0]] * 3 + [[0, 2, 1]] * 2], np.float32)
"""Most of these heads want action 0, and all are content with action 1."""


class Game(gymnasium.Env):
    """Episodes of two steps, which pay 1, 2 and 9 from a seed on."""

    observation_space = action_space = gymnasium.spaces.Discrete(3)

    def __init__(self):
        self.seeds, self.actions = [], []

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        if seed is not None:
            self.seeds.append(seed)
            self.payments = iter((1.0, 2.0, 9.0))
        self.at = 0
        return self.at, {}

    def step(self, action):
        self.actions.append(action)
        self.at += 1
        return self.at, next(self.payments) if self.at == 2 else 0.0, self.at == 2, False, {}


@pytest.fixture
def game(monkeypatch):
    game = Game()
    monkeypatch.setattr("bootdqn.envs.factory.make_environment", lambda _config: game)
    return game


def records_after(*steps, **settings):
    """Evaluate a run on Atari, whose steps are four frames each, after each of `steps` if that is due."""
    config = from_flat(
        {"environment": "atari", "game": "Pong", "eval_every_frames": 1000, "eval_episodes": 3} | settings
    )
    evaluator = Evaluator(config, lambda _observations: RANKED)
    return [evaluator.evaluate_if_due(step, lambda: False) for step in steps]


@pytest.mark.usefixtures("game")
def test_evaluations_are_due_in_frames():
    found = records_after(249, 250, 251, 499, 500)
    assert [record and (record["step"], record["frames"]) for record in found] == [
        None,
        (250, 1000),
        None,
        None,
        (500, 2000),
    ]


@pytest.mark.usefixtures("game")
def test_the_score_of_an_evaluation_is_the_mean_of_its_episodes():
    (record,) = records_after(250)
    assert (record["returns"], record["mean_return"]) == ([1.0, 2.0, 9.0], 4.0)


@pytest.mark.parametrize(("rule", "action"), [("plurality", 0), ("borda", 1)])
def test_the_heads_vote_by_the_rule_of_the_run(game, rule, action):
    records_after(250, vote=rule)
    assert set(game.actions) == {action}


def test_no_more_is_played_than_the_run_allows(game):
    (record,) = records_after(250, eval_max_steps=5)
    assert (record["lengths"], len(game.actions)) == ([2, 2], 5)


def test_every_evaluation_of_every_run_has_a_seed_of_its_own(game):
    records_after(250, 500, seed=0)
    records_after(250, 500, seed=1)
    assert len(set(game.seeds)) == 4
    records_after(250, 500, seed=0)
    assert game.seeds[4:] == game.seeds[:2]
