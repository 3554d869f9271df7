"""Storage of observations: as they are, as bits, or as one compressed frame each, from which stacks are rebuilt."""

import sys
from collections.abc import Iterable
from typing import Any, Protocol

import lz4.block
import numpy as np

from bootdqn.common.specs import Array, BoxSpec, DiscreteSpec, ObservationSpec
from bootdqn.common.tensor_files import checked_array

EXPECTED_COMPRESSION = 0.17
"""Compressed over plain size of an Atari frame, with a margin: see `benchmarks/replay.py`."""
KEY_FRAME_EVERY = 64
"""Slots from one key frame to the next."""


class ObservationStore(Protocol):
    """A store of one observation in each slot."""

    history: int
    """Number of earlier slots of the same episode from which an observation is rebuilt."""

    def write(self, slot: int, observation: Any) -> None:
        """Store `observation` in `slot`."""
        ...

    def read(self, slots: Array) -> Array:
        """Return the observations (B, ...) that are rebuilt from `slots` (B, history + 1), oldest first."""
        ...

    def get_range(self, start: int, stop: int) -> dict[str, Array]:
        """Return the content of the slots from `start` up to `stop` as arrays by name, for a file."""
        ...

    def set_range(self, start: int, stop: int, arrays: dict[str, Array]) -> None:
        """Restore what `get_range` returned; raise a ValueError if it does not fit."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory of the observations in bytes."""
        ...

    @property
    def expected_nbytes(self) -> int:
        """Memory of the observations in bytes when every slot is written."""
        ...


class DenseStore:
    """A store of observations as they are, in one array."""

    history = 0

    def __init__(self, spec: ObservationSpec, num_slots: int) -> None:
        self._values = np.zeros((num_slots, *spec.shape), spec.dtype)
        self._limit = spec.num_values if isinstance(spec, DiscreteSpec) else None

    def write(self, slot: int, observation: Any) -> None:
        """Store `observation` in `slot`."""
        self._values[slot] = observation

    def read(self, slots: Array) -> Array:
        """Return the observations (B, ...) of `slots` (B, 1)."""
        values: Array = self._values[slots[:, 0]]
        return values

    def get_range(self, start: int, stop: int) -> dict[str, Array]:
        """Return a view of the observations."""
        return {"observation": self._values[start:stop]}

    def set_range(self, start: int, stop: int, arrays: dict[str, Array]) -> None:
        """Restore what `get_range` returned."""
        values = checked_array(arrays, "observation", self._values[start:stop])
        if self._limit is not None and (values.min() < 0 or values.max() >= self._limit):
            raise ValueError(f"observations {values.min()}..{values.max()} are outside 0..{self._limit - 1}")
        self._values[start:stop] = values

    @property
    def nbytes(self) -> int:
        """Memory of the observations in bytes."""
        return self._values.nbytes

    @property
    def expected_nbytes(self) -> int:
        """Memory of the observations in bytes; it is allocated from the start."""
        return self._values.nbytes


class BitStore:
    """A store of arrays of booleans, an eighth of a byte each."""

    history = 0

    def __init__(self, spec: BoxSpec, num_slots: int) -> None:
        self._shape, self._size = spec.shape, spec.size
        self._bits = np.zeros((num_slots, -(-spec.size // 8)), np.uint8)

    def write(self, slot: int, observation: Any) -> None:
        """Store `observation` in `slot`."""
        self._bits[slot] = np.packbits(observation)

    def read(self, slots: Array) -> Array:
        """Return the observations (B, ...) of `slots` (B, 1)."""
        values = np.unpackbits(self._bits[slots[:, 0]], axis=1, count=self._size)
        return values.view(np.bool_).reshape(len(slots), *self._shape)

    def get_range(self, start: int, stop: int) -> dict[str, Array]:
        """Return a view of the packed observations."""
        return {"bits": self._bits[start:stop]}

    def set_range(self, start: int, stop: int, arrays: dict[str, Array]) -> None:
        """Restore what `get_range` returned, or the plain booleans that versions before 0.3 stored."""
        if "observation" in arrays:
            values = checked_array(arrays, "observation", np.empty((stop - start, *self._shape), np.bool_))
            arrays = {"bits": np.packbits(values.reshape(stop - start, self._size), axis=1)}
        self._bits[start:stop] = checked_array(arrays, "bits", self._bits[start:stop])

    @property
    def nbytes(self) -> int:
        """Memory of the observations in bytes."""
        return self._bits.nbytes

    @property
    def expected_nbytes(self) -> int:
        """Memory of the observations in bytes; it is allocated from the start."""
        return self._bits.nbytes


class FrameStore:
    """A store of the newest frame of each stack, losslessly compressed; a stack is rebuilt from its frames' slots.

    Neighbouring stacks share all frames but one, and frames of a game have much in common: each is compressed with a
    *key frame*, one in 64, as the dictionary. A slot keeps a reference to its key frame, so that a key frame that is
    overwritten lives until the last frame that needs it is gone.
    """

    def __init__(self, spec: BoxSpec, num_slots: int) -> None:
        """Make an empty store.

        Args:
            spec: Stacks of uint8 frames (stack, height, width), the newest frame last.
            num_slots: Maximum number of frames.
        """
        if spec.dtype != np.uint8 or len(spec.shape) != 3 or spec.shape[0] < 1:
            raise ValueError(f"frames must be stacked uint8 images (stack, height, width), got {spec}")
        stack, *frame = spec.shape
        self.history = stack - 1
        self._frame_shape = tuple(frame)
        self._frame_bytes = frame[0] * frame[1]
        self._frames: list[bytes] = [b""] * num_slots
        self._keys: list[bytes] = [b""] * num_slots

    def write(self, slot: int, observation: Any) -> None:
        """Store the newest frame of the stack `observation` in `slot`."""
        frame = np.ascontiguousarray(observation[-1])
        if frame.shape != self._frame_shape or frame.dtype != np.uint8:
            raise ValueError(f"expected a uint8 frame of shape {self._frame_shape}, got {frame.dtype} {frame.shape}")
        before = self._keys[slot - 1]
        key = before if before and slot % KEY_FRAME_EVERY else frame.tobytes()
        self._keys[slot] = key
        self._frames[slot] = lz4.block.compress(frame, store_size=False, dict=key)

    def read(self, slots: Array) -> Array:
        """Return the stacks (B, stack, height, width) of `slots` (B, stack)."""
        return self._decompress(slots.ravel().tolist()).reshape(*slots.shape, *self._frame_shape)

    def _decompress(self, slots: Iterable[int]) -> Array:
        """Return the frames of `slots`, concatenated; a slot that was never written is black."""
        black, size = b"\0" * self._frame_bytes, self._frame_bytes
        frames, keys, decompress = self._frames, self._keys, lz4.block.decompress
        plain = [
            decompress(frames[slot], uncompressed_size=size, dict=keys[slot]) if frames[slot] else black
            for slot in slots
        ]
        return np.frombuffer(bytearray().join(plain), np.uint8)

    def get_range(self, start: int, stop: int) -> dict[str, Array]:
        """Return compressed frames and key frames, concatenated, with their sizes, and the key of each frame."""
        frames, keys = self._frames[start:stop], self._keys[start:stop]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return {
            "frames": np.frombuffer(b"".join(frames), np.uint8),
            "frame_size": np.array([len(frame) for frame in frames], np.int32),
            "keys": np.frombuffer(b"".join(numbers), np.uint8),
            "key_size": np.array([len(key) for key in numbers], np.int32),
            "key": np.array([numbers[key] for key in keys], np.int32),
        }

    def set_range(self, start: int, stop: int, arrays: dict[str, Array]) -> None:
        """Restore what `get_range` returned, after decompressing every frame to check it."""
        frames, keys = (_split(arrays, name) for name in ("frame", "key"))
        key = checked_array(arrays, "key", np.empty(stop - start, np.int32))
        if len(frames) != stop - start or key.min() < 0 or key.max() >= len(keys):
            raise ValueError("the frames of a segment do not fit together")
        self._frames[start:stop] = frames
        self._keys[start:stop] = [keys[number] for number in key]
        try:
            sizes = {len(plain) for plain in (self._decompress([slot]) for slot in range(start, stop))}
        except (lz4.block.LZ4BlockError, MemoryError) as error:
            raise ValueError(f"a frame of a segment cannot be decompressed: {error}") from error
        if sizes != {self._frame_bytes}:
            raise ValueError(f"frames of a segment have {sorted(sizes)} bytes instead of {self._frame_bytes}")

    @property
    def nbytes(self) -> int:
        """Memory of the frames and key frames in bytes, with the overhead of Python objects."""
        blocks = (*self._frames, *{id(key): key for key in self._keys}.values())
        return sum(map(sys.getsizeof, blocks)) + sys.getsizeof(self._frames) + sys.getsizeof(self._keys)

    @property
    def expected_nbytes(self) -> int:
        """Memory in bytes when every slot is written, if frames compress as those of Atari."""
        lists = sys.getsizeof(self._frames) + sys.getsizeof(self._keys)
        return int(len(self._frames) * self._frame_bytes * EXPECTED_COMPRESSION) + lists


def make_store(spec: ObservationSpec, num_slots: int) -> ObservationStore:
    """Return a store for `spec`: compressed frames for stacks, bits for booleans, an array for everything else."""
    if isinstance(spec, BoxSpec) and spec.stacked:
        return FrameStore(spec, num_slots)
    if isinstance(spec, BoxSpec) and spec.dtype == np.bool_:
        return BitStore(spec, num_slots)
    return DenseStore(spec, num_slots)


def _split(arrays: dict[str, Array], name: str) -> list[bytes]:
    """Return the bytes `<name>s` split into pieces of the sizes `<name>_size`."""
    joined, sizes = arrays.get(f"{name}s"), arrays.get(f"{name}_size")
    if joined is None or sizes is None or joined.dtype != np.uint8 or sizes.dtype != np.int32 or sizes.ndim != 1:
        raise ValueError(f"a segment lacks its {name}s")
    if len(sizes) == 0 or sizes.min() < 0 or int(sizes.sum(dtype=np.int64)) != joined.size:
        raise ValueError(f"the {name}s of a segment have other sizes than it says")
    content, ends = joined.tobytes(), np.cumsum(sizes, dtype=np.int64).tolist()
    return [content[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
