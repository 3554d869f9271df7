"""DeepSea from above: where the agent goes, what it expects to learn there, and what its heads want."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import blamed_on
from bootdqn.common.files import is_present
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.exploration.voting import vote_counts
from bootdqn.inspector.recording import CULPRIT, Player
from bootdqn.runs.directory import RunDirectory, find_snapshots
from bootdqn.runs.threads import pinned_threads
from bootdqn.runs.weights import LoadedRun
from bootdqn.training.evaluation import Rollout

EPISODES = 200
"""Played by each snapshot's agent to see where it goes."""


class Maps(NamedTuple):
    """Three maps of the grid (N, N) at one moment of the training."""

    step: int
    visits: Array
    """How many of the episodes came by."""
    evoi: Array
    """The larger EVOI of the two actions, times the scale."""
    votes: Array
    """The share of heads that want to go right."""


def deep_sea_maps(player: Player, path: Path, seed: int, weights: Path | None) -> list[Maps]:
    """Return the maps at every snapshot of the run, at its last weights if there are any, and at `weights`.

    Raises:
        UsageError: A file does not hold the networks of this run.
        TrainingError: The environment or the strategy raised something.
    """
    last = RunDirectory(path).weights
    files = [
        *find_snapshots(path).values(),
        *([last] if is_present(last) else []),
        *([] if weights is None else [weights]),
    ]
    with pinned_threads(player.config.run.threads):
        found = {one.step: _maps(player, one, seed) for one in map(player.opened.with_weights, files)}
    return [found[step] for step in sorted(found)]


def _maps(player: Player, opened: LoadedRun, seed: int) -> Maps:
    env: Any = player.environment
    size = player.config.env.size
    q = opened.q_values(np.arange(size * size))
    right = np.asarray(env.unwrapped.action_mapping).ravel()
    share = vote_counts(q) / q.shape[-2]
    return Maps(
        step=opened.step,
        visits=_visits(player, q, seed).reshape(size, size),
        evoi=player.compared.evoi.bonus(q).max(axis=-1).reshape(size, size),
        votes=share[np.arange(size * size), right].reshape(size, size),
    )


def _visits(player: Player, q: Array, seed: int) -> Array:
    """Count in how many episodes of the strategy each state is come by, every episode with a head of its own."""
    rng, visits = random_stream(seed, "visits"), np.zeros(len(q), np.int64)
    seed_of_first = int(rng.integers(2**31))
    for episode in range(EPISODES):
        rollout = Rollout(player.environment, CULPRIT, seed=None if episode else seed_of_first)
        head = int(rng.integers(q.shape[1]))
        while not rollout.done:
            state = int(rollout.observation())
            visits[state] += 1
            with blamed_on("the strategy"):
                action = int(player.strategy.select(q[state], head, rng))
            rollout.step(action)
    return visits
