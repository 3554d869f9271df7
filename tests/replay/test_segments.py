"""A replay saved in segments and restored from them is the same replay, whatever its history."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bootdqn.common.specs import BoxSpec, DiscreteSpec
from bootdqn.replay import buffer as ring
from bootdqn.replay import observation_stores as stores

SPECS = (
    DiscreteSpec(1000),
    BoxSpec((2, 3), np.dtype(np.float32)),
    BoxSpec((), np.dtype(np.int16)),
    BoxSpec((3, 4, 5), np.dtype(np.uint8), stacked=True),
    BoxSpec((1, 2, 2), np.dtype(np.uint8), stacked=True),
)
ENDS = {"none": (False, False), "terminated": (True, False), "truncated": (False, True)}
STACKED = SPECS[3]


@pytest.fixture(autouse=True, scope="module")
def _small_segments():
    """Segments of five slots and a key frame in three, so that both end in the midst of episodes."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(ring, "SEGMENT_SLOTS", 5)
        patches.setattr(stores, "KEY_FRAME_EVERY", 3)
        yield


def make_ring(spec, capacity, num_envs):
    return ring.ReplayBuffer(spec, capacity=capacity, num_heads=2, discount=0.9, num_envs=num_envs)


class Play:
    """Random episodes, given to any number of rings alike."""

    def __init__(self, spec, num_envs):
        self._spec, self._rng, self._stacks = spec, np.random.default_rng(8), {}
        self._between = [True] * num_envs

    def operate(self, rings, env, end="none"):
        """Start an episode of `env` where none is under way; otherwise take a step with the given `end`."""
        observation, between = self._observe(env), self._between[env]
        self._between[env] = False
        if between:
            for one in rings:
                one.start_episode(env, observation)
            return
        terminated, truncated = ENDS[end]
        action, reward, mask = int(self._rng.integers(4)), float(self._rng.normal()), self._rng.random(2) < 0.5
        for one in rings:
            one.add(env, action, reward, observation, mask, terminated=terminated, truncated=truncated)
        self._between[env] = terminated or truncated

    def _observe(self, env):
        spec = self._spec
        if not (isinstance(spec, BoxSpec) and spec.stacked):
            return np.asarray(self._rng.integers(0, 1000, spec.shape), spec.dtype)
        frame = np.asarray(self._rng.integers(0, 3, (1, *spec.shape[1:])), np.uint8)
        before = np.repeat(frame, len(frame) * spec.shape[0], axis=0) if self._between[env] else self._stacks[env]
        self._stacks[env] = np.concatenate([before[1:], frame])
        return self._stacks[env]


class Disk:
    """Keeps segments as a checkpoint does: one whose version has not changed is not written again."""

    def __init__(self):
        self.segments, self.written = {}, 0

    def save(self, replay):
        for index, version in enumerate(replay.segment_versions):
            if version and self.segments.get(index, (0, None))[0] != version:
                self.segments[index] = (version, copy.deepcopy(replay.get_segment(index)))
                self.written += 1
        self.state = copy.deepcopy(replay.get_state())

    def load(self, replay):
        for index, (version, arrays) in self.segments.items():
            replay.set_segment(index, arrays, version)
        replay.set_state(self.state)
        return replay


def assert_equal_arrays(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype, name
        np.testing.assert_array_equal(array, other[name], strict=True, err_msg=name)


def assert_twins(one, other):
    """Check that two rings are equal in all that they hold, and in what they sample."""
    assert len(one) == len(other)
    assert one.segment_versions == other.segment_versions
    assert_equal_arrays(one.get_state(), other.get_state())
    for index in range(len(one.segment_versions)):
        assert_equal_arrays(one.get_segment(index), other.get_segment(index))
    if len(one):
        batches = [replay.sample(30, np.random.default_rng(len(one))) for replay in (one, other)]
        for field, twin in zip(*batches, strict=True):
            np.testing.assert_array_equal(field, twin, strict=True)


@st.composite
def plays(draw):
    num_envs = draw(st.integers(1, 3))
    spec, capacity = draw(st.sampled_from(SPECS)), draw(st.integers(5 * num_envs, 40))
    envs, ends = st.integers(0, num_envs - 1), st.sampled_from(["none", "none", "none", *ENDS])
    return spec, capacity, num_envs, draw(st.lists(st.tuples(envs, ends, st.integers(0, 9)), min_size=20, max_size=150))


@settings(max_examples=120)
@given(plays())
def test_a_ring_restored_from_segments_continues_as_the_original(play):
    spec, capacity, num_envs, operations = play
    driver, disk = Play(spec, num_envs), Disk()
    original = make_ring(spec, capacity, num_envs)
    for env in range(num_envs):
        driver.operate([original], env)
    twin = None
    for env, end, chance in operations:
        driver.operate([original] if twin is None else [original, twin], env, end)
        if chance == 0:
            disk.save(original)
            twin = disk.load(make_ring(spec, capacity, num_envs))
            assert_twins(original, twin)
    if twin is not None:
        assert_twins(original, twin)


@settings(max_examples=60)
@given(plays())
def test_a_segment_whose_version_is_the_same_is_the_same_and_a_step_changes_two_at_most(play):
    spec, capacity, num_envs, operations = play
    driver, original = Play(spec, num_envs), make_ring(spec, capacity, num_envs)
    assert set(original.segment_versions) == {0}
    for env, end, _ in operations:
        before = original.segment_versions
        contents = [copy.deepcopy(original.get_segment(index)) for index, version in enumerate(before)]
        driver.operate([original], env, end)
        changed = [index for index, version in enumerate(original.segment_versions) if version != before[index]]
        assert 1 <= len(changed) <= 2
        assert all(original.segment_versions[index] > before[index] for index in changed)
        for index, content in enumerate(contents):
            if index not in changed:
                assert_equal_arrays(original.get_segment(index), content)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_little_is_written_where_little_has_changed(spec):
    driver, disk, original = Play(spec, 1), Disk(), make_ring(spec, 99, 1)
    for step in range(250):
        driver.operate([original], 0, "terminated" if step % 7 == 6 else "none")
    disk.save(original)
    assert disk.written == len(original.segment_versions) == 20
    disk.save(original)
    assert disk.written == 20
    driver.operate([original], 0)
    disk.save(original)
    assert disk.written <= 22
    assert_twins(original, disk.load(make_ring(spec, 99, 1)))


def test_an_episode_cut_after_resuming_leaves_a_consistent_ring():
    driver, disk, original = Play(STACKED, 1), Disk(), make_ring(STACKED, 20, 1)
    for _ in range(13):
        driver.operate([original], 0)
    disk.save(original)
    twin = disk.load(make_ring(STACKED, 20, 1))
    before = len(twin)
    twin.cut_episode(0)
    twin.start_episode(0, np.zeros(STACKED.shape, np.uint8))
    assert len(twin) == before
    assert (twin.sample(200, np.random.default_rng(1)).discount == np.float32(0.9)).all()


# What is not a state of this ring


def saved(spec=SPECS[0], steps=30):
    driver, disk, original = Play(spec, 2), Disk(), make_ring(spec, 20, 2)
    for step in range(steps):
        for env in range(2):
            driver.operate([original], env, "terminated" if step % 6 == 5 else "none")
    disk.save(original)
    return disk


@pytest.mark.parametrize(
    ("name", "spoil"),
    {
        "newest": lambda newest: newest + 11,
        "reached": lambda _reached: np.asarray(12, np.int64),
        "sampleable": lambda sampleable: sampleable | np.uint8(255),
    }.items(),
)
def test_invalid_positions_are_an_error(name, spoil):
    disk = saved(steps=6)
    disk.state[name] = spoil(disk.state[name])
    with pytest.raises(ValueError, match="the replay"):
        disk.load(make_ring(SPECS[0], 20, 2))


def test_transitions_beyond_the_written_part_are_an_error_since_none_could_be_sampled():
    disk = saved(steps=6)
    disk.state["reached"] = np.asarray(0, np.int64)
    with pytest.raises(ValueError, match="never stored"):
        disk.load(make_ring(SPECS[0], 20, 2))


@pytest.mark.parametrize("value", [-1, 1000])
def test_observations_out_of_range_are_an_error(value):
    disk = saved()
    disk.segments[1][1]["observation"][2] = value
    with pytest.raises(ValueError, match=r"observations .* are outside 0\.\.999"):
        disk.load(make_ring(SPECS[0], 20, 2))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_array_of_another_kind_or_a_missing_one_is_an_error(spec):
    for name in saved(spec).segments[0][1]:
        for spoil in (
            lambda array: array.astype(np.complex64),
            lambda array: array[:-1],
            lambda array: np.repeat(array, 2, 0),
        ):
            disk = saved(spec)
            disk.segments[0][1][name] = spoil(disk.segments[0][1][name])
            with pytest.raises(ValueError):  # noqa: PT011 - each has a message of its own
                disk.load(make_ring(spec, 20, 2))
        disk = saved(spec)
        del disk.segments[0][1][name]
        with pytest.raises(ValueError):  # noqa: PT011
            disk.load(make_ring(spec, 20, 2))


def test_frames_that_cannot_be_decompressed_are_an_error():
    disk = saved(STACKED)
    disk.segments[0][1]["frames"] = disk.segments[0][1]["frames"][::-1].copy()
    with pytest.raises(ValueError, match="frame"):
        disk.load(make_ring(STACKED, 20, 2))


def test_a_missing_segment_is_an_error():
    disk = saved()
    version, arrays = disk.segments[0]
    for index in (-1, 5, 10**9):
        with pytest.raises(ValueError, match="there is no segment"):
            make_ring(SPECS[0], 20, 2).set_segment(index, arrays, version)


def test_the_actions_can_be_read_and_not_changed():
    replay = saved().load(make_ring(SPECS[0], 20, 2))
    assert set(replay.sample(300, np.random.default_rng(0)).action) <= set(replay.actions) <= set(range(4))
    with pytest.raises(ValueError, match="read-only"):
        replay.actions[0] = 9


@pytest.mark.parametrize("shape", [(3, 3), (8,), (), (10, 10, 4)])
def test_booleans_that_an_earlier_version_stored_as_they_are_are_restored(shape):
    spec, rng = BoxSpec(shape, np.dtype(np.bool_)), np.random.default_rng(0)
    seen = rng.random((5, *shape)) < 0.5
    plain, store = stores.DenseStore(spec, 5), stores.make_store(spec, 7)
    for slot, observation in enumerate(seen):
        plain.write(slot, observation)
    store.set_range(2, 7, plain.get_range(0, 5))
    assert (store.read(np.arange(2, 7)[:, None]) == seen).all()
