"""One update of K small networks on discrete observations, compiled: forward, double-DQN, backward, Adam.

It computes what `AutogradLearner` computes for independent networks of two hidden layers, and is tested equal to it
up to rounding. It is many times faster because it does less:

- a head's pass covers only the transitions its mask owns, and each *distinct* observation among them once: equal
  observations have equal values, and their gradients add up before the backward pass;
- target Q-values are kept until the next target copy, so each observation's is computed once between two copies;
- the first layer is a table whose gradient is non-zero only in the rows of the batch. Adam leaves a row alone until its
  first gradient, and moves it at every step from then on, since its moments decay;
- everything for one head is computed while its weights are in the cache.

Numba compiles this on first use and caches the machine code; no compiler needs to be installed. It is one file because
Numba's cache only notices changes of a function's own file.
"""

from typing import NamedTuple

import numba
import numpy as np

from bootdqn.common.specs import Array, Batch

_FLOAT = np.float32
DONE, INFINITE_LOSS, INFINITE_GRADIENT = 0, 1, 2
_BETA1, _BETA2 = 0.9, 0.999
_KEEP1, _TAKE1 = _FLOAT(_BETA1), _FLOAT(1 - _BETA1)  # the difference in double precision, as in PyTorch
_KEEP2, _TAKE2 = _FLOAT(_BETA2), _FLOAT(1 - _BETA2)
_EPSILON = _FLOAT(1e-8)
_EXPONENT = np.int32(0x7F800000)
_compiled = numba.njit(cache=True, error_model="numpy", fastmath={"contract"})


class Weights(NamedTuple):
    """The parameters of K networks with two hidden layers of H1 and H2 units, or one of Adam's moments of them."""

    table: Array
    """(K, S, H1): the first layer, one row an observation."""
    table_bias: Array
    """(K, H1)"""
    hidden: Array
    """(K, H1, H2)"""
    hidden_bias: Array
    """(K, H2)"""
    output: Array
    """(K, H2, A)"""
    output_bias: Array
    """(K, A)"""


class AdamState(NamedTuple):
    """The state of Adam, with PyTorch's default constants."""

    first_moment: Weights
    """Running mean of gradients."""
    second_moment: Weights
    """Running mean of squared gradients."""
    moving: Array
    """(K, S), bool: the rows of the table that have had a gradient."""


class AdamStep(NamedTuple):
    """The two numbers of Adam that change from step to step, with bias corrections."""

    step_size: np.float32
    """Learning rate over (1 - beta1^t)."""
    root_scale: np.float32
    """1 / sqrt(1 - beta2^t)."""


def make_adam(weights: Weights) -> AdamState:
    """Return the state of Adam before its first step."""
    return AdamState(
        first_moment=Weights(*map(np.zeros_like, weights)),
        second_moment=Weights(*map(np.zeros_like, weights)),
        moving=np.zeros(weights.table.shape[:2], np.bool_),
    )


def adam_step(learning_rate: float, step: int) -> AdamStep:
    """Return the numbers of Adam's step `step`, counted from 1."""
    return AdamStep(_FLOAT(learning_rate / (1 - _BETA1**step)), _FLOAT(1 / (1 - _BETA2**step) ** 0.5))


@_compiled
def q_values(weights: Weights, prior_q: Array, observation: Array, q: Array) -> None:
    """Write the Q-values (E, K, A) of observations (E,), the prior's (K, S, A) added, into `q`."""
    count = observation.shape[0]
    num_heads, _, width1 = weights.table.shape
    layer1 = np.empty((count, width1), _FLOAT)
    layer2 = np.empty((count, weights.hidden.shape[2]), _FLOAT)
    values = np.empty((count, q.shape[2]), _FLOAT)
    for k in range(num_heads):
        _forward(weights, prior_q, k, observation, layer1, layer2, values)
        q[:, k] = values


@_compiled
def update(
    online: Weights,
    target: Weights,
    prior_q: Array,
    adam: AdamState,
    step: AdamStep,
    target_q: Array,
    target_known: Array,
    batch: Batch,
    double_q: bool,
    huber: bool,
    head_loss: Array,
    td_error: Array,
) -> int:
    """Take one gradient step of every head, in place.

    Args:
        online: Parameters to learn; changed.
        target: Parameters of the target networks.
        prior_q: Prior Q-values (K, S, A), added to both.
        adam: Changed.
        step: Step size of Adam.
        target_q: Target Q-values (K, S, A) known since the last target copy; completed.
        target_known: Which of them are known (K, S), bool; completed.
        batch: The transitions; a next observation is read only where its discount is not 0.
        double_q: The online networks choose the next action instead of the target networks.
        huber: Huber loss with delta 1 instead of the squared one.
        head_loss: (K,), written.
        td_error: (B,), written: mean absolute TD error over the heads that own the transition.

    Returns:
        `DONE`, or `INFINITE_LOSS` or `INFINITE_GRADIENT` of the first head whose `head_loss` is not finite; neither it
        nor the heads after it have learned.
    """
    num_heads, num_values, width1 = online.table.shape
    width2, num_actions = online.output.shape[1:]
    size = batch.action.shape[0]
    rows = np.empty(2 * size, np.int64)
    place = np.full(num_values, -1, np.int64)
    layer1 = np.empty((2 * size, width1), _FLOAT)
    layer2 = np.empty((2 * size, width2), _FLOAT)
    q = np.empty((2 * size, num_actions), _FLOAT)
    q_gradient = np.empty((size, num_actions), _FLOAT)
    head_loss[:] = 0
    td_error[:] = 0
    for k in range(num_heads):
        _complete_target_q(target, prior_q, k, batch, rows, layer1, layer2, q, target_q, target_known)
        learned, count = _distinct_rows(k, batch, double_q, rows, place)
        _forward(online, prior_q, k, rows[:count], layer1, layer2, q)
        head_loss[k] = _loss_gradient(k, q, target_q, batch, double_q, huber, place, q_gradient[:learned], td_error)
        if not np.isfinite(head_loss[k]):
            return INFINITE_LOSS
        if not _learn(online, adam, step, k, place, layer1[:learned], layer2[:learned], q_gradient[:learned]):
            head_loss[k] = np.nan
            return INFINITE_GRADIENT
        for u in range(count):
            place[rows[u]] = -1
    _average_over_owners(batch.mask, td_error)
    return DONE


@_compiled
def _forward(weights: Weights, prior_q: Array, k: int, rows: Array, layer1: Array, layer2: Array, q: Array) -> None:
    """Pass the observations `rows` through network k and add its prior; the leading part of each buffer is written."""
    count = rows.shape[0]
    table, bias1 = weights.table[k], weights.table_bias[k]
    for u in range(count):
        row = rows[u]
        for j in range(table.shape[1]):
            layer1[u, j] = max(table[row, j] + bias1[j], _FLOAT(0))
    np.dot(layer1[:count], weights.hidden[k], layer2[:count])
    bias2 = weights.hidden_bias[k]
    for u in range(count):
        for j in range(bias2.shape[0]):
            layer2[u, j] = max(layer2[u, j] + bias2[j], _FLOAT(0))
    np.dot(layer2[:count], weights.output[k], q[:count])
    for u in range(count):
        for a in range(q.shape[1]):
            q[u, a] += weights.output_bias[k, a]
            q[u, a] += prior_q[k, rows[u], a]


@_compiled
def _complete_target_q(
    target: Weights,
    prior_q: Array,
    k: int,
    batch: Batch,
    rows: Array,
    layer1: Array,
    layer2: Array,
    q: Array,
    target_q: Array,
    target_known: Array,
) -> None:
    """Compute the target Q-values of head k that this batch needs and that are not known yet."""
    count = 0
    for b in range(batch.discount.shape[0]):
        row = batch.next_observation[b]
        if batch.mask[b, k] and batch.discount[b] != 0 and not target_known[k, row]:
            target_known[k, row] = True
            rows[count] = row
            count += 1
    if count:
        _forward(target, prior_q, k, rows[:count], layer1, layer2, q)
        for u in range(count):
            target_q[k, rows[u]] = q[u]


@_compiled
def _distinct_rows(k: int, batch: Batch, double_q: bool, rows: Array, place: Array) -> tuple[int, int]:
    """List the distinct observations that head k needs, those it learns at first; `place` says where each stands.

    Next observations are needed only to choose an action there, in double DQN.

    Returns:
        The number of observations it learns at, and of all.
    """
    count = 0
    for b in range(batch.observation.shape[0]):
        row = batch.observation[b]
        if batch.mask[b, k] and place[row] < 0:
            place[row] = count
            rows[count] = row
            count += 1
    learned = count
    for b in range(batch.observation.shape[0] if double_q else 0):
        row = batch.next_observation[b]
        if batch.mask[b, k] and batch.discount[b] != 0 and place[row] < 0:
            place[row] = count
            rows[count] = row
            count += 1
    return learned, count


@_compiled
def _loss_gradient(
    k: int,
    q: Array,
    target_q: Array,
    batch: Batch,
    double_q: bool,
    huber: bool,
    place: Array,
    q_gradient: Array,
    td_error: Array,
) -> np.float32:
    """Return head k's loss; write the gradient of the ensemble's loss by its Q-values, and add up its TD errors."""
    observation, action, reward, discount = batch.observation, batch.action, batch.reward, batch.discount
    mask, weight = batch.mask, batch.weight
    owned = 0
    for b in range(observation.shape[0]):
        owned += mask[b, k]
    share = _FLOAT(1.0 / max(owned, 1))
    slope_scale = share / _FLOAT(mask.shape[1])
    q_gradient[:] = 0
    loss = _FLOAT(0)
    for b in range(observation.shape[0]):
        if not mask[b, k]:
            continue
        target = reward[b]
        if discount[b] != 0:
            row = batch.next_observation[b]
            chosen = np.argmax(q[place[row]]) if double_q else np.argmax(target_q[k, row])
            target += discount[b] * target_q[k, row, chosen]
        here = place[observation[b]]
        error = q[here, action[b]] - target
        td_error[b] += abs(error)
        if not huber:
            loss += weight[b] * error * error
            slope = 2 * error
        elif abs(error) < 1:
            loss += weight[b] * _FLOAT(0.5) * error * error
            slope = error
        else:
            loss += weight[b] * (abs(error) - _FLOAT(0.5))
            slope = np.sign(error)
        q_gradient[here, action[b]] += slope_scale * weight[b] * slope
    return loss * share


@_compiled
def _average_over_owners(mask: Array, td_error: Array) -> None:
    """Divide each transition's sum of errors by the number of heads that own it."""
    for b in range(mask.shape[0]):
        owners = 0
        for k in range(mask.shape[1]):
            owners += mask[b, k]
        td_error[b] /= max(owners, 1)


@_compiled
def _learn(
    online: Weights,
    adam: AdamState,
    step: AdamStep,
    k: int,
    place: Array,
    layer1: Array,
    layer2: Array,
    q_gradient: Array,
) -> bool:
    """Backpropagate through network k and let Adam move its parameters, unless a gradient is not finite."""
    gradient2 = np.dot(q_gradient, online.output[k].T)
    _stop_where_inactive(gradient2, layer2)
    gradient1 = np.dot(gradient2, online.hidden[k].T)
    _stop_where_inactive(gradient1, layer1)
    output_gradient = np.dot(layer2.T, q_gradient)
    hidden_gradient = np.dot(layer1.T, gradient2)
    if not (_all_finite(gradient1) and _all_finite(hidden_gradient) and _all_finite(output_gradient)):
        return False
    m, v = adam.first_moment, adam.second_moment
    _adam(online.output[k].ravel(), m.output[k].ravel(), v.output[k].ravel(), output_gradient.ravel(), step)
    _adam(online.hidden[k].ravel(), m.hidden[k].ravel(), v.hidden[k].ravel(), hidden_gradient.ravel(), step)
    _adam(online.output_bias[k], m.output_bias[k], v.output_bias[k], _column_sums(q_gradient), step)
    _adam(online.hidden_bias[k], m.hidden_bias[k], v.hidden_bias[k], _column_sums(gradient2), step)
    _adam(online.table_bias[k], m.table_bias[k], v.table_bias[k], _column_sums(gradient1), step)
    table, first_moment, second_moment, moving = online.table[k], m.table[k], v.table[k], adam.moving[k]
    for row in range(table.shape[0]):
        u = place[row]
        if 0 <= u < gradient1.shape[0]:
            _adam(table[row], first_moment[row], second_moment[row], gradient1[u], step)
            moving[row] = True
        elif moving[row]:
            _adam_without_gradient(table[row], first_moment[row], second_moment[row], step)
    return True


@_compiled
def _all_finite(x: Array) -> bool:
    """Return whether no number is infinite or NaN; those have all bits of the exponent set, which is fast to test."""
    bits = x.view(np.int32).ravel()
    found = np.int32(0)
    for j in range(bits.shape[0]):
        found |= np.int32((bits[j] & _EXPONENT) == _EXPONENT)
    return bool(found == 0)


@_compiled
def _stop_where_inactive(gradient: Array, activation: Array) -> None:
    """Set the gradient to zero where a ReLU was not active."""
    for u in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            gradient[u, j] = gradient[u, j] if activation[u, j] > 0 else _FLOAT(0)


@_compiled
def _column_sums(x: Array) -> Array:
    total = np.zeros(x.shape[1], _FLOAT)
    for u in range(x.shape[0]):
        for j in range(x.shape[1]):
            total[j] += x[u, j]
    return total


@_compiled
def _adam(parameter: Array, first_moment: Array, second_moment: Array, gradient: Array, step: AdamStep) -> None:
    """Take one step of Adam."""
    for j in range(parameter.shape[0]):
        slope = gradient[j]
        first = _KEEP1 * first_moment[j] + _TAKE1 * slope
        second = _KEEP2 * second_moment[j] + _TAKE2 * slope * slope
        first_moment[j] = first
        second_moment[j] = second
        parameter[j] -= step.step_size * first / (np.sqrt(second) * step.root_scale + _EPSILON)


@_compiled
def _adam_without_gradient(parameter: Array, first_moment: Array, second_moment: Array, step: AdamStep) -> None:
    """Take one step of Adam where the gradient is 0."""
    for j in range(parameter.shape[0]):
        first = _KEEP1 * first_moment[j]
        second = _KEEP2 * second_moment[j]
        first_moment[j] = first
        second_moment[j] = second
        parameter[j] -= step.step_size * first / (np.sqrt(second) * step.root_scale + _EPSILON)
