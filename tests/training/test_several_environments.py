"""Environments trained in side by side share an agent, and no random samples."""

import itertools

import numpy as np
import pytest

from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.training.loop import make_components, train


def started_components(num_envs):
    """Return the settings and the components of a run that acts and does not learn yet."""
    small = {
        "environment": "deep-sea",
        "update_every": 1,
        "size": 5,
        "num_heads": 20,
        "hidden_sizes": [8, 8],
        "engine": "autograd",
    }
    settings = resolve(from_flat(small | {"num_envs": num_envs, "learning_starts": 10_000}))
    return settings, make_components(settings)


def test_the_masks_of_a_round_are_sampled_independently(monkeypatch):
    settings, components = started_components(num_envs=2)
    masks, add = [], components.replay.add
    monkeypatch.setattr(
        components.replay, "add", lambda *given, **ended: masks.append(given[4]) or add(*given, **ended)
    )
    list(itertools.islice(train(settings, components), 50))
    first, second = masks[::2], masks[1::2]
    assert np.not_equal(first, second).mean() == pytest.approx(0.5, abs=0.1)


def test_each_environment_starts_with_its_own_seed(monkeypatch):
    settings, components = started_components(num_envs=3)
    seeds = []
    for environment in components.environments:
        reset = environment.reset
        monkeypatch.setattr(environment, "reset", lambda *, seed, reset=reset: seeds.append(seed) or reset(seed=seed))
    next(train(settings, components))
    assert None not in seeds
    assert len(set(seeds)) == 3
