"""A ring of observations for each environment, with the transitions that lead from one to the next.

Slot t of an environment holds the observation o_t and what followed: the action, the reward, the end, the mask.
The next observation is slot t + 1, so each observation is stored once. An episode's end differs by its kind:

- *terminated*: nothing is bootstrapped, the final observation is not needed, the next episode takes its slot;
- *truncated*: the final observation is bootstrapped from, so it takes a slot of its own that has no transition.

The newest slot of an environment is open: its observation is known, its transition is not.
"""

from typing import Any

import numpy as np

from bootdqn.common.specs import Array, Batch, ObservationSpec


class RingReplay:
    """Uniform replay of at most `capacity` transitions from `num_envs` environments."""

    def __init__(
        self,
        observation: ObservationSpec,
        *,
        capacity: int,
        num_heads: int,
        discount: float,
        num_envs: int = 1,
    ) -> None:
        """Make an empty ring.

        Args:
            observation: What one observation is.
            capacity: The most transitions held, divided evenly over the environments.
            num_heads: K, the width of a mask.
            discount: What a value one step later is worth, unless the transition was terminated.
            num_envs: How many environments write, each into its own ring.
        """
        self._slots = max(1, capacity // num_envs) + 1
        shape = (num_envs, self._slots)
        self._discount = np.float32(discount)
        self._observation = np.zeros((*shape, *observation.shape), observation.dtype)
        self._action = np.zeros(shape, np.int64)
        self._reward = np.zeros(shape, np.float32)
        self._terminated = np.zeros(shape, np.bool_)
        self._mask = np.zeros((*shape, num_heads), np.bool_)
        self._sampleable = np.zeros(shape, np.bool_)
        self._open_slot = np.zeros(num_envs, np.int64)
        self._reached = np.zeros(num_envs, np.int64)
        self._size = 0

    def __len__(self) -> int:
        """Return how many transitions can be sampled."""
        return self._size

    def begin_episode(self, env: int, observation: Any) -> None:
        """Store the first observation of an episode."""
        slot = int(self._open_slot[env])
        self._observation[env, slot] = observation
        self._open(env, slot)

    def add(
        self,
        env: int,
        action: int,
        reward: float,
        next_observation: Any,
        mask: Array,
        *,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Store what followed the newest observation of `env`; `mask` is (K,).

        After an end (`terminated` or `truncated`) the next call for this environment is `begin_episode`.
        """
        slot = int(self._open_slot[env])
        self._action[env, slot] = action
        self._reward[env, slot] = reward
        self._terminated[env, slot] = terminated
        self._mask[env, slot] = mask
        self._sampleable[env, slot] = True
        self._size += 1
        following = (slot + 1) % self._slots
        if not terminated:
            self._observation[env, following] = next_observation
        self._open(env, following)
        if truncated and not terminated:
            self._open(env, (following + 1) % self._slots)

    def sample(self, batch_size: int, rng: np.random.Generator) -> Batch:
        """Draw `batch_size` stored transitions, uniformly and with replacement."""
        if not self._size:
            raise ValueError("the replay holds no transition yet: add some before sampling")
        env, slot = self._draw(batch_size, rng)
        following = (slot + 1) % self._slots
        return Batch(
            observation=self._observation[env, slot],
            action=self._action[env, slot],
            reward=self._reward[env, slot],
            discount=np.where(self._terminated[env, slot], np.float32(0), self._discount),
            next_observation=self._observation[env, following],
            mask=self._mask[env, slot],
            weight=np.ones(batch_size, np.float32),
            slot=env * self._slots + slot,
        )

    def _open(self, env: int, slot: int) -> None:
        """Make `slot` the newest one; the transition that stood there is gone."""
        self._size -= int(self._sampleable[env, slot])
        self._sampleable[env, slot] = False
        self._open_slot[env] = slot
        self._reached[env] = max(self._reached[env], slot + 1)

    def _draw(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw sampleable places, drawing again where a slot has no transition."""
        num_envs = len(self._open_slot)
        reached = int(self._reached.max())
        place = rng.integers(0, num_envs * reached, count)
        env, slot = np.divmod(place, reached)
        while (missing := np.flatnonzero(~self._sampleable[env, slot])).size:
            place = rng.integers(0, num_envs * reached, missing.size)
            env[missing], slot[missing] = np.divmod(place, reached)
        return env, slot
