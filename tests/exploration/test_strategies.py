"""The strategies: their scores and choices, the head that they follow, and errors for an invalid head."""

import dataclasses
from typing import get_args

import jax
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bootdqn
import reference.exploration as reference
from bootdqn import Boltzmann, Evoi, Gain, Greedy, Ids, Ucb, Vote, evoi, gain, ids, ucb
from bootdqn.exploration.formulas import head_values
from bootdqn.exploration.registry import parse_strategy
from bootdqn.exploration.strategies import STRATEGIES, follows_head
from bootdqn.exploration.voting import VoteRule
from reference.cases import every, in_every
from reference.libraries import JAX, LIBRARIES, NUMPY, STRICT, TORCH
from reference.q_values import BATCHES, assert_every_state, coarse_q, exact_q, exact_q_with_heads

EXACT = (Greedy(), Gain(), Gain(scale=0.5), Evoi(), Evoi("sum"), Evoi("sum", scale=2.0), Evoi(scale=0.0))
"""Strategies whose scores of exact Q-values are exact."""
ROUNDED = (Ucb(), Ucb(scale=0.25), Ids(), Ids(regret_scale=0.5, noise_variance=2.0))
"""Strategies with a root or a logarithm in their scores."""
EVERY = EXACT + ROUNDED
HEADLESS = ROUNDED
"""Strategies that let the ensemble act as one."""
FOLLOWERS = (Greedy(), Gain(), Evoi(), Evoi("sum"))
"""Strategies that follow the active head."""


# What they choose


@every(EXACT)
@settings(max_examples=50)
@given(exact_q_with_heads(batches=BATCHES))
def test_scores_and_choices_are_those_of_the_reference(strategy, q_and_heads):
    q, heads = q_and_heads
    parameters = dataclasses.asdict(strategy)
    assert strategy.scores(q, heads).shape == q.shape[:-2] + q.shape[-1:]
    assert strategy.select(q, heads).shape == q.shape[:-2]
    assert_every_state(
        strategy.scores(q, heads), q, lambda state, i: reference.scores(strategy.name, state, heads[i], **parameters)
    )
    assert_every_state(
        strategy.select(q, heads), q, lambda state, i: reference.choice(strategy.name, state, heads[i], **parameters)
    )


@every(ROUNDED)
@settings(max_examples=50)
@given(exact_q_with_heads(batches=BATCHES))
def test_no_action_beats_the_choice_of_a_rounded_score_by_more_than_rounding(strategy, q_and_heads):
    q, heads = q_and_heads
    scores, choices = strategy.scores(q, heads), strategy.select(q, heads)
    for index in np.ndindex(q.shape[:-2]):
        state, head = q[index].tolist(), int(heads[index])
        expected = reference.scores(strategy.name, state, head, **dataclasses.asdict(strategy))
        np.testing.assert_allclose(scores[index], expected, rtol=1e-10, atol=1e-14)
        assert expected[choices[index]] >= max(expected) - 1e-12 * (1 + abs(max(expected)))


@given(exact_q(), st.booleans())
def test_algorithm_2_is_evoi_when_it_aggregates_and_gain_when_not(q, aggregate):
    strategy = Evoi(reduce="mean") if aggregate else Gain()
    for head in range(q.shape[0]):
        assert strategy.select(q, head) == reference.algorithm_2(q.tolist(), head, aggregate)


@given(exact_q(), st.sampled_from([0.25, 1.0, 3.0]))
def test_a_choice_that_gain_changes_is_to_or_from_the_best_mean(q, scale):
    best = int(np.argmax(q.mean(axis=0)))
    for head in range(q.shape[0]):
        before, after = Greedy().select(q, head), Gain(scale).select(q, head)
        assert before == after or best in (before, after)


@given(exact_q(heads=(1,)))
def test_a_single_head_is_greedy_whatever_it_would_gain(q):
    for strategy in FOLLOWERS:
        assert strategy.select(q, 0) == np.argmax(q[0])


def test_the_formulas_are_the_scores():
    q, head = coarse_q(), 2
    np.testing.assert_array_equal(Greedy().scores(q, head), q[head])
    np.testing.assert_array_equal(Gain(0.5).scores(q, head), q[head] + 0.5 * gain(q)[head])
    np.testing.assert_array_equal(Evoi("sum", 0.5).scores(q, head), q[head] + 0.5 * evoi(q, "sum"))
    np.testing.assert_array_equal(Ucb(0.5).scores(q, head), ucb(q, 0.5))
    np.testing.assert_array_equal(Ids(0.5, 2.0).scores(q, head), ids(q, 0.5, 2.0))


def test_the_three_methods_of_the_paper_part_in_one_state():
    q = np.array([[4.0, 2.0, 4.25], [7.5, 6.0, 5.25], [2.0, 6.0, 4.5], [2.5, 6.0, 4.0]])  # UP, LEFT, DOWN
    assert (Greedy().select(q, 0), Gain().select(q, 0), Evoi().select(q, 0)) == (2, 1, 0)


def test_sum_and_mean_can_choose_differently():
    q = np.array([[3.0, 2.0], [5.0, 6.0], [5.0, 2.0], [5.0, 2.0]])  # means 4.5, 3; only head 1 gains, 1.5 by action 1
    assert Evoi("mean").scores(q, 0).tolist() == [3, 2.375]
    assert Evoi("sum").scores(q, 0).tolist() == [3, 3.5]
    assert (Evoi("mean").select(q, 0), Evoi("sum").select(q, 0)) == (0, 1)


@every(EVERY)
def test_the_lowest_index_wins_a_tie(strategy):
    assert strategy.select(np.zeros((4, 3)), 1) == 0
    twins = np.array([[0.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    assert strategy.select(twins, 0) == 1


@every(HEADLESS)
def test_a_strategy_of_the_whole_ensemble_asks_no_head(strategy):
    q = coarse_q(3)
    scores = [strategy.scores(q, head) for head in (0, 3, np.array([1, 2, 0]))]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


@pytest.mark.parametrize(
    ("text", "follows"),
    [(text, True) for text in ("greedy", "gain", "gain:scale=0", "evoi", "evoi:reduce=sum", "boltzmann")]
    + [(text, False) for text in ("ucb", "ucb:scale=0", "ids", *(f"vote:rule={rule}" for rule in get_args(VoteRule)))],
)
def test_who_follows_a_head_is_known(text, follows):
    assert follows_head(parse_strategy(text)) is follows


@dataclasses.dataclass(frozen=True)
class Own:
    """A user strategy that inherits nothing and follows its head only now and then."""

    share: float = 1.0
    """How much the active head counts."""
    most: float = np.inf
    """Up to what difference between heads it counts."""
    by_rule: bool = False
    """Whether only the choice looks at the head, not the scores."""

    def scores(self, q, head):
        near = (np.ptp(q, axis=-2) < self.most) & (not self.by_rule)
        return np.where(near, self.share * head_values(q, head), 0) + q.max(axis=-2)

    def select(self, q, head, rng=None):
        values = head_values(q, head) if self.by_rule else self.scores(q, head) + rng.random()
        return np.argmax(values, axis=-1)


@pytest.mark.parametrize(
    ("strategy", "follows"),
    [(Own(), True), (Own(share=0), False), (Own(most=0.05), True), (Own(most=0), False), (Own(by_rule=True), True)],
    ids=str,
)
def test_whether_a_user_strategy_follows_a_head_is_detected(strategy, follows):
    assert follows_head(strategy) is follows


@every(EVERY)
def test_deterministic_strategies_neither_sample_nor_write_to_their_inputs(strategy):
    q, heads, rng = coarse_q(3), np.array([3, 0, 1]), np.random.default_rng(1)
    before = q.copy(), heads.copy(), rng.bit_generator.state
    with_rng = strategy.select(q, heads, rng)
    np.testing.assert_array_equal(with_rng, strategy.select(q, heads))
    np.testing.assert_array_equal(q, before[0])
    np.testing.assert_array_equal(heads, before[1])
    assert rng.bit_generator.state == before[2]


# What cannot be ranked

NAN = "cannot rank actions by NaN"


@in_every([NUMPY, TORCH, STRICT])
@every((Evoi(), Gain(), Ucb(), Ids(), Vote(), Vote("mean"), Greedy(), Boltzmann()))
def test_nan_scores_are_an_error_that_names_the_strategy(library, strategy):
    for bad in ([[np.nan, 0.0], [0.0, 1.0]], [[0.0, np.nan], [0.0, np.nan]]):
        for q in (np.array(bad), np.stack([np.eye(2), bad])):
            with pytest.raises(ValueError, match=f"^{strategy.name} {NAN}: q holds NaN"):
                strategy.select(library.array(q, "float32"), 0, np.random.default_rng(0))


def test_a_nan_that_no_score_depends_on_does_no_harm():
    assert Greedy().select(np.array([[np.nan, 0.0], [0.0, 1.0]]), 1) == 1


@in_every([TORCH, JAX, STRICT])
def test_a_head_out_of_range_is_an_error_only_when_it_has_to_choose(library):
    with pytest.raises(ValueError, match=NAN):
        Greedy().select(library.array(coarse_q(2)), library.array(np.array([1, 4])))


def test_where_there_is_no_value_to_look_at_nan_passes():
    q = np.array([[np.nan, 0.0], [0.0, 1.0]], np.float32)
    strategy = Greedy()
    assert jax.jit(lambda x: strategy.select(x, 0))(jax.numpy.asarray(q)).shape == ()
    assert jax.vmap(lambda x: strategy.select(x, 0))(jax.numpy.asarray(q[None])).shape == (1,)
    assert torch.func.vmap(lambda x: strategy.select(x, 0))(torch.tensor(q[None])).shape == (1,)
    assert strategy.select(torch.tensor(q, device="meta"), 0).is_meta
    compiled = torch.compile(lambda x: strategy.select(x, 0), fullgraph=True, backend="eager")
    assert compiled(torch.tensor(q)).shape == ()
    with pytest.raises(ValueError, match=NAN):
        strategy.select(jax.numpy.asarray(q), 0)


# Whose head


@in_every(LIBRARIES)
@every(EVERY)
def test_a_head_is_an_int_or_an_array_in_every_library(library, strategy):
    exact = coarse_q(6)
    q = library.array(exact, "float32")
    heads = np.array([0, 3, 1, 1, 2, 0])
    one_by_one = [int(strategy.select(exact[i].astype(np.float32), int(heads[i]))) for i in range(6)]
    assert library.read(strategy.select(q, heads)).tolist() == one_by_one
    assert library.read(strategy.select(q, library.array(heads))).tolist() == one_by_one
    for head in (2, np.int64(2), np.int32(2), np.uint8(2)):
        chosen = strategy.select(q, head)
        assert isinstance(chosen, library.kinds)
        assert library.read(chosen).tolist() == strategy.select(exact.astype(np.float32), 2).tolist()


@in_every(LIBRARIES)
def test_one_state_takes_an_int_or_an_array_without_axes(library):
    q = coarse_q()
    expected = q[1] + gain(q)[1]
    for head in (1, np.int64(1), np.array(1), library.array(1)):
        np.testing.assert_array_equal(library.read(Gain().scores(library.array(q), head)), expected)


@in_every(LIBRARIES)
def test_every_state_of_two_batch_axes_has_its_own_head(library):
    q, heads = coarse_q(2, 3), np.array([[0, 1, 2], [3, 3, 0]])
    scores = library.read(Greedy().scores(library.array(q), library.array(heads)))
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(scores[i, j], q[i, j, heads[i, j]])


@in_every([NUMPY, TORCH, JAX, STRICT])
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_heads_may_be_small_integers(library, dtype):
    q, heads = coarse_q(3), np.array([2, 0, 3], dtype)
    for given_heads in (heads, library.array(heads)):
        scores = library.read(Greedy().scores(library.array(q), given_heads))
        np.testing.assert_array_equal(scores, q[[0, 1, 2], [2, 0, 3]])


@in_every([NUMPY, TORCH, JAX, STRICT])
def test_heads_may_be_read_only(library):
    q = coarse_q(3)
    scores = Greedy().scores(library.array(q), np.broadcast_to(np.int64(1), (3,)))
    np.testing.assert_array_equal(library.read(scores), q[:, 1])


@in_every(LIBRARIES)
@every(FOLLOWERS)
def test_a_head_out_of_range_is_an_error(library, strategy):
    q = library.array(coarse_q(6), "float32")
    for head in (-1, 4, 100, np.int64(-1), np.uint8(4)):
        with pytest.raises(ValueError, match=rf"head must be in 0\.\.3 for an ensemble of 4, got {int(head)}$"):
            strategy.select(q, head)


@in_every(LIBRARIES)
@pytest.mark.parametrize(("heads", "wrong_head"), [([0, -1], -1), ([4, 0], 4), ([-2, 9], -2)])
def test_an_array_of_heads_is_read_for_one_out_of_range(library, heads, wrong_head):
    with pytest.raises(ValueError, match=rf"head must be in 0\.\.3 for an ensemble of 4, got {wrong_head}$"):
        Greedy().scores(library.array(coarse_q(2)), np.array(heads))


@in_every(LIBRARIES)
@every(FOLLOWERS)
def test_heads_that_do_not_fit_the_states_are_an_error(library, strategy):
    q = library.array(coarse_q(6), "float32")
    for shape in (), (1,), (5,), (6, 1), (6, 4), (6, 5):
        with pytest.raises(ValueError, match="head must be an int or have one entry a state") as caught:
            strategy.select(q, library.array(np.zeros(shape, np.int64)))
        assert "shape (6,); got " + str(shape) in str(caught.value)


@in_every([NUMPY, TORCH])
@pytest.mark.parametrize("head", [1.0, None, "1", np.True_, np.array(1.0), np.array(True)], ids=repr)
def test_a_head_that_is_no_integer_is_a_type_error(library, head):
    with pytest.raises(TypeError, match="head must be"):
        Greedy().scores(library.array(coarse_q()), head)


def test_head_values_are_the_row_of_each_state():
    values = np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(head_values(values, 1), [[2, 3], [8, 9]])
    np.testing.assert_array_equal(head_values(values, np.array([2, 0])), [[4, 5], [6, 7]])


# What they are


def test_the_package_exports_every_strategy():
    assert [strategy.name for strategy in STRATEGIES] == ["greedy", "ucb", "gain", "evoi", "ids", "vote", "boltzmann"]
    for strategy in STRATEGIES:
        assert getattr(bootdqn, strategy.__name__) is strategy
    for name in bootdqn.__all__:
        assert hasattr(bootdqn, name)


@every(EVERY)
def test_a_strategy_is_a_frozen_value(strategy):
    assert strategy == dataclasses.replace(strategy)
    assert hash(strategy) == hash(dataclasses.replace(strategy))
    with pytest.raises(dataclasses.FrozenInstanceError):
        strategy.name = "other"


def test_the_defaults_are_those_of_the_paper():
    assert (Ucb(), Gain(), Evoi(), Ids()) == (Ucb(1.0), Gain(1.0), Evoi("mean", 1.0), Ids(0.1, 1.0))


@pytest.mark.parametrize("noise_variance", [0.0, -1.0])
def test_ids_rejects_a_noise_that_is_not_positive(noise_variance):
    with pytest.raises(ValueError, match=f"noise_variance must be positive, got {noise_variance}"):
        Ids(noise_variance=noise_variance)


@pytest.mark.parametrize(
    "strategy", [Ucb, Gain, lambda scale: Evoi(scale=scale), Ids, lambda rho: Ids(0.1, rho), Boltzmann]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_parameter_that_is_not_finite_is_an_error(strategy, value):
    with pytest.raises(ValueError, match=f"must be finite, got {value}"):
        strategy(value)


@in_every([TORCH, JAX, STRICT])
@pytest.mark.parametrize("head", [-1, 4, 9])
def test_a_head_array_out_of_range_gives_nan_where_it_is_not_read(library, head):
    scores = Greedy().scores(library.array(coarse_q(3)), library.array(np.array([1, head, 0])))
    wrong = np.isnan(library.read(scores))
    np.testing.assert_array_equal(wrong.all(axis=-1), [False, True, False])


def test_evoi_rejects_an_unknown_reduction_before_it_is_used():
    with pytest.raises(ValueError, match="reduce must be one of mean, sum; got 'median'"):
        Evoi(reduce="median")
