"""The ensemble: shapes, equality with separate networks, and the initialisation of its parameters."""

import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn.functional import one_hot

from bootdqn.agent.ensemble import make_ensemble
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.agent import NetworkConfig
from reference.batches import random_observations
from reference.learning import SlowLearner, separate_networks

DISCRETE = DiscreteSpec(12)
BOX = BoxSpec((3, 4), np.dtype(np.float32))
HIDDEN = [(7,), (7, 5), (6, 9, 4), (3, 8, 2, 5)]
every_kind = pytest.mark.parametrize("observation", [DISCRETE, BOX], ids=["discrete", "box"])
both_ensembles = pytest.mark.parametrize("kind", ["independent", "shared"])
every_depth = pytest.mark.parametrize("hidden_sizes", HIDDEN, ids=str)


def build(kind, hidden_sizes, observation, *, num_heads=4, num_actions=3, seed=0):
    config = NetworkConfig(num_heads, kind, hidden_sizes)
    return make_ensemble(config, EnvSpec(observation, num_actions), np.random.default_rng(seed))


def observe(observation, size):
    return torch.from_numpy(random_observations(np.random.default_rng(1), observation, size))


# Values


@every_kind
@both_ensembles
@every_depth
def test_values_are_those_of_separate_networks(kind, hidden_sizes, observation):
    ensemble = build(kind, hidden_sizes, observation)
    parameters = {name: value.numpy() for name, value in ensemble.state_dict().items()}
    parts = ("online", "target", "first_moment", "second_moment")
    state = {f"{part}.{name}": value for part in parts for name, value in parameters.items()} | {"adam_steps": 0}
    slow = SlowLearner(state, num_values=12 if observation is DISCRETE else None)
    x = observe(observation, 9)
    torch.testing.assert_close(ensemble(x).double(), slow.q_values(x), rtol=1e-6, atol=1e-6)


@every_kind
@both_ensembles
@every_depth
@pytest.mark.parametrize(("size", "num_heads", "num_actions"), [(1, 1, 1), (2, 1, 4), (5, 6, 2), (3, 3, 3)])
def test_values_are_one_number_for_each_observation_head_and_action(
    kind, hidden_sizes, observation, size, num_heads, num_actions
):
    ensemble = build(kind, hidden_sizes, observation, num_heads=num_heads, num_actions=num_actions)
    q = ensemble(observe(observation, size))
    assert q.shape == (size, num_heads, num_actions)
    assert q.dtype == torch.float32


@both_ensembles
@every_depth
def test_an_observation_has_the_same_values_alone_and_among_others(kind, hidden_sizes):
    ensemble = build(kind, hidden_sizes, BOX)
    x = observe(BOX, 6)
    alone = torch.cat([ensemble(x[b : b + 1]) for b in range(6)])
    torch.testing.assert_close(ensemble(x), alone, rtol=1e-6, atol=1e-6)


@both_ensembles
@every_depth
def test_discrete_observations_are_one_hot_vectors(kind, hidden_sizes):
    by_index = build(kind, hidden_sizes, DISCRETE)
    by_vector = build(kind, hidden_sizes, BoxSpec((12,), np.dtype(np.float32)))
    with torch.no_grad():
        for ours, theirs in zip(by_vector.parameters(), by_index.parameters(), strict=True):
            ours.copy_(theirs if ours.shape == theirs.shape else theirs.T)
    index = torch.arange(12)
    q = by_vector(one_hot(index, 12).to(torch.float32))
    torch.testing.assert_close(by_index(index), q, rtol=1e-6, atol=1e-7)


@both_ensembles
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float64, np.bool_])
def test_arrays_of_any_type_are_converted_to_float(kind, dtype):
    ensemble = build(kind, (7, 5), BOX)
    x = np.random.default_rng(2).integers(0, 2, (5, 3, 4)).astype(dtype)
    q = ensemble(torch.from_numpy(x))
    assert q.dtype == torch.float32
    assert torch.equal(q, ensemble(torch.from_numpy(x.astype(np.float32))))


def test_shared_heads_have_one_hidden_layer_of_their_own_and_share_the_rest():
    ensemble = build("shared", (6, 9, 4), BOX)
    torso = {name: tuple(p.shape) for name, p in ensemble.torso.named_parameters()}
    assert sorted(torso.values()) == sorted([(6, 12), (6,), (9, 6), (9,)])
    assert [tuple(p.shape) for p in ensemble.heads.parameters()] == [(4, 9, 4), (4, 4), (4, 4, 3), (4, 3)]


# Parameters


@every_kind
@every_depth
def test_independent_ensembles_have_as_many_parameters_as_separate_networks(hidden_sizes, observation):
    networks = separate_networks([12, *hidden_sizes, 3], 4)
    count = sum(p.numel() for network in networks for p in network.parameters())
    assert sum(p.numel() for p in build("independent", hidden_sizes, observation).parameters()) == count


@every_kind
@every_depth
def test_shared_ensembles_have_one_torso_and_as_many_heads_as_asked(hidden_sizes, observation):
    sizes = [12, *hidden_sizes, 3]
    count = [before * after + after for before, after in pairwise(sizes)]
    expected = sum(count[:-2]) + 4 * sum(count[-2:])
    assert sum(p.numel() for p in build("shared", hidden_sizes, observation).parameters()) == expected


LARGE = {
    "independent discrete": ("independent", (40, 60), DiscreteSpec(90), [90, 40, 60]),
    "independent box": ("independent", (40, 60), BoxSpec((9, 10), np.dtype(np.uint8)), [90, 40, 60]),
    "shared discrete": ("shared", (80, 40, 60), DiscreteSpec(90), [90, 80, 40, 60]),
    "shared box": ("shared", (80, 40, 60), BoxSpec((9, 10), np.dtype(np.uint8)), [90, 80, 40, 60]),
}


@pytest.mark.parametrize(("kind", "hidden_sizes", "observation", "fan_in"), LARGE.values(), ids=LARGE)
def test_parameters_are_uniform_within_the_fan_in_of_one_head(kind, hidden_sizes, observation, fan_in):
    ensemble = build(kind, hidden_sizes, observation, num_heads=10, num_actions=18)
    parameters = list(ensemble.parameters())
    pvalues = []
    for layer, inputs in enumerate(fan_in):
        bound = 1 / np.sqrt(inputs)
        for values in (p.detach().numpy().ravel() for p in parameters[2 * layer : 2 * layer + 2]):
            assert np.abs(values).max() <= np.float32(bound)
            assert np.abs(values).max() > 0.9 * bound
            pvalues.append(stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue)
    assert len(parameters) == 2 * len(fan_in)
    assert min(pvalues) > 0.01


@both_ensembles
def test_the_scale_of_embeddings_bounds_the_table_alone_that_of_the_prior_as_well(kind):
    config = NetworkConfig(num_heads=10, ensemble=kind, hidden_sizes=(40, 60), prior_scale=1.0, embedding_scale=2.0)
    ensemble = make_ensemble(config, EnvSpec(DiscreteSpec(90), 3), np.random.default_rng(0))
    for network in (ensemble, ensemble.prior.ensemble):
        largest = [float(p.detach().abs().max()) for name, p in network.named_parameters() if "prior" not in name]
        bounds = np.repeat([2.0, 1 / np.sqrt(40), 1 / np.sqrt(60)], 2)
        assert np.all(largest <= bounds)
        assert np.all(largest > 0.8 * bounds)


def test_without_a_scale_values_differ_less_the_more_states_there_are_and_with_one_they_do_not():
    def spread(states, scale):
        config = NetworkConfig(embedding_scale=scale)
        ensemble = make_ensemble(config, EnvSpec(DiscreteSpec(states), 2), np.random.default_rng(0))
        return float(ensemble(torch.arange(states)).detach().std(dim=0).mean())

    assert spread(100, None) > 5 * spread(10_000, None)
    assert spread(100, 1.0) == pytest.approx(spread(10_000, 1.0), rel=0.2)


def test_a_scale_of_embeddings_changes_nothing_where_observations_are_not_discrete():
    plain, scaled = (
        make_ensemble(NetworkConfig(embedding_scale=scale), EnvSpec(BOX, 2), np.random.default_rng(0)).state_dict()
        for scale in (None, 2.0)
    )
    assert all(torch.equal(plain[name], scaled[name]) for name in plain)


@every_kind
@both_ensembles
def test_every_head_and_every_layer_is_initialised_independently(kind, observation):
    ensemble = build(kind, (8, 8, 8), observation, num_heads=6)
    for parameter in ensemble.heads.parameters():
        heads = {tuple(head.flatten().tolist()) for head in parameter}
        assert len(heads) == 6
    values = torch.cat([p.detach().flatten() for p in ensemble.parameters()])
    assert len(values.unique()) > 0.99 * len(values)


@every_kind
@both_ensembles
def test_the_same_stream_initialises_the_same_ensemble_and_another_stream_a_different_one(kind, observation):
    first, again, other = (build(kind, (7, 5), observation, seed=seed) for seed in (3, 3, 4))
    for one, two, three in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        assert not (one == three).any()


@every_kind
@both_ensembles
def test_no_global_generator_is_touched(kind, observation):
    def generators():
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002

    before = generators()
    build(kind, (7, 6, 5), observation)
    assert generators() == before


def test_every_parameter_learns():
    for kind in ("independent", "shared"):
        ensemble = build(kind, (7, 5), BOX)
        ensemble(observe(BOX, 30)).square().sum().backward()
        assert all(p.requires_grad and (p.grad != 0).any() for p in ensemble.parameters())
