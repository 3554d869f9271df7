"""One update of K small networks on discrete observations, compiled: forward, double-DQN, backward, Adam.

It computes what `AutogradLearner` computes for independent networks of two hidden layers, and is tested equal to it
up to rounding. It is many times faster because it does less:

- a head's pass covers only the transitions its mask owns, and each *distinct* observation among them once: equal
  observations have equal values, and their gradients add up before the backward pass;
- products skip the units that a ReLU has set to zero, more than half of them;
- target Q-values are kept until the next target copy, so each observation's is computed once between two copies;
- the first layer is a table whose gradient is non-zero only in the rows of the batch. Adam moves the other rows as
  well, since their moments decay. They take these steps, and the target copy, when they are next read (`_update_row`);
- everything for one head is computed while its weights are in the cache.

Every sum has a fixed order, so the same numbers come out on every processor. Arrays are passed as addresses: Numba
would count the references to each array in every function.

Numba compiles this on first use and caches the machine code; no compiler needs to be installed. It is one file because
Numba's cache only notices changes of a function's own file: after a change of `kernel_memory` or `vectors`, remove
`__pycache__`.
"""

from typing import Any

import numba
import numpy as np

from bootdqn.agent.kernel_memory import BETA1, BETA2, BLOCK, LAST_CORRECTION, Networks, Scratch, Shape, Weights
from bootdqn.agent.vectors import (
    LANES,
    WIDE,
    data_of,
    differences,
    filled,
    floats,
    fma,
    integers,
    load,
    lowest_bit,
    prefetch,
    rectified,
    root,
    store,
    total,
    where_nonzero,
)
from bootdqn.common.specs import Array, Batch

_FLOAT = np.float32
DONE, INFINITE_LOSS, INFINITE_GRADIENT = 0, 1, 2
_KEEP1, _TAKE1 = _FLOAT(BETA1), _FLOAT(1 - BETA1)  # the difference in double precision, as in PyTorch
_KEEP2, _TAKE2 = _FLOAT(BETA2), _FLOAT(1 - BETA2)
_EPSILON, _ZERO = _FLOAT(1e-8), _FLOAT(0)
_ONE, _NO_BITS = np.uint64(1), np.uint64(0)
_compiled = numba.njit(cache=True, error_model="numpy")
_inlined = numba.njit(error_model="numpy", forceinline=True)

Pointer = Any
"""A pointer to numbers, which Numba indexes as an array with one axis."""


@_compiled
def q_values(at: Array, memory: Array, observation: Array, q: Array) -> None:
    """Write the online Q-values (E, K, A) of observations (E,) into `q`."""
    networks, scratch, rows = _networks(at), _scratch(memory), data_of(observation)
    count, num_actions = observation.shape[0], networks.shape.actions
    for k in range(networks.shape.heads):
        for u in range(count):
            _update_row(networks, k, rows[u])
        _forward(networks.shape, networks.online, networks.prior_q, k, rows, count, scratch)
        for u in range(count):
            for a in range(num_actions):
                q[u, k, a] = scratch.q[u * num_actions + a]


@_compiled
def apply_pending_steps(at: Array) -> None:
    """Bring every row of the table up to date, online and target; nothing that follows is changed by this."""
    networks = _networks(at)
    for k in range(networks.shape.heads):
        for row in range(networks.shape.values):
            _update_row(networks, k, row)
        networks.copy_steps[k] = -1


@_compiled
def update(
    at: Array, memory: Array, batch: Batch, double_q: bool, huber: bool, head_loss: Array, td_error: Array
) -> int:
    """Take one gradient step of every head, in place.

    Args:
        at: Addresses of the networks; changed.
        memory: Addresses of memory for this batch size.
        batch: The transitions; a next observation is read only where its discount is not 0.
        double_q: The online networks choose the next action instead of the target networks.
        huber: Huber loss with delta 1 instead of the squared one.
        head_loss: (K,), written.
        td_error: (B,), written: mean absolute TD error over the heads that own the transition.

    Returns:
        `DONE`, or `INFINITE_LOSS` or `INFINITE_GRADIENT` of the first head whose `head_loss` is not finite; neither it
        nor the heads after it have learned.
    """
    networks, scratch, data = _networks(at), _scratch(memory), _batch(batch)
    size, heads, masked = td_error.shape[0], networks.shape.heads, batch.next_legal.shape[0] > 0
    errors = data_of(td_error)
    head_loss[:] = 0
    td_error[:] = 0
    for k in range(heads):
        owned = _owned(data.mask, k, size, heads, scratch.owned)
        _complete_target_q(networks, k, data, scratch, owned)
        learned, count = _distinct_rows(data, double_q, scratch, owned)
        for u in range(count):
            _update_row(networks, k, scratch.rows[u])
            if k + 1 < heads:
                _prefetch_row(networks, k + 1, scratch.rows[u])
        _forward(networks.shape, networks.online, networks.prior_q, k, scratch.rows, count, scratch)
        loss = _loss_gradient(networks, k, data, masked, double_q, huber, scratch, owned, learned, errors)
        head_loss[k] = loss
        for u in range(count):
            scratch.place[scratch.rows[u]] = -1
        if not np.isfinite(loss):
            return INFINITE_LOSS
        if not _learn(networks, k, scratch, learned):
            head_loss[k] = np.nan
            return INFINITE_GRADIENT
    _average_over_owners(data.mask, heads, size, errors)
    return DONE


@_inlined
def _weights(at: Array, first: int) -> Weights:
    """Return the pointers to weights whose addresses start at `first`."""
    return Weights(
        floats(at[first]),
        floats(at[first + 1]),
        floats(at[first + 2]),
        floats(at[first + 3]),
        floats(at[first + 4]),
        floats(at[first + 5]),
    )


@_inlined
def _networks(at: Array) -> Networks:
    """Return the pointers at the addresses `at`."""
    return Networks(
        Shape(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]),
        _weights(at, 8),
        _weights(at, 14),
        _weights(at, 20),
        _weights(at, 26),
        integers(at[32]),
        integers(at[33]),
        integers(at[34]),
        floats(at[35]),
        floats(at[36]),
        floats(at[37]),
        floats(at[38]),
        integers(at[39]),
        integers(at[40]),
    )


@_inlined
def _scratch(at: Array) -> Scratch:
    """Return the pointers at the addresses `at`."""
    return Scratch(
        integers(at[0]),
        integers(at[1]),
        integers(at[2]),
        floats(at[3]),
        floats(at[4]),
        floats(at[5]),
        integers(at[6]),
        floats(at[7]),
        floats(at[8]),
        floats(at[9]),
        _weights(at, 10),
    )


@_inlined
def _batch(batch: Batch) -> Batch:
    """Return the pointers to the arrays of a batch."""
    return Batch(
        data_of(batch.observation),
        data_of(batch.action),
        data_of(batch.reward),
        data_of(batch.discount),
        data_of(batch.next_observation),
        data_of(batch.mask),
        data_of(batch.weight),
        data_of(batch.slot),
        data_of(batch.next_legal),
    )


@_inlined
def _update_row(networks: Networks, k: int, row: int) -> None:
    """Bring one row of head k's table up to date: take the steps of Adam it is behind, and the target copy among them.

    Its gradient has been 0 in all of these steps.
    """
    at = k * networks.shape.values + row
    before, copied, now = networks.row_steps[at], networks.copy_steps[k], networks.steps[k]
    if before > copied and before == now:
        return
    width, start = networks.shape.padded1, at * networks.shape.padded1
    if before <= copied:
        _adam_without_gradient(networks, start, before, copied)
        for j in range(start, start + width, LANES):
            store(networks.target.table, j, load(networks.online.table, j))
        before = copied
    _adam_without_gradient(networks, start, before, now)
    networks.row_steps[at] = now


@_inlined
def _adam_without_gradient(networks: Networks, start: int, before: int, after: int) -> None:
    """Take the steps `before` + 1 to `after` of Adam without gradient, in the row of the table at `start`.

    Each step is smaller than 0.92 times the last one: the first moment decays much faster than the root of the second.
    So from the first step on that no longer changes the parameters, only the moments change. Every step waits for the
    one before it, so four vectors take theirs together.
    """
    table, moment1, moment2 = networks.online.table, networks.first_moment.table, networks.second_moment.table
    zero, keep1, keep2, epsilon = filled(_ZERO), filled(_KEEP1), filled(_KEEP2), filled(_EPSILON)
    for at in range(start, start + networks.shape.padded1, 4 * LANES):
        at1, at2, at3 = at + LANES, at + 2 * LANES, at + 3 * LANES
        p0, p1, p2, p3 = load(table, at), load(table, at1), load(table, at2), load(table, at3)
        f0, f1, f2, f3 = load(moment1, at), load(moment1, at1), load(moment1, at2), load(moment1, at3)
        s0, s1, s2, s3 = load(moment2, at), load(moment2, at1), load(moment2, at2), load(moment2, at3)
        step = before
        moved = _ONE
        while step < after and moved != _NO_BITS:
            step += 1
            index = min(step, LAST_CORRECTION)
            size, scale = filled(networks.step_sizes[index]), filled(networks.root_scales[index])
            f0, f1, f2, f3 = f0 * keep1, f1 * keep1, f2 * keep1, f3 * keep1
            s0, s1, s2, s3 = s0 * keep2, s1 * keep2, s2 * keep2, s3 * keep2
            q0 = p0 - f0 * size / fma(root(s0), scale, epsilon)
            q1 = p1 - f1 * size / fma(root(s1), scale, epsilon)
            q2 = p2 - f2 * size / fma(root(s2), scale, epsilon)
            q3 = p3 - f3 * size / fma(root(s3), scale, epsilon)
            moved = differences(q0, p0) | differences(q1, p1) | differences(q2, p2) | differences(q3, p3)
            p0, p1, p2, p3 = q0, q1, q2, q3
        left = _ONE
        while step < after and left != _NO_BITS:
            step += 1
            f0, f1, f2, f3 = f0 * keep1, f1 * keep1, f2 * keep1, f3 * keep1
            s0, s1, s2, s3 = s0 * keep2, s1 * keep2, s2 * keep2, s3 * keep2
            left = differences(s0, zero) | differences(s1, zero) | differences(s2, zero) | differences(s3, zero)
            left |= differences(f0, zero) | differences(f1, zero) | differences(f2, zero) | differences(f3, zero)
        store(table, at, p0)
        store(table, at1, p1)
        store(table, at2, p2)
        store(table, at3, p3)
        store(moment1, at, f0)
        store(moment1, at1, f1)
        store(moment1, at2, f2)
        store(moment1, at3, f3)
        store(moment2, at, s0)
        store(moment2, at1, s1)
        store(moment2, at2, s2)
        store(moment2, at3, s3)


@_inlined
def _prefetch_row(networks: Networks, k: int, row: int) -> None:
    """Ask for a row of head k's table and its moments, which the next head will need."""
    start = (k * networks.shape.values + row) * networks.shape.padded1
    for at in range(start, start + networks.shape.units1, WIDE):
        prefetch(networks.online.table, at)
        prefetch(networks.first_moment.table, at)
        prefetch(networks.second_moment.table, at)


@_inlined
def _forward(
    shape: Shape, weights: Weights, prior_q: Pointer, k: int, rows: Pointer, count: int, scratch: Scratch
) -> None:
    """Pass `count` observations through network k and add its prior: `layer1`, `active`, `layer2` and `q`."""
    width1, width2, blocks = shape.padded1, shape.padded2, shape.padded1 // BLOCK
    layer1, layer2 = scratch.layer1, scratch.layer2
    for u in range(count):  # one layer after the other: the active units of all rows are known before the product
        row = k * shape.values + rows[u]
        for block in range(blocks):
            bits = _NO_BITS
            for j in range(block * BLOCK, (block + 1) * BLOCK, LANES):
                before = load(weights.table, row * width1 + j) + load(weights.table_bias, k * width1 + j)
                unit = rectified(before)
                store(layer1, u * width1 + j, unit)
                bits |= differences(unit, filled(_ZERO)) << np.uint64(j % BLOCK)
            scratch.active[u * blocks + block] = np.int64(bits)
    for u in range(count):
        for j in range(0, width2, BLOCK):
            _hidden_units(shape, weights, k, u, j, scratch)
    for u in range(count):
        row = k * shape.values + rows[u]
        for a in range(shape.actions):
            value = _dot(layer2, u * width2, weights.output, (k * shape.actions + a) * width2, width2)
            value += weights.output_bias[k * shape.padded_actions + a]
            scratch.q[u * shape.actions + a] = value + prior_q[row * shape.actions + a]


@_inlined
def _hidden_units(shape: Shape, weights: Weights, k: int, u: int, j: int, scratch: Scratch) -> None:
    """Write the units j to j + 63 of the second layer: bias, plus the rows of the active units in their order."""
    width1, width2, blocks = shape.padded1, shape.padded2, shape.padded1 // BLOCK
    bias, m, out, at = weights.hidden_bias, weights.hidden, scratch.layer2, k * width2 + j
    sum0, sum1, sum2, sum3 = load(bias, at), load(bias, at + 8), load(bias, at + 16), load(bias, at + 24)
    sum4, sum5, sum6, sum7 = load(bias, at + 32), load(bias, at + 40), load(bias, at + 48), load(bias, at + 56)
    for block in range(blocks):
        left, first = np.uint64(scratch.active[u * blocks + block]), block * BLOCK
        while left != _NO_BITS:
            i = first + lowest_bit(left)
            left &= left - _ONE
            factor, row = filled(scratch.layer1[u * width1 + i]), (k * shape.units1 + i) * width2 + j
            sum0 = fma(factor, load(m, row), sum0)
            sum1 = fma(factor, load(m, row + 8), sum1)
            sum2 = fma(factor, load(m, row + 16), sum2)
            sum3 = fma(factor, load(m, row + 24), sum3)
            sum4 = fma(factor, load(m, row + 32), sum4)
            sum5 = fma(factor, load(m, row + 40), sum5)
            sum6 = fma(factor, load(m, row + 48), sum6)
            sum7 = fma(factor, load(m, row + 56), sum7)
    at = u * width2 + j
    store(out, at, rectified(sum0))
    store(out, at + 8, rectified(sum1))
    store(out, at + 16, rectified(sum2))
    store(out, at + 24, rectified(sum3))
    store(out, at + 32, rectified(sum4))
    store(out, at + 40, rectified(sum5))
    store(out, at + 48, rectified(sum6))
    store(out, at + 56, rectified(sum7))


@_inlined
def _dot(x: Pointer, x_start: int, y: Pointer, y_start: int, width: int) -> Any:
    """Return the product of two rows of `width` numbers: eight sums over every eighth number, then `total`."""
    products = load(x, x_start) * load(y, y_start)
    for j in range(LANES, width, LANES):
        products = fma(load(x, x_start + j), load(y, y_start + j), products)
    return total(products)


@_inlined
def _owned(mask: Pointer, k: int, size: int, heads: int, owned: Pointer) -> int:
    """List the transitions that head k owns, and return how many there are."""
    count = 0
    for b in range(size):
        owned[count] = b  # without a branch, which no processor could predict
        count += mask[b * heads + k]
    return count


@_inlined
def _complete_target_q(networks: Networks, k: int, batch: Batch, scratch: Scratch, owned: int) -> None:
    """Compute the target Q-values of head k that this batch needs and that are not known yet."""
    shape, rows, copies, count = networks.shape, scratch.rows, networks.copies[0], 0
    for n in range(owned):
        b = scratch.owned[n]
        if batch.discount[b] != 0:
            row = batch.next_observation[b]
            if networks.target_copy[k * shape.values + row] != copies:
                networks.target_copy[k * shape.values + row] = copies
                rows[count] = row
                count += 1
    for u in range(count):
        _update_row(networks, k, rows[u])
    if count:
        _forward(shape, networks.target, networks.prior_q, k, rows, count, scratch)
    for u in range(count):
        for a in range(shape.actions):
            networks.target_q[(k * shape.values + rows[u]) * shape.actions + a] = scratch.q[u * shape.actions + a]


@_inlined
def _distinct_rows(batch: Batch, double_q: bool, scratch: Scratch, owned: int) -> tuple[int, int]:
    """List the distinct observations that a head needs, those it learns at first.

    Next observations are needed only to choose an action there, in double DQN.

    Returns:
        The number of observations it learns at, and of all.
    """
    count, rows, place = 0, scratch.rows, scratch.place
    for n in range(owned):
        row = batch.observation[scratch.owned[n]]
        before = place[row]
        rows[count] = row
        place[row] = count if before < 0 else before
        count += before < 0
    learned = count
    for n in range(owned if double_q else 0):
        b = scratch.owned[n]
        if batch.discount[b] != 0:
            row = batch.next_observation[b]
            before = place[row]
            rows[count] = row
            place[row] = count if before < 0 else before
            count += before < 0
    return learned, count


@_inlined
def _loss_gradient(
    networks: Networks,
    k: int,
    batch: Batch,
    masked: bool,
    double_q: bool,
    huber: bool,
    scratch: Scratch,
    owned: int,
    learned: int,
    td_error: Pointer,
) -> np.float32:
    """Return head k's loss; write the gradient of the ensemble's loss by its Q-values, and add up its TD errors."""
    num_actions, q, q_gradient = networks.shape.actions, scratch.q, scratch.q_gradient
    share = _FLOAT(1.0 / max(owned, 1))
    gradient_scale = share / _FLOAT(networks.shape.heads)
    for n in range(learned * num_actions):
        q_gradient[n] = _ZERO
    loss = _ZERO
    for n in range(owned):
        b = scratch.owned[n]
        target, weight = batch.reward[b], batch.weight[b]
        if batch.discount[b] != 0:
            row = batch.next_observation[b]
            next_q_start = (k * networks.shape.values + row) * num_actions
            choosing, start = (q, scratch.place[row] * num_actions) if double_q else (networks.target_q, next_q_start)
            if masked:
                chosen = _legal_argmax(choosing, start, num_actions, batch.next_legal, b * num_actions)
            else:
                chosen = _argmax(choosing, start, num_actions)
            target += batch.discount[b] * networks.target_q[next_q_start + chosen]
        index = scratch.place[batch.observation[b]] * num_actions + batch.action[b]
        error = q[index] - target
        td_error[b] += abs(error)
        if not huber:
            loss += weight * error * error
            gradient = _FLOAT(2) * error
        elif abs(error) < 1:
            loss += weight * _FLOAT(0.5) * error * error
            gradient = error
        else:
            loss += weight * (abs(error) - _FLOAT(0.5))
            gradient = np.sign(error)
        q_gradient[index] += gradient_scale * weight * gradient
    return loss * share


@_inlined
def _legal_argmax(x: Pointer, start: int, count: int, legal: Pointer, first: int) -> int:
    """Return the index of the largest of `count` numbers from `start` on whose flags from `first` on are true."""
    best, largest = 0, -np.inf
    for a in range(count):
        if 0 + legal[first + a] > 0 and x[start + a] > largest:  # a flag in memory is a byte
            best, largest = a, x[start + a]
    return best


@_inlined
def _argmax(x: Pointer, start: int, count: int) -> int:
    """Return the index of the largest of `count` numbers from `start` on, the lowest on a tie."""
    best, largest = 0, x[start]
    for a in range(1, count):
        value = x[start + a]
        best, largest = (a, value) if value > largest else (best, largest)
    return best


@_inlined
def _average_over_owners(mask: Pointer, heads: int, size: int, td_error: Pointer) -> None:
    """Divide each transition's sum of errors by the number of heads that own it."""
    for b in range(size):
        owners = 0
        for k in range(heads):
            owners += mask[b * heads + k]
        td_error[b] /= _FLOAT(max(owners, 1))


@_inlined
def _learn(networks: Networks, k: int, scratch: Scratch, learned: int) -> bool:
    """Backpropagate through network k and let Adam move its parameters, unless a gradient is not finite."""
    shape, gradients = networks.shape, scratch.gradients
    width1, width2, width3 = shape.padded1, shape.padded2, shape.padded_actions
    hidden_size, output_size = shape.units1 * width2, shape.actions * width2
    _clear(gradients.output, output_size)
    _clear(gradients.output_bias, width3)
    _clear(gradients.hidden, hidden_size)
    _backward_output(networks, k, scratch, learned)
    _backward_hidden(networks, k, scratch, learned)
    _sum_rows(scratch.gradient2, learned, width2, gradients.hidden_bias)
    _sum_rows(scratch.gradient1, learned, width1, gradients.table_bias)
    finite = _all_finite(scratch.gradient1, learned * width1) and _all_finite(gradients.hidden, hidden_size)
    finite = finite and _all_finite(gradients.output, output_size) and _all_finite(gradients.table_bias, width1)
    if not (finite and _all_finite(gradients.hidden_bias, width2)):
        return False
    networks.steps[k] += 1
    online, first, second = networks.online, networks.first_moment, networks.second_moment
    step = min(networks.steps[k], LAST_CORRECTION)
    size, scale = networks.step_sizes[step], networks.root_scales[step]
    _adam(online.output, first.output, second.output, k * output_size, gradients.output, 0, output_size, size, scale)
    _adam(online.hidden, first.hidden, second.hidden, k * hidden_size, gradients.hidden, 0, hidden_size, size, scale)
    _adam(
        online.output_bias,
        first.output_bias,
        second.output_bias,
        k * width3,
        gradients.output_bias,
        0,
        width3,
        size,
        scale,
    )
    _adam(
        online.hidden_bias,
        first.hidden_bias,
        second.hidden_bias,
        k * width2,
        gradients.hidden_bias,
        0,
        width2,
        size,
        scale,
    )
    _adam(
        online.table_bias, first.table_bias, second.table_bias, k * width1, gradients.table_bias, 0, width1, size, scale
    )
    for u in range(learned):
        row, from_ = k * shape.values + scratch.rows[u], u * width1
        _adam(
            online.table, first.table, second.table, row * width1, scratch.gradient1, from_, shape.units1, size, scale
        )
        networks.row_steps[row] = networks.steps[k]
    return True


@_inlined
def _backward_output(networks: Networks, k: int, scratch: Scratch, learned: int) -> None:
    """Write the gradient by the second layer, and those by the weights and biases of the output."""
    num_actions, width = networks.shape.actions, networks.shape.padded2
    gradients = scratch.gradients
    for u in range(learned):
        for a in range(num_actions):
            gradients.output_bias[a] += scratch.q_gradient[u * num_actions + a]
        for j in range(0, width, LANES):
            activation, gradient = load(scratch.layer2, u * width + j), filled(_ZERO)
            for a in range(num_actions):
                factor, index = filled(scratch.q_gradient[u * num_actions + a]), a * width + j
                gradient = fma(factor, load(networks.online.output, k * num_actions * width + index), gradient)
                store(gradients.output, index, fma(factor, activation, load(gradients.output, index)))
            store(scratch.gradient2, u * width + j, where_nonzero(activation, gradient))


@_inlined
def _backward_hidden(networks: Networks, k: int, scratch: Scratch, learned: int) -> None:
    """Write the gradient by the first layer, and add up the one by the hidden weights, both of active units only."""
    width1, width2 = networks.shape.padded1, networks.shape.padded2
    hidden, gradient1, sums = networks.online.hidden, scratch.gradient1, scratch.gradients.hidden
    blocks = width1 // BLOCK
    _clear(gradient1, learned * width1)
    for u in range(learned):
        for j in range(0, width2, BLOCK):
            x, at = scratch.gradient2, u * width2 + j
            x0, x1, x2, x3 = load(x, at), load(x, at + 8), load(x, at + 16), load(x, at + 24)
            x4, x5, x6, x7 = load(x, at + 32), load(x, at + 40), load(x, at + 48), load(x, at + 56)
            for block in range(blocks):
                left, first = np.uint64(scratch.active[u * blocks + block]), block * BLOCK
                while left != _NO_BITS:
                    i = first + lowest_bit(left)
                    left &= left - _ONE
                    row, to, unit = (k * networks.shape.units1 + i) * width2 + j, i * width2 + j, u * width1 + i
                    gradient = x0 * load(hidden, row)
                    gradient = fma(x1, load(hidden, row + 8), gradient)
                    gradient = fma(x2, load(hidden, row + 16), gradient)
                    gradient = fma(x3, load(hidden, row + 24), gradient)
                    gradient = fma(x4, load(hidden, row + 32), gradient)
                    gradient = fma(x5, load(hidden, row + 40), gradient)
                    gradient = fma(x6, load(hidden, row + 48), gradient)
                    gradient = fma(x7, load(hidden, row + 56), gradient)
                    gradient1[unit] += total(gradient)
                    factor = filled(scratch.layer1[unit])
                    store(sums, to, fma(factor, x0, load(sums, to)))
                    store(sums, to + 8, fma(factor, x1, load(sums, to + 8)))
                    store(sums, to + 16, fma(factor, x2, load(sums, to + 16)))
                    store(sums, to + 24, fma(factor, x3, load(sums, to + 24)))
                    store(sums, to + 32, fma(factor, x4, load(sums, to + 32)))
                    store(sums, to + 40, fma(factor, x5, load(sums, to + 40)))
                    store(sums, to + 48, fma(factor, x6, load(sums, to + 48)))
                    store(sums, to + 56, fma(factor, x7, load(sums, to + 56)))


@_inlined
def _clear(x: Pointer, count: int) -> None:
    """Set `count` numbers to zero."""
    for at in range(0, count, LANES):
        store(x, at, filled(_ZERO))


@_inlined
def _sum_rows(x: Pointer, count: int, width: int, sums: Pointer) -> None:
    """Write the sum of the first `count` rows."""
    for j in range(0, width, LANES):
        sum_ = filled(_ZERO)
        for u in range(count):
            sum_ = sum_ + load(x, u * width + j)
        store(sums, j, sum_)


@_inlined
def _all_finite(x: Pointer, count: int) -> bool:
    """Return whether none of `count` numbers is infinite or NaN; 0 times such a number is NaN."""
    zero = filled(_ZERO)
    zeros = zero
    for at in range(0, count, LANES):
        zeros = fma(load(x, at), zero, zeros)
    return bool(differences(zeros, zero) == _NO_BITS)


@_inlined
def _adam(
    parameter: Pointer,
    first_moment: Pointer,
    second_moment: Pointer,
    start: int,
    gradient: Pointer,
    gradient_start: int,
    width: int,
    step_size: np.float32,
    root_scale: np.float32,
) -> None:
    """Take a step of Adam with `width` numbers from `start` on."""
    size, scale, epsilon = filled(step_size), filled(root_scale), filled(_EPSILON)
    keep1, take1, keep2, take2 = filled(_KEEP1), filled(_TAKE1), filled(_KEEP2), filled(_TAKE2)
    for j in range(0, width, LANES):
        at, values = start + j, load(gradient, gradient_start + j)
        first = fma(load(first_moment, at), keep1, values * take1)
        second = fma(load(second_moment, at), keep2, values * take2 * values)
        store(first_moment, at, first)
        store(second_moment, at, second)
        store(parameter, at, load(parameter, at) - first * size / fma(root(second), scale, epsilon))
