"""Maps of DeepSea: where the agent goes, the EVOI of each state, and the votes of the heads."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import attribute_errors_to
from bootdqn.common.files import is_present
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.exploration.voting import vote_counts
from bootdqn.inspector.recording import Recorder
from bootdqn.runs.directory import RunDirectory, find_snapshots
from bootdqn.runs.threads import pinned_threads
from bootdqn.runs.weights import LoadedRun
from bootdqn.training.rollout import Rollout

EPISODES = 200
"""Episodes of each snapshot that are counted as visits."""


class Maps(NamedTuple):
    """Three maps of the grid (N, N) at one step of training."""

    step: int
    visits: Array
    """Number of episodes that visited the state."""
    evoi: Array
    """The larger EVOI of the two actions, times the scale."""
    votes: Array
    """Share of heads that vote for right."""


def deep_sea_maps(recorder: Recorder, path: Path, seed: int, weights: Path | None) -> list[Maps]:
    """Return the maps at every snapshot of the run, at its last weights if there are any, and at `weights`.

    Raises:
        UsageError: A file does not hold the networks of this run.
        TrainingError: The environment or the strategy raised an exception.
    """
    last = RunDirectory(path).weights
    files = [
        *find_snapshots(path).values(),
        *([last] if is_present(last) else []),
        *([] if weights is None else [weights]),
    ]
    with pinned_threads(recorder.config.run.threads):
        found = {one.step: _maps(recorder, one, seed) for one in map(recorder.run.with_weights, files)}
    return [found[step] for step in sorted(found)]


def _maps(recorder: Recorder, run: LoadedRun, seed: int) -> Maps:
    env: Any = recorder.environment
    size = recorder.size
    assert size is not None, "maps are of DeepSea"
    q = run.q_values(np.arange(size * size))
    right = np.asarray(env.unwrapped.action_mapping).ravel()
    share = vote_counts(q) / q.shape[-2]
    return Maps(
        step=run.step,
        visits=_visits(recorder, q, seed).reshape(size, size),
        evoi=recorder.compared.evoi.bonus(q).max(axis=-1).reshape(size, size),
        votes=share[np.arange(size * size), right].reshape(size, size),
    )


def _visits(recorder: Recorder, q: Array, seed: int) -> Array:
    """Count the episodes that visit each state; the active head is sampled for every episode."""
    rng, visits = random_stream(seed, "visits"), np.zeros(len(q), np.int64)
    seed_of_first = int(rng.integers(2**31))
    for episode in range(EPISODES):
        rollout = Rollout(recorder.environment, "the environment", seed=None if episode else seed_of_first)
        head = int(rng.integers(q.shape[1]))
        while not rollout.done:
            state = int(rollout.observation())
            visits[state] += 1
            with attribute_errors_to(f"strategy {recorder.strategy_text}"):
                action = int(recorder.strategy.select(q[state], head, rng))
            rollout.step(action)
    return visits
