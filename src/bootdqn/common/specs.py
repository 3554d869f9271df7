"""Types that packages exchange: specs of observations and environments, and batches of transitions."""

from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SMALLEST_SCREEN = 36
"""Side of the smallest image that the paper's three convolutions can take."""
LARGEST_STACK = 256
"""Maximum number of frames in one observation: the replay stores in a byte how far back they go."""


@dataclass(frozen=True)
class DiscreteSpec:
    """Observations that are integers in 0..num_values - 1."""

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
        """Number of elements of an observation."""
        return prod(self.shape)


ObservationSpec = DiscreteSpec | BoxSpec


@dataclass(frozen=True)
class EnvSpec:
    """Observations and actions of an environment."""

    observation: ObservationSpec
    num_actions: int


def as_batch(observations: Any, spec: ObservationSpec) -> Array:
    """Return observations as an array (B, ...) of the type in `spec`.

    Raises:
        ValueError: They have another shape, another type of numbers, or integers out of range.
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


ALL_LEGAL = np.ones((0, 0), np.bool_)
"""`Batch.next_legal` where the environment rules out no action."""


class Batch(NamedTuple):
    """B transitions, as the replay samples them and the learner takes them."""

    observation: Array
    """(B, ...)"""
    action: Array
    """(B,) integers."""
    reward: Array
    """(B,) float32."""
    discount: Array
    """(B,) float32: factor of the next value; 0 after a terminated transition, the discount otherwise."""
    next_observation: Array
    """(B, ...); unspecified where `discount` is 0."""
    mask: Array
    """(B, K) bool: which heads may learn from the transition."""
    weight: Array
    """(B,) float32: importance weights, 1 where sampling is uniform."""
    slot: Array
    """(B,) integers: slots of the transitions in the replay."""
    next_legal: Array = ALL_LEGAL
    """(B, A) bool: which actions are legal in the next state, by the environment's action masks."""
