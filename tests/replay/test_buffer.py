"""The ring against a naive replay that keeps every transition whole, driven by the same random operations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bootdqn.common.specs import BoxSpec, DiscreteSpec
from reference.replay_drive import DISCOUNT, ENDS, Drive

SPECS = (
    DiscreteSpec(1_000_000),
    BoxSpec((2, 3), np.dtype(np.uint8)),
    BoxSpec((4,), np.dtype(np.float32)),
    BoxSpec((), np.dtype(np.float64)),
    BoxSpec((1, 2, 2), np.dtype(np.int16)),
    BoxSpec((3, 5), np.dtype(np.bool_)),
    BoxSpec((4, 3, 2), np.dtype(np.uint8), stacked=True),
    BoxSpec((2, 1, 5), np.dtype(np.uint8), stacked=True),
    BoxSpec((1, 2, 2), np.dtype(np.uint8), stacked=True),
)


# The same operations


@st.composite
def drives(draw):
    num_envs = draw(st.integers(1, 4))
    capacity = draw(st.integers(num_envs, 14))
    spec, num_heads, n_step = draw(st.sampled_from(SPECS)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    return Drive(spec, capacity=capacity, num_envs=num_envs, num_heads=num_heads, n_step=n_step)


@settings(max_examples=150)
@given(drives(), st.data())
def test_every_transition_that_must_be_there_is_sampled_whole_and_no_other(drive, data):
    envs, ends = st.integers(0, drive.num_envs - 1), st.sampled_from(("none", "none", "none", *ENDS))
    for env, end, look in data.draw(st.lists(st.tuples(envs, ends, st.integers(0, 3)), min_size=25, max_size=80)):
        drive.operate(env, end)
        if look == 0:
            drive.check()
    drive.check()


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("capacity", [1, 2, 3, 7])
def test_every_state_of_a_small_ring_is_right_over_several_rounds(spec, capacity):
    drive = Drive(spec, capacity=capacity, n_step=3)
    ends = ["none", "none", "truncated", "terminated", "none", "both", "truncated", "none"]
    for operation in range(60):
        drive.operate(0, ends[operation % len(ends)] if operation % 5 else "none")
        drive.check()


@pytest.mark.parametrize("seed", range(3))
def test_long_random_episodes_in_uneven_environments_stay_right(seed):
    drive = Drive(SPECS[2], capacity=100, num_envs=3)  # 33 each, one to spare
    choices = np.random.default_rng(seed)
    for _ in range(6):
        for _ in range(150):
            drive.operate(choices.choice(3, p=[0.7, 0.25, 0.05]), choices.choice([*ENDS, *["none"] * 16]))
        drive.check()


# Capacity and ends of episodes, as documented


def test_the_newest_transitions_fill_the_capacity_when_no_episode_is_truncated():
    drive = Drive(capacity=10)
    drive.episodes(0, (7, "terminated"), (9, "both"), (4, "terminated"))
    assert len(drive.ring) == 10
    assert drive.sampled() == set(range(10, 20))
    drive.check()


def test_capacity_is_divided_evenly_and_the_remainder_is_left_unused():
    drive = Drive(capacity=11, num_envs=3)
    for env in range(3):
        drive.episodes(env, (8, "terminated"))
    assert len(drive.ring) == 9
    assert drive.sampled() == {5, 6, 7, 13, 14, 15, 21, 22, 23}


def test_a_truncated_end_spends_one_place_more_and_keeps_its_final_observation():
    drive = Drive(capacity=6)
    drive.episodes(0, (2, "truncated"), (3, "none"))  # 2 transitions, 1 final observation, 3 transitions: full
    assert drive.sampled() == {0, 1, 2, 3, 4}
    for kept in ({1, 2, 3, 4, 5}, {2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}, {3, 4, 5, 6, 7, 8}):
        drive.operate(0)
        assert drive.sampled() == kept
        assert (drive.ring.sample(500, drive.rng).discount == np.float32(DISCOUNT)).all()
        drive.check()


def test_a_ring_with_room_for_one_forgets_a_truncated_transition_at_once():
    drive = Drive(capacity=1)
    drive.episodes(0, (1, "truncated"))
    assert len(drive.ring) == 0
    drive.check()
    drive.episodes(0, (1, "terminated"))
    assert len(drive.ring) == 1
    drive.check()


def test_one_environment_does_not_push_out_the_transitions_of_another():
    drive = Drive(capacity=8, num_envs=2)
    drive.episodes(1, (3, "truncated"))
    for _ in range(10):
        drive.episodes(0, (3, "truncated"), (2, "terminated"))
    assert drive.sampled() >= {0, 1, 2}
    drive.check()


def test_a_capacity_without_a_transition_for_each_environment_is_an_error():
    with pytest.raises(ValueError, match="at least one transition for each of 3 environments"):
        Drive(capacity=2, num_envs=3)


def test_a_stack_goes_with_the_oldest_of_its_frames():
    drive = Drive(BoxSpec((3, 2, 2), np.dtype(np.uint8), stacked=True), capacity=6)
    drive.episodes(0, (4, "terminated"), (4, "none"))  # the ring has room for 2 to 7, and for no frame before
    drive.check()
    assert drive.sampled() == {4, 5, 6, 7}  # 2 needs the frames of 0, 3 that of 1


# Sampling


def uneven_ring():
    """Return a drive with holes, wrap-around and an environment that is nearly empty."""
    drive = Drive(capacity=36, num_envs=3)
    drive.episodes(0, (7, "truncated"), (3, "terminated"), (1, "truncated"), (5, "none"))
    drive.episodes(1, (4, "terminated"))
    return drive


def test_sampling_is_uniform_over_transitions_wherever_they_stand():
    drive = uneven_ring()
    stored = [transition.reward for transition in drive.naive.transitions()]
    samples = drive.ring.sample(40_000, np.random.default_rng(0)).reward
    counts = [np.count_nonzero(samples == reward) for reward in stored]
    assert sum(counts) == 40_000
    assert stats.chisquare(counts).pvalue > 0.01


def test_samples_are_independent_of_each_other():
    drive = uneven_ring()
    n = len(drive.ring)
    rank = {transition.reward: i for i, transition in enumerate(drive.naive.transitions())}
    samples = np.array([rank[r] for r in drive.ring.sample(60_000, np.random.default_rng(1)).reward.tolist()])
    pairs = np.bincount(samples[0::2] * n + samples[1::2], minlength=n * n)
    assert stats.chisquare(pairs).pvalue > 0.01


def test_a_generator_in_the_same_state_gives_the_same_batch_and_moves_on():
    ring = uneven_ring().ring
    first, again = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        one, two = ring.sample(32, first), ring.sample(32, again)
        for field, same in zip(one, two, strict=True):
            np.testing.assert_array_equal(field, same)
        assert first.bit_generator.state == again.bit_generator.state
    assert (ring.sample(32, first).slot != one.slot).any()


def test_a_batch_may_be_larger_than_the_replay_or_of_one():
    drive = Drive(capacity=5)
    drive.episodes(0, (2, "none"))
    for size in (1, 64):
        assert {len(field) for field in drive.ring.sample(size, drive.rng)[:-1]} == {size}


def test_sampling_from_an_empty_replay_is_an_error_that_names_the_remedy():
    drive = Drive(capacity=4, num_envs=2)
    with pytest.raises(ValueError, match="add some before sampling"):
        drive.ring.sample(1, drive.rng)
    drive.operate(0)
    with pytest.raises(ValueError, match="add some before sampling"):
        drive.ring.sample(1, drive.rng)
    assert len(drive.ring) == 0


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_batch_has_the_shapes_and_types_that_learners_rely_on(spec):
    drive = Drive(spec, capacity=9, num_envs=2, num_heads=4)
    drive.episodes(0, (5, "terminated"))
    batch = drive.ring.sample(7, drive.rng)
    shapes = [(7, *spec.shape), (7,), (7,), (7,), (7, *spec.shape), (7, 4), (7,), (7,), (0, 0)]
    types = [spec.dtype, np.int64, np.float32, np.float32, spec.dtype, np.bool_, np.float32, np.int64, np.bool_]
    assert [field.shape for field in batch] == shapes
    assert [field.dtype for field in batch] == types


def test_changing_a_batch_does_not_change_the_replay():
    drive = Drive(SPECS[2], capacity=6)
    drive.episodes(0, (4, "none"))
    for field in drive.ring.sample(50, drive.rng):
        field[...] = 0
    drive.check()
