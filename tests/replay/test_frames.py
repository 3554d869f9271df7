"""The ring of compressed frames against a naive replay that keeps whole stacks, driven by the same random episodes."""

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation, TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bootdqn.common.specs import LARGEST_STACK, BoxSpec
from bootdqn.replay.buffer import ReplayBuffer
from reference.replay import NaiveReplay
from reference.replay_drive import DISCOUNT, ENDS, Drive

TINY, REAL = (2, 3), (84, 84)


def stacked(stack, frame=TINY, dtype=np.uint8):
    return BoxSpec((stack, *frame), np.dtype(dtype), stacked=True)


class Play(Drive):
    """Drives episodes of frames that encode their environment, episode and step.

    Frames are numbered in each environment: the newest and the `room` before it are kept, all others overwritten.
    """

    def __init__(self, *, stack, capacity, num_envs=1, frame=TINY, noisy=False):
        super().__init__(stacked(stack, frame), capacity=capacity, num_envs=num_envs, n_step=None)
        self.stack, self.room = stack, capacity // num_envs
        self._shape, self._noisy = frame, noisy
        self._episode, self._step = [0] * num_envs, [0] * num_envs
        self._newest_frame = [0] * num_envs
        self._frame_number = {}
        self._starts = {}

    def frame(self, env):
        """Return a frame that is unlike all others: its first five pixels name its environment, episode and step."""
        frame = super().frame(env) if self._noisy else np.full(self._shape, 7, np.uint8)
        frame.flat[:5] = env, *divmod(self._episode[env], 256), *divmod(self._step[env], 256)
        return frame

    def operate(self, env, end="none"):
        """Start an episode or take a step, and count the frames."""
        starts, (terminated, truncated) = self._between_episodes[env], ENDS[end]
        if starts:
            self._episode[env] += 1
            self._step[env] = 0
        else:
            self._starts[float(self.added)] = self._here(env)
            self._step[env] += 1
            self._newest_frame[env] += 1
        super().operate(env, end)
        if starts or not terminated:
            self._frame_number[self._here(env)] = self._newest_frame[env]
        if truncated and not (starts or terminated):
            self._newest_frame[env] += 1

    def _here(self, env):
        return env, self._episode[env], self._step[env]

    def check(self):
        """Compare the ring with the naive replay, and see what the stacks show."""
        batch = super().check()
        rewards = [] if batch is None else batch.reward.tolist()
        for reward, row in {reward: row for row, reward in enumerate(rewards)}.items():
            env, episode, step = self._starts[reward]
            self._check_what_is_shown(batch.observation[row], env, episode, step)
            if batch.discount[row] > 0:
                self._check_what_is_shown(batch.next_observation[row], env, episode, step + 1)

    def _check_what_is_shown(self, stack, env, episode, newest_step):
        """A stack shows consecutive steps of one episode, its first step over and over before it, all still kept."""
        back = reversed(range(self.stack))
        shown = [(env, episode, max(0, newest_step - distance)) for distance in back]
        codes = stack.reshape(self.stack, -1)[:, :5].astype(int).tolist()
        assert [(code[0], code[1] * 256 + code[2], code[3] * 256 + code[4]) for code in codes] == shown
        oldest_kept = self._newest_frame[env] - self.room
        assert all(oldest_kept <= self._frame_number[place] <= self._newest_frame[env] for place in shown)


# The same episodes


@st.composite
def plays(draw, frame=TINY, max_capacity=18):
    num_envs = draw(st.integers(1, 4))
    return Play(
        stack=draw(st.integers(1, 4)),
        capacity=draw(st.integers(num_envs, max_capacity)),
        num_envs=num_envs,
        frame=frame,
        noisy=draw(st.booleans()),
    )


def random_episodes(play, data, **sizes):
    """Take random steps in random environments, and check now and then and at the end."""
    envs, ends = st.integers(0, play.num_envs - 1), st.sampled_from((*["none"] * 5, *ENDS))
    for env, end, look in data.draw(st.lists(st.tuples(envs, ends, st.integers(0, 5)), **sizes)):
        play.operate(env, end)
        if look == 0:
            play.check()
    play.check()


def test_the_largest_stack_that_may_be_asked_for_is_rebuilt():
    play = Play(stack=LARGEST_STACK, capacity=3 * LARGEST_STACK)
    play.episodes(0, (2 * LARGEST_STACK, "none"))
    expected = {transition.reward: transition.observation for transition in play.naive.transitions()}
    batch = play.ring.sample(20, play.rng)
    np.testing.assert_array_equal(batch.observation, [expected[reward] for reward in batch.reward.tolist()])


@settings(max_examples=100)
@given(plays(), st.data())
def test_every_stack_is_rebuilt_byte_for_byte_as_long_as_all_its_frames_are_there(play, data):
    random_episodes(play, data, min_size=30, max_size=120)


@settings(max_examples=15)
@given(plays(frame=REAL, max_capacity=12), st.data())
def test_stacks_of_frames_of_real_size_are_rebuilt_byte_for_byte(play, data):
    random_episodes(play, data, min_size=20, max_size=40)


@pytest.mark.parametrize("stack", [1, 2, 3, 4])
@pytest.mark.parametrize("capacity", [1, 2, 3, 4, 5, 6, 9])
def test_every_state_of_a_small_ring_is_right_over_several_rounds(stack, capacity):
    play = Play(stack=stack, capacity=capacity)
    ends = ["none", "none", "truncated", "none", "terminated", "none", "none", "none", "both", "truncated", "none"]
    for operation in range(80):
        play.operate(0, ends[operation % len(ends)] if operation % 4 else "none")
        play.check()


@pytest.mark.parametrize("stack", [2, 4])
@pytest.mark.parametrize("seed", range(2))
def test_long_random_episodes_in_uneven_environments_stay_right(stack, seed):
    play = Play(stack=stack, capacity=100, num_envs=3, noisy=True)  # 33 each, one to spare
    choices = np.random.default_rng(seed)
    for _ in range(6):
        for _ in range(200):
            play.operate(choices.choice(3, p=[0.7, 0.25, 0.05]), choices.choice([*ENDS, *["none"] * 20]))
        play.check()


def test_episodes_that_outlive_the_ring_many_times_stay_right():
    play = Play(stack=4, capacity=10, num_envs=2)
    for step in range(600):
        play.operate(step % 2)
        if step % 23 == 0:
            play.check()
    assert len(play.ring) == 2 * (5 - 3)


class Flicker(gymnasium.Env):
    """Shows random frames; ends by itself at random."""

    observation_space = gymnasium.spaces.Box(0, 255, (5, 4), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return self._frame(), {}

    def step(self, action):
        return self._frame(), float(action), bool(self.np_random.random() < 0.1), False, {}

    def _frame(self):
        return self.np_random.integers(0, 256, (5, 4), np.uint8)


def test_stacks_are_rebuilt_as_gymnasium_makes_them():
    env = FrameStackObservation(TimeLimit(Flicker(), 8), 3, padding_type="reset")
    ring = ReplayBuffer(stacked(3, (5, 4)), capacity=60, num_heads=1, discount=DISCOUNT)
    naive = NaiveReplay(60, 1, history=2)
    ended, seed = True, 0
    for step in range(300):
        if ended:
            observation, _ = env.reset(seed=seed)
            seed = None
            for replay in (ring, naive):
                replay.start_episode(0, observation)
        following, _, terminated, truncated, _ = env.step(0)
        for replay in (ring, naive):
            replay.add(0, 0, step, following, np.ones(1, bool), terminated=terminated, truncated=truncated)
        ended = terminated or truncated
    expected = {transition.reward: transition for transition in naive.transitions()}
    batch = ring.sample(2000, np.random.default_rng(0))
    assert set(batch.reward) == set(expected)
    same = [expected[reward] for reward in batch.reward.tolist()]
    np.testing.assert_array_equal(batch.observation, [transition.observation for transition in same])
    after = np.array([transition.next_observation for transition in same])
    np.testing.assert_array_equal(batch.next_observation[batch.discount > 0], after[batch.discount > 0])


# Which transitions are there


def test_in_an_unending_episode_the_oldest_transitions_lack_frames_once_the_ring_is_full():
    drive = Drive(stacked(3), capacity=6)
    drive.episodes(0, (6, "none"))
    assert drive.sampled() == {0, 1, 2, 3, 4, 5}
    for kept in ({3, 4, 5, 6}, {4, 5, 6, 7}, {5, 6, 7, 8}):
        drive.operate(0)
        assert drive.sampled() == kept
        assert len(drive.ring) == 4


def test_overwriting_an_episodes_first_frame_takes_along_every_transition_that_shows_it():
    drive = Drive(stacked(4), capacity=6)
    drive.episodes(0, (2, "terminated"), (4, "none"))
    assert drive.sampled() == {0, 1, 2, 3, 4, 5}
    for kept in ({2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}, {6, 7, 8}):
        drive.operate(0)
        assert drive.sampled() == kept


def test_short_episodes_fill_the_ring_to_its_capacity_with_all_but_the_oldest_episode_whole():
    drive = Drive(stacked(4), capacity=10)
    for episode in range(30):
        drive.episodes(0, (2, "terminated"))
        assert len(drive.ring) == min(10, 2 * (episode + 1))
    assert drive.sampled() == set(range(50, 60))


def test_a_truncated_end_spends_one_place_more_and_keeps_its_final_stack():
    play = Play(stack=2, capacity=6)
    play.episodes(0, (2, "truncated"), (3, "none"))  # 2 transitions, 1 final frame, 3 transitions: full
    assert play.sampled() == {0, 1, 2, 3, 4}
    for kept in ({2, 3, 4, 5}, {2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}, {4, 5, 6, 7, 8}):
        play.operate(0)
        assert play.sampled() == kept
        assert (play.ring.sample(500, play.rng).discount == np.float32(DISCOUNT)).all()
        play.check()


def test_one_environment_does_not_push_out_the_transitions_of_another():
    play = Play(stack=4, capacity=10, num_envs=2)
    play.episodes(1, (4, "truncated"))
    for _ in range(10):
        play.episodes(0, (3, "truncated"), (2, "terminated"))
    assert play.sampled() >= {0, 1, 2, 3}
    play.check()


def test_images_that_are_not_stacks_are_kept_whole():
    rng = np.random.default_rng(0)
    ring = ReplayBuffer(BoxSpec((4, 5, 5), np.dtype(np.uint8)), capacity=8, num_heads=1, discount=DISCOUNT)
    seen = rng.integers(0, 256, (9, 4, 5, 5), np.uint8)
    ring.start_episode(0, seen[0])
    for step in range(8):
        ring.add(0, 0, step, seen[step + 1], np.ones(1, bool), terminated=False, truncated=False)
    batch = ring.sample(100, rng)
    np.testing.assert_array_equal(batch.observation, seen[batch.reward.astype(int)])
    np.testing.assert_array_equal(batch.next_observation, seen[batch.reward.astype(int) + 1])


# Sampling


def uneven_ring():
    """Return a drive with final frames, overwritten stacks, and an environment that is nearly empty."""
    drive = Drive(stacked(4), capacity=48, num_envs=3)
    drive.episodes(0, (7, "truncated"), (3, "terminated"), (2, "truncated"), (9, "none"))
    drive.episodes(1, (4, "terminated"))
    return drive


def test_sampling_is_uniform_over_transitions_wherever_they_stand():
    drive = uneven_ring()
    kept = [transition.reward for transition in drive.naive.transitions()]
    assert len(kept) < drive.added
    samples = drive.ring.sample(20_000, np.random.default_rng(0)).reward
    counts = [np.count_nonzero(samples == reward) for reward in kept]
    assert sum(counts) == 20_000
    assert stats.chisquare(counts).pvalue > 0.01


def test_a_generator_in_the_same_state_gives_the_same_batch_and_moves_on():
    one_ring, other_ring = uneven_ring().ring, uneven_ring().ring
    first, again = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        one, two = one_ring.sample(32, first), other_ring.sample(32, again)
        for field, same in zip(one, two, strict=True):
            np.testing.assert_array_equal(field, same)
        assert first.bit_generator.state == again.bit_generator.state
    assert (one_ring.sample(32, first).slot != one.slot).any()


@pytest.mark.parametrize("stack", [1, 4])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_a_batch_has_the_shapes_and_types_that_learners_rely_on(stack, batch_size):
    drive = Drive(stacked(stack), capacity=9)
    drive.episodes(0, (5, "terminated"))
    batch = drive.ring.sample(batch_size, drive.rng)
    for observation in (batch.observation, batch.next_observation):
        assert observation.shape == (batch_size, stack, *TINY)
        assert observation.dtype == np.uint8
        assert observation.flags.c_contiguous


def test_a_batch_may_be_written_to_without_changing_the_replay():
    play = Play(stack=4, capacity=6)
    play.episodes(0, (4, "none"))
    for field in play.ring.sample(50, play.rng):
        field[...] = 0
    play.check()


# What cannot be


@pytest.mark.parametrize(
    "spec",
    [
        stacked(4, REAL, np.float32),
        stacked(4, REAL, np.int8),
        stacked(4, REAL, np.uint16),
        stacked(4, REAL, np.bool_),
        stacked(4, ()),
        stacked(4, (84,)),
        stacked(4, (84, 84, 3)),
    ],
    ids=str,
)
def test_stacks_of_anything_but_greyscale_images_of_bytes_are_an_error(spec):
    with pytest.raises(ValueError, match=r"stacked uint8 images \(stack, height, width\)"):
        ReplayBuffer(spec, capacity=10, num_heads=1, discount=DISCOUNT)


@pytest.mark.parametrize("shape", [(), (0, 84, 84)])
def test_empty_stacks_are_an_error(shape):
    with pytest.raises(ValueError, match=r"stacked uint8 images \(stack, height, width\)"):
        ReplayBuffer(BoxSpec(shape, np.dtype(np.uint8), stacked=True), capacity=10, num_heads=1, discount=DISCOUNT)
