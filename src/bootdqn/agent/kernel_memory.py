"""Memory of the compiled kernel: named tuples of arrays, whose addresses it is given.

Rows are padded to a multiple of `BLOCK` numbers by zeros, which never change.
"""

from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.specs import Array

BLOCK = 64
"""Numbers in a block of a row: as many as an integer has bits, and eight vectors."""
BETA1, BETA2 = 0.9, 0.999
LAST_CORRECTION = 20_000
"""The step from which on the bias corrections of Adam are 1 in single precision."""
_FLOAT = np.float32


class Shape(NamedTuple):
    """The numbers of heads, observations, units and actions, and the units of a padded row."""

    heads: int
    values: int
    units1: int
    units2: int
    actions: int
    padded1: int
    padded2: int
    padded_actions: int


class Weights(NamedTuple):
    """The parameters of K networks with two hidden layers of H1 and H2 units, or one of Adam's moments of them.

    Each field is an array, its address, or within the kernel the pointer to it.
    """

    table: Any
    """(K, S, H1): the first layer, one row an observation."""
    table_bias: Any
    """(K, H1)"""
    hidden: Any
    """(K, H1, H2)"""
    hidden_bias: Any
    """(K, H2)"""
    output: Any
    """(K, A, H2), transposed."""
    output_bias: Any
    """(K, A)"""


class Networks(NamedTuple):
    """Online and target networks, Adam with PyTorch's default constants, and Q-values that are known."""

    shape: Shape
    online: Weights
    target: Weights
    first_moment: Weights
    """Running mean of gradients."""
    second_moment: Weights
    """Running mean of squared gradients."""
    steps: Any
    """(K,): the steps of Adam that each head has taken."""
    row_steps: Any
    """(K, S): the steps that each row of the table has taken; the others it takes when it is read."""
    copy_steps: Any
    """(K,): the steps before the last target copy. A row that has taken no more than these is not copied yet."""
    step_sizes: Any
    """Learning rate over (1 - beta1^t) for t = 0, 1, ...; the last one holds from then on."""
    root_scales: Any
    """1 / sqrt(1 - beta2^t) for t = 0, 1, ...; the last one holds from then on."""
    prior_q: Any
    """(K, S, A): added to the Q-values of the online and target networks."""
    target_q: Any
    """(K, S, A): target Q-values."""
    target_copy: Any
    """(K, S): the number of target copies made before the target Q-values were computed; -1 where they never were."""
    copies: Any
    """(1,): the number of target copies."""


class Scratch(NamedTuple):
    """Memory of an update on B transitions, for the U <= 2 B observations of one head at a time."""

    owned: Any
    """(B + 1,): the transitions that the head owns."""
    rows: Any
    """(U + 1,): the distinct observations, those that it learns at first."""
    place: Any
    """(S,): where each observation stands in `rows`; -1 between two heads."""
    layer1: Any
    """(U, H1)"""
    layer2: Any
    """(U, H2)"""
    q: Any
    """(U, A)"""
    active: Any
    """(U, H1 / 64): the units of the first layer that are not zero, as bits."""
    q_gradient: Any
    """(B, A)"""
    gradient1: Any
    """(B, H1)"""
    gradient2: Any
    """(B, H2)"""
    gradients: Weights
    """The gradients of all parameters of one head but the table's."""


def make_weights(shape: Shape, num_heads: int, num_values: int) -> Weights:
    """Return parameters that are all zero."""
    return Weights(
        table=aligned_zeros(num_heads, num_values, shape.padded1),
        table_bias=aligned_zeros(num_heads, shape.padded1),
        hidden=aligned_zeros(num_heads, shape.units1, shape.padded2),
        hidden_bias=aligned_zeros(num_heads, shape.padded2),
        output=aligned_zeros(num_heads, shape.actions, shape.padded2),
        output_bias=aligned_zeros(num_heads, shape.padded_actions),
    )


def make_networks(shape: Shape, learning_rate: float) -> Networks:
    """Return networks whose parameters are all zero, before the first step of Adam."""
    heads, values, steps = shape.heads, shape.values, range(1, LAST_CORRECTION + 1)
    return Networks(
        shape,
        online=make_weights(shape, heads, values),
        target=make_weights(shape, heads, values),
        first_moment=make_weights(shape, heads, values),
        second_moment=make_weights(shape, heads, values),
        steps=np.zeros(heads, np.int64),
        row_steps=np.zeros((heads, values), np.int64),
        copy_steps=np.full(heads, -1, np.int64),
        step_sizes=np.array([0.0, *(learning_rate / (1 - BETA1**step) for step in steps)], _FLOAT),
        root_scales=np.array([0.0, *(1 / (1 - BETA2**step) ** 0.5 for step in steps)], _FLOAT),
        prior_q=np.zeros((heads, values, shape.actions), _FLOAT),
        target_q=np.zeros((heads, values, shape.actions), _FLOAT),
        target_copy=np.full((heads, values), -1, np.int64),
        copies=np.zeros(1, np.int64),
    )


def make_scratch(shape: Shape, batch_size: int) -> Scratch:
    """Return memory for `update` with this batch size, or for the Q-values of twice as many observations."""
    return Scratch(
        owned=np.zeros(batch_size + 1, np.int64),
        rows=np.zeros(2 * batch_size + 1, np.int64),
        place=np.full(shape.values, -1, np.int64),
        layer1=aligned_zeros(2 * batch_size, shape.padded1),
        layer2=aligned_zeros(2 * batch_size, shape.padded2),
        q=aligned_zeros(2 * batch_size, shape.actions),
        active=np.zeros((2 * batch_size, shape.padded1 // BLOCK), np.int64),
        q_gradient=aligned_zeros(batch_size, shape.actions),
        gradient1=aligned_zeros(batch_size, shape.padded1),
        gradient2=aligned_zeros(batch_size, shape.padded2),
        gradients=make_weights(shape, 1, 0),
    )


def addresses(arrays: Any) -> Array:
    """Return the numbers in nested named tuples and the addresses of their arrays, which must be kept alive."""

    def flat(part: Any) -> list[int]:
        if isinstance(part, np.ndarray):
            return [part.ctypes.data]
        return [part] if isinstance(part, int) else [number for inner in part for number in flat(inner)]

    return np.array(flat(arrays), np.int64)


def nbytes(arrays: Any) -> int:
    """Return the bytes of all arrays in nested named tuples."""
    if isinstance(arrays, np.ndarray):
        return arrays.nbytes
    return 0 if isinstance(arrays, int) else sum(map(nbytes, arrays))


def padded(size: int, multiple: int) -> int:
    """Return the smallest multiple that is not smaller than `size`."""
    return -(-size // multiple) * multiple


def aligned_zeros(*shape: int) -> Array:
    """Return zeros that start at a line of the cache, so that no vector lies across two."""
    line, count = 64 // 4, int(np.prod(shape))
    memory = np.zeros(count + line, _FLOAT)
    start = -(memory.ctypes.data // 4) % line
    return memory[start : start + count].reshape(shape)
