"""The counts that bsuite scores, against bsuite's own logging and analysis where it is installed, and by hand."""

import importlib.util
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.envs.factory import make_environment
from bootdqn.runs.summary import describe_bsuite_counts
from bootdqn.training.stopping import BsuiteCounts, is_logged

needs_bsuite = pytest.mark.skipif(not importlib.util.find_spec("bsuite"), reason="bsuite is not installed")


def counted(experiment, bad):
    counts = BsuiteCounts(experiment)
    for one in bad:
        counts.add_episode(0.0, bad=bool(one))
    return counts


def test_the_logged_episodes_become_rarer():
    assert [one for one in range(1, 300) if is_logged(one)] == [
        *range(1, 11), 12, 14, 17, 20, 25, *range(30, 100, 10), 100, 120, 140, 170, 200, 250,
    ]  # fmt: skip


@needs_bsuite
def test_the_logged_episodes_are_bsuites():
    from bsuite.utils.wrappers import _logarithmic_logging

    assert [one for one in range(1, 12_000) if is_logged(one) != _logarithmic_logging(one)] == []


def test_deep_sea_is_solved_at_the_first_logged_episode_with_fewer_than_nine_tenths_bad():
    good = np.zeros(40, bool)
    good[[12, 14]] = True  # the 13th and the 15th: 2 of 15 are good, but bsuite looks at the 14th and the 17th
    assert counted("deep_sea", ~good).solved_at == 17
    assert counted("deep_sea", ~good[:16]).solved_at is None


def test_with_wind_a_fifth_must_be_good_and_the_first_hundred_episodes_are_ignored():
    assert counted("deep_sea_stochastic", np.zeros(99)).solved_at is None
    assert counted("deep_sea_stochastic", np.zeros(100)).solved_at == 100
    fifth = np.arange(300) % 5 != 0
    assert counted("deep_sea_stochastic", fifth).solved_at is None
    assert counted("deep_sea_stochastic", np.append(fifth[:249], False)).solved_at == 250


@needs_bsuite
@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")
@pytest.mark.parametrize("experiment", ["deep_sea", "deep_sea_stochastic"])
def test_the_solved_episode_is_the_one_that_bsuites_analysis_finds(experiment, monkeypatch):
    analysis = pytest.importorskip(f"bsuite.experiments.{experiment}.analysis")
    monkeypatch.setattr(pd.Series, "append", lambda one, other: pd.concat([one, other]), raising=False)
    rng = np.random.default_rng(0)
    tables, expected = [], {}
    for size in range(10, 51, 2):
        bad = rng.random(3000) < np.linspace(1.0, rng.uniform(0.5, 1.0), 3000)
        if size == 50:
            bad[:] = True
        expected[size] = counted(experiment, bad).solved_at
        episodes = np.arange(1, 3001)
        table = pd.DataFrame({"episode": episodes, "total_bad_episodes": np.cumsum(bad), "size": size})
        tables.append(table[[is_logged(one) for one in episodes]])
    found = analysis.find_solution(pd.concat(tables, ignore_index=True)).set_index("size")
    assert set(found.index) == set(expected)
    for size, row in found.iterrows():
        assert expected[size] == (row.episode if row.solved else None)
    assert 3 <= found.solved.sum() <= 18


def test_swing_up_counts_the_returns_and_the_best_of_them():
    counts = BsuiteCounts("cartpole_swingup")
    for value in (-3.0, 120.5, 7.0):
        counts.add_episode(value, bad=False)
    assert (counts.episodes, counts.total_return, counts.best_episode, counts.solved_at) == (3, 124.5, 120.5, None)
    assert describe_bsuite_counts(asdict(counts)) == "mean return 41.5 of 3 episodes, best 120.5"


@needs_bsuite
@pytest.mark.parametrize("bsuite_id", ["deep_sea/3", "deep_sea_stochastic/3", "cartpole_swingup/4"])
def test_an_id_loads_the_environment_that_bsuite_loads(bsuite_id):
    import bsuite

    ours, theirs = make_environment(BsuiteConfig(bsuite_id)), bsuite.load_from_id(bsuite_id)
    theirs._rng = np.random.RandomState(9)  # bsuite leaves it unseeded
    rng = np.random.default_rng(1)
    observation, _ = ours.reset(seed=9)
    timestep = theirs.reset()
    for _ in range(200):
        shown = np.eye(timestep.observation.size)[observation] if np.ndim(observation) == 0 else observation
        assert (timestep.observation.ravel() == shown).all()
        action = int(rng.integers(theirs.action_spec().num_values))
        timestep = theirs.step(action)
        observation, reward, terminated, _, _ = ours.step(action)
        assert (reward, terminated) == (timestep.reward, timestep.last())
        if terminated:
            (observation, _), timestep = ours.reset(), theirs.reset()
