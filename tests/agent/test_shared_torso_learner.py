"""The kernel of heads on images: its convolution, its learner beside autograd's, and its threads."""

import numpy as np
import pytest
import torch

from bootdqn.agent.autograd_learner import AutogradLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.kernel_memory import padded
from bootdqn.agent.shared_torso_learner import SharedTorsoLearner
from bootdqn.agent.torso_passes import AutogradPass, ConvolutionPass, make_torso_pass
from bootdqn.agent.vectors import WIDE
from bootdqn.common.specs import BoxSpec, EnvSpec
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from reference.batches import random_batch
from reference.comparison import SINGLE, copy_of_state
from reference.threads import torch_threads

SMALL = {
    "booleans with channels last": BoxSpec((10, 10, 4), np.dtype(np.bool_)),
    "odd sides": BoxSpec((5, 8, 3), np.dtype(np.uint8)),
    "channels first": BoxSpec((2, 9, 11), np.dtype(np.float32)),
    "scaled frames": BoxSpec((4, 12, 12), np.dtype(np.uint8), stacked=True),
}
LARGE = BoxSpec((4, 36, 40), np.dtype(np.uint8), stacked=True)
small = pytest.mark.parametrize("spec", SMALL.values(), ids=SMALL)
images = pytest.mark.parametrize("spec", [*SMALL.values(), LARGE], ids=[*SMALL, "large"])


def make(learner, spec, num_heads=3, num_actions=5, hidden=7, **config):
    network = NetworkConfig(num_heads, "shared", (hidden,))
    ensemble = make_ensemble(network, EnvSpec(spec, num_actions), np.random.default_rng(0))
    return learner(LearnerConfig(**config), ensemble)


def close(found, expected):
    return np.testing.assert_allclose(found, expected, rtol=0, atol=10 * SINGLE * np.abs(expected).max())


@small
@pytest.mark.parametrize("size", [1, 16, 21])
def test_the_compiled_convolution_and_its_gradients_are_pytorchs(spec, size):
    torso = make_ensemble(NetworkConfig(2, "shared", (4,)), EnvSpec(spec, 2), np.random.default_rng(1)).torso
    rng = np.random.default_rng(2)
    observation = rng.integers(0, 2, (size, *spec.shape)).astype(spec.dtype)
    num_features = torso(torch.from_numpy(observation[:1])).shape[1]
    rows, first, found = padded(num_features, WIDE), padded(size, WIDE), []
    gradients = rng.normal(size=(rows, first)).astype(np.float32)
    gradients[:, size:] = 0
    for one in (make_torso_pass(torso), AutogradPass(torso)):
        out = np.zeros((rows, 2 * first), np.float32)
        one.forward(observation, out, learn=True)
        one.forward(np.roll(observation, 1, axis=0), out, first)
        found.append((out[:num_features, :size], out[:num_features, first : first + size], *one.backward(gradients)))
    assert isinstance(make_torso_pass(torso), ConvolutionPass)
    assert len(found[0]) == 4
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs)


@images
@pytest.mark.parametrize("config", [{}, {"double_q": False, "loss": "huber", "target_rate": 0.5}], ids=["", "varied"])
def test_updates_on_images_are_those_of_autograd(spec, config):
    ours, theirs = make(SharedTorsoLearner, spec, **config), make(AutogradLearner, spec, **config)
    rng = np.random.default_rng(3)
    for size in (12, 20):
        batch = random_batch(rng, EnvSpec(spec, 5), 3, size)
        for learner in (ours, theirs):
            learner.set_state(copy_of_state(theirs))
        close(ours.q_values(batch.observation), theirs.q_values(batch.observation))
        results = [learner.update(batch) for learner in (ours, theirs)]
        for found, expected in zip(*results, strict=True):
            close(found, expected)
        found, expected = ours.get_state(), theirs.get_state()
        assert found.keys() == expected.keys()
        for name in (name for name in expected if name.startswith("first_moment")):
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=2e-5 * np.abs(expected[name]).max())
        theirs.update_target()


@small
def test_the_number_of_threads_changes_nothing_bit_for_bit(spec):
    states = []
    for threads in (1, 2, 3):
        learner, rng = make(SharedTorsoLearner, spec, num_heads=5, hidden=40), np.random.default_rng(4)
        with torch_threads(threads):
            for _ in range(3):
                batch = random_batch(rng, EnvSpec(spec, 5), 5, 12)
                learner.q_values(batch.observation)
                learner.update(batch)
        states.append(copy_of_state(learner))
    for name, first in states[0].items():
        for other in states[1:]:
            np.testing.assert_array_equal(other[name], first, err_msg=name)


def test_a_learner_continues_from_a_saved_state_bit_for_bit():
    spec = SMALL["booleans with channels last"]
    learner, rng = make(SharedTorsoLearner, spec), np.random.default_rng(5)
    batches = [random_batch(rng, EnvSpec(spec, 5), 3, 12) for _ in range(4)]
    for batch in batches[:2]:
        learner.update(batch)
    other = make(SharedTorsoLearner, spec)
    other.set_state(copy_of_state(learner))
    for batch in batches[2:]:
        for one in (learner, other):
            one.update(batch)
    for name, array in learner.get_state().items():
        np.testing.assert_array_equal(other.get_state()[name], array, err_msg=name)
