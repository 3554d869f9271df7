"""The memory and disk that a run needs: a run that does not fit is an error before its first step."""

import tracemalloc
from pathlib import PurePosixPath

import numpy as np
import pytest

from bootdqn.agent.discrete_learner import DiscreteLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.common.errors import UsageError
from bootdqn.common.specs import DiscreteSpec, EnvSpec
from bootdqn.common.text import format_bytes
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.replay.buffer import ReplayBuffer
from bootdqn.runs import resources as module
from bootdqn.runs.resources import ResourceEstimate, check_memory_and_disk
from bootdqn.sweeps.cost import estimate_costs, memory_needed
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.loop import make_components
from bootdqn.training.run import train_run
from reference.batches import random_batch

ATARI = {"environment": "atari", "game": "Pong", "num_heads": 2, "hidden_sizes": [16]}


def estimate(**settings):
    return make_components(resolve(from_flat(ATARI | settings))).estimate_resources()


def test_a_million_frames_are_about_a_gigabyte():
    needed = estimate(replay_capacity=1_000_000)
    assert 0.9e9 < needed.replay < 1.3e9
    assert needed.memory > needed.replay + needed.networks


def test_more_heads_need_more_memory():
    few, many = estimate(replay_capacity=60_000), estimate(replay_capacity=60_000, num_heads=20)
    assert many.weights > 5 * few.weights
    assert many.replay - few.replay == (20 - 2) * 60_001


@pytest.mark.parametrize(("size", "hidden_sizes", "prior_scale"), [(10, (50, 50), 0.0), (20, (70, 20), 3.0)])
def test_the_compiled_kernel_counts_all_that_it_allocates(size, hidden_sizes, prior_scale):
    """Padded rows, Q-values that it knows and scratch memory among it; NumPy reports its memory to tracemalloc."""
    spec = EnvSpec(DiscreteSpec(size * size), 2)
    network = NetworkConfig(10, "independent", hidden_sizes, prior_scale)
    ensemble = make_ensemble(network, spec, np.random.default_rng(0))
    batch = random_batch(np.random.default_rng(0), spec, 10, 64)
    DiscreteLearner(LearnerConfig(batch_size=64), ensemble).update(batch)  # what Numba allocates once does not count
    tracemalloc.start()
    learner = DiscreteLearner(LearnerConfig(batch_size=64), ensemble)
    learner.update(batch)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert learner.memory(spec.observation) == pytest.approx(allocated, rel=0.02)


def test_action_masks_are_counted_before_there_are_any():
    replay = ReplayBuffer(DiscreteSpec(9), capacity=50, num_heads=2, discount=0.9)
    expected = replay.expected_nbytes(4)
    assert expected == replay.nbytes + 51 * 4
    replay.start_episode(0, 3, np.ones(4, np.bool_))
    assert replay.nbytes == replay.expected_nbytes(4) == expected


def test_a_run_that_does_not_fit_is_an_error_and_leaves_no_run_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "available_memory", lambda: 2**29)
    with pytest.raises(UsageError, match=r"512 MiB of memory are available; lower --replay-capacity"):
        train_run(from_flat(ATARI), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_more_environments_than_fit_are_an_error_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "available_memory", lambda: 10 * module.ENVIRONMENT_BYTES)
    module.check_environments_fit(10)
    many = resolve(from_flat({"environment": "deep-sea", "num_envs": 10**8, "replay_capacity": 10**9}))
    with pytest.raises(UsageError, match=r"100,000,000 environments need .* 300 MiB are available; lower --num-envs"):
        train_run(many, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (error,) = estimate_costs([PlannedRun(PurePosixPath("many"), many)])
    assert "lower --num-envs" in str(error)
    assert memory_needed([PlannedRun(PurePosixPath("many"), many)]) == [0]


def test_a_full_disk_is_noticed_beforehand(tmp_path, monkeypatch):
    free_bytes(monkeypatch, 1000)
    with pytest.raises(UsageError, match="choose another run directory"):
        train_run(from_flat({"environment": "deep-sea"}), tmp_path / "run")


def free_bytes(monkeypatch, free):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": free})())


def test_files_that_a_run_has_already_saved_count_as_free_space_for_it(tmp_path, monkeypatch):
    (tmp_path / "checkpoints/step-000000000048").mkdir(parents=True)
    (tmp_path / "checkpoints/segments").mkdir()
    sizes = {
        "checkpoints/step-000000000048/learner.safetensors": 400,
        "checkpoints/segments/piece.safetensors": 250,
        "weights.safetensors": 100,
        "metrics.jsonl": 7000,
    }
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    free_bytes(monkeypatch, 1000)
    check_memory_and_disk(ResourceEstimate(0, 0, 0, 1750), tmp_path)
    with pytest.raises(UsageError, match="choose another run directory"):
        check_memory_and_disk(ResourceEstimate(0, 0, 0, 1751), tmp_path)
    with pytest.raises(UsageError, match="choose another run directory"):
        check_memory_and_disk(ResourceEstimate(0, 0, 0, 1001), tmp_path / "elsewhere")


def test_sizes_are_written_for_people():
    sizes = (3 * 2**30, 5 * 2**20, 200 * 2**10, 0)
    assert [format_bytes(size) for size in sizes] == ["3.0 GiB", "5 MiB", "200 KiB", "0 MiB"]


def test_the_reported_parts_of_the_memory_add_up_to_the_total():
    needed = ResourceEstimate(replay=3 * 2**20, networks=5 * 2**20, memory=640 * 2**20, disk=54 * 2**20)
    assert str(needed) == (
        "640 MiB of memory (libraries and environment 632 MiB, networks 5 MiB, replay 3 MiB) and 54 MiB of disk"
    )
