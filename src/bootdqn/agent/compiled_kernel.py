"""One update of K small networks on discrete observations, compiled: forward, double-DQN, backward, Adam.

It computes what `AutogradLearner` computes for independent networks of two hidden layers, and is tested equal to it
up to rounding. It is many times faster because it does less:

- a head's pass covers only the transitions its mask owns, and each *distinct* observation among them once: equal
  observations have equal values, and their gradients add up before the backward pass;
- target Q-values are kept until the next target copy, so each observation's is computed once between two copies;
- the first layer is a table whose gradient is non-zero only in the rows of the batch. Adam leaves a row alone until its
  first gradient, and moves it at every step from then on, since its moments decay. A row that is not in the batch owes
  these steps until it is read, and takes them all at once then, to the same bits: it stays out of the cache;
- everything of one head is done while its weights are in the cache.

Numba compiles this when first used and keeps the machine code; no compiler needs to be installed. All of it is in one
file, since Numba looks only at a function's own file to see whether what it kept is still good.
"""

from typing import NamedTuple

import numba
import numpy as np

from bootdqn.common.specs import Array, Batch

_FLOAT = np.float32
DONE, INFINITE_LOSS, INFINITE_GRADIENT = 0, 1, 2
OWED_AT_MOST = 64
"""Steps that a row of the table may owe."""
NEVER = -1
_BETA1, _BETA2 = 0.9, 0.999
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


class AdamConstants(NamedTuple):
    """Adam's numbers, PyTorch's defaults, with the bias corrections of the last steps worked in."""

    keep1: np.float32
    """beta1, and 1 - beta1 taken in double precision, as PyTorch does."""
    take1: np.float32
    keep2: np.float32
    take2: np.float32
    epsilon: np.float32
    step_size: Array
    """Learning rate over (1 - beta1^t), of step t at t modulo `OWED_AT_MOST`."""
    root_scale: Array
    """1 / sqrt(1 - beta2^t), likewise."""


class Adam(NamedTuple):
    """What Adam keeps."""

    first_moment: Weights
    """Running mean of gradients."""
    second_moment: Weights
    """Running mean of squared gradients."""
    settled: Array
    """(K, S): the last step that a row of the table has taken, or `NEVER` where it has had no gradient."""
    pace: AdamConstants


def make_adam(weights: Weights) -> Adam:
    """Return Adam before its first step."""
    return Adam(
        first_moment=Weights(*map(np.zeros_like, weights)),
        second_moment=Weights(*map(np.zeros_like, weights)),
        settled=np.full(weights.table.shape[:2], NEVER, np.int64),
        pace=AdamConstants(
            keep1=_FLOAT(_BETA1),
            take1=_FLOAT(1 - _BETA1),
            keep2=_FLOAT(_BETA2),
            take2=_FLOAT(1 - _BETA2),
            epsilon=_FLOAT(1e-8),
            step_size=np.zeros(OWED_AT_MOST, _FLOAT),
            root_scale=np.zeros(OWED_AT_MOST, _FLOAT),
        ),
    )


def begin_step(adam: Adam, learning_rate: float, step: int) -> None:
    """Work out Adam's numbers for its `step`-th step, counted from 1."""
    adam.pace.step_size[step % OWED_AT_MOST] = learning_rate / (1 - _BETA1**step)
    adam.pace.root_scale[step % OWED_AT_MOST] = 1 / (1 - _BETA2**step) ** 0.5


@_compiled
def q_of(weights: Weights, prior_q: Array, observation: Array, q: Array) -> None:
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
def settle(online: Weights, adam: Adam, step: int) -> None:
    """Let every row of the table take the steps that it owes, up to `step`."""
    settle_rows(online, adam, np.arange(adam.settled.shape[1]), step)


@_compiled
def settle_rows(online: Weights, adam: Adam, rows: Array, step: int) -> None:
    """Let some rows of every head's table take the steps that they owe, up to `step`."""
    for k in range(adam.settled.shape[0]):
        _settle_head(online, adam, k, rows, step)


@_compiled
def update(
    online: Weights,
    target: Weights,
    prior_q: Array,
    adam: Adam,
    step: int,
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
        prior_q: What is added to the Q-values of both (K, S, A).
        adam: Changed; its step must have begun.
        step: Which step of Adam's this is.
        target_q: Target Q-values (K, S, A) known since the last target copy; completed.
        target_known: Which of them are known (K, S), bool; completed.
        batch: The transitions; a next observation is read only where its discount is not 0.
        double_q: The online networks choose the next action instead of the target networks.
        huber: Huber loss with delta 1 instead of the squared one.
        head_loss: (K,), written.
        td_error: (B,), written: mean absolute TD error over the heads that own the transition.

    Returns:
        `DONE`; or `INFINITE_LOSS` or `INFINITE_GRADIENT`, where a head came out so: its loss then says which, and
        neither it nor the heads after it have learned.
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
        _settle_head(online, adam, k, rows[:count], step - 1)
        _forward(online, prior_q, k, rows[:count], layer1, layer2, q)
        head_loss[k] = _loss_gradient(k, q, target_q, batch, double_q, huber, place, q_gradient[:learned], td_error)
        if not np.isfinite(head_loss[k]):
            _leave_out(online, adam, k, step)
            return INFINITE_LOSS
        if not _learn(online, adam, step, k, rows[:learned], layer1[:learned], layer2[:learned], q_gradient[:learned]):
            head_loss[k] = np.nan
            _leave_out(online, adam, k, step)
            return INFINITE_GRADIENT
        for u in range(count):
            place[rows[u]] = -1
    _average_over_owners(batch.mask, td_error)
    if step % OWED_AT_MOST == 0:
        settle(online, adam, step)
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
    """List the distinct observations that head k needs, those it learns at first; `place` tells where each stands.

    It needs the next observations only to choose an action there.

    Returns:
        How many it learns at, and how many in all.
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
        goal = reward[b]
        if discount[b] != 0:
            row = batch.next_observation[b]
            chosen = np.argmax(q[place[row]]) if double_q else np.argmax(target_q[k, row])
            goal += discount[b] * target_q[k, row, chosen]
        here = place[observation[b]]
        error = q[here, action[b]] - goal
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
def _settle_head(online: Weights, adam: Adam, k: int, rows: Array, step: int) -> None:
    """Let some rows of head k's table take the steps that they owe, up to `step`."""
    table, first_moment, second_moment = online.table[k], adam.first_moment.table[k], adam.second_moment.table[k]
    settled = adam.settled[k]
    for row in rows:
        if settled[row] != NEVER:
            _take_owed_steps(table[row], first_moment[row], second_moment[row], adam.pace, settled[row], step)
            settled[row] = step


@_compiled
def _leave_out(online: Weights, adam: Adam, k: int, step: int) -> None:
    """Settle all heads where head k failed: those before it have taken this step, it and those after it have not."""
    every_row = np.arange(adam.settled.shape[1])
    for head in range(adam.settled.shape[0]):
        _settle_head(online, adam, head, every_row, step if head < k else step - 1)
        for row in every_row:
            if adam.settled[head, row] != NEVER:
                adam.settled[head, row] = step


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
    online: Weights, adam: Adam, step: int, k: int, rows: Array, layer1: Array, layer2: Array, q_gradient: Array
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
    m, v, pace = adam.first_moment, adam.second_moment, adam.pace
    _adam(online.output[k].ravel(), m.output[k].ravel(), v.output[k].ravel(), output_gradient.ravel(), pace, step)
    _adam(online.hidden[k].ravel(), m.hidden[k].ravel(), v.hidden[k].ravel(), hidden_gradient.ravel(), pace, step)
    _adam(online.output_bias[k], m.output_bias[k], v.output_bias[k], _column_sums(q_gradient), pace, step)
    _adam(online.hidden_bias[k], m.hidden_bias[k], v.hidden_bias[k], _column_sums(gradient2), pace, step)
    _adam(online.table_bias[k], m.table_bias[k], v.table_bias[k], _column_sums(gradient1), pace, step)
    for u in range(rows.shape[0]):
        row = rows[u]
        _adam(online.table[k, row], m.table[k, row], v.table[k, row], gradient1[u], pace, step)
        adam.settled[k, row] = step
    return True


@_compiled
def _all_finite(x: Array) -> bool:
    """Return whether no number is infinite or NaN: none has all the bits of the exponent set, which is fast to see."""
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
def _adam(
    parameter: Array, first_moment: Array, second_moment: Array, gradient: Array, pace: AdamConstants, step: int
) -> None:
    """Take one step."""
    keep1, take1, keep2, take2, epsilon = pace.keep1, pace.take1, pace.keep2, pace.take2, pace.epsilon
    step_size, root_scale = pace.step_size[step % OWED_AT_MOST], pace.root_scale[step % OWED_AT_MOST]
    for j in range(parameter.shape[0]):
        slope = gradient[j]
        first = keep1 * first_moment[j] + take1 * slope
        second = keep2 * second_moment[j] + take2 * slope * slope
        first_moment[j] = first
        second_moment[j] = second
        parameter[j] -= step_size * first / (np.sqrt(second) * root_scale + epsilon)


@_compiled
def _take_owed_steps(
    parameter: Array, first_moment: Array, second_moment: Array, pace: AdamConstants, last: int, step: int
) -> None:
    """Take the steps after `last` up to `step`, all without a gradient."""
    keep1, keep2, epsilon = pace.keep1, pace.keep2, pace.epsilon
    for owed in range(last + 1, step + 1):
        step_size, root_scale = pace.step_size[owed % OWED_AT_MOST], pace.root_scale[owed % OWED_AT_MOST]
        for j in range(parameter.shape[0]):
            first = keep1 * first_moment[j]
            second = keep2 * second_moment[j]
            first_moment[j] = first
            second_moment[j] = second
            parameter[j] -= step_size * first / (np.sqrt(second) * root_scale + epsilon)
