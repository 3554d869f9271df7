"""Gain, EVOI, UCB, IDS and what states hold: worked tables, the slow reference, and what follows from the formulas."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

import reference.exploration as reference
from bootdqn import disagreement, evoi, gain, ids, information_gain, ucb
from reference.q_values import BATCHES, assert_every_state, exact_q, exact_q_of_any_size

Q = np.array([[5.0, 0.0, 1.0], [4.0, 2.0, 6.0], [1.0, 3.0, 1.0], [2.0, 3.0, 0.0]])
"""Means 3, 2, 2: the best action is 0, the second-best mean is 2."""
TIED = np.array([[4.0, 1.0, 0.0], [0.0, 1.0, 2.0], [2.0, 3.0, -1.0], [2.0, 3.0, 1.0]])
"""Means 2, 2, 0.5: actions 0 and 1 are tied for the best."""
SPREAD = np.array([[1.0, 2.0], [5.0, 2.0], [1.0, 4.0], [5.0, 4.0]])
"""Means 3, 3 and population standard deviations 2, 1."""


def unique_best_mean(q):
    mean = sorted(reference.mean_values(q.tolist()))
    return mean[-1] > mean[-2]


# Hand-worked tables


def test_gain_of_a_worked_table():
    expected = [[0, 0, 0], [0, 0, 3], [1, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(gain(Q), expected)


def test_the_lowest_index_is_the_best_action_when_means_tie():
    expected = [[0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 1, 0]]
    np.testing.assert_array_equal(gain(TIED), expected)


def test_gain_is_measured_from_the_second_best_mean_and_not_from_the_next_action():
    q = np.array([[0.0, 1.0, 9.0, 6.0], [0.0, 1.0, 3.0, 4.0]])  # means 0, 1, 6, 5
    np.testing.assert_array_equal(gain(q), [[0, 0, 0, 0], [0, 0, 2, 0]])


def test_gain_of_negative_values_compares_with_negative_means():
    q = np.array([[-5.0, -1.0], [-1.0, -7.0]])  # means -3, -4
    np.testing.assert_array_equal(gain(q), [[1, 2], [0, 0]])


def test_evoi_of_a_worked_table():
    np.testing.assert_array_equal(evoi(Q), [0.25, 0, 0.75])
    np.testing.assert_array_equal(evoi(Q, "mean"), [0.25, 0, 0.75])
    np.testing.assert_array_equal(evoi(Q, "sum"), [1, 0, 3])
    np.testing.assert_array_equal(evoi(TIED), [0.5, 0.5, 0])


def test_ucb_of_a_worked_table_divides_by_the_number_of_heads():
    np.testing.assert_array_equal(ucb(SPREAD), [5, 4])
    np.testing.assert_array_equal(ucb(SPREAD, scale=0.5), [4, 3.5])
    np.testing.assert_array_equal(ucb(SPREAD, scale=0.0), [3, 3])
    np.testing.assert_array_equal(ucb(SPREAD, scale=-1.0), [1, 2])


def test_ids_of_a_worked_table():
    info = [math.log(5) + 1e-5, math.log(2) + 1e-5]
    np.testing.assert_allclose(ids(SPREAD, 0.5), [-(2**2) / info[0], -(1.5**2) / info[1]], rtol=1e-14)
    np.testing.assert_allclose(ids(SPREAD), [-(0.4**2) / info[0], -(0.3**2) / info[1]], rtol=1e-13)


def test_ids_measures_the_spread_against_the_noise():
    info = [math.log(3) + 1e-5, math.log(1.5) + 1e-5]
    expected = [-(2**2) / info[0], -(1.5**2) / info[1]]
    np.testing.assert_allclose(ids(SPREAD, regret_scale=0.5, noise_variance=2.0), expected, rtol=1e-14)


def test_ids_of_heads_that_agree_counts_only_the_floor_of_information():
    q = np.array([[1.0, 0.5, 1.0], [1.0, 0.5, 1.0]])
    np.testing.assert_allclose(ids(q), [0, -0.25 / 1e-5, 0], rtol=1e-14)


def test_defaults_are_those_of_the_paper():
    np.testing.assert_array_equal(evoi(Q), evoi(Q, reduce="mean"))
    np.testing.assert_array_equal(ucb(Q), ucb(Q, scale=1.0))
    np.testing.assert_array_equal(ids(Q), ids(Q, regret_scale=0.1, noise_variance=1.0))


def test_disagreement_of_a_worked_table():
    assert disagreement(SPREAD) == 1.5
    assert disagreement(SPREAD[:, :1]) == 2


def test_information_gain_of_a_worked_table():
    q = math.log(3) * np.array([[1.0, 0.0], [0.0, 1.0]])  # policies 3/4, 1/4 and 1/4, 3/4; on average 1/2, 1/2
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    np.testing.assert_allclose(information_gain(q), expected, rtol=1e-14)
    np.testing.assert_allclose(information_gain(10 * q, temperature=10.0), expected, rtol=1e-14)
    np.testing.assert_allclose(information_gain(q / 10, 0.1), expected, rtol=1e-14)


def test_information_gain_is_divided_by_the_number_of_heads():
    q = math.log(3) * np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # on average 5/8, 3/8
    against = 0.75 * math.log(2) + 0.25 * math.log(0.4)
    along = 0.75 * math.log(1.2) + 0.25 * math.log(2 / 3)
    np.testing.assert_allclose(information_gain(q), (3 * along + against) / 4, rtol=1e-14)


# The first figure of the paper

ACTIONS = ("NOOP", "UP", "RIGHT", "LEFT", "DOWN")
FIGURE_1 = np.array(
    [
        [3.5, 4.0, 3.0, 2.0, 4.25],  # the active head: it has misjudged LEFT, on which the others agree
        [3.5, 7.5, 5.5, 6.0, 5.25],
        [3.5, 2.0, 1.0, 6.0, 4.5],
        [3.5, 2.5, 2.5, 6.0, 4.0],
    ]
)


def favourite(scores):
    return ACTIONS[int(np.argmax(scores))]


def test_figure_1_the_three_methods_choose_down_left_and_up():
    assert favourite(FIGURE_1[0]) == "DOWN"
    assert favourite(FIGURE_1[0] + gain(FIGURE_1)[0]) == "LEFT"
    assert favourite(FIGURE_1[0] + evoi(FIGURE_1)) == "UP"


def test_figure_1_gain_is_sparse_and_evoi_denser_but_lower():
    own, collective = gain(FIGURE_1)[0], evoi(FIGURE_1)
    np.testing.assert_array_equal(own, [0, 0, 0, 2.5, 0])
    np.testing.assert_array_equal(collective, [0, 0.625, 0.125, 0.625, 0.0625])
    assert np.count_nonzero(own) < np.count_nonzero(collective)
    assert collective.max() < own.max()


# Against the reference


@given(exact_q(batches=BATCHES))
def test_gain_is_the_reference(q):
    assert gain(q).shape == q.shape
    assert_every_state(gain(q), q, lambda state, _: reference.gain(state))


@given(exact_q(batches=BATCHES), st.sampled_from(["mean", "sum"]))
def test_evoi_is_the_reference(q, reduce):
    assert evoi(q, reduce).shape == q.shape[:-2] + q.shape[-1:]
    assert_every_state(evoi(q, reduce), q, lambda state, _: reference.evoi(state, reduce))


@given(exact_q_of_any_size())
def test_gain_and_its_sum_are_the_reference_for_any_number_of_heads(q):
    assert gain(q).tolist() == reference.gain(q.tolist())
    assert evoi(q, "sum").tolist() == reference.evoi(q.tolist(), "sum")


@given(exact_q(min_actions=1, batches=BATCHES), st.sampled_from([-0.5, 0.0, 0.1, 1.0, 3.0]))
def test_ucb_is_the_reference(q, scale):
    actual = ucb(q, scale)
    assert actual.shape == q.shape[:-2] + q.shape[-1:]
    for index in np.ndindex(q.shape[:-2]):
        np.testing.assert_allclose(actual[index], reference.ucb(q[index].tolist(), scale), rtol=1e-14, atol=1e-14)


@given(exact_q(min_actions=1, batches=BATCHES), st.sampled_from([0.0, 0.1, 0.5, 2.0]), st.sampled_from([0.25, 1.0, 5]))
def test_ids_is_the_reference(q, regret_scale, noise_variance):
    actual = ids(q, regret_scale, noise_variance)
    assert actual.shape == q.shape[:-2] + q.shape[-1:]
    for index in np.ndindex(q.shape[:-2]):
        ratio = reference.information_ratio(q[index].tolist(), regret_scale, noise_variance)
        np.testing.assert_allclose(-actual[index], ratio, rtol=1e-10, atol=1e-14)


@given(exact_q(min_actions=1, batches=BATCHES))
def test_disagreement_is_the_reference(q):
    actual = disagreement(q)
    assert actual.shape == q.shape[:-2]
    for index in np.ndindex(q.shape[:-2]):
        np.testing.assert_allclose(actual[index], reference.disagreement(q[index].tolist()), rtol=1e-13, atol=1e-14)


@given(exact_q(min_actions=1, batches=BATCHES), st.sampled_from([0.01, 0.3, 1.0, 20.0]))
def test_information_gain_is_the_reference(q, temperature):
    actual = information_gain(q, temperature)
    assert actual.shape == q.shape[:-2]
    for index in np.ndindex(q.shape[:-2]):
        expected = reference.information_gain(q[index].tolist(), temperature)
        np.testing.assert_allclose(actual[index], expected, rtol=1e-12, atol=1e-14)


# Facts that follow from the formulas


@given(exact_q(batches=BATCHES))
def test_gain_and_evoi_are_never_negative(q):
    assert np.all(gain(q) >= 0)
    assert np.all(evoi(q) >= 0)
    assert np.all(evoi(q, "sum") >= 0)


@given(exact_q(heads=(1,)), st.sampled_from([1, 2, 4, 8]))
def test_heads_that_agree_have_nothing_to_gain(row, num_heads):
    q = np.repeat(row, num_heads, axis=0)
    assert not gain(q).any()
    assert not evoi(q, "sum").any()


@given(st.data(), exact_q())
def test_permuting_heads_permutes_gain_and_leaves_evoi(data, q):
    order = data.draw(st.permutations(range(q.shape[0])))
    np.testing.assert_array_equal(gain(q[order]), gain(q)[order])
    np.testing.assert_array_equal(evoi(q[order]), evoi(q))
    np.testing.assert_array_equal(evoi(q[order], "sum"), evoi(q, "sum"))


@given(st.data(), exact_q())
def test_permuting_actions_permutes_gain_when_the_best_mean_is_unique(data, q):
    assume(unique_best_mean(q))
    order = data.draw(st.permutations(range(q.shape[1])))
    np.testing.assert_array_equal(gain(q[:, order]), gain(q)[:, order])


@given(st.data(), exact_q(heads=(2, 4)))
def test_permuting_actions_permutes_evoi_even_when_means_tie(data, q):
    q = np.concatenate([q, q[::-1, :1]], axis=1)  # a tie with the first action, the best or not
    order = data.draw(st.permutations(range(q.shape[1])))
    np.testing.assert_array_equal(evoi(q[:, order]), evoi(q)[order])
    np.testing.assert_array_equal(evoi(q[:, order], "sum"), evoi(q, "sum")[order])


@given(exact_q(), st.integers(-40, 40))
def test_adding_a_constant_changes_neither(q, quarters):
    np.testing.assert_array_equal(gain(q + quarters / 4), gain(q))
    np.testing.assert_array_equal(evoi(q + quarters / 4), evoi(q))


@given(exact_q(), st.sampled_from([0.125, 0.5, 2.0, 3.0, 7.0, 1024.0]))
def test_scaling_by_a_positive_number_scales_both(q, scale):
    np.testing.assert_array_equal(gain(scale * q), scale * gain(q))
    np.testing.assert_array_equal(evoi(scale * q), scale * evoi(q))


@given(exact_q(batches=BATCHES))
def test_the_sum_is_the_mean_times_the_number_of_heads(q):
    np.testing.assert_array_equal(evoi(q, "sum"), q.shape[-2] * evoi(q, "mean"))


@given(exact_q())
def test_a_head_has_a_gain_exactly_where_it_contradicts_the_ensemble(q):
    """A head has a gain exactly when it ranks the best action below the rest or another above the best."""
    mean = q.mean(axis=0)
    best = int(np.argmax(mean))
    second = np.delete(mean, best).max()
    disagrees = np.where(np.arange(q.shape[1]) == best, q < second, q > mean[best])
    np.testing.assert_array_equal(gain(q) > 0, disagrees)


@given(exact_q(min_actions=1))
def test_without_spread_ucb_is_the_mean_and_ids_takes_the_best_mean(q):
    agreed = np.repeat(q[:1], 4, axis=0)
    np.testing.assert_array_equal(ucb(agreed), q[0])
    assert np.argmax(ids(agreed)) == np.argmax(q[0])


@given(st.data(), exact_q(min_actions=1))
def test_ucb_and_ids_do_not_depend_on_the_order_of_heads_and_permute_with_the_actions(data, q):
    heads = data.draw(st.permutations(range(q.shape[0])))
    actions = data.draw(st.permutations(range(q.shape[1])))
    np.testing.assert_allclose(ucb(q[heads]), ucb(q), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(ids(q[heads]), ids(q), rtol=1e-10)
    np.testing.assert_array_equal(ucb(q[:, actions]), ucb(q)[actions])
    np.testing.assert_array_equal(ids(q[:, actions]), ids(q)[actions])


@given(st.data(), exact_q(min_actions=1), st.sampled_from([0.01, 1.0, 20.0]))
def test_information_gain_asks_neither_heads_nor_actions_for_their_number(data, q, temperature):
    heads = data.draw(st.permutations(range(q.shape[0])))
    actions = data.draw(st.permutations(range(q.shape[1])))
    expected = information_gain(q, temperature)
    np.testing.assert_allclose(information_gain(q[heads], temperature), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(information_gain(q[:, actions], temperature), expected, rtol=1e-12, atol=1e-14)


@given(st.data(), exact_q(min_actions=1))
def test_information_gain_does_not_see_what_a_head_adds_to_all_its_values(data, q):
    shift = data.draw(st_numpy.arrays(np.int64, (q.shape[0], 1), elements=st.integers(-400, 400))) / 4
    np.testing.assert_array_equal(information_gain(q + shift), information_gain(q))


@given(exact_q(heads=(1,), min_actions=1), st.sampled_from([1, 2, 3, 7, 8]))
def test_heads_that_agree_hold_no_information(row, num_heads):
    np.testing.assert_allclose(information_gain(np.repeat(row, num_heads, axis=0)), 0, atol=1e-15)


@given(exact_q(heads=(2, 4), batches=BATCHES))
def test_heads_hold_information_exactly_where_their_policies_differ(q):
    differs = np.any(
        q - q.max(axis=-1, keepdims=True) != (q - q.max(axis=-1, keepdims=True))[..., :1, :], axis=(-2, -1)
    )
    np.testing.assert_array_equal(information_gain(q) > 1e-9, differs)


@given(exact_q(heads=(1, 2, 4, 8), batches=BATCHES), st.sampled_from([1e-3, 1.0, 1e3]))
def test_information_gain_is_at_least_zero_and_at_most_the_logarithm_of_the_number_of_heads(q, temperature):
    assert np.all(information_gain(q, temperature) >= 0)
    assert np.all(information_gain(q, temperature) <= math.log(q.shape[-2]))


@given(st.integers(1, 6), st.integers(0, 3))
def test_heads_that_are_sure_of_different_actions_hold_all_the_information_there_is(num_heads, more_actions):
    q = np.eye(num_heads, num_heads + more_actions) * 100
    np.testing.assert_allclose(information_gain(q), math.log(num_heads), rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_information_gain_of_the_largest_and_the_smallest_values_is_finite(dtype):
    largest, smallest = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    opposed = np.array([[largest, -largest], [-largest, largest]], dtype)
    for temperature in (float(np.finfo(dtype).smallest_normal), 0.1, 1.0, 100.0):
        assert information_gain(opposed, temperature) == dtype(math.log(2))
        assert information_gain(np.array([[0, -largest], [0, -largest]], dtype), temperature) == 0
    tiny = np.array([[smallest, 0], [0, smallest]], dtype)
    np.testing.assert_allclose(information_gain(tiny), 0, atol=np.finfo(dtype).eps)
    assert information_gain(opposed, float(largest)) == pytest.approx(
        reference.information_gain([[1, -1], [-1, 1]]), 0.01
    )


# Masked actions and bad words


def test_an_action_ruled_out_by_minus_infinity_holds_no_information():
    q = np.array([[1.0, -np.inf, 3.0], [2.0, -np.inf, 0.0]])
    np.testing.assert_allclose(information_gain(q), information_gain(q[:, ::2]), rtol=1e-14)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan, 1e-40])
def test_an_invalid_temperature_is_an_error(temperature):
    with pytest.raises(ValueError, match=r"temperature must be between 1\.2e-38 and 3\.4e\+38 for float32, got"):
        information_gain(Q.astype(np.float32), temperature)


def test_an_action_ruled_out_by_minus_infinity_gains_nothing():
    q = np.array([[1.0, -np.inf, 3.0], [2.0, -np.inf, 0.0]])  # means 1.5, -inf, 1.5
    np.testing.assert_array_equal(gain(q), [[0.5, 0, 1.5], [0, 0, 0]])


@pytest.mark.parametrize("reduce", ["median", "Mean", "", None, 1, ["mean"]])
def test_an_unknown_reduction_is_an_error_that_lists_the_known_ones(reduce):
    with pytest.raises(ValueError, match="reduce must be one of mean, sum; got") as caught:
        evoi(Q, reduce)
    assert repr(reduce) in str(caught.value)


@pytest.mark.parametrize("noise_variance", [0, 0.0, -1, -0.5, np.float32(-1), math.nan])
def test_a_noise_without_variance_is_an_error(noise_variance):
    with pytest.raises(ValueError, match=f"noise_variance must be positive, got {noise_variance}"):
        ids(Q, noise_variance=noise_variance)
