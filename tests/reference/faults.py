"""Runs with faults: small walks that can be disturbed, and checks of the files that a run leaves."""

import hashlib
import signal
from contextlib import contextmanager

import gymnasium
import numpy as np
import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.common.tensor_files import read_tensors
from bootdqn.config.settings import from_flat
from bootdqn.config.train import SavingConfig
from bootdqn.runs.checkpoint import Checkpoints
from bootdqn.runs.directory import RunDirectory
from bootdqn.training import trainer
from bootdqn.training.run import train_run

STEPS, LEARNING_STARTS, CHECKPOINT_EVERY = 200, 40, 48


class Walk(gymnasium.Env):
    """Ten places in a row. An episode begins in the middle and ends at either end; the right one pays."""

    observation_space = gymnasium.spaces.Discrete(10)
    action_space = gymnasium.spaces.Discrete(2)
    made = []  # noqa: RUF012 - one list for all

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.number, self.steps, self.resets = len(self.made), 0, 0
        self.made.append(self)

    def seen(self):
        return self.place

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place, self.resets = 4, self.resets + 1
        return self.disturbed_reset(self.seen()), {}

    def step(self, action):
        self.steps += 1
        slips = self.np_random.random() < 0.2
        self.place += 1 if bool(action) != slips else -1
        return self.disturbed_step(self.seen(), float(self.place == 9), self.place in (0, 9), False, {})

    def disturbed_reset(self, observation):
        return observation

    def disturbed_step(self, *outcome):
        return outcome


class WalkInNumbers(Walk):
    """The same, seen as three numbers."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)

    def seen(self):
        return np.float32([self.place / 9, 1 - self.place / 9, self.place == 4])


WALK, WALK_IN_NUMBERS = "bootdqn-test/Walk-v0", "bootdqn-test/WalkInNumbers-v0"
gymnasium.register(WALK, entry_point=Walk, disable_env_checker=True)
gymnasium.register(WALK_IN_NUMBERS, entry_point=WalkInNumbers, disable_env_checker=True)

SMALL = {
    "env_id": WALK,
    "seed": 3,
    "total_steps": STEPS,
    "num_heads": 3,
    "hidden_sizes": [8, 8],
    "ensemble": "independent",
    "engine": "compiled",
    "loss": "squared",
    "batch_size": 16,
    "learning_starts": LEARNING_STARTS,
    "target_every": 20,
    "replay_capacity": 150,
    "eval_every_steps": None,
    "log_every": 10,
}
COMPILED, AUTOGRAD = {}, {"engine": "autograd"}
SHARED = {"engine": "autograd", "env_id": WALK_IN_NUMBERS, "ensemble": "shared", "hidden_sizes": [8, 8, 8]}
LEARNERS = {"compiled": COMPILED, "autograd": AUTOGRAD, "shared": SHARED}
EVALUATED = {"eval_every_steps": 64, "eval_episodes": 3}


def train(settings, path, **options):
    Walk.made.clear()
    saving = SavingConfig(checkpoint_every_steps=CHECKPOINT_EVERY)
    return train_run(from_flat({"environment": "gym"} | SMALL | settings), path, saving=saving, **options)


def train_by_command(settings, path, *more):
    Walk.made.clear()
    words = ["train", "gym", "--quiet", "--checkpoint-every-steps", str(CHECKPOINT_EVERY), "--run-dir", str(path)]
    for key, value in (SMALL | settings).items():
        words += [f"--{key.replace('_', '-')}", *map(str, value if isinstance(value, list) else [value])]
    return run_command_line([*words, *more])


def results(path):
    """Return all results of a finished run."""
    directory = RunDirectory(path)
    assert directory.read_summary()["status"] == "finished"
    kept = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(directory.snapshots.glob("*"))}
    return directory.read_summary()["state_sha256"], directory.metrics.read_text(), directory.weights.read_bytes(), kept


def assert_good_checkpoint(path, step):
    """The newest checkpoint is that of `step`, whole and finite, and nobody is at work in the directory."""
    directory = RunDirectory(path)
    newest = max(directory.checkpoints.glob("step-*"))
    assert newest.name == f"step-{step:012d}"
    loaded = Checkpoints(directory.checkpoints).load(pytest.fail)
    assert loaded.path == newest
    assert loaded.state.values["step"] == step
    segments = [read_tensors(file) for file in (directory.checkpoints / "segments").iterdir()]
    for arrays in (*loaded.state.arrays.values(), *segments):
        assert all(np.isfinite(array).all() for array in arrays.values())
    assert not list(directory.path.rglob("*.part"))
    assert not directory.lock.exists()


def assert_failed(path, error, step):
    """Check that the summary has the reason of the failure after `step` steps."""
    summary = RunDirectory(path).read_summary()
    assert (summary["status"], summary["steps"]) == ("failed", step)
    assert f"(step {step:,})" in summary["error"]
    assert summary["error"] in str(error)
    kept = ", and summary.json the traceback" if "raised" in summary["error"] else ""
    assert str(error).endswith(f"; {path} keeps its last checkpoint{kept}")
    assert any("TrainingError" in line for line in summary["traceback"])
    assert len(list(RunDirectory(path).read_metrics("episode"))) == summary["episodes"], (
        "what it came to is written down"
    )


@contextmanager
def disturbed(monkeypatch, **disturbances):
    """Let a disturbance of `step` or `reset` replace the results of every walk, or raise."""
    with monkeypatch.context() as patch:
        for name, disturbance in disturbances.items():
            patch.setattr(Walk, f"disturbed_{name}", disturbance)
        yield


def at_step(number, outcome_of, env=0):
    """Return a disturbance of one step of one environment: `outcome_of` maps what it gives to what it gives instead."""

    def disturbance(walk, *outcome):
        return outcome_of(*outcome) if (walk.number, walk.steps) == (env, number) else outcome

    return disturbance


def with_reward(reward):
    return lambda observation, _, *rest: (observation, reward, *rest)


def with_observation(observation):
    return lambda _, *rest: (observation, *rest)


@contextmanager
def steps_watched(monkeypatch, watch):
    """Call `watch` with the components of the run after every round."""
    original = trainer.train

    def watched(config, components):
        for result in original(config, components):
            watch(components)
            yield result

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "train", watched)
        yield


def stopping_at(monkeypatch, *steps, number=signal.SIGTERM):
    """A signal comes after the rounds that end at these steps."""
    return steps_watched(monkeypatch, lambda components: components.loop.step in steps and signal.raise_signal(number))
