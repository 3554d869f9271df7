"""Traced, batched and compiled: the transformations of JAX and PyTorch change no result."""

import jax
import numpy as np
import pytest
import torch

from bootdqn import Evoi, Gain, Greedy, Ids, Ucb, evoi, gain, ids, ucb, vote, vote_diversity
from reference.libraries import JAX, TORCH
from reference.q_values import coarse_q


def evoi_sum(q):
    return evoi(q, "sum")


def vote_mean(q):
    return vote(q, "mean")


FORMULAS = (gain, evoi, evoi_sum, ucb, ids, vote, vote_mean, vote_diversity)
STRATEGIES = (Greedy(), Ucb(), Gain(), Evoi(), Evoi("sum"), Ids())
Q = coarse_q(6)
HEADS = np.array([0, 3, 1, 1, 2, 0])

by_every_formula = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
by_every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=str)


@pytest.fixture(autouse=True)
def _forget_what_was_compiled():
    """Start every test without compiled code: what one test compiled must not count as another's recompilation."""
    torch.compiler.reset()


def assert_same(library, actual, expected):
    """Compare two results, or two tuples of results, of one library."""
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    assert type(actual) is type(expected)
    for left, right in zip(actual, expected, strict=True):
        assert isinstance(left, library.kinds)
        assert left.dtype == right.dtype
        np.testing.assert_allclose(library.read(left), library.read(right), rtol=1e-5, atol=1e-6)


# JAX


@by_every_formula
def test_jit_traces_a_formula(formula):
    q = JAX.array(Q, "float32")
    assert_same(JAX, jax.jit(formula)(q), formula(q))


@by_every_formula
def test_vmap_of_jax_is_the_leading_axis(formula):
    q = JAX.array(Q, "float32")
    assert_same(JAX, jax.vmap(formula)(q), formula(q))
    assert_same(JAX, jax.jit(jax.vmap(formula, in_axes=2))(JAX.array(Q.transpose(1, 2, 0), "float32")), formula(q))


@by_every_strategy
def test_jit_traces_a_strategy_with_fixed_and_with_traced_heads(strategy):
    q, heads = JAX.array(Q, "float32"), JAX.array(HEADS)
    expected = strategy.select(q, heads)
    assert_same(JAX, jax.jit(strategy.select)(q, heads), expected)
    assert_same(JAX, jax.jit(lambda x: strategy.select(x, HEADS))(q), expected)
    assert_same(JAX, jax.jit(lambda h: strategy.select(q, h))(heads), expected)
    assert_same(JAX, jax.jit(strategy.select, static_argnums=1)(q, 2), strategy.select(q, 2))


@by_every_strategy
def test_vmap_of_jax_gives_every_state_its_head(strategy):
    q, heads = JAX.array(Q, "float32"), JAX.array(HEADS)
    assert_same(JAX, jax.vmap(strategy.scores)(q, heads), strategy.scores(q, heads))
    assert_same(JAX, jax.vmap(strategy.select)(q, heads), strategy.select(q, heads))
    assert_same(JAX, jax.vmap(strategy.select, in_axes=(None, 0))(q[0], heads), strategy.select(q[[0] * 6], heads))


def test_bad_q_values_are_refused_while_tracing():
    with pytest.raises(ValueError, match="at least 2 actions, got 1"):
        jax.jit(gain)(JAX.array(np.ones((3, 1)), "float32"))
    with pytest.raises(TypeError, match="got dtype int32"):
        jax.jit(vote)(JAX.array(np.ones((3, 2), np.int32)))
    with pytest.raises(ValueError, match=r"shape \(\); got \(6,\)"):
        jax.jit(Greedy().select)(JAX.array(Q[0]), JAX.array(HEADS))


# PyTorch


@by_every_formula
def test_compile_takes_a_formula_in_one_graph(formula):
    q = TORCH.array(Q, "float32")
    compiled = torch.compile(formula, fullgraph=True, backend="eager")
    assert_same(TORCH, compiled(q), formula(q))
    assert_same(TORCH, compiled(q[0]), formula(q[0]))


@pytest.mark.parametrize("formula", [evoi, vote_diversity], ids=lambda formula: formula.__name__)
def test_compile_lowers_a_formula(formula):
    q = TORCH.array(Q, "float32")
    assert_same(TORCH, torch.compile(formula, fullgraph=True, backend="aot_eager")(q), formula(q))


@by_every_strategy
def test_compile_takes_a_strategy_with_changing_heads(strategy):
    q, heads = TORCH.array(Q, "float32"), TORCH.array(HEADS)
    compiled = torch.compile(strategy.select, fullgraph=True, backend="eager")
    assert_same(TORCH, compiled(q, heads), strategy.select(q, heads))
    for head in range(4):
        assert_same(TORCH, compiled(q, head), strategy.select(q, head))


def test_compile_lowers_a_strategy():
    q, heads = TORCH.array(Q, "float32"), TORCH.array(HEADS)
    compiled = torch.compile(Evoi("sum").select, fullgraph=True, backend="aot_eager")
    assert_same(TORCH, compiled(q, heads), Evoi("sum").select(q, heads))


@by_every_formula
def test_vmap_of_pytorch_is_the_leading_axis(formula):
    q = TORCH.array(Q, "float32")
    assert_same(TORCH, torch.func.vmap(formula)(q), formula(q))
    assert_same(TORCH, torch.func.vmap(torch.func.vmap(formula))(q[None]), formula(q[None]))


@by_every_strategy
def test_vmap_of_pytorch_gives_every_state_its_head(strategy):
    q, heads = TORCH.array(Q, "float32"), TORCH.array(HEADS)
    assert_same(TORCH, torch.func.vmap(strategy.scores)(q, heads), strategy.scores(q, heads))
    assert_same(TORCH, torch.func.vmap(strategy.select)(q, heads), strategy.select(q, heads))
    assert_same(TORCH, torch.func.vmap(lambda x: strategy.select(x, 2))(q), strategy.select(q, 2))


@by_every_formula
def test_q_values_that_require_a_gradient_give_the_same_result(formula):
    q = TORCH.array(Q, "float32")
    result = formula(q.clone().requires_grad_())
    assert_same(TORCH, result, formula(q))
    assert_same(TORCH, formula(torch.nn.Parameter(q)), formula(q))


@by_every_strategy
def test_strategies_choose_from_q_values_that_require_a_gradient(strategy):
    q = TORCH.array(Q, "float32")
    for head in (1, HEADS, TORCH.array(HEADS)):
        chosen = strategy.select(q.clone().requires_grad_(), head)
        assert not chosen.requires_grad
        assert_same(TORCH, chosen, strategy.select(q, head))


def test_the_gradient_of_gain_points_where_it_is_positive():
    q = TORCH.array([[5.0, 0.0, 1.0], [4.0, 2.5, 6.0], [1.0, 3.5, 1.0], [2.0, 4.0, 0.0]]).requires_grad_()
    gain(q).sum().backward()  # means 3, 2.5, 2: head 2 gains 1.5 by action 0, heads 1, 2, 3 by the others
    slope = np.zeros((4, 3))
    slope[2, 0] -= 1  # m2 - q[2, 0]
    slope[:, 1] += 1 / 4  # m2 is the mean of action 1
    for head, action in ((2, 1), (3, 1), (1, 2)):
        slope[head, action] += 1  # q[k, a] - m(a1)
        slope[:, 0] -= 1 / 4
    np.testing.assert_allclose(TORCH.read(q.grad), slope, rtol=1e-12)


@by_every_formula
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=lambda mode: mode.__name__)
def test_a_formula_runs_where_no_gradient_is_kept(formula, mode):
    with mode():
        result = formula(TORCH.array(Q, "float32"))
    assert_same(TORCH, result, formula(TORCH.array(Q, "float32")))
