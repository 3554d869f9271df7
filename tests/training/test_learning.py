"""It learns: small tasks, from the first step to a policy that is beyond doubt better than chance."""

import gymnasium
import pytest

from bootdqn.config.settings import from_flat
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.run import train_run

LAKE = "bootdqn-test/FrozenLake-v0"
"""The 4 x 4 lake without slipping: a random walk reaches the goal about once in seventy episodes."""


@pytest.fixture(scope="module", autouse=True)
def lake():
    gymnasium.register(
        LAKE,
        entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv",
        kwargs={"is_slippery": False},
        max_episode_steps=100,
    )
    yield
    del gymnasium.registry[LAKE]


def test_the_frozen_lake_is_crossed_every_time_by_most_agents(tmp_path):
    """One agent in a few never meets the goal while it acts at random, and has nothing to learn from."""
    crossed = []
    for seed in range(4):
        settings = {"environment": "gym", "env_id": LAKE, "total_steps": 8000, "eval_every_steps": 8000, "seed": seed}
        train_run(from_flat(settings), tmp_path / str(seed))
        (evaluation,) = RunDirectory(tmp_path / str(seed)).read_metrics("evaluation")
        crossed.append(evaluation["returns"] == [1.0] * 10 and evaluation["lengths"] == [6] * 10)
    assert sum(crossed) >= 3


def test_the_pole_stays_up(tmp_path):
    """Chance keeps it up for about 22 steps."""
    settings = {"environment": "gym", "env_id": "CartPole-v1", "total_steps": 5000, "num_heads": 5}
    train_run(from_flat(settings | {"eval_every_steps": 1000}), tmp_path / "run")
    returns = [record["mean_return"] for record in RunDirectory(tmp_path / "run").read_metrics("evaluation")]
    assert max(returns[2:]) > 150


def test_the_key_opens_the_door(tmp_path):
    """The defaults of `train minigrid`, in half of the steps of docs/minigrid.md; chance does it in 8 % of episodes."""
    pytest.importorskip("minigrid")
    settings = {"environment": "minigrid", "env_id": "MiniGrid-DoorKey-5x5-v0", "total_steps": 25_000}
    train_run(from_flat(settings | {"eval_every_steps": 2500}), tmp_path / "run")
    returns = [record["mean_return"] for record in RunDirectory(tmp_path / "run").read_metrics("evaluation")]
    assert max(returns[:2]) < 0.3
    assert sorted(returns[-4:])[1] > 0.8, "three of the last four evaluations"


@pytest.mark.parametrize("game", ["Gravitar", "Solaris", "Private Eye", "Venture", "Alien", "Hero"])
def test_every_game_of_the_paper_trains(tmp_path, game):
    settings = {"environment": "atari", "game": game, "total_frames": 1200, "learning_starts": 200}
    small = {
        "num_heads": 3,
        "hidden_sizes": [32],
        "batch_size": 8,
        "replay_capacity": 1000,
        "log_every": 1,
        "threads": 1,
    }
    summary = train_run(from_flat(settings | small | {"eval_every_frames": None}), tmp_path / "run").summary
    updates = list(RunDirectory(tmp_path / "run").read_metrics("update"))
    assert summary["updates"] == len(updates) >= 20
    assert len({record["loss"] for record in updates}) > 10, "the weights change, and so does the loss"
    assert all(0 <= record["loss"] < float("inf") for record in updates)
