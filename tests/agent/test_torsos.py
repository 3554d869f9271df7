"""Torsos by the kind of observation, against PyTorch's own layers."""

import numpy as np
import pytest
import torch
from torch import nn

from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.torsos import describe_input
from bootdqn.common.errors import UsageError
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.agent import NetworkConfig

ATARI = BoxSpec((4, 84, 84), np.dtype("uint8"), stacked=True)


def ensemble(observation, ensemble="auto", hidden=(512,), num_heads=10, num_actions=18):
    config = NetworkConfig(num_heads=num_heads, ensemble=ensemble, hidden_sizes=hidden)
    return make_ensemble(config, EnvSpec(observation, num_actions), np.random.default_rng(0))


def test_the_atari_network_is_the_papers():
    network = ensemble(ATARI)
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert [(layer.out_channels, layer.kernel_size, layer.stride) for layer in convolutions] == [
        (32, (8, 8), (4, 4)),
        (64, (4, 4), (2, 2)),
        (64, (3, 3), (1, 1)),
    ]
    assert [tuple(layer.weight.shape) for layer in network.heads] == [(10, 3136, 512), (10, 512, 18)]


def test_the_atari_network_computes_what_a_plain_one_with_the_same_weights_does():
    network = ensemble(ATARI, num_heads=3, num_actions=6)
    x = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (5, 4, 84, 84), dtype=np.uint8))
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    features = x.float() / 255
    for layer in convolutions:
        features = torch.nn.functional.conv2d(features, layer.weight, layer.bias, layer.stride).relu()
    features = features.flatten(1)
    first, last = network.heads
    for head in range(3):
        hidden = (features @ first.weight[head] + first.bias[head]).relu()
        expected = hidden @ last.weight[head] + last.bias[head]
        torch.testing.assert_close(network(x)[:, head], expected, rtol=1e-4, atol=1e-5)


def test_convolutions_start_within_the_bound_of_their_fan_in():
    first = next(layer for layer in ensemble(ATARI).modules() if isinstance(layer, nn.Conv2d))
    bound = 1 / np.sqrt(4 * 8 * 8)
    assert 0.95 * bound < first.weight.abs().max() <= bound
    assert first.bias.abs().max() <= bound


@pytest.mark.parametrize(
    ("observation", "sample"),
    [
        (DiscreteSpec(7), np.array([0, 6])),
        (BoxSpec((5,), np.dtype("float64")), np.ones((2, 5))),
        (BoxSpec((10, 10, 4), np.dtype("bool")), np.ones((2, 10, 10, 4), bool)),
        (BoxSpec((7, 7, 3), np.dtype("uint8")), np.ones((2, 7, 7, 3), np.uint8)),
        (BoxSpec((210, 160, 3), np.dtype("uint8")), np.ones((2, 210, 160, 3), np.uint8)),
        (ATARI, np.ones((2, 4, 84, 84), np.uint8)),
    ],
)
def test_every_kind_of_observation_has_a_network(observation, sample):
    network = ensemble(observation, hidden=(16, 8), num_heads=3, num_actions=5)
    assert network(torch.from_numpy(sample)).shape == (2, 3, 5)


def test_small_images_get_small_convolutions_and_keep_their_values():
    network = ensemble(BoxSpec((7, 7, 3), np.dtype("uint8")), hidden=(8,))
    (convolution,) = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert convolution.kernel_size == (3, 3)
    assert network.torso[0][0](torch.full((1, 7, 7, 3), 5, dtype=torch.uint8)).max() == 5


@pytest.mark.parametrize("shape", [(3, 84, 84), (1, 40, 50), (3, 8, 9), (4, 84, 84), (12, 36, 40), (2, 84, 84)])
def test_channels_first_are_recognised(shape):
    last = (*shape[1:], shape[0])
    first, same = (ensemble(BoxSpec(each, np.dtype("uint8")), hidden=(8,)) for each in (shape, last))
    x = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (2, *shape), dtype=np.uint8))
    torch.testing.assert_close(first(x), same(x.permute(0, 2, 3, 1)))


def test_a_stack_of_frames_gets_the_papers_convolutions_whoever_stacked_them():
    ours, theirs = (
        ensemble(BoxSpec((4, 84, 84), np.dtype("uint8"), stacked), hidden=(8,)) for stacked in (True, False)
    )
    x = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (2, 4, 84, 84), dtype=np.uint8))
    assert torch.equal(ours(x), theirs(x))


@pytest.mark.parametrize(
    ("shape", "dtype", "description"),
    [
        ((4, 84, 84), "uint8", "images of 84 x 84 with 4 channels (the first axis), bytes scaled to [0, 1]"),
        ((210, 160, 3), "uint8", "images of 210 x 160 with 3 channels (the last axis), bytes scaled to [0, 1]"),
        ((7, 7, 3), "uint8", "images of 7 x 7 with 3 channels (the last axis)"),
        ((40, 50, 1), "float32", "images of 40 x 50 with 1 channel (the last axis)"),
    ],
)
def test_the_interpretation_of_observations_is_described(shape, dtype, description):
    assert describe_input(BoxSpec(shape, np.dtype(dtype))) == f"observations are {description}"


def test_observations_that_are_no_images_are_described_as_flattened():
    assert describe_input(BoxSpec((84, 84), np.dtype("uint8"))) == "observations of shape (84, 84) are flattened"


@pytest.mark.parametrize("shape", [(3, 3, 8), (3, 7, 8), (9, 9, 4), (10, 10, 3), (10, 10, 10)])
def test_other_images_have_their_channels_last(shape):
    network = ensemble(BoxSpec(shape, np.dtype("float32")), hidden=(8,))
    (convolution,) = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert convolution.in_channels == shape[-1]


@pytest.mark.parametrize("shape", [(2, 2, 3), (84, 2, 3), (1, 3, 3)])
def test_images_too_small_for_a_convolution_are_an_error(shape):
    with pytest.raises(UsageError, match=r"convolutions need 3 x 3: wrap .*FlattenObservation"):
        ensemble(BoxSpec(shape, np.dtype("float32")))


def test_images_cannot_have_independent_networks():
    with pytest.raises(UsageError, match="images need --ensemble shared"):
        ensemble(ATARI, ensemble="independent")


def test_no_global_generator_is_touched():
    before = torch.get_rng_state().clone()
    ensemble(ATARI)
    assert torch.equal(torch.get_rng_state(), before)
