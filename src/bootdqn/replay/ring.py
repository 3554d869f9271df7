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
        total = num_envs * self._slots
        self._discount = np.float32(discount)
        self._observation = np.zeros((total, *observation.shape), observation.dtype)
        self._action = np.zeros(total, np.int64)
        self._reward = np.zeros(total, np.float32)
        self._terminated = np.zeros(total, np.bool_)
        self._mask = np.zeros((total, num_heads), np.bool_)
        self._sampleable = np.zeros(total, np.bool_)
        self._newest = np.arange(num_envs) * self._slots
        self._reached = 0
        self._size = 0

    def __len__(self) -> int:
        """Return how many transitions can be sampled."""
        return self._size

    def begin_episode(self, env: int, observation: Any) -> None:
        """Store the first observation of an episode."""
        slot = int(self._newest[env])
        self._observation[slot] = observation
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
        slot = int(self._newest[env])
        self._action[slot] = action
        self._reward[slot] = reward
        self._terminated[slot] = terminated
        self._mask[slot] = mask
        self._sampleable[slot] = True
        self._size += 1
        following = self._after(slot)
        self._open(env, following)
        if not terminated:
            self._observation[following] = next_observation
            if truncated:
                self._open(env, self._after(following))

    def sample(self, batch_size: int, rng: np.random.Generator) -> Batch:
        """Draw `batch_size` stored transitions, uniformly and with replacement."""
        if not self._size:
            raise ValueError("the replay holds no transition yet: add some before sampling")
        slot = self._draw(batch_size, rng)
        return Batch(
            observation=self._observation[slot],
            action=self._action[slot],
            reward=self._reward[slot],
            discount=np.where(self._terminated[slot], np.float32(0), self._discount),
            next_observation=self._observation[self._after(slot)],
            mask=self._mask[slot],
            weight=np.ones(batch_size, np.float32),
            slot=slot,
        )

    def _after(self, slot: Any) -> Any:
        """Return the slot after `slot`, or after each of an array of them, in the same environment's ring."""
        return slot + 1 - self._slots * ((slot + 1) % self._slots == 0)

    def _open(self, env: int, slot: int) -> None:
        """Make `slot` the newest one of `env`; the transition that stood there is gone."""
        self._size -= int(self._sampleable[slot])
        self._sampleable[slot] = False
        self._newest[env] = slot
        self._reached = max(self._reached, slot % self._slots + 1)

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        """Draw slots that have a transition, drawing again where one has none."""
        num_drawable = len(self._newest) * self._reached

        def anywhere(how_many: int) -> Array:
            env, offset = np.divmod(rng.integers(0, num_drawable, how_many), self._reached)
            return env * self._slots + offset

        slot = anywhere(count)
        while (missing := np.flatnonzero(~self._sampleable[slot])).size:
            slot[missing] = anywhere(missing.size)
        return slot
