"""The compiled kernel to the last bit: sums in their documented order, and rows that take their steps later."""

import numpy as np
import pytest

from reference.batches import random_batch
from reference.comparison import KINDS, copy_of_state

F = np.float32
KIND = KINDS["tabular"]


def fma(a, b, c):
    """Return a * b + c of float32 numbers, rounded once: a product of two has 48 bits, which a double holds."""
    return F(np.float64(a) * np.float64(b) + np.float64(c))


def dot(x, y):
    """Return the product of two rows: eight sums over every eighth number, then halves are added."""
    sums = np.zeros(8, F)
    for j in range(len(x)):
        sums[j % 8] = fma(x[j], y[j], sums[j % 8])
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return sums[0]


def slow_q(state, k, row, prior_q):
    """Return the Q-values of one observation by loops over single numbers."""
    table, bias1, hidden, bias2, output, bias3 = (
        state[f"online.heads.{layer}.{part}"][k] for layer in range(3) for part in ("weight", "bias")
    )
    layer1 = np.maximum(table[row] + bias1, F(0))
    layer2 = bias2.copy()
    for i, unit in enumerate(layer1):
        layer2 = np.array([fma(unit, weight, sum_) for weight, sum_ in zip(hidden[i], layer2, strict=True)])
    layer2 = np.maximum(layer2, F(0))
    return [dot(layer2, output[:, a]) + bias3[a] + prior_q[k, row, a] for a in range(output.shape[1])]


@pytest.mark.parametrize("hidden_sizes", [(50, 50), (7, 5), (70, 130)])
def test_every_sum_has_the_documented_order(hidden_sizes):
    spec = KIND.spec(num_values=4, num_actions=3)
    learner = KIND.make(spec, hidden_sizes=hidden_sizes)
    learner.update(random_batch(np.random.default_rng(0), spec, 3, 8))
    state, q = copy_of_state(learner), learner.q_values(np.arange(4))
    expected = [[slow_q(state, k, row, np.zeros((3, 4, 3), F)) for k in range(3)] for row in range(4)]
    np.testing.assert_array_equal(q, np.array(expected, F))


def test_values_do_not_depend_on_the_batch_they_are_computed_in():
    spec = KIND.spec(num_values=90)
    learner = KIND.make(spec, hidden_sizes=(50, 50), prior_scale=2.0)
    learner.update(random_batch(np.random.default_rng(0), spec, 3, 8))
    together = learner.q_values(np.arange(90))
    np.testing.assert_array_equal(together, [learner.q_values(np.array([row]))[0] for row in range(90)])


def without(batch, row):
    """Return `batch` with another observation wherever it has `row`."""
    change = [np.where(array == row, row + 1, array) for array in (batch.observation, batch.next_observation)]
    return batch._replace(observation=change[0], next_observation=change[1])


@pytest.mark.parametrize("absent", [1, 5, 60, 700])
def test_a_row_that_is_read_late_has_taken_the_steps_of_adam_one_by_one(absent):
    """The second of two rows comes to rest after some 150 steps: from then on only its moments may change."""
    spec, rng, row = KIND.spec(num_values=6), np.random.default_rng(3), 2
    learner = KIND.make(spec, hidden_sizes=(50, 50))
    for _ in range(3):
        learner.update(random_batch(rng, spec, 3, 12, owned=1.0))
    before = copy_of_state(learner)
    for _ in range(absent):
        learner.update(without(random_batch(rng, spec, 3, 12), row))
    after = copy_of_state(learner)
    parameter, first, second = (
        before[f"{part}.heads.0.weight"][:, row] for part in ("online", "first_moment", "second_moment")
    )
    start = parameter.copy()
    for step in range(4, 4 + absent):
        size, scale = F(1e-3 / (1 - 0.9**step)), F(1 / (1 - 0.999**step) ** 0.5)
        first, second = first * F(0.9), second * F(0.999)
        root = np.sqrt(second).astype(np.float64) * np.float64(scale) + np.float64(F(1e-8))
        parameter = parameter - first * size / root.astype(F)
    assert (parameter != start).any()
    np.testing.assert_array_equal(after["online.heads.0.weight"][:, row], parameter)
    np.testing.assert_array_equal(after["first_moment.heads.0.weight"][:, row], first)
    np.testing.assert_array_equal(after["second_moment.heads.0.weight"][:, row], second)


def test_a_row_that_is_read_late_was_copied_to_the_target_when_the_copy_was_made():
    spec, rng, row = KIND.spec(num_values=6), np.random.default_rng(4), 2
    learner, eager = KIND.make(spec), KIND.make(spec)
    for number in range(40):
        batch = random_batch(rng, spec, 3, 12)
        batch = batch if number < 5 else without(batch, row)
        for one in (learner, eager):
            one.update(batch)
        if number in (7, 20, 31):
            expected = copy_of_state(eager)["online.heads.0.weight"][:, row]
            for one in (learner, eager):
                one.update_target()
        copy_of_state(eager)
    state = copy_of_state(learner)
    np.testing.assert_array_equal(state["target.heads.0.weight"][:, row], expected)
    assert (state["online.heads.0.weight"][:, row] != expected).any()
    for name, value in copy_of_state(eager).items():
        np.testing.assert_array_equal(state[name], value, err_msg=name)
