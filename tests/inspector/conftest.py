"""Runs to inspect, and user strategies to inspect them with."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import bootdqn
from bootdqn.config.settings import from_flat
from bootdqn.training.run import train_run

SMALL = {"num_heads": 5, "hidden_sizes": [16, 16], "snapshot_every": "log"}


@pytest.fixture(scope="session")
def deep_sea(tmp_path_factory):
    path = tmp_path_factory.mktemp("deep-sea") / "run"
    train_run(from_flat({"environment": "deep-sea", "update_every": 1, "size": 6, "max_episodes": 100} | SMALL), path)
    return path


@pytest.fixture(scope="session")
def game(tmp_path_factory):
    path = tmp_path_factory.mktemp("game") / "<script>alert(1)<"
    settings = {"environment": "atari", "game": "Gravitar", "total_frames": 400, "eval_every_frames": None}
    train_run(from_flat(settings | {"num_heads": 4, "hidden_sizes": [16], "replay_capacity": 200, "threads": 1}), path)
    return path


@dataclass(frozen=True)
class Barred(bootdqn.Strategy):
    """The most hopeful head's smallest numbers; action 0 is never done."""

    name: ClassVar[str] = "barred"

    def scores(self, q, head):  # noqa: ARG002
        return np.where(np.arange(q.shape[-1]) == 0, -np.inf, 1e-9 * q.max(axis=-2))


@dataclass(frozen=True)
class Opposed(bootdqn.Strategy):
    """The opposite of the active head, by a rule of its own."""

    name: ClassVar[str] = "opposed"

    def scores(self, q, head):
        return bootdqn.head_values(q, head)

    def select(self, q, head, rng=None):  # noqa: ARG002
        return np.argmin(self.scores(q, head), axis=-1)


@pytest.fixture
def own_strategies(user_code):  # noqa: ARG001 - it forgets them
    for strategy in (Barred, Opposed):
        bootdqn.register_strategy(strategy)
