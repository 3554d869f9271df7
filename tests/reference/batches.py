"""Batches of transitions for learners: random ones, and those of walks in a small DeepSea-like grid."""

import numpy as np

from bootdqn.common.specs import Batch, BoxSpec, DiscreteSpec


def random_batch(rng, spec, num_heads, size, *, discount=0.97, terminated=0.2, owned=0.6, reward_scale=1.0):
    """Return a batch whose fields are all random; importance weights are not all one."""
    ended = rng.random(size) < terminated
    return Batch(
        observation=random_observations(rng, spec.observation, size),
        action=rng.integers(0, spec.num_actions, size),
        reward=np.asarray(reward_scale * rng.normal(size=size), np.float32),
        discount=np.where(ended, 0, discount).astype(np.float32),
        next_observation=random_observations(rng, spec.observation, size),
        mask=rng.random((size, num_heads)) < owned,
        weight=rng.uniform(0.2, 1.5, size).astype(np.float32),
        slot=np.arange(size),
    )


def random_observations(rng, observation, size):
    """Return observations (size, ...) of the specification."""
    if isinstance(observation, DiscreteSpec):
        return rng.integers(0, observation.num_values, size)
    assert isinstance(observation, BoxSpec)
    if np.issubdtype(observation.dtype, np.floating):
        return rng.normal(size=(size, *observation.shape)).astype(observation.dtype)
    return rng.integers(0, 4, (size, *observation.shape)).astype(observation.dtype)


def grid_walk(rng, size, steps, num_heads):
    """Return the transitions of random walks down a size x size grid as one batch: action 1 goes right.

    Going right costs 0.01 / size; going right in the last column of the last row pays 1; an episode is `size` steps.
    """
    row = column = 0
    fields = []
    for _ in range(steps):
        here, action = row * size + column, int(rng.integers(2))
        reward = (1.0 if row == column == size - 1 else 0.0) - 0.01 / size if action else 0.0
        ended = row == size - 1
        row, column = (0, 0) if ended else (row + 1, min(column + 1, size - 1) if action else max(column - 1, 0))
        fields.append((here, action, reward, 0.0 if ended else 0.99, row * size + column))
    observation, action, reward, discount, after = (np.array(field) for field in zip(*fields, strict=True))
    mask = rng.random((steps, num_heads)) < 0.5
    ones = np.ones(steps, np.float32)
    return Batch(observation, action, np.float32(reward), np.float32(discount), after, mask, ones, np.arange(steps))


def choose(batch, index):
    """Return the transitions `index` of `batch`."""
    return Batch(*(np.ascontiguousarray(field[index]) for field in batch if len(field)))
