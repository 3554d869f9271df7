"""What the rooms tell each other: what an environment looks like, and what a batch of transitions is made of."""

from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SMALLEST_SCREEN = 36
"""Side of the smallest image that the paper's three convolutions can take."""


@dataclass(frozen=True)
class DiscreteSpec:
    """Observations that are one of `num_values` numbers, 0 first."""

    num_values: int
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.int64))


@dataclass(frozen=True)
class BoxSpec:
    """Observations that are arrays of `shape` and `dtype`."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stacked: bool = False
    """Whether the first axis is a stack of the most recent frames, newest last, padded with an episode's first."""

    @property
    def size(self) -> int:
        """How many numbers one observation holds."""
        return prod(self.shape)


ObservationSpec = DiscreteSpec | BoxSpec


@dataclass(frozen=True)
class EnvSpec:
    """What an agent must know of an environment."""

    observation: ObservationSpec
    num_actions: int


class Batch(NamedTuple):
    """B transitions, as the replay gives them and the learner takes them."""

    observation: Array
    """(B, ...)"""
    action: Array
    """(B,) integers."""
    reward: Array
    """(B,) float32."""
    discount: Array
    """(B,) float32: what the next value is worth; 0 after a terminated transition, the discount otherwise."""
    next_observation: Array
    """(B, ...); unspecified where `discount` is 0."""
    mask: Array
    """(B, K) bool: which heads may learn from the transition."""
    weight: Array
    """(B,) float32: importance weights, 1 where sampling is uniform."""
    slot: Array
    """(B,) integers: where in the replay the transitions stand."""
