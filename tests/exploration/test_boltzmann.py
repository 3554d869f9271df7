"""Boltzmann, the strategy that draws: as often as it should, by noise that is the same in every library."""

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
def test_a_draw_is_the_best_of_noisy_scores_and_the_same_in_every_library(library, strategy):
    exact, heads = coarse_q(6), np.array([0, 3, 1, 1, 2, 0])
    noise = np.random.default_rng(5).gumbel(size=(6, 5))
    own = [exact[i, heads[i]].tolist() for i in range(6)]
    expected = [np.argmax(np.log(reference.boltzmann(own[i], strategy.temperature)) + noise[i]) for i in range(6)]
    for given_heads in (heads, library.array(heads)):
        drawn = strategy.select(library.array(exact, "float32"), given_heads, np.random.default_rng(5))
        assert isinstance(drawn, library.kinds)
        assert library.read(drawn).tolist() == expected


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_actions_come_as_often_as_they_should(temperature):
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
    drawn = Boltzmann().select(np.zeros((300, 1, 2)), 0, np.random.default_rng(0))
    assert 100 < drawn.sum() < 200


@in_every(LIBRARIES)
def test_a_cold_draw_is_greedy_and_does_not_take_what_is_ruled_out(library):
    values = np.random.default_rng(2).permuted(np.tile(np.arange(5.0), (3, 4, 1)), axis=-1)
    drawn = Boltzmann(1e-3).select(library.array(values, "float32"), 1, np.random.default_rng(0))
    assert library.read(drawn).tolist() == np.argmax(values[:, 1], axis=-1).tolist()
    ruled_out = np.where(np.arange(5) == 3, -np.inf, np.zeros((400, 2, 5)))
    drawn = library.read(Boltzmann(1e3).select(library.array(ruled_out, "float32"), 1, np.random.default_rng(0)))
    assert set(drawn.tolist()) == {0, 1, 2, 4}


def test_a_draw_without_a_generator_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match="boltzmann samples its actions: call select with rng="):
        Boltzmann().select(coarse_q(), 0)


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_boltzmann_refuses_a_temperature_that_is_not_positive(temperature):
    with pytest.raises(ValueError, match=rf"temperature must be between 1e-37 and 1e\+38, got {temperature}"):
        Boltzmann(temperature)
