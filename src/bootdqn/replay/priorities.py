"""Prioritised sampling, proportional (Schaul et al. 2016): what surprised the heads is drawn more often."""

import numpy as np

from bootdqn.common.specs import Array
from bootdqn.replay.sum_tree import SumTree

LEAST_ERROR = 1e-6
"""Added to every error, so that everything stored has a chance to be drawn."""


class Priorities:
    """A priority `(|error| + LEAST_ERROR) ** alpha` for every slot that has a transition, 0 for the others."""

    def __init__(self, num_slots: int, alpha: float) -> None:
        self._alpha = alpha
        self._tree = SumTree(num_slots)
        self._largest = 1.0

    def admit(self, slot: int) -> None:
        """Give a new transition the largest priority seen, so that it is soon drawn once."""
        self._tree.set(slot, self._largest)

    def dismiss(self, slot: int) -> None:
        """Forget the transition of a slot."""
        self._tree.set(slot, 0.0)

    def change(self, slot: Array, error: Array) -> None:
        """Set the priorities at `slot` (B,) by the errors (B,) there; a slot without a transition stays so."""
        there = self._tree.values[slot] > 0
        priority = (np.abs(error[there].astype(np.float64)) + LEAST_ERROR) ** self._alpha
        self._tree.set_many(slot[there], priority)
        self._largest = max(self._largest, float(priority.max(initial=0)))

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw slots in proportion to their priorities, one from each of `count` equal parts of their sum.

        Returns:
            The slots (count,), and the probability (count,) with which one draw from the whole gives each.
        """
        share = self._tree.total / count
        slot = self._tree.find((np.arange(count) + rng.random(count)) * share)
        return slot, self._tree.values[slot] / self._tree.total

    @property
    def nbytes(self) -> int:
        """Memory that the priorities take."""
        return self._tree.nbytes

    def get_state(self) -> dict[str, Array]:
        """Return the priorities as arrays by name."""
        return {"priorities": self._tree.values.copy(), "largest_priority": np.asarray(self._largest)}

    def set_state(self, priorities: Array, largest: float, held: Array) -> None:
        """Put back what `get_state` returned, for the slots `held` (bool); a ValueError if it cannot be that."""
        if not (np.isfinite(priorities).all() and np.isfinite(largest) and ((priorities > 0) == held).all()):
            raise ValueError("the priorities are not those of the transitions in the replay")
        if (priorities < 0).any() or not priorities.max(initial=0) <= largest:
            raise ValueError("the priorities lie outside of their range")
        self._tree.set_all(priorities)
        self._largest = float(largest)


def importance_weights(probability: Array, size: int, beta: float) -> Array:
    """Return weights (B,) that undo a part `beta` of drawing unevenly from `size` transitions: `(size * p) ** -beta`.

    They are divided by the largest of the batch, so that they only ever make a step smaller.
    """
    weight = (size * probability) ** -beta
    scaled: Array = (weight / weight.max()).astype(np.float32)
    return scaled
