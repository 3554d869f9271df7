"""The heads on a shared torso, compiled: Q-values, double-DQN, backward, Adam. Each has one hidden layer.

It computes what `AutogradLearner` computes, and is tested equal to it up to rounding. It takes about half the time:

- the online networks see the observations and the next ones together, so that weights are read once for both;
- no matrix is packed or copied: four rows of weights at a time are multiplied with the batch in the lanes of vectors;
- the gradient of the hidden weights, by far the largest, never reaches memory: Adam takes it from the registers.

Every sum has a fixed order, so the numbers are the same on every processor and for every number of threads, each of
which computes some of the heads. Numba's cache only notices changes of a function's own file: after a change of
`vectors`, remove `__pycache__`.

Shapes: K heads, B transitions, F features, H hidden units and A actions, the last three padded by zeros.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from bootdqn.agent.kernel_memory import BETA1, BETA2, aligned_zeros, padded
from bootdqn.agent.vectors import (
    WIDE,
    data_of,
    filled_wide,
    fma,
    load_wide,
    rectified,
    root,
    store,
    total,
    where_nonzero,
)
from bootdqn.common.specs import Array

ROWS = 4
"""Rows of a matrix that are multiplied at once: as many vectors as the registers of every processor hold."""
BLOCK = 64
"""Features of the weights that are copied into the innermost cache at once."""
_FLOAT = np.float32
_KEEP1, _TAKE1 = _FLOAT(BETA1), _FLOAT(1 - BETA1)  # the difference in double precision, as in PyTorch
_KEEP2, _TAKE2 = _FLOAT(BETA2), _FLOAT(1 - BETA2)
_EPSILON, _ZERO = _FLOAT(1e-8), _FLOAT(0)
_compiled = numba.njit(cache=True, error_model="numpy", nogil=True)
_inlined = numba.njit(error_model="numpy", forceinline=True)

Pointer = Any
"""A pointer to numbers, which Numba indexes as an array with one axis."""


class Heads(NamedTuple):
    """The parameters of K heads, or one of Adam's moments of them."""

    hidden: Array
    """(K, H, F)"""
    hidden_bias: Array
    """(K, H)"""
    output: Array
    """(K, A, H)"""
    output_bias: Array
    """(K, A)"""


class Transitions(NamedTuple):
    """The inputs of the losses of B transitions, besides the heads. B' is B, padded; the rest is as in `Batch`."""

    features: Array
    """(F, 2 B'): of the observations, then of the next ones, by the online torso; in DQN without the next ones."""
    next_features: Array
    """(F, B'): of the next observations, by the target torso."""
    prior: Array
    """(2, K, A, B): Q-values to be added, of the observations and the next ones; without any, (2, K, A, 0)."""
    action: Array
    reward: Array
    discount: Array
    mask: Array
    weight: Array
    next_legal: Array


class HeadGradients(NamedTuple):
    """The results of `evaluate`: losses, and gradients of the ensemble's loss but for the hidden weights."""

    loss: Array
    """(K,)"""
    finite: Array
    """(K,): 0, or NaN where a gradient of the head is not finite."""
    error: Array
    """(K, B): absolute TD errors, 0 where the head does not own the transition."""
    units: Array
    """(K, H, B'): the gradient by the sums of the hidden units."""
    hidden_bias: Array
    output: Array
    output_bias: Array


def make_heads(num_heads: int, features: int, hidden: int, num_actions: int) -> Heads:
    """Return parameters that are all zero."""
    units = padded(hidden, WIDE)
    return Heads(
        hidden=aligned_zeros(num_heads, units, padded(features, WIDE)),
        hidden_bias=aligned_zeros(num_heads, units),
        output=aligned_zeros(num_heads, padded(num_actions, ROWS), units),
        output_bias=aligned_zeros(num_heads, padded(num_actions, WIDE)),
    )


def make_gradients(heads: Heads, batch_size: int) -> HeadGradients:
    """Return memory for the results of `evaluate`."""
    num_heads, units, _ = heads.hidden.shape
    return HeadGradients(
        loss=np.zeros(num_heads, _FLOAT),
        finite=np.zeros(num_heads, _FLOAT),
        error=np.zeros((num_heads, batch_size), _FLOAT),
        units=aligned_zeros(num_heads, units, padded(batch_size, WIDE)),
        hidden_bias=aligned_zeros(*heads.hidden_bias.shape),
        output=aligned_zeros(*heads.output.shape),
        output_bias=aligned_zeros(*heads.output_bias.shape),
    )


@_compiled
def q_values(first: int, last: int, heads: Heads, features: Array, q: Array) -> None:
    """Write the Q-values (E, K, A) of the heads `first` to `last` - 1 for features (E, F) into `q`."""
    units, width = heads.hidden.shape[1:]
    weights, x, layer = data_of(heads.hidden), data_of(features), np.empty(units, _FLOAT)
    for k in range(first, last):
        for e in range(q.shape[0]):
            for n in range(0, units, ROWS):
                row, sum0 = (k * units + n) * width, filled_wide(_ZERO)
                sum1 = sum2 = sum3 = sum0
                for i in range(0, width, WIDE):
                    vector = load_wide(x, e * width + i)
                    sum0 = fma(load_wide(weights, row + i), vector, sum0)
                    sum1 = fma(load_wide(weights, row + width + i), vector, sum1)
                    sum2 = fma(load_wide(weights, row + 2 * width + i), vector, sum2)
                    sum3 = fma(load_wide(weights, row + 3 * width + i), vector, sum3)
                layer[n], layer[n + 1], layer[n + 2], layer[n + 3] = total(sum0), total(sum1), total(sum2), total(sum3)
            for n in range(units):
                value = layer[n] + heads.hidden_bias[k, n]
                layer[n] = _ZERO if value < 0 else value
            for a in range(q.shape[2]):
                q[e, k, a] = _dot(data_of(layer), data_of(heads.output[k, a]), units) + heads.output_bias[k, a]


@_compiled
def evaluate(
    first: int,
    last: int,
    online: Heads,
    target: Heads,
    data: Transitions,
    double_q: bool,
    huber: bool,
    gradients: HeadGradients,
) -> None:
    """Write the losses and gradients of the heads `first` to `last` - 1 into `gradients`.

    Args:
        first: First head.
        last: The head after the last one.
        online: Parameters of the heads that learn.
        target: Parameters of the target heads.
        data: The transitions.
        double_q: The online networks choose the next action instead of the target networks.
        huber: Huber loss with delta 1 instead of the squared one.
        gradients: Written.
    """
    units, actions = online.hidden.shape[1], online.output.shape[1]
    columns, next_columns = data.features.shape[1], data.next_features.shape[1]
    layer, q = np.empty((units, columns), _FLOAT), np.empty((actions, columns), _FLOAT)
    next_layer, next_q = np.empty((units, next_columns), _FLOAT), np.empty((actions, next_columns), _FLOAT)
    q_gradient = np.empty((actions, next_columns), _FLOAT)
    for k in range(first, last):
        _forward(online, k, data.features, layer, q)
        _forward(target, k, data.next_features, next_layer, next_q)
        for b in range(data.prior.shape[3]):
            for a in range(data.prior.shape[2]):
                q[a, b] += data.prior[0, k, a, b]
                next_q[a, b] += data.prior[1, k, a, b]
                if double_q:
                    q[a, next_columns + b] += data.prior[1, k, a, b]
        q_gradient[:] = 0
        gradients.loss[k] = _loss_gradient(k, data, q, next_q, double_q, huber, gradients, q_gradient)
        _backward(k, online, layer, q_gradient, gradients)


@_compiled
def feature_gradients(first: int, last: int, heads: Heads, gradients: HeadGradients, out: Array) -> None:
    """Write the gradient (F, B') by the features, of those in the blocks `first` to `last` - 1."""
    num_heads, units, width = heads.hidden.shape
    weights, columns = data_of(heads.hidden), out.shape[1]
    block = np.empty(WIDE * BLOCK, _FLOAT)  # in the innermost cache, where rows of weights would evict each other
    out[first * BLOCK : last * BLOCK] = 0
    for n in range(0, num_heads * units, WIDE):
        by_unit = data_of(gradients.units[n // units, n % units])
        for start in range(first * BLOCK, min(last * BLOCK, width), BLOCK):
            features = min(BLOCK, width - start)
            for row in range(WIDE):
                for i in range(0, features, WIDE):
                    store(data_of(block), row * BLOCK + i, load_wide(weights, (n + row) * width + start + i))
            _add_product(data_of(block), 1, BLOCK, features, WIDE, by_unit, columns, data_of(out[start]))


@_compiled
def fill_blocks(features: Array, blocks: Array) -> None:
    """Write features (F, ...) with a column for each of B observations as blocks (F / 16, B, 16)."""
    for block in range(blocks.shape[0]):
        for b in range(blocks.shape[1]):
            for i in range(WIDE):
                blocks[block, b, i] = features[block * WIDE + i, b]


@_compiled
def step(
    first: int,
    last: int,
    online: Heads,
    moment1: Heads,
    moment2: Heads,
    features: Array,
    gradients: HeadGradients,
    step_size: np.float32,
    root_scale: np.float32,
) -> None:
    """Let Adam move the heads `first` to `last` - 1.

    Args:
        first: First head.
        last: The head after the last one.
        online: Parameters; changed.
        moment1: Adam's first moments; changed.
        moment2: Adam's second moments; changed.
        features: (F / 16, B, 16): the features of the observations, sixteen at a time.
        gradients: The results of `evaluate`.
        step_size: Learning rate over 1 - beta1^t.
        root_scale: 1 / sqrt(1 - beta2^t).
    """
    units, width = online.hidden.shape[1:]
    size, columns = features.shape[1], gradients.units.shape[2]
    x, by_unit = data_of(features), data_of(gradients.units)
    weights, means, squares = data_of(online.hidden), data_of(moment1.hidden), data_of(moment2.hidden)
    for n in range(first * units, last * units, ROWS):
        for i in range(0, width, WIDE):
            gradient_at, sum0 = n * columns, filled_wide(_ZERO)
            sum1 = sum2 = sum3 = sum0
            for at in range(i * size, (i + WIDE) * size, WIDE):
                vector = load_wide(x, at)
                sum0 = fma(filled_wide(by_unit[gradient_at]), vector, sum0)
                sum1 = fma(filled_wide(by_unit[gradient_at + columns]), vector, sum1)
                sum2 = fma(filled_wide(by_unit[gradient_at + 2 * columns]), vector, sum2)
                sum3 = fma(filled_wide(by_unit[gradient_at + 3 * columns]), vector, sum3)
                gradient_at += 1
            row = n * width + i
            _move(weights, means, squares, row, sum0, step_size, root_scale)
            _move(weights, means, squares, row + width, sum1, step_size, root_scale)
            _move(weights, means, squares, row + 2 * width, sum2, step_size, root_scale)
            _move(weights, means, squares, row + 3 * width, sum3, step_size, root_scale)
    for k in range(first, last):
        bias, output = online.output_bias[k], online.output[k]
        adam(bias, moment1.output_bias[k], moment2.output_bias[k], gradients.output_bias[k], step_size, root_scale)
        adam(output, moment1.output[k], moment2.output[k], gradients.output[k], step_size, root_scale)
        bias = online.hidden_bias[k]
        adam(bias, moment1.hidden_bias[k], moment2.hidden_bias[k], gradients.hidden_bias[k], step_size, root_scale)


@_compiled
def adam(
    parameters: Array, moment1: Array, moment2: Array, gradient: Array, step_size: np.float32, root_scale: np.float32
) -> None:
    """Take a step of Adam with parameters of any shape, whose number is padded."""
    values, means, squares, gradients = data_of(parameters), data_of(moment1), data_of(moment2), data_of(gradient)
    for at in range(0, parameters.size, WIDE):
        _move(values, means, squares, at, load_wide(gradients, at), step_size, root_scale)


@_inlined
def _move(
    parameter: Pointer,
    moment1: Pointer,
    moment2: Pointer,
    at: int,
    gradient: Any,
    step_size: np.float32,
    root_scale: np.float32,
) -> None:
    """Take a step of Adam with sixteen numbers from `at` on."""
    mean = fma(load_wide(moment1, at), filled_wide(_KEEP1), gradient * filled_wide(_TAKE1))
    square = fma(load_wide(moment2, at), filled_wide(_KEEP2), gradient * filled_wide(_TAKE2) * gradient)
    store(moment1, at, mean)
    store(moment2, at, square)
    divisor = fma(root(square), filled_wide(root_scale), filled_wide(_EPSILON))
    store(parameter, at, load_wide(parameter, at) - mean * filled_wide(step_size) / divisor)


@_inlined
def _forward(heads: Heads, k: int, features: Array, layer: Array, q: Array) -> None:
    """Write the hidden units (H, B') and Q-values (A, B') of head k for features (F, B')."""
    units, width = heads.hidden.shape[1:]
    actions, columns = q.shape
    _fill_rows(heads.hidden_bias[k], layer)
    _add_product(data_of(heads.hidden[k]), width, 1, units, width, data_of(features), columns, data_of(layer))
    for at in range(0, layer.size, WIDE):
        store(data_of(layer), at, rectified(load_wide(data_of(layer), at)))
    _fill_rows(heads.output_bias[k], q)
    _add_product(data_of(heads.output[k]), units, 1, actions, units, data_of(layer), columns, data_of(q))


@_inlined
def _fill_rows(values: Array, out: Array) -> None:
    """Fill each row of a matrix with its value."""
    for row in range(out.shape[0]):
        for at in range(row * out.shape[1], (row + 1) * out.shape[1], WIDE):
            store(data_of(out), at, filled_wide(values[row]))


@_inlined
def _add_product(
    matrix: Pointer, row_stride: int, stride: int, rows: int, width: int, x: Pointer, columns: int, out: Pointer
) -> None:
    """Add a matrix (rows, width) with these strides times x (width, columns) to `out`, with columns in the lanes."""
    for row in range(0, rows, ROWS):
        for column in range(0, columns, WIDE):
            out_at, matrix_at, x_at = row * columns + column, row * row_stride, column
            sum0, sum1 = load_wide(out, out_at), load_wide(out, out_at + columns)
            sum2, sum3 = load_wide(out, out_at + 2 * columns), load_wide(out, out_at + 3 * columns)
            for _ in range(width):
                vector = load_wide(x, x_at)
                sum0 = fma(filled_wide(matrix[matrix_at]), vector, sum0)
                sum1 = fma(filled_wide(matrix[matrix_at + row_stride]), vector, sum1)
                sum2 = fma(filled_wide(matrix[matrix_at + 2 * row_stride]), vector, sum2)
                sum3 = fma(filled_wide(matrix[matrix_at + 3 * row_stride]), vector, sum3)
                matrix_at += stride
                x_at += columns
            store(out, out_at, sum0)
            store(out, out_at + columns, sum1)
            store(out, out_at + 2 * columns, sum2)
            store(out, out_at + 3 * columns, sum3)


@_inlined
def _dot(x: Pointer, y: Pointer, width: int) -> Any:
    """Return the product of two rows of `width` numbers: sixteen sums over every sixteenth number, then `total`."""
    products = load_wide(x, 0) * load_wide(y, 0)
    for i in range(WIDE, width, WIDE):
        products = fma(load_wide(x, i), load_wide(y, i), products)
    return total(products)


@_inlined
def _loss_gradient(
    k: int,
    data: Transitions,
    q: Array,
    next_q: Array,
    double_q: bool,
    huber: bool,
    gradients: HeadGradients,
    q_gradient: Array,
) -> np.float32:
    """Return head k's loss; write its TD errors, and the gradient of the ensemble's loss by its Q-values."""
    (size, num_heads), num_actions, owned = data.mask.shape, data.prior.shape[2], 0
    for b in range(size):
        owned += data.mask[b, k]
    share = _FLOAT(1.0 / max(owned, 1))
    gradient_scale = share / _FLOAT(num_heads)
    loss = _ZERO
    for b in range(size):
        gradients.error[k, b] = _ZERO
        if not data.mask[b, k]:
            continue
        target, weight, action = data.reward[b], data.weight[b], data.action[b]
        if data.discount[b] != 0:
            if double_q:
                chosen = _best(q, next_q.shape[1] + b, num_actions, data.next_legal, b)
            else:
                chosen = _best(next_q, b, num_actions, data.next_legal, b)
            target += data.discount[b] * next_q[chosen, b]
        error = q[action, b] - target
        gradients.error[k, b] = abs(error)
        if not huber:
            loss += weight * error * error
            gradient = _FLOAT(2) * error
        elif abs(error) < 1:
            loss += weight * _FLOAT(0.5) * error * error
            gradient = error
        else:
            loss += weight * (abs(error) - _FLOAT(0.5))
            gradient = np.sign(error)
        q_gradient[action, b] = gradient_scale * weight * gradient
    return loss * share


@_inlined
def _best(q: Array, column: int, num_actions: int, legal: Array, b: int) -> int:
    """Return the best legal action by a column of Q-values, the lowest on a tie."""
    best, largest = 0, _FLOAT(-np.inf)
    for a in range(num_actions):
        if (legal.shape[0] == 0 or legal[b, a]) and q[a, column] > largest:
            best, largest = a, q[a, column]
    return best


@_inlined
def _backward(k: int, heads: Heads, layer: Array, q_gradient: Array, gradients: HeadGradients) -> None:
    """Write the gradients of head k but for the hidden weights, and whether they are finite."""
    units, columns = layer.shape
    actions, width = q_gradient.shape
    activations, by_q, by_unit = data_of(layer), data_of(q_gradient), data_of(gradients.units[k])
    zero = filled_wide(_ZERO)
    zeros = zero  # 0 times a number that is not finite is NaN
    for n in range(units):
        sums = zero
        for column in range(0, width, WIDE):
            gradient = zero
            for a in range(actions):
                gradient = fma(filled_wide(heads.output[k, a, n]), load_wide(by_q, a * width + column), gradient)
            gradient = where_nonzero(load_wide(activations, n * columns + column), gradient)
            store(by_unit, n * width + column, gradient)
            sums, zeros = sums + gradient, fma(gradient, zero, zeros)
        gradients.hidden_bias[k, n] = total(sums)
    finite = total(zeros)
    for a in range(actions):
        sums = zero
        for column in range(0, width, WIDE):
            sums = sums + load_wide(by_q, a * width + column)
        gradients.output_bias[k, a] = total(sums)
        for n in range(units):
            gradients.output[k, a, n] = _dot(data_of(q_gradient[a]), data_of(layer[n]), width)
            finite += gradients.output[k, a, n] * _ZERO
    gradients.finite[k] = finite
