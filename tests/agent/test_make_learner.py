"""Which learner is built for which ensemble."""

import numpy as np
import pytest

from bootdqn.agent.autograd_learner import AutogradLearner
from bootdqn.agent.discrete_learner import DiscreteLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.learner import make_learner
from bootdqn.agent.shared_torso_learner import SharedTorsoLearner
from bootdqn.common.errors import UsageError
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.agent import LearnerConfig, NetworkConfig

DISCRETE = EnvSpec(DiscreteSpec(9), 2)
IMAGES = EnvSpec(BoxSpec((10, 10, 4), np.dtype(np.bool_)), 2)
BOX = EnvSpec(BoxSpec((9,), np.dtype(np.float32)), 2)
SUPPORTED = ("independent", (5, 4), DISCRETE)
HEADS = {
    "a shared torso": ("shared", (5, 4), DISCRETE),
    "a shared torso of two layers": ("shared", (5, 4, 3), DISCRETE),
    "arrays and a shared torso": ("shared", (5, 4), BOX),
    "arrays and one hidden layer": ("independent", (5,), BOX),
    "images": ("shared", (5,), IMAGES),
}
UNSUPPORTED = {
    "one hidden layer": ("independent", (5,), DISCRETE),
    "three hidden layers": ("independent", (5, 4, 3), DISCRETE),
    "arrays": ("independent", (5, 4), BOX),
}


def build(kind, hidden_sizes, spec, *, engine, device="cpu"):
    ensemble = make_ensemble(NetworkConfig(3, kind, hidden_sizes), spec, np.random.default_rng(0))
    return ensemble, make_learner(LearnerConfig(engine=engine), ensemble, device)


@pytest.mark.parametrize("engine", ["auto", "compiled"])
def test_the_kernel_learns_what_it_supports(engine):
    ensemble, learner = build(*SUPPORTED, engine=engine)
    assert type(learner) is DiscreteLearner
    assert learner.online is ensemble


@pytest.mark.parametrize("engine", ["auto", "compiled"])
@pytest.mark.parametrize("ensemble", HEADS.values(), ids=HEADS)
def test_the_kernel_of_heads_learns_what_it_supports(ensemble, engine):
    assert type(build(*ensemble, engine=engine)[1]) is SharedTorsoLearner


@pytest.mark.parametrize("ensemble", [SUPPORTED, *HEADS.values()])
def test_autograd_learns_what_the_kernels_support_when_asked_to(ensemble):
    ensemble, learner = build(*ensemble, engine="autograd")
    assert type(learner) is AutogradLearner
    assert learner.online is ensemble


@pytest.mark.parametrize("engine", ["auto", "autograd"])
@pytest.mark.parametrize("ensemble", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_autograd_learns_the_rest(ensemble, engine):
    assert type(build(*ensemble, engine=engine)[1]) is AutogradLearner


@pytest.mark.parametrize("ensemble", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_requesting_the_kernel_for_an_unsupported_ensemble_names_the_remedy(ensemble):
    with pytest.raises(
        UsageError, match=r"--engine compiled needs .*two --hidden-sizes on discrete .*use --engine auto"
    ):
        build(*ensemble, engine="compiled")


def test_the_kernel_runs_on_the_cpu_only(monkeypatch):
    monkeypatch.setattr("bootdqn.agent.learner._is_available", lambda _: True)
    with pytest.raises(UsageError, match=r"--engine compiled needs .*--device cpu.*; use --engine auto"):
        build(*SUPPORTED, engine="compiled", device="cuda")


def test_a_device_that_is_not_available_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with pytest.raises(UsageError, match="--device cuda:2 is not available: PyTorch finds 2 CUDA devices"):
        build(*SUPPORTED, engine="auto", device="cuda:2")
