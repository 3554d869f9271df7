"""Environments trained in side by side share an agent, and nothing that is drawn."""

import itertools

import numpy as np
import pytest

from bootdqn.config.train import from_flat, resolve
from bootdqn.training.loop import make_parts, train


def begun(num_envs):
    """Return the settings and the parts of a run that acts and does not learn yet."""
    small = {"environment": "deep-sea", "size": 5, "num_heads": 20, "hidden_sizes": [8, 8], "engine": "autograd"}
    settings = resolve(from_flat(small | {"num_envs": num_envs, "learning_starts": 10_000}))
    return settings, make_parts(settings)


def test_the_masks_of_a_round_are_drawn_apart(monkeypatch):
    settings, parts = begun(num_envs=2)
    masks, add = [], parts.replay.add
    monkeypatch.setattr(parts.replay, "add", lambda *given, **ended: masks.append(given[4]) or add(*given, **ended))
    list(itertools.islice(train(settings, parts), 50))
    first, second = masks[::2], masks[1::2]
    assert np.not_equal(first, second).mean() == pytest.approx(0.5, abs=0.1)


def test_each_begins_with_a_seed_of_its_own(monkeypatch):
    settings, parts = begun(num_envs=3)
    seeds = []
    for environment in parts.environments:
        reset = environment.reset
        monkeypatch.setattr(environment, "reset", lambda *, seed, reset=reset: seeds.append(seed) or reset(seed=seed))
    next(train(settings, parts))
    assert None not in seeds
    assert len(set(seeds)) == 3
