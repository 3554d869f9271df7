"""Where observations are kept: as they are, or one compressed frame for each, from which stacks are rebuilt."""

import sys
from collections.abc import Iterable
from typing import Any, Protocol

import lz4.block
import numpy as np

from bootdqn.common.specs import Array, BoxSpec, ObservationSpec

EXPECTED_COMPRESSION = 0.16
"""Compressed over plain size of an Atari frame, with a margin: see `benchmarks/replay.py`."""


class ObservationStore(Protocol):
    """Keeps one observation in each slot."""

    history: int
    """How many earlier slots of the same episode an observation is rebuilt from."""

    def write(self, slot: int, observation: Any) -> None:
        """Keep `observation` in `slot`."""
        ...

    def read(self, slots: Array) -> Array:
        """Return the observations (B, ...) of `slots` (B, history + 1), the slots each is made of, oldest first."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory that the observations take."""
        ...

    @property
    def expected_nbytes(self) -> int:
        """Memory that they will take when every slot is written."""
        ...


class DenseStore:
    """Keeps observations as they are, in one array."""

    history = 0

    def __init__(self, spec: ObservationSpec, num_slots: int) -> None:
        self._values = np.zeros((num_slots, *spec.shape), spec.dtype)

    def write(self, slot: int, observation: Any) -> None:
        """Keep `observation` in `slot`."""
        self._values[slot] = observation

    def read(self, slots: Array) -> Array:
        """Return the observations (B, ...) of `slots` (B, 1)."""
        values: Array = self._values[slots[:, 0]]
        return values

    @property
    def nbytes(self) -> int:
        """Memory that the observations take."""
        return self._values.nbytes

    @property
    def expected_nbytes(self) -> int:
        """Memory that they will take when every slot is written: the array is there from the start."""
        return self._values.nbytes


class FrameStore:
    """Keeps the newest frame of each stack, losslessly compressed; a stack is rebuilt from its frames' slots.

    Neighbouring stacks share all frames but one, and a frame of an Atari game compresses about tenfold.
    """

    def __init__(self, spec: BoxSpec, num_slots: int) -> None:
        """Make an empty store.

        Args:
            spec: Stacks of uint8 frames (stack, height, width), the newest frame last.
            num_slots: How many frames are kept at most.
        """
        if spec.dtype != np.uint8 or len(spec.shape) != 3 or spec.shape[0] < 1:
            raise ValueError(f"frames must be stacked uint8 images (stack, height, width), got {spec}")
        stack, *frame = spec.shape
        self.history = stack - 1
        self._frame_shape = tuple(frame)
        self._frame_bytes = frame[0] * frame[1]
        self._frames: list[bytes] = [b""] * num_slots

    def write(self, slot: int, observation: Any) -> None:
        """Keep the newest frame of the stack `observation` in `slot`."""
        self._frames[slot] = lz4.block.compress(np.ascontiguousarray(observation[-1]), store_size=False)

    def read(self, slots: Array) -> Array:
        """Return the stacks (B, stack, height, width) of `slots` (B, stack)."""
        return self._decompress(slots.ravel()).reshape(*slots.shape, *self._frame_shape)

    def _decompress(self, slots: Iterable[int]) -> Array:
        """Return the frames of `slots` one after the other; a slot never written reads as black."""
        black = b"\0" * self._frame_bytes
        frames = [self._frames[slot] for slot in slots]
        plain = [
            lz4.block.decompress(frame, uncompressed_size=self._frame_bytes) if frame else black for frame in frames
        ]
        return np.frombuffer(bytearray().join(plain), np.uint8)

    @property
    def nbytes(self) -> int:
        """Memory that the frames take, with what Python adds to each."""
        return sum(map(sys.getsizeof, self._frames)) + sys.getsizeof(self._frames)

    @property
    def expected_nbytes(self) -> int:
        """Memory that they will take when every slot is written, if they compress as Atari frames do."""
        return int(len(self._frames) * self._frame_bytes * EXPECTED_COMPRESSION) + sys.getsizeof(self._frames)


def make_store(spec: ObservationSpec, num_slots: int) -> ObservationStore:
    """Return the store that fits `spec`: compressed frames for stacks, an array for everything else."""
    if isinstance(spec, BoxSpec) and spec.stacked:
        return FrameStore(spec, num_slots)
    return DenseStore(spec, num_slots)
