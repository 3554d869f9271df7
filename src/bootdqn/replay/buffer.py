"""The replay buffer: a ring of observations for each environment, with the transitions between them.

Slot t of an environment holds the observation o_t and what followed: the action, the reward, the end, the mask.
The next observation is slot t + 1, so each observation is stored once. Episodes end in two ways:

- *terminated*: nothing is bootstrapped, the final observation is not needed, the next episode takes its slot;
- *truncated*: the final observation is bootstrapped from, so it takes a slot of its own that has no transition.

The newest slot of an environment is open: its observation is known, its transition is not.
"""

from typing import Any

import numpy as np

from bootdqn.common.specs import ALL_LEGAL, Array, Batch, ObservationSpec
from bootdqn.common.tensor_files import checked_array
from bootdqn.replay.observation_stores import make_store
from bootdqn.replay.prioritized import Priorities, importance_weights

SEGMENT_SLOTS = 4096
"""Slots that are saved together in one file."""


class ReplayBuffer:
    """Replay of at most `capacity` transitions from `num_envs` environments, sampled uniformly or by priority."""

    def __init__(
        self,
        observation: ObservationSpec,
        *,
        capacity: int,
        num_heads: int,
        discount: float,
        num_envs: int = 1,
        n_step: int = 1,
        alpha: float | None = None,
    ) -> None:
        """Make an empty ring.

        Args:
            observation: Spec of one observation.
            capacity: Maximum number of transitions, divided evenly over the environments.
            num_heads: K, the width of a mask.
            discount: Discount factor of one step.
            num_envs: Number of environments, each with its own ring.
            n_step: Maximum number of rewards that are added up before bootstrapping.
            alpha: Exponent of the priorities, from 0 to 1; None samples uniformly.

        Raises:
            ValueError: `capacity` is less than one transition for each environment.
        """
        if capacity < num_envs:
            raise ValueError(
                f"capacity must be at least one transition for each of {num_envs} environments: {capacity}"
            )
        self._num_envs = num_envs
        self._slots = capacity // num_envs + 1
        total = num_envs * self._slots
        self._powers = np.fromiter((discount**step for step in range(n_step + 1)), np.float32, n_step + 1)
        self._store = make_store(observation, total)
        self._age = np.zeros(total, np.uint8)
        self._action = np.zeros(total, np.int32)
        self._reward = np.zeros(total, np.float32)
        self._terminated = np.zeros(total, np.bool_)
        self._mask = np.zeros((total, num_heads), np.bool_)
        self._legal: Array | None = None  # (total, A), once the environment rules out actions
        self._sampleable = np.zeros(total, np.bool_)
        self._priorities = None if alpha is None else Priorities(total, alpha)
        self._newest = np.arange(num_envs) * self._slots
        self._reached = 0
        self._size = 0
        self._num_writes = np.zeros(-(-total // SEGMENT_SLOTS), np.int64)

    def __len__(self) -> int:
        """Return the number of transitions that can be sampled."""
        return self._size

    def start_episode(self, env: int, observation: Any, legal: Array | None = None) -> None:
        """Store the first observation of an episode; `legal` (A,) are the legal actions there, None stands for all."""
        slot = int(self._newest[env])
        self._open(env, slot)
        self._write(slot, observation, age=0, legal=legal)

    def cut_episode(self, env: int) -> None:
        """End the episode of `env` at its newest observation, which stays as a final one without a transition."""
        self._open(env, self._after(int(self._newest[env])))

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
        next_legal: Array | None = None,
    ) -> None:
        """Store the transition from the newest observation of `env`; `mask` is (K,), `next_legal` (A,) or None for all.

        After an end (`terminated` or `truncated`) the next call for this environment is `start_episode`.
        """
        slot = int(self._newest[env])
        self._action[slot] = action
        self._reward[slot] = reward
        self._terminated[slot] = terminated
        self._mask[slot] = mask
        self._num_writes[slot // SEGMENT_SLOTS] += 1
        self._insert(slot)
        following = self._after(slot)
        self._open(env, following)
        if not terminated:
            age = min(int(self._age[slot]) + 1, self._store.history)
            self._write(following, next_observation, age=age, legal=next_legal)
            if truncated:
                self.cut_episode(env)

    def sample(self, batch_size: int, rng: np.random.Generator, beta: float = 0.0) -> Batch:
        """Sample `batch_size` transitions with replacement, uniformly or by priority.

        Args:
            batch_size: B.
            rng: Random generator.
            beta: Exponent of the importance weights, from 0 to 1; uniform sampling ignores it.

        Raises:
            ValueError: The replay is empty.
        """
        if not self._size:
            raise ValueError("the replay holds no transition yet: add some before sampling")
        if self._priorities is None:
            slot, weight = self._sample_slots(batch_size, rng), np.ones(batch_size, np.float32)
        else:
            slot, probability = self._priorities.sample(batch_size, rng)
            weight = importance_weights(probability, self._size, beta)
        reward, discount, last = self._look_ahead(slot)
        following = self._after(last)
        return Batch(
            observation=self._read(slot),
            action=self._action[slot].astype(np.int64),
            reward=reward,
            discount=discount,
            next_observation=self._read(following),
            mask=self._mask.take(slot, axis=0),
            weight=weight,
            slot=slot,
            next_legal=ALL_LEGAL if self._legal is None else self._legal[following],
        )

    def update_priorities(self, slot: Array, error: Array) -> None:
        """Set the priorities of the transitions at `slot` (B,) by their TD errors (B,); uniform sampling ignores it."""
        if self._priorities is not None:
            self._priorities.update(slot, error)

    @property
    def segment_versions(self) -> list[int]:
        """A version number of each segment, which changes when its content does; 0 if it was never written."""
        return [int(count) for count in self._num_writes]

    def get_segment(self, index: int) -> dict[str, Array]:
        """Return the observations and transitions of one segment as arrays by name; they may be views."""
        start, stop = self._bounds(index)
        arrays = {name: array[start:stop] for name, array in self._transitions().items()}
        return arrays | self._store.get_range(start, stop)

    def set_segment(self, index: int, arrays: dict[str, Array], version: int) -> None:
        """Restore what `get_segment` returned; raise a ValueError if it does not fit."""
        start, stop = self._bounds(index)
        if "legal" in arrays and self._legal is None:
            self._legal = np.ones((len(self._age), arrays["legal"].shape[-1]), np.bool_)
        for name, array in self._transitions().items():
            array[start:stop] = checked_array(arrays, name, array[start:stop])
        self._store.set_range(start, stop, arrays)
        self._num_writes[index] = version

    def get_state(self) -> dict[str, Array]:
        """Return the state outside of segments: write positions, sampleable slots and priorities."""
        state: dict[str, Array] = {
            "newest": self._newest.copy(),
            "reached": np.asarray(self._reached, np.int64),
            "sampleable": np.packbits(self._sampleable),
        }
        return state if self._priorities is None else state | self._priorities.get_state()

    def set_state(self, state: dict[str, Array]) -> None:
        """Restore what `get_state` returned, after the segments; raise a ValueError if it does not fit."""
        expected = self.get_state()
        checked = {name: checked_array(state, name, array) for name, array in expected.items()}
        newest, reached, sampleable = checked["newest"], checked["reached"], checked["sampleable"]
        starts = np.arange(len(newest)) * self._slots
        if (newest < starts).any() or (newest >= starts + self._slots).any() or not 0 <= int(reached) <= self._slots:
            raise ValueError("the replay's positions lie outside of its rings")
        held = np.unpackbits(sampleable, count=len(self._sampleable)).astype(np.bool_)
        if held.reshape(len(newest), self._slots)[:, int(reached) :].any() or held[newest].any():
            raise ValueError("the replay would sample what was never stored")
        if self._priorities is not None:
            self._priorities.set_state(checked["priorities"], float(checked["largest_priority"]), held)
        self._newest[:] = newest
        self._reached = int(reached)
        self._sampleable[:] = held
        self._size = int(self._sampleable.sum())

    @property
    def actions(self) -> Array:
        """The action of every slot, 0 where there is none: a view that cannot be written to."""
        actions = self._action.view()
        actions.flags.writeable = False
        return actions

    @property
    def num_masked_actions(self) -> int | None:
        """The number of actions of which the environment rules out some; None where it never did."""
        return None if self._legal is None else self._legal.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory of the replay in bytes."""
        return self._store.nbytes + self._transition_nbytes

    def expected_nbytes(self, num_actions: int) -> int:
        """Return the memory in bytes of the replay when it is full and the environment rules out actions."""
        masks = 0 if self._legal is not None else len(self._age) * num_actions
        return self._store.expected_nbytes + self._transition_nbytes + masks

    @property
    def _transition_nbytes(self) -> int:
        priorities = 0 if self._priorities is None else self._priorities.nbytes
        return sum(array.nbytes for array in (*self._transitions().values(), self._sampleable)) + priorities

    def _transitions(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {
            "age": self._age,
            "action": self._action,
            "reward": self._reward,
            "terminated": self._terminated,
            "mask": self._mask,
        }
        return arrays if self._legal is None else arrays | {"legal": self._legal}

    def _bounds(self, index: int) -> tuple[int, int]:
        if not 0 <= index < len(self._num_writes):
            raise ValueError(f"there is no segment {index}")
        return index * SEGMENT_SLOTS, min((index + 1) * SEGMENT_SLOTS, len(self._age))

    def _write(self, slot: int, observation: Any, *, age: int, legal: Array | None) -> None:
        self._store.write(slot, observation)
        self._age[slot] = age
        if legal is not None and self._legal is None:
            self._legal = np.ones((len(self._age), len(legal)), np.bool_)
            self._num_writes[self._num_writes > 0] += 1  # every segment has one more array now
        if self._legal is not None:
            self._legal[slot] = True if legal is None else legal
        self._num_writes[slot // SEGMENT_SLOTS] += 1

    def _read(self, slot: Array) -> Array:
        """Return the observations of `slot` (B,), each rebuilt from the slots of its episode."""
        if not self._store.history:
            return self._store.read(slot[:, None])
        back = np.arange(self._store.history, -1, -1)
        return self._store.read(self._moved(slot[:, None], -np.minimum(back, self._age[slot][:, None])))

    def _after(self, slot: Any) -> Any:
        """Return the slot after `slot`, or after each of an array of them, in the same environment's ring."""
        return self._moved(slot, 1)

    def _moved(self, slot: Any, by: Any) -> Any:
        """Return `slot` moved by `by` within its environment's ring."""
        if self._num_envs == 1:
            return (slot + by) % self._slots
        start = slot - slot % self._slots
        return start + (slot - start + by) % self._slots

    def _open(self, env: int, slot: int) -> None:
        """Make `slot` the newest one of `env`; remove the transitions that need its old content."""
        for distance in range(self._store.history + 1):
            needing = self._moved(slot, distance)
            if self._age[needing] >= distance and self._sampleable[needing]:
                self._remove(needing)
        self._newest[env] = slot
        self._reached = max(self._reached, slot % self._slots + 1)

    def _insert(self, slot: int) -> None:
        self._sampleable[slot] = True
        self._size += 1
        if self._priorities is not None:
            self._priorities.insert(slot)

    def _remove(self, slot: int) -> None:
        self._sampleable[slot] = False
        self._size -= 1
        if self._priorities is not None:
            self._priorities.remove(slot)

    def _look_ahead(self, slot: Array) -> tuple[Array, Array, Array]:
        """Follow the transitions at `slot` (B,) for up to n steps within their episodes.

        Returns:
            The discounted sum of rewards, the discount of the value that follows (0 after termination), and the slot of
            the last transition; each (B,).
        """
        reward, last = self._reward[slot], slot
        if len(self._powers) == 2:
            return reward, np.where(self._terminated[last], np.float32(0), self._powers[1]), last
        steps = np.ones(len(slot), np.int64)
        for power in self._powers[1:-1]:
            following = self._after(last)
            continues = ~self._terminated[last] & self._sampleable[following]
            reward = np.where(continues, reward + power * self._reward[following], reward)
            last = np.where(continues, following, last)
            steps = steps + continues
        return reward, np.where(self._terminated[last], np.float32(0), self._powers[steps]), last

    def _sample_slots(self, count: int, rng: np.random.Generator) -> Array:
        """Sample slots with a transition uniformly, by rejection."""
        num_written = len(self._newest) * self._reached

        def sample(size: int) -> Array:
            number: Array = rng.integers(0, num_written, size)
            if self._num_envs == 1:
                return number
            env, offset = np.divmod(number, self._reached)
            slots: Array = env * self._slots + offset
            return slots

        slot = sample(count)
        while not (held := self._sampleable[slot]).all():
            rejected = np.flatnonzero(~held)
            slot[rejected] = sample(rejected.size)
        return slot
