"""The ring of compressed frames is lossless and takes the memory that it reports."""

import gc
import tracemalloc

import numpy as np
import pytest

from bootdqn.common.specs import BoxSpec
from bootdqn.replay.buffer import ReplayBuffer
from reference.replay_drive import DISCOUNT

REAL = (84, 84)


def stacked(stack):
    return BoxSpec((stack, *REAL), np.dtype(np.uint8), stacked=True)


# Compression


def frames_of_all_kinds(rng):
    """Return frames that compress to nothing, to little, and not at all."""
    constant = [np.full(REAL, value, np.uint8) for value in (0, 1, 128, 255)]
    noise = [rng.integers(0, 256, REAL, np.uint8) for _ in range(8)]
    gradient = np.add.outer(np.arange(84), np.arange(84)).astype(np.uint8)
    sparse = np.where(rng.random(REAL) < 0.01, 200, 30).astype(np.uint8)
    last_pixel = np.zeros(REAL, np.uint8)
    last_pixel[-1, -1] = 1
    return [*constant, *noise, gradient, sparse, last_pixel]


@pytest.mark.parametrize(
    "arrange", [np.ascontiguousarray, np.asfortranarray, lambda stack: np.repeat(stack, 2, 2)[:, :, ::2]]
)
def test_every_kind_of_frame_is_kept_without_loss_however_it_lies_in_memory(arrange):
    rng = np.random.default_rng(0)
    frames = frames_of_all_kinds(rng)
    ring = ReplayBuffer(stacked(1), capacity=len(frames) - 1, num_heads=1, discount=DISCOUNT)
    ring.start_episode(0, arrange(frames[0][None]))
    for step, frame in enumerate(frames[1:]):
        ring.add(0, 0, step, arrange(frame[None]), np.ones(1, bool), terminated=False, truncated=False)
    batch = ring.sample(300, rng)
    assert len(set(batch.reward)) == len(frames) - 1
    for reward, seen, after in zip(batch.reward.astype(int), batch.observation, batch.next_observation, strict=True):
        np.testing.assert_array_equal(seen[0], frames[reward])
        np.testing.assert_array_equal(after[0], frames[reward + 1])


# Memory


def filled(make_frame, *, stack=4, steps=100, capacity=100):
    ring = ReplayBuffer(stacked(stack), capacity=capacity, num_heads=1, discount=DISCOUNT)
    give(ring, make_frame, steps, stack)
    return ring


def give(ring, make_frame, steps, stack=4):
    """Play one episode of `steps` steps; only the newest frame of a stack differs from zero."""
    observation = np.zeros((stack, *REAL), np.uint8)
    observation[-1] = make_frame()
    ring.start_episode(0, observation)
    for step in range(steps):
        observation[-1] = make_frame()
        ring.add(0, 0, 0, observation, np.ones(1, bool), terminated=step == steps - 1, truncated=False)


def noise():
    rng = np.random.default_rng(1)
    return lambda: rng.integers(0, 256, REAL, np.uint8)


def black():
    return np.zeros(REAL, np.uint8)


def test_frames_that_do_not_compress_take_little_more_than_their_pixels():
    assert 100 * 84 * 84 < filled(noise()).nbytes < 1.03 * 100 * 84 * 84


def test_frames_of_one_colour_take_next_to_nothing():
    assert filled(black).nbytes < 100 * 600


def test_each_frame_is_kept_once_however_many_stacks_show_it():
    assert filled(noise(), stack=4).nbytes == filled(noise(), stack=1).nbytes


def test_memory_does_not_grow_once_the_ring_is_full_and_shrinks_with_its_frames():
    ring = filled(noise(), steps=150)
    full = ring.nbytes
    give(ring, noise(), 500)
    assert ring.nbytes == pytest.approx(full, rel=0.01)
    give(ring, black, 200)
    assert ring.nbytes < 100 * 600


def test_memory_counts_the_masks():
    few, many = (ReplayBuffer(stacked(4), capacity=99, num_heads=heads, discount=DISCOUNT).nbytes for heads in (10, 30))
    assert many - few == 20 * 100


def test_the_memory_expected_of_a_full_ring_does_not_wait_for_its_frames():
    empty = ReplayBuffer(stacked(4), capacity=100, num_heads=1, discount=DISCOUNT).expected_nbytes(0)
    assert filled(noise()).expected_nbytes(0) == filled(black).expected_nbytes(0) == empty
    assert filled(black).nbytes < empty < filled(noise()).nbytes


@pytest.mark.parametrize("make_frame", [noise(), black], ids=["noise", "black"])
def test_memory_is_what_python_was_given(make_frame):
    gc.collect()
    tracemalloc.start()
    try:
        ring = filled(make_frame, steps=4500, capacity=3000)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert ring.nbytes == pytest.approx(taken, rel=0.05)
