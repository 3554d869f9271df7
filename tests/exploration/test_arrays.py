"""One answer from every array library, of the kind, type and device of the question."""

import subprocess
import sys
from typing import get_args

import array_api_strict
import jax
import numpy as np
import pytest
import torch

import reference.exploration as reference
from bootdqn import (
    Evoi,
    Gain,
    Greedy,
    Ids,
    Ucb,
    disagreement,
    evoi,
    gain,
    ids,
    information_gain,
    ucb,
    vote,
    vote_diversity,
)
from bootdqn.exploration.arrays import namespace_of_q, one_hot
from bootdqn.exploration.voting import VoteRule, tally
from reference.cases import in_every
from reference.libraries import JAX, LIBRARIES, NUMPY, STRICT, TORCH
from reference.q_values import assert_every_state, coarse_q


def evoi_sum(q):
    return evoi(q, "sum")


def vote_mean(q):
    return vote(q, "mean")


SCORES = (gain, evoi, evoi_sum, ucb, ids)
VOTES = (vote, vote_mean)
FORMULAS = (*SCORES, disagreement, information_gain, *VOTES, vote_diversity)
STRATEGIES = (Greedy(), Ucb(), Gain(), Evoi(), Evoi("sum"), Ids())
EXACT = {
    gain: reference.gain,
    evoi: reference.evoi,
    evoi_sum: lambda q: reference.evoi(q, "sum"),
    vote: reference.plurality_vote,
    vote_mean: reference.mean_vote,
}
Q = coarse_q(6)
"""One array for most tests, because JAX compiles every operation anew for every shape."""
HEADS = np.array([0, 3, 1, 1, 2, 0])
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

of_every_dtype = pytest.mark.parametrize(
    ("library", "dtype"),
    [pytest.param(library, dtype, id=f"{library.name}-{dtype}") for library in LIBRARIES for dtype in library.dtypes],
)
in_every_library = in_every(LIBRARIES)
by_every_formula = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)


# The same values


def in_one_piece(library, dtype, function):
    """Return `function`, jitted for JAX but in one type: what JAX runs eagerly it compiles operation by operation."""
    return jax.jit(function) if library is JAX and dtype != "float32" else function


@of_every_dtype
def test_formulas_give_the_reference_in_every_type(library, dtype):
    with library.doubles(dtype):
        run = in_one_piece(library, dtype, lambda q: tuple(formula(q) for formula in FORMULAS))
        results = dict(zip(FORMULAS, run(library.array(Q, dtype)), strict=True))
        for formula, expected in EXACT.items():
            actual = library.read(results[formula])
            assert_every_state(actual, Q, lambda state, _, expected=expected: expected(state))
        for name, values in results[vote_diversity]._asdict().items():
            expected = [float(getattr(reference, name)(state.tolist())) for state in Q]
            tolerance = {"rtol": 6 * EPSILON[dtype], "atol": EPSILON[dtype]}
            np.testing.assert_allclose(library.read(values), expected, **tolerance, err_msg=name)
        for formula, result in results.items():
            for array in result if formula is vote_diversity else [result]:
                assert isinstance(array, library.kinds)
                assert ("int" in library.dtype_of(array)) if formula in VOTES else library.dtype_of(array) == dtype


@of_every_dtype
def test_strategies_choose_as_the_reference_in_every_type(library, dtype):
    strategies = (Greedy(), Gain(), Evoi())
    with library.doubles(dtype):
        q, heads = library.array(Q, dtype), library.array(HEADS)
        score = in_one_piece(library, dtype, lambda q, h: tuple(strategy.scores(q, h) for strategy in strategies))
        select = in_one_piece(library, dtype, lambda q, h: tuple(strategy.select(q, h) for strategy in strategies))
        for strategy, scores, chosen in zip(strategies, score(q, heads), select(q, heads), strict=True):
            name = strategy.name
            assert isinstance(scores, library.kinds)
            assert library.dtype_of(scores) == dtype
            assert "int" in library.dtype_of(chosen)
            assert_every_state(library.read(scores), Q, lambda s, i, name=name: reference.scores(name, s, HEADS[i]))
            assert_every_state(library.read(chosen), Q, lambda s, i, name=name: reference.choice(name, s, HEADS[i]))


@of_every_dtype
def test_spread_scores_are_rounded_and_no_worse(library, dtype):
    q = np.array([[3.0, 0.0, 1.0], [-1.0, 0.5, 1.0]])  # means 1, 0.25, 1 and standard deviations 2, 0.25, 0
    with library.doubles(dtype):
        run = in_one_piece(library, dtype, lambda q: (ucb(q, 0.5), ids(q, 0.25, 2.0)))
        optimistic, directed = (library.read(scores) for scores in run(library.array(q, dtype)))
    np.testing.assert_array_equal(optimistic, [2, 0.375, 1])
    regret, information = np.array([1.0, 1.3125]), np.log1p([2.0, 0.03125]) + 1e-5
    np.testing.assert_allclose(directed[:2], -(regret**2) / information, rtol=6 * EPSILON[dtype])


@of_every_dtype
def test_information_gain_is_rounded_and_no_worse(library, dtype):
    with library.doubles(dtype):
        run = in_one_piece(library, dtype, lambda q: (information_gain(q), information_gain(q, 0.25)))
        plain, cold = (library.read(information) for information in run(library.array(Q, dtype)))
    expected = [[reference.information_gain(state.tolist(), temperature) for state in Q] for temperature in (1.0, 0.25)]
    np.testing.assert_allclose([plain, cold], expected, atol=4 * EPSILON[dtype], rtol=0)


@of_every_dtype
def test_information_gain_of_extreme_values_is_all_or_nothing(library, dtype):
    with library.doubles(dtype):
        run = in_one_piece(library, dtype, information_gain)
        largest = float(namespace_of_q(library.array(Q, dtype)).finfo(library.array(Q, dtype).dtype).max)
        q = largest * np.array([[[1.0, -1.0], [-1.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]]])
        np.testing.assert_allclose(library.read(run(library.array(q, dtype))), [np.log(2), 0], rtol=4 * EPSILON[dtype])


# The same kind, type, shape and device


@by_every_formula
@pytest.mark.parametrize(
    ("library", "batch"),
    [*[(library, ()) for library in (NUMPY, TORCH, STRICT)], *[(library, (2, 3)) for library in LIBRARIES]],
)
def test_leading_axes_are_kept(library, formula, batch):
    q = coarse_q(*batch).astype(np.float32)
    results = in_one_piece(library, "", formula)(library.array(q))
    if formula is not vote_diversity:
        results = (results,)
    for result, expected in zip(results, formula(q) if formula is vote_diversity else (formula(q),), strict=True):
        assert tuple(result.shape) == batch + {gain: (4, 5)}.get(formula, (5,) if formula in SCORES else ())
        np.testing.assert_allclose(library.read(result), expected, rtol=1e-4, atol=1e-6)


def of_no_states(library, formula):
    return pytest.param(library, formula, id=f"{library.name}-{formula.__name__}")


@pytest.mark.parametrize(
    ("library", "formula"),
    [
        *[of_no_states(library, formula) for library in (NUMPY, TORCH, STRICT) for formula in FORMULAS],
        *[of_no_states(JAX, formula) for formula in (gain, ids, vote, vote_diversity)],
    ],
)
def test_no_states_give_no_results(library, formula):
    for batch in (0,), (2, 0):
        results = formula(library.array(coarse_q(*batch)))
        for result in results if formula is vote_diversity else (results,):
            assert isinstance(result, library.kinds)
            assert tuple(result.shape) == batch + {gain: (4, 5)}.get(formula, (5,) if formula in SCORES else ())


@in_every_library
@pytest.mark.parametrize("strategy", [Greedy(), Gain(), Evoi()], ids=str)
def test_strategies_choose_nothing_in_no_states(library, strategy):
    for batch in (0,), (2, 0):
        q, heads = library.array(coarse_q(*batch)), library.array(np.zeros(batch, np.int64))
        assert tuple(strategy.select(q, heads).shape) == batch
        assert tuple(strategy.select(q, 3).shape) == batch
        assert tuple(strategy.scores(q, heads).shape) == (*batch, 5)


@by_every_formula
def test_nothing_leaves_the_device_of_the_q_values(formula):
    meta = formula(torch.empty((2, 4, 5), device="meta"))
    elsewhere = array_api_strict.Device("device1")
    strict = formula(array_api_strict.asarray(coarse_q(2), device=elsewhere))
    for result in meta if formula is vote_diversity else [meta]:
        assert result.device.type == "meta"
    for result in strict if formula is vote_diversity else [strict]:
        assert result.device == elsewhere


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_heads_are_brought_to_the_device_of_the_q_values(strategy):
    elsewhere = array_api_strict.Device("device1")
    q = array_api_strict.asarray(coarse_q(2), device=elsewhere)
    for head in (1, np.array([0, 3]), array_api_strict.asarray([0, 3], device=elsewhere)):
        assert strategy.select(q, head).device == elsewhere
        assert strategy.scores(q, head).device == elsewhere


@in_every_library
@by_every_formula
def test_the_q_values_are_not_written_to(library, formula):
    q = library.array(Q)
    before = library.read(q).copy()
    formula(q)
    np.testing.assert_array_equal(library.read(q), before)


@by_every_formula
def test_views_with_strides_are_read_as_they_look(formula):
    plain = coarse_q(6)
    flipped = np.asfortranarray(plain)[::-2, ::-1, ::-1]
    turned = torch.tensor(plain).permute(2, 1, 0).contiguous().permute(2, 1, 0)
    pairs = [(flipped, NUMPY.array(flipped)), (turned, NUMPY.array(plain))]
    for view, copy in pairs:
        np.testing.assert_allclose(np.asarray(formula(view)), np.asarray(formula(copy)), rtol=1e-9)


def test_the_formulas_need_neither_pytorch_nor_jax():
    program = (
        "import sys, numpy, bootdqn\n"
        "bootdqn.Evoi().select(bootdqn.gain(numpy.ones((2, 3))), 0)\n"
        "print([name for name in ('torch', 'jax') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Errors


@by_every_formula
def test_an_input_that_is_no_array_is_an_error_that_names_it(formula):
    for q, name in (([[1.0, 2.0]], "list"), (None, "NoneType"), (1.0, "float"), ("q", "str"), (((1.0,),), "tuple")):
        with pytest.raises(TypeError, match=f"q must be a NumPy, PyTorch or JAX array, got {name}$"):
            formula(q)


@in_every_library
@by_every_formula
def test_numbers_that_are_not_real_floating_point_are_an_error(library, formula):
    for dtype in ("int32", "uint8", "bool", "complex64"):
        q = library.array(np.ones((2, 3), dtype))
        with pytest.raises(TypeError, match=rf"q must hold real floating-point numbers, got dtype \S*{dtype}"):
            formula(q)


@in_every_library
@by_every_formula
def test_q_values_of_fewer_than_two_axes_are_an_error(library, formula):
    for shape in (), (3,), (0,):
        with pytest.raises(ValueError, match=r"q must have shape \(\.\.\., K heads, A actions\), got shape") as caught:
            formula(library.array(np.ones(shape)))
        assert str(caught.value).endswith(f"got shape {shape}")


@in_every_library
@by_every_formula
def test_an_ensemble_without_heads_is_an_error(library, formula):
    for shape in (0, 3), (2, 0, 3), (0, 0):
        with pytest.raises(ValueError, match="q must have at least 1 head, got shape") as caught:
            formula(library.array(np.ones(shape)))
        assert str(shape) in str(caught.value)


@in_every_library
@by_every_formula
def test_too_few_actions_are_an_error(library, formula):
    needed = 2 if formula in (gain, evoi, evoi_sum) else 1
    for num_actions in range(needed):
        with pytest.raises(ValueError, match=f"needs at least {needed} action") as caught:
            formula(library.array(np.ones((3, 2, num_actions))))
        assert f"got {num_actions} in q of shape (3, 2, {num_actions})" in str(caught.value)


@pytest.mark.parametrize(
    "formula",
    [ucb, ids, disagreement, information_gain, vote, vote_mean, vote_diversity],
    ids=lambda formula: formula.__name__,
)
def test_a_single_action_is_enough_where_nothing_is_compared_with_the_second_best(formula):
    assert not np.any(formula(np.zeros((3, 2, 1))) if formula is not vote_diversity else formula(np.zeros((2, 1)))[1])


@in_every_library
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_strategies_reject_the_same_inputs_as_the_formulas(library, strategy):
    for method in (strategy.scores, strategy.select):
        with pytest.raises(TypeError, match="got list"):
            method([[1.0, 2.0]], 0)
        with pytest.raises(TypeError, match=r"got dtype \S*int32"):
            method(library.array(np.ones((2, 2), np.int32)), 0)
        with pytest.raises(ValueError, match=r"got shape \(3,\)"):
            method(library.array(np.ones(3)), 0)
        if isinstance(strategy, Gain | Evoi):
            with pytest.raises(ValueError, match="at least 2 actions, got 1"):
                method(library.array(np.ones((3, 1))), 0)


def test_the_namespace_and_one_hot_are_what_the_formulas_build_on():
    for library in (NUMPY, TORCH, STRICT):
        q = library.array(coarse_q(2))
        xp = namespace_of_q(q)
        hot = one_hot(library.array(np.array([[2, 0]])), 3, xp)
        assert library.read(hot).tolist() == [[[False, False, True], [True, False, False]]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(20, 2), (1, 3), (7, 4, 5), (2, 3, 9, 2), (0, 3, 2)], ids=str)
@pytest.mark.parametrize("rule", [*FORMULAS, *(lambda q, rule=rule: tally(q, rule) for rule in get_args(VoteRule))])
def test_the_functions_for_small_arrays_are_numpys_to_the_last_bit(rule, shape, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    arrays = [(scale * rng.normal(size=shape)).astype(dtype) for scale in (1e-3, 1.0, 1e6)]
    ruled_out, unknown = arrays[1].copy(), arrays[1].copy()
    ruled_out[..., 0], unknown[..., 0, 1] = -np.inf, np.nan
    with np.errstate(all="ignore"):
        found = [rule(q) for q in (*arrays, ruled_out, unknown)]
        monkeypatch.setattr("bootdqn.exploration.arrays._FAST_NUMPY", np)
        expected = [rule(q) for q in (*arrays, ruled_out, unknown)]
    for ours, numpys in zip(found, expected, strict=True):
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (ours, numpys)), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
