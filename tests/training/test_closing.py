"""Every environment that is made is closed again, whatever happens in between."""

from pathlib import PurePosixPath

import gymnasium
import pytest

import bootdqn
from bootdqn.agent import actor
from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.config.settings import from_flat
from bootdqn.inspector.page import inspect_run
from bootdqn.sweeps.cost import estimate_costs, memory_needed
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.evaluation import evaluate_saved_run
from bootdqn.training.loop import make_components
from bootdqn.training.run import train_run
from reference.faults import stopping_at

SETTINGS = {"environment": "gym", "env_id": "Door-v0", "total_steps": 80, "eval_every_steps": 40, "num_envs": 2}
SETTINGS |= {"learning_starts": 10, "num_heads": 2, "hidden_sizes": [4], "threads": 1}


class Door(gymnasium.Env):
    """Knows how often it was closed; `fail_at` is the step at which it raises."""

    observation_space = action_space = gymnasium.spaces.Discrete(3)
    made = []  # noqa: RUF012 - one list for all
    fail_at = None
    fail_after_made = None

    def __init__(self, render_mode=None):
        if len(self.made) == self.fail_after_made:
            raise RuntimeError("no more doors")
        self.render_mode, self.steps, self.closed = render_mode, 0, 0
        self.made.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return 0, {}

    def step(self, action):
        self.steps += 1
        if self.steps == self.fail_at:
            raise RuntimeError("jammed")
        return int(action), 0.0, self.steps % 5 == 0, False, {}

    def close(self):
        self.closed += 1
        raise RuntimeError("slammed")


gymnasium.register("Door-v0", Door)


@pytest.fixture(autouse=True)
def doors(monkeypatch):
    """Return how often each environment of a test was closed."""
    monkeypatch.setattr(Door, "made", [])
    return lambda: [door.closed for door in Door.made]


def train(run_dir, **settings):
    return train_run(from_flat(SETTINGS | settings), run_dir)


def test_a_run_closes_its_environments_and_those_of_its_evaluations(tmp_path, doors):
    train(tmp_path)
    assert doors() == [1] * 4


def test_a_run_that_is_stopped_and_resumed_closes_them_both_times(tmp_path, doors, monkeypatch):
    with stopping_at(monkeypatch, 20):
        train(tmp_path)
    assert doors() == [1] * 2
    train(tmp_path)
    assert doors() == [1] * 6


def test_a_run_that_fails_closes_them(tmp_path, doors, monkeypatch):
    monkeypatch.setattr(Door, "fail_at", 7)
    with pytest.raises(TrainingError, match="jammed"):
        train(tmp_path)
    assert doors() == [1] * 2


def test_environments_are_closed_if_another_cannot_be_made(doors, monkeypatch):
    monkeypatch.setattr(Door, "fail_after_made", 1)
    with pytest.raises(UsageError, match="no more doors"):
        make_components(from_flat(SETTINGS))
    assert doors() == [1]


def test_environments_are_closed_if_the_agent_cannot_be_made(doors, monkeypatch):
    monkeypatch.setattr(actor.Actor, "__init__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make_components(from_flat(SETTINGS))
    assert doors() == [1] * 2


def test_evaluating_inspecting_and_loading_a_run_close_its_environment(tmp_path, doors):
    train(tmp_path, eval_every_steps=None)
    Door.made.clear()
    evaluate_saved_run(tmp_path, episodes=1, max_steps=9, rule=None, seed=0)
    inspect_run(tmp_path, tmp_path / "page.html", episodes=1, max_steps=9)
    bootdqn.load_run(tmp_path)
    with pytest.raises(UsageError):
        inspect_run(tmp_path, tmp_path / "page.html", strategy="nonsense", episodes=1, max_steps=9)
    with pytest.raises(UsageError):
        bootdqn.load_run(tmp_path, weights=tmp_path / "config.json")
    assert doors() == [1] * 5


def test_estimating_costs_closes_environments(doors):
    runs = [PlannedRun(PurePosixPath("run"), from_flat(SETTINGS))]
    assert memory_needed(runs) != [0]
    assert doors() == [1] * 2
    assert estimate_costs(runs)[0].seconds > 0
    assert doors() == [1] * 5
