"""Actions that may not be taken: minus infinity in every head, and without effect on the others."""

from functools import partial
from typing import get_args

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from bootdqn import (
    Boltzmann,
    Evoi,
    Gain,
    Greedy,
    Ids,
    Ucb,
    Vote,
    disagreement,
    evoi,
    gain,
    ids,
    information_gain,
    tally,
    ucb,
    vote,
    vote_diversity,
)
from bootdqn.exploration.voting import VoteRule
from reference.cases import in_every
from reference.libraries import JAX, LIBRARIES
from reference.q_values import BATCHES, exact_q

pytestmark = pytest.mark.filterwarnings("error")
RULES = get_args(VoteRule)
OF_ACTIONS = {"evoi": evoi, "evoi sum": partial(evoi, reduce="sum"), "ucb": ucb, "ids": ids}
OF_ACTIONS |= {f"tally {rule}": partial(tally, rule=rule) for rule in RULES}
OF_ACTIONS |= {"gain": gain}
"""Formulas with a value for every action, on the last axis."""
STRATEGIES = (Greedy(), Ucb(), Ucb(-2.0), Gain(), Gain(-1.0), Evoi(), Evoi("sum"), Ids(), Ids(3.0), *map(Vote, RULES))
COLD_AND_HOT = (1e-37, 1.0, 1e38)


@st.composite
def masked_q(draw, min_legal=1, **sizes):
    """Generate Q-values (..., K, A) and a mask (A,) of at least `min_legal` legal actions; the others are -inf."""
    q = draw(exact_q(min_actions=2, **sizes))
    legal = draw(st_numpy.arrays(np.bool_, q.shape[-1]).filter(lambda legal: legal.sum() >= min_legal))
    return np.where(legal, q, -np.inf), legal


@pytest.mark.parametrize("name", OF_ACTIONS)
@settings(max_examples=40)
@given(masked_q(min_legal=2, batches=BATCHES))
def test_legal_actions_are_valued_as_if_there_were_no_others(name, q_and_legal):
    q, legal = q_and_legal
    formula = OF_ACTIONS[name]
    np.testing.assert_array_equal(formula(q)[..., legal], formula(q[..., legal]))


@pytest.mark.parametrize("name", [name for name in OF_ACTIONS if not name.startswith(("evoi", "gain"))])
@given(masked_q(batches=BATCHES))
def test_a_masked_action_is_valued_at_minus_infinity_and_an_only_legal_one_as_if_alone(name, q_and_legal):
    q, legal = q_and_legal
    formula = OF_ACTIONS[name]
    assert np.all(formula(q)[..., ~legal] == -np.inf)
    np.testing.assert_array_equal(formula(q)[..., legal], formula(q[..., legal]))


@given(masked_q(batches=BATCHES))
def test_nothing_is_gained_by_a_masked_action_nor_by_an_only_legal_one(q_and_legal):
    q, legal = q_and_legal
    assert not gain(q)[..., ~legal].any()
    assert not evoi(q, "sum")[..., ~legal].any()
    if legal.sum() == 1:
        assert not gain(q).any()


@given(masked_q(batches=BATCHES), st.sampled_from(COLD_AND_HOT))
def test_the_information_of_a_state_is_that_of_its_legal_actions(q_and_legal, temperature):
    q, legal = q_and_legal
    expected = information_gain(q[..., legal], temperature)
    np.testing.assert_allclose(information_gain(q, temperature), expected, rtol=1e-12, atol=1e-15)


@given(masked_q(batches=BATCHES))
def test_heads_disagree_about_legal_actions_alone(q_and_legal):
    q, legal = q_and_legal
    np.testing.assert_allclose(disagreement(q), disagreement(q[..., legal]), rtol=1e-13, atol=1e-15)


@given(masked_q(batches=BATCHES))
def test_the_votes_are_as_diverse_as_those_for_legal_actions(q_and_legal):
    q, legal = q_and_legal
    *measures, _by_index = vote_diversity(q)
    for found, expected in zip(measures, vote_diversity(q[..., legal]), strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@settings(max_examples=40)
@given(masked_q(batches=BATCHES), st.integers(0, 7))
def test_a_masked_action_is_never_chosen_and_changes_no_choice(strategy, q_and_legal, head):
    q, legal = q_and_legal
    head %= q.shape[-2]
    chosen = strategy.select(q, head)
    assert np.all(legal[chosen])
    assert np.all(np.where(legal, -np.inf, strategy.scores(q, head)) == -np.inf)
    if legal.sum() >= 2:
        np.testing.assert_array_equal(chosen, np.flatnonzero(legal)[strategy.select(q[..., legal], head)])


@given(masked_q(batches=((40,),)), st.sampled_from(COLD_AND_HOT), st.integers(0, 7))
def test_a_masked_action_is_never_sampled_and_takes_no_probability(q_and_legal, temperature, head):
    q, legal = q_and_legal
    strategy, head = Boltzmann(temperature), head % q.shape[-2]
    assert np.all(legal[strategy.select(q, head, np.random.default_rng(0))])
    scores = strategy.scores(q, head)
    assert np.all(scores[:, ~legal] == -np.inf)
    np.testing.assert_allclose(scores[:, legal], strategy.scores(q[..., legal], head), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "mean"])
def test_a_masked_action_loses_a_tie_with_one_that_only_some_heads_rule_out(rule):
    q = np.array([[-np.inf, 1.0, -np.inf], [-np.inf, -np.inf, 1.0], [-np.inf, 1.0, 1.0]])
    assert vote(q, rule) in (1, 2)


@in_every(LIBRARIES)
def test_masks_work_in_every_library(library):
    q = np.random.default_rng(0).integers(-4, 5, (6, 4, 5)) / 4
    legal = np.array([False, True, True, False, True])
    strategies = (Ucb(), Ids(), Evoi(), Vote("approval"), Boltzmann(1e38))

    def values(q):
        return {name: formula(q) for name, formula in OF_ACTIONS.items()}

    def information_and_choices(q):
        return information_gain(q), [strategy.select(q, 2, np.random.default_rng(0)) for strategy in strategies]

    in_one_piece = (
        jax.jit if library is JAX else lambda function: function
    )  # what JAX runs eagerly it compiles bit by bit
    masked = library.array(np.where(legal, q, -np.inf), "float32")
    expected = values(q[..., legal].astype(np.float32))
    for name, found in in_one_piece(values)(masked).items():
        np.testing.assert_allclose(library.read(found)[..., legal], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)
    information, choices = in_one_piece(information_and_choices)(masked)
    np.testing.assert_allclose(library.read(information), information_gain(q[..., legal]), rtol=1e-5, atol=1e-6)
    for strategy, chosen in zip(strategies, choices, strict=True):
        assert legal[library.read(chosen)].all(), strategy
