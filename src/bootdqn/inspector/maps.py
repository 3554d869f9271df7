"""DeepSea from above: where the agent goes, what it expects to learn there, and what its heads want."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.random_streams import random_stream
from bootdqn.common.run_folder import RunFolder, find_snapshots
from bootdqn.common.specs import Array
from bootdqn.exploration.voting import vote_counts
from bootdqn.inspector.recording import Player

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


def deep_sea_maps(path: Path, strategy: str | None, seed: int, weights: Path | None) -> list[Maps]:
    """Return the maps at every snapshot of the run, at its last weights if there are any, and at `weights`."""
    last = RunFolder(path).weights
    files = [
        *find_snapshots(path).values(),
        *([last] if last.exists() else []),
        *([] if weights is None else [weights]),
    ]
    found: dict[int, Maps] = {}
    for file in files:
        player = Player(path, str(file), strategy)
        found[player.step] = _maps(player, seed)
    return [found[step] for step in sorted(found)]


def _maps(player: Player, seed: int) -> Maps:
    env: Any = player.environment
    size = player.config.env.size
    q = player.q_values(np.arange(size * size))
    right = np.asarray(env.unwrapped.action_mapping).ravel()
    share = vote_counts(q) / q.shape[-2]
    return Maps(
        step=player.step,
        visits=_visits(player, q, seed).reshape(size, size),
        evoi=player.compared.evoi.bonus(q).max(axis=-1).reshape(size, size),
        votes=share[np.arange(size * size), right].reshape(size, size),
    )


def _visits(player: Player, q: Array, seed: int) -> Array:
    """Count in how many episodes of the strategy each state is come by, every episode with a head of its own."""
    rng, visits = random_stream(seed, "visits"), np.zeros(len(q), np.int64)
    env = player.environment
    observation, _ = env.reset(seed=int(rng.integers(2**31)))
    for episode in range(EPISODES):
        if episode:
            observation, _ = env.reset()
        head, over = int(rng.integers(q.shape[1])), False
        while not over:
            visits[observation] += 1
            action = int(player.strategy.select(q[observation], head, rng))
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
    return visits
