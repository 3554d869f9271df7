"""Numbers that can be changed and drawn in proportion to their size, many at a time, each in logarithmic time.

A binary tree in one array: node i has the children 2i and 2i + 1 and holds their sum, the leaves are the numbers, the
root is node 1. A sum is always computed again from its two children, never adjusted by a difference: no error builds
up, and equal leaves make equal trees whatever happened before.
"""

import numba
import numpy as np

from bootdqn.common.specs import Array

_compiled = numba.njit(cache=True)


class SumTree:
    """Non-negative numbers by index, 0 at first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._first_leaf = 1 << max(size - 1, 0).bit_length()
        self._nodes = np.zeros(2 * self._first_leaf)

    @property
    def total(self) -> float:
        """The sum of all numbers."""
        return float(self._nodes[1])

    @property
    def values(self) -> Array:
        """The numbers (size,): a view that cannot be written to."""
        values = self._nodes[self._first_leaf : self._first_leaf + self._size]
        values.flags.writeable = False
        return values

    @property
    def nbytes(self) -> int:
        """Memory that the tree takes."""
        return self._nodes.nbytes

    def set(self, index: int, value: float) -> None:
        """Change one number."""
        _set(self._nodes, self._first_leaf + index, value)

    def set_many(self, index: Array, values: Array) -> None:
        """Change the numbers at `index` (B,) to `values` (B,); of an index that is there twice the last counts."""
        _set_many(self._nodes, self._first_leaf, index, values)

    def set_all(self, values: Array) -> None:
        """Change all numbers to `values` (size,)."""
        self._nodes[self._first_leaf : self._first_leaf + self._size] = values
        level = self._first_leaf
        while level > 1:
            children = self._nodes[level : 2 * level]
            level //= 2
            self._nodes[level : 2 * level] = children[::2] + children[1::2]

    def find(self, mass: Array) -> Array:
        """Return for each of `mass` (B,), in [0, total), the index at which the sum of the numbers up to it exceeds it.

        A number that is 0 is never found, even where rounding has put a mass beyond the total.
        """
        return _find(self._nodes, self._first_leaf, mass)


@_compiled
def _set(nodes: Array, node: int, value: float) -> None:
    nodes[node] = value
    while node > 1:
        node //= 2
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]


@_compiled
def _set_many(nodes: Array, first_leaf: int, index: Array, values: Array) -> None:
    for b in range(index.shape[0]):
        _set(nodes, first_leaf + index[b], values[b])


@_compiled
def _find(nodes: Array, first_leaf: int, mass: Array) -> Array:
    found = np.empty(mass.shape[0], np.int64)
    for b in range(mass.shape[0]):
        rest, node = mass[b], 1
        while node < first_leaf:
            node *= 2
            left = nodes[node]
            if rest >= left and nodes[node + 1] > 0:
                rest -= left
                node += 1
        found[b] = node - first_leaf
    return found
