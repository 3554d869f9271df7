"""Named random streams. Every random number of a run comes from one, derived from (seed, purpose)."""

import hashlib
from typing import Any

import numpy as np


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """Return a generator that depends on `seed` and `purpose` alone; different purposes are independent."""
    key = np.frombuffer(hashlib.sha256(purpose.encode()).digest(), dtype="<u4")
    sequence = np.random.SeedSequence(seed, spawn_key=tuple(int(word) for word in key))
    return np.random.Generator(np.random.PCG64(sequence))


LARGEST_LEGACY_SEED = 2**32 - 1
"""The largest seed of `RandomState`; Gymnasium allows larger ones."""


def legacy_generator(source: int | dict[str, Any] | None, fallback: np.random.Generator) -> np.random.RandomState:
    """Return a generator of NumPy's legacy kind, which bsuite uses.

    Args:
        source: A seed, or what `legacy_state` returned.
        fallback: Samples the seed where there is none, or it is too large.
    """
    if isinstance(source, dict):
        generator = np.random.RandomState(0)
        key = np.array(source["state"]["key"], dtype=np.uint32)
        generator.set_state({**source, "state": {"key": key, "pos": source["state"]["pos"]}})
        return generator
    if source is None or source > LARGEST_LEGACY_SEED:
        source = int(fallback.integers(LARGEST_LEGACY_SEED, endpoint=True))
    return np.random.RandomState(source)


def legacy_state(generator: np.random.RandomState) -> dict[str, Any]:
    """Return the state of a generator, ready for JSON."""
    state: dict[str, Any] = generator.get_state(legacy=False)
    return {**state, "state": {"key": state["state"]["key"].tolist(), "pos": int(state["state"]["pos"])}}


class RandomStreams:
    """Random streams of one run, created when first used, saved and restored together.

    Example:
        >>> streams = RandomStreams(seed=3)
        >>> streams["masks"] is streams["masks"]
        True
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[str, np.random.Generator] = {}

    def __getitem__(self, purpose: str) -> np.random.Generator:
        """Return the stream for `purpose`."""
        if purpose not in self._streams:
            self._streams[purpose] = random_stream(self._seed, purpose)
        return self._streams[purpose]

    def get_state(self) -> dict[str, dict[str, Any]]:
        """Return the state of every stream used so far, ready for JSON."""
        return {purpose: dict(stream.bit_generator.state) for purpose, stream in sorted(self._streams.items())}

    def set_state(self, state: dict[str, dict[str, Any]]) -> None:
        """Restore every stream to its state in `get_state`; streams missing there restart."""
        for purpose in list(self._streams):
            self._streams[purpose].bit_generator.state = random_stream(self._seed, purpose).bit_generator.state
        for purpose, stream_state in state.items():
            self[purpose].bit_generator.state = stream_state
