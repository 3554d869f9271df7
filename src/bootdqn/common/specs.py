"""What the rooms tell each other: what an environment looks like, and what a batch of transitions is made of."""

from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SMALLEST_SCREEN = 36
"""Side of the smallest image that the paper's three convolutions can take."""
LARGEST_STACK = 256
"""The most frames in one observation: the replay counts in a byte how far back they go."""


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


def as_batch(observations: Any, spec: ObservationSpec) -> Array:
    """Return observations as an array (B, ...) of the type in `spec`.

    Raises:
        ValueError: They have another shape, numbers of another kind, or integers that are out of range.
    """
    batch = np.asarray(observations)
    shape = str(("B", *spec.shape)).replace("'", "")
    expected = f"observations must be {spec.dtype} of shape {shape}"
    if batch.ndim == 0 or batch.shape[1:] != spec.shape:
        raise ValueError(f"{expected}, got {batch.shape}; make a batch of a single one with numpy.asarray(x)[None]")
    if batch.dtype.kind not in {"f": "fiu", "i": "iu", "u": "iu"}.get(spec.dtype.kind, spec.dtype.kind):
        raise ValueError(f"{expected}, got {batch.dtype}")
    if spec.dtype.kind in "iu" and batch.size:
        limits = np.iinfo(spec.dtype)
        low, high = (0, spec.num_values - 1) if isinstance(spec, DiscreteSpec) else (limits.min, limits.max)
        for found in (batch.min(), batch.max()):
            if not low <= found <= high:
                raise ValueError(f"{expected} and in {low}..{high}, got {found}")
    return batch.astype(spec.dtype, copy=False)


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
