"""Proportional prioritized sampling (Schaul et al. 2016) with a sum tree."""

import numba
import numpy as np

from bootdqn.common.specs import Array

_compiled = numba.njit(cache=True)


class SumTree:
    """A binary tree of sums over non-negative numbers, which are 0 at first."""

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
        """The numbers (size,), a read-only view."""
        values = self._nodes[self._first_leaf : self._first_leaf + self._size]
        values.flags.writeable = False
        return values

    @property
    def nbytes(self) -> int:
        """Memory of the tree in bytes."""
        return self._nodes.nbytes

    def set(self, index: int, value: float) -> None:
        """Set one number."""
        _set(self._nodes, self._first_leaf + index, value)

    def set_many(self, index: Array, values: Array) -> None:
        """Set the numbers at `index` (B,) to `values` (B,); the last one counts where an index is repeated."""
        _set_many(self._nodes, self._first_leaf, index, values)

    def set_all(self, values: Array) -> None:
        """Set all numbers to `values` (size,)."""
        self._nodes[self._first_leaf : self._first_leaf + self._size] = values
        level = self._first_leaf
        while level > 1:
            children = self._nodes[level : 2 * level]
            level //= 2
            self._nodes[level : 2 * level] = children[::2] + children[1::2]

    def find(self, mass: Array) -> Array:
        """Return for each `mass` (B,) in [0, total) the first index at which the cumulative sum exceeds it.

        A number that is 0 is never found, even if rounding puts a mass beyond the total.
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
    node, rest = np.ones(mass.shape[0], np.int64), mass.copy()
    level = 1
    while level < first_leaf:
        level *= 2
        for b in range(mass.shape[0]):  # inner, so that the processor fetches the nodes of several numbers at once
            child = 2 * node[b]
            left = nodes[child]
            right = rest[b] >= left and nodes[child + 1] > 0
            rest[b] -= left if right else 0.0
            node[b] = child + right
    return node - first_leaf


MIN_ERROR = 1e-6
"""Added to every error, so that every transition can be sampled."""


class Priorities:
    """Priorities `(|error| + MIN_ERROR) ** alpha` of the slots with a transition, 0 for the others."""

    def __init__(self, num_slots: int, alpha: float) -> None:
        self._alpha = alpha
        self._tree = SumTree(num_slots)
        self._largest = 1.0

    def insert(self, slot: int) -> None:
        """Give a new transition the largest priority so far, so that it is sampled soon."""
        self._tree.set(slot, self._largest)

    def remove(self, slot: int) -> None:
        """Remove the transition of a slot."""
        self._tree.set(slot, 0.0)

    def update(self, slot: Array, error: Array) -> None:
        """Set the priorities at `slot` (B,) by the TD errors (B,); slots without a transition are ignored."""
        present = self._tree.values[slot] > 0
        priority = (np.abs(error[present].astype(np.float64)) + MIN_ERROR) ** self._alpha
        self._tree.set_many(slot[present], priority)
        self._largest = max(self._largest, float(priority.max(initial=0)))

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Sample slots in proportion to their priorities, one from each of `count` equal parts of their sum.

        Returns:
            The slots (count,), and their probabilities (count,).
        """
        share = self._tree.total / count
        slot = self._tree.find((np.arange(count) + rng.random(count)) * share)
        return slot, self._tree.values[slot] / self._tree.total

    @property
    def nbytes(self) -> int:
        """Memory of the priorities in bytes."""
        return self._tree.nbytes

    def get_state(self) -> dict[str, Array]:
        """Return the priorities as arrays by name."""
        return {"priorities": self._tree.values.copy(), "largest_priority": np.asarray(self._largest)}

    def set_state(self, priorities: Array, largest: float, held: Array) -> None:
        """Restore what `get_state` returned, for the slots `held` (bool); raise a ValueError if it does not fit."""
        if not (np.isfinite(priorities).all() and np.isfinite(largest) and ((priorities > 0) == held).all()):
            raise ValueError("the priorities are not those of the transitions in the replay")
        if (priorities < 0).any() or not priorities.max(initial=0) <= largest:
            raise ValueError("the priorities lie outside of their range")
        self._tree.set_all(priorities)
        self._largest = float(largest)


def importance_weights(probability: Array, size: int, beta: float) -> Array:
    """Return importance weights (B,) of prioritized samples from `size` transitions: `(size * p) ** -beta`.

    They are divided by the largest of the batch, so that they only reduce the size of a step.
    """
    weight = (size * probability) ** -beta
    scaled: Array = (weight / weight.max()).astype(np.float32)
    return scaled
