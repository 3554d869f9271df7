"""Drives a ring and the naive replay alike, and compares all of their results."""

import numpy as np
import pytest

from bootdqn.common.specs import BoxSpec, DiscreteSpec
from bootdqn.replay.buffer import ReplayBuffer
from reference.replay import NaiveReplay

DISCOUNT = 0.97
NUMBERS = DiscreteSpec(1_000_000)
ENDS = {"none": (False, False), "terminated": (True, False), "truncated": (False, True), "both": (True, True)}


class Impatient(np.random.Generator):
    """A generator that fails after too many calls, as rejection sampling of missing slots would make."""

    patience = 1000

    def integers(self, *args, **kwargs):
        self.patience -= 1
        assert self.patience > 0, "drawn again and again"
        return super().integers(*args, **kwargs)


class Drive:
    """Gives the ring and the naive replay the same random transitions; rewards count up, so each names its transition.

    Observations are handed over in one buffer that is overwritten afterwards, as some environments do.
    A second ring looks `n_step` steps ahead; with None there is no second one.
    """

    def __init__(self, spec=NUMBERS, *, capacity, num_envs=1, num_heads=3, n_step=1):
        shared = {"capacity": capacity, "num_heads": num_heads, "discount": DISCOUNT, "num_envs": num_envs}
        self.ring = ReplayBuffer(spec, **shared)
        self.ahead = None if n_step is None else ReplayBuffer(spec, **shared, n_step=n_step)
        self.n_step = n_step
        self.stacked = isinstance(spec, BoxSpec) and spec.stacked
        self.naive = NaiveReplay(capacity, num_envs, spec.shape[0] - 1 if self.stacked else 0)
        self._replays = [replay for replay in (self.ring, self.ahead, self.naive) if replay is not None]
        self.capacity, self.num_envs = capacity, num_envs
        self.rng = np.random.default_rng(5)
        self.added = 0
        self._spec = spec
        self._num_heads = num_heads
        self._between_episodes = [True] * num_envs
        self._places = {}
        self._stack = [None] * num_envs

    def observe(self, env):
        """Return a new random observation; one of frames continues the stack of its episode."""
        if not self.stacked:
            return random_observation(self._spec, self._spec.shape, self.rng)
        frame = self.frame(env)[None]
        first = self._between_episodes[env]
        frames = [frame] * self._spec.shape[0] if first else [self._stack[env][1:], frame]
        self._stack[env] = np.concatenate(frames)
        return self._stack[env].copy()

    def frame(self, _env):
        """Return the next frame that an environment shows."""
        return random_observation(self._spec, self._spec.shape[1:], self.rng)

    def operate(self, env, end="none"):
        """Start an episode where none is under way, otherwise take a step with the given `end`."""
        observation = self.observe(env)
        if self._between_episodes[env]:
            for replay in self._replays:
                replay.start_episode(env, observation)
            self._between_episodes[env] = False
        else:
            terminated, truncated = ENDS[end]
            mask = self.rng.random(self._num_heads) < 0.5
            step = (int(self.rng.integers(5)), float(self.added), observation, mask)
            for replay in self._replays:
                replay.add(env, *step, terminated=terminated, truncated=truncated)
            self.added += 1
            self._between_episodes[env] = terminated or truncated
            mask[...] = ~mask
        observation[...] = 0

    def episodes(self, env, *lengths_and_ends):
        for length, end in lengths_and_ends:
            for step in range(-1, length):
                self.operate(env, end if step == length - 1 else "none")

    def sampled(self):
        """Return which transitions are among many sampled ones, by their rewards."""
        return set(self.ring.sample(1000, self.rng).reward.tolist())

    def check(self):
        """Sample every transition many times over, and compare the ring with the naive replay in all it shows.

        Return the batch, or None where there is nothing to sample.
        """
        expected = {transition.reward: transition for transition in self.naive.transitions()}
        assert len(self.ring) == len(expected) <= self.capacity
        if not expected:
            with pytest.raises(ValueError, match="no transition yet: add some before sampling"):
                self.ring.sample(1, self.rng)
            return None
        batch = self.ring.sample(40 * len(expected), Impatient(np.random.PCG64(self.added)))
        rewards = batch.reward.tolist()
        assert set(rewards) == set(expected)
        same = [expected[reward] for reward in rewards]
        np.testing.assert_array_equal(batch.observation, [transition.observation for transition in same])
        np.testing.assert_array_equal(batch.mask, [transition.mask for transition in same])
        np.testing.assert_array_equal(batch.action, [transition.action for transition in same])
        terminated = np.array([transition.terminated for transition in same])
        np.testing.assert_array_equal(batch.discount, np.where(terminated, 0, np.float32(DISCOUNT)))
        after = np.array([transition.next_observation for transition in same])
        np.testing.assert_array_equal(batch.next_observation[~terminated], after[~terminated])
        np.testing.assert_array_equal(batch.weight, 1)
        self._check_places(list(zip(rewards, batch.slot.tolist(), strict=True)))
        if self.ahead is not None:
            self._check_ahead(batch, same)
        return batch

    def _check_ahead(self, batch, same):
        """Compare the n-step results of the second ring for the same samples."""
        further = self.ahead.sample(len(same), Impatient(np.random.PCG64(self.added)))
        for name in ("slot", "observation", "action", "mask", "weight"):
            np.testing.assert_array_equal(getattr(further, name), getattr(batch, name), err_msg=name)
        ahead = {
            transition.reward: self.naive.ahead(transition, self.n_step, DISCOUNT)
            for transition in self.naive.transitions()
        }
        expected = [ahead[transition.reward] for transition in same]
        np.testing.assert_allclose(further.reward, [reward for reward, _, _ in expected], rtol=1e-6)
        discount = np.array([discount for _, discount, _ in expected])
        np.testing.assert_allclose(further.discount, discount, rtol=1e-6)
        after = np.array([observation for _, _, observation in expected])
        np.testing.assert_array_equal(further.next_observation[discount > 0], after[discount > 0])

    def _check_places(self, places):
        """Each transition stands in one slot that no other has, and never moves."""
        places = set(places)
        assert len(places) == len(dict(places)) == len({slot for _, slot in places})
        assert all(self._places.setdefault(reward, slot) == slot for reward, slot in places)


def random_observation(spec, shape, rng):
    if np.issubdtype(spec.dtype, np.floating):
        return np.asarray(rng.normal(size=shape), spec.dtype)
    limits = {np.dtype(np.bool_): 2, np.dtype(np.uint8): 256, np.dtype(np.int64): 1_000_000}
    return np.asarray(rng.integers(0, limits.get(spec.dtype, 200), shape), spec.dtype)
