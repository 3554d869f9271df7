"""Boltzmann, the strategy that samples: with the right probabilities, by the same noise in every library."""

import numpy as np
import pytest
from hypothesis import given, settings

import reference.exploration as reference
from bootdqn import Boltzmann
from reference.cases import every, in_every
from reference.libraries import LIBRARIES
from reference.q_values import BATCHES, coarse_q, exact_q_with_heads

DRAWING = (Boltzmann(), Boltzmann(0.25), Boltzmann(30.0))


@every(DRAWING)
@settings(max_examples=50)
@given(exact_q_with_heads(min_actions=1, batches=BATCHES))
def test_the_scores_of_boltzmann_are_the_logarithms_of_its_probabilities(strategy, q_and_heads):
    q, heads = q_and_heads
    scores = strategy.scores(q, heads)
    assert scores.shape == q.shape[:-2] + q.shape[-1:]
    for index in np.ndindex(q.shape[:-2]):
        expected = reference.boltzmann(q[index][heads[index]].tolist(), strategy.temperature)
        np.testing.assert_allclose(np.exp(scores[index]), expected, rtol=1e-12)


@in_every(LIBRARIES)
@every(DRAWING)
def test_a_sampled_action_is_the_best_of_noisy_scores_and_the_same_in_every_library(library, strategy):
    exact, heads = coarse_q(6), np.array([0, 3, 1, 1, 2, 0])
    noise = np.random.default_rng(5).gumbel(size=(6, 5))
    own = [exact[i, heads[i]].tolist() for i in range(6)]
    expected = [np.argmax(np.log(reference.boltzmann(own[i], strategy.temperature)) + noise[i]) for i in range(6)]
    for given_heads in (heads, library.array(heads)):
        sampled = strategy.select(library.array(exact, "float32"), given_heads, np.random.default_rng(5))
        assert isinstance(sampled, library.kinds)
        assert library.read(sampled).tolist() == expected


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_actions_are_sampled_with_their_probabilities(temperature):
    q, heads = np.array([[0.0, 1.0, -1.0, 0.5], [3.0, 0.0, 0.0, 2.5]]), np.arange(40_000) % 2
    states = np.broadcast_to(q, (40_000, 2, 4))
    actions = Boltzmann(temperature).select(states, heads, np.random.default_rng(0))
    for head in range(2):
        counts = np.bincount(actions[heads == head], minlength=4)
        expected = 20_000 * np.array(reference.boltzmann(q[head].tolist(), temperature))
        assert np.sum((counts - expected) ** 2 / expected) < 30, (
            "chi squared of 3 degrees of freedom, once in a million"
        )


def test_no_state_shares_its_noise_with_another():
    sampled = Boltzmann().select(np.zeros((300, 1, 2)), 0, np.random.default_rng(0))
    assert 100 < sampled.sum() < 200


@in_every(LIBRARIES)
def test_sampling_at_a_low_temperature_is_greedy_and_never_takes_a_masked_action(library):
    values = np.random.default_rng(2).permuted(np.tile(np.arange(5.0), (3, 4, 1)), axis=-1)
    sampled = Boltzmann(1e-3).select(library.array(values, "float32"), 1, np.random.default_rng(0))
    assert library.read(sampled).tolist() == np.argmax(values[:, 1], axis=-1).tolist()
    ruled_out = np.where(np.arange(5) == 3, -np.inf, np.zeros((400, 2, 5)))
    sampled = library.read(Boltzmann(1e3).select(library.array(ruled_out, "float32"), 1, np.random.default_rng(0)))
    assert set(sampled.tolist()) == {0, 1, 2, 4}


def test_sampling_without_a_generator_is_an_error_that_names_the_remedy():
    with pytest.raises(ValueError, match="boltzmann samples its actions: call select with rng="):
        Boltzmann().select(coarse_q(), 0)


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_boltzmann_rejects_a_temperature_that_is_not_positive(temperature):
    with pytest.raises(ValueError, match=rf"temperature must be between 1e-37 and 1e\+38, got {temperature}"):
        Boltzmann(temperature)
