"""Runs evaluated from their folders."""

from bootdqn.envs.deep_sea import DeepSea
from bootdqn.training.assess import assess
from bootdqn.training.config import from_flat
from bootdqn.training.run import run


def test_the_seed_that_is_asked_for_seeds_the_environment(tmp_path, monkeypatch):
    run(from_flat({"environment": "deep-sea", "size": 3, "max_episodes": 2}), tmp_path / "run")
    seeds, reset = [], DeepSea.reset

    def noted(env, *, seed=None, options=None):
        seeds.append(seed)
        return reset(env, seed=seed, options=options)

    monkeypatch.setattr(DeepSea, "reset", noted)
    for seed in (0, 0, 1):
        assess(tmp_path / "run", episodes=1, max_steps=9, rule=None, seed=seed)
    first, again, other = seeds
    assert first == again != other
