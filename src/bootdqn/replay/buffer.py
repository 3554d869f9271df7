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
from bootdqn.replay.observation_stores import like, make_store
from bootdqn.replay.prioritized import Priorities, importance_weights

SEGMENT_SLOTS = 4096
"""Slots that are saved together in one file."""


class ReplayBuffer:
    """Replay of at most `capacity` transitions from `num_envs` environments, drawn uniformly or by priority."""

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
            observation: What one observation is.
            capacity: The most transitions held, divided evenly over the environments.
            num_heads: K, the width of a mask.
            discount: What a value one step later is worth, unless the transition was terminated.
            num_envs: How many environments write, each into its own ring.
            n_step: The most steps whose rewards a sample adds up before it bootstraps.
            alpha: How much errors tell in the drawing, from 0 to 1; None draws uniformly.
        """
        if capacity < num_envs:
            raise ValueError(
                f"capacity must be at least one transition for each of {num_envs} environments: {capacity}"
            )
        self._slots = capacity // num_envs + 1
        total = num_envs * self._slots
        self._powers = np.fromiter((discount**step for step in range(n_step + 1)), np.float32, n_step + 1)
        self._store = make_store(observation, total)
        self._age = np.zeros(total, np.uint8)
        self._action = np.zeros(total, np.int32)
        self._reward = np.zeros(total, np.float32)
        self._terminated = np.zeros(total, np.bool_)
        self._mask = np.zeros((total, num_heads), np.bool_)
        self._sampleable = np.zeros(total, np.bool_)
        self._priorities = None if alpha is None else Priorities(total, alpha)
        self._newest = np.arange(num_envs) * self._slots
        self._reached = 0
        self._size = 0
        self._num_writes = np.zeros(-(-total // SEGMENT_SLOTS), np.int64)

    def __len__(self) -> int:
        """Return how many transitions can be sampled."""
        return self._size

    def begin_episode(self, env: int, observation: Any) -> None:
        """Store the first observation of an episode."""
        slot = int(self._newest[env])
        self._open(env, slot)
        self._write(slot, observation, age=0)

    def cut_episode(self, env: int) -> None:
        """End the episode of `env` where it is: its newest observation stays as a final one without a transition."""
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
    ) -> None:
        """Store what followed the newest observation of `env`; `mask` is (K,).

        After an end (`terminated` or `truncated`) the next call for this environment is `begin_episode`.
        """
        slot = int(self._newest[env])
        self._action[slot] = action
        self._reward[slot] = reward
        self._terminated[slot] = terminated
        self._mask[slot] = mask
        self._num_writes[slot // SEGMENT_SLOTS] += 1
        self._admit(slot)
        following = self._after(slot)
        self._open(env, following)
        if not terminated:
            self._write(following, next_observation, age=min(int(self._age[slot]) + 1, self._store.history))
            if truncated:
                self.cut_episode(env)

    def sample(self, batch_size: int, rng: np.random.Generator, beta: float = 0.0) -> Batch:
        """Draw `batch_size` stored transitions with replacement, uniformly or by priority.

        Where that is by priority, the weights undo a part `beta` of it, from 0 to 1.
        """
        if not self._size:
            raise ValueError("the replay holds no transition yet: add some before sampling")
        if self._priorities is None:
            slot, weight = self._draw(batch_size, rng), np.ones(batch_size, np.float32)
        else:
            slot, probability = self._priorities.draw(batch_size, rng)
            weight = importance_weights(probability, self._size, beta)
        reward, discount, last = self._look_ahead(slot)
        return Batch(
            observation=self._read(slot),
            action=self._action[slot].astype(np.int64),
            reward=reward,
            discount=discount,
            next_observation=self._read(self._after(last)),
            mask=self._mask[slot],
            weight=weight,
            slot=slot,
        )

    def change_priorities(self, slot: Array, error: Array) -> None:
        """Tell how wrong the heads were (B,) about the transitions at `slot` (B,); uniform drawing ignores it."""
        if self._priorities is not None:
            self._priorities.change(slot, error)

    @property
    def segment_versions(self) -> list[int]:
        """One number for each segment that changes whenever something in it does; 0 for a segment never written."""
        return [int(count) for count in self._num_writes]

    def get_segment(self, index: int) -> dict[str, Array]:
        """Return the observations and transitions of one segment as arrays by name; they may be views."""
        start, stop = self._bounds(index)
        arrays = {name: array[start:stop] for name, array in self._transitions().items()}
        return arrays | self._store.get_range(start, stop)

    def set_segment(self, index: int, arrays: dict[str, Array], version: int) -> None:
        """Put back what `get_segment` returned; a ValueError if it cannot be that."""
        start, stop = self._bounds(index)
        for name, array in self._transitions().items():
            array[start:stop] = like(arrays, name, array[start:stop])
        self._store.set_range(start, stop, arrays)
        self._num_writes[index] = version

    def get_state(self) -> dict[str, Array]:
        """Return what belongs to no segment: where each environment writes, what can be sampled, and how likely."""
        state: dict[str, Array] = {
            "newest": self._newest.copy(),
            "reached": np.asarray(self._reached, np.int64),
            "sampleable": np.packbits(self._sampleable),
        }
        return state if self._priorities is None else state | self._priorities.get_state()

    def set_state(self, state: dict[str, Array]) -> None:
        """Put back what `get_state` returned, the segments being set already; a ValueError if it cannot be that."""
        expected = self.get_state()
        checked = {name: like(state, name, array) for name, array in expected.items()}
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
    def nbytes(self) -> int:
        """Memory that the replay takes."""
        return self._store.nbytes + self._transition_nbytes

    @property
    def expected_nbytes(self) -> int:
        """Memory that it will take when it is full."""
        return self._store.expected_nbytes + self._transition_nbytes

    @property
    def _transition_nbytes(self) -> int:
        priorities = 0 if self._priorities is None else self._priorities.nbytes
        return sum(array.nbytes for array in (*self._transitions().values(), self._sampleable)) + priorities

    def _transitions(self) -> dict[str, Array]:
        return {
            "age": self._age,
            "action": self._action,
            "reward": self._reward,
            "terminated": self._terminated,
            "mask": self._mask,
        }

    def _bounds(self, index: int) -> tuple[int, int]:
        if not 0 <= index < len(self._num_writes):
            raise ValueError(f"there is no segment {index}")
        return index * SEGMENT_SLOTS, min((index + 1) * SEGMENT_SLOTS, len(self._age))

    def _write(self, slot: int, observation: Any, *, age: int) -> None:
        self._store.write(slot, observation)
        self._age[slot] = age
        self._num_writes[slot // SEGMENT_SLOTS] += 1

    def _read(self, slot: Array) -> Array:
        """Return the observations of `slot` (B,), each rebuilt from the slots of its episode that it is made of."""
        if not self._store.history:
            return self._store.read(slot[:, None])
        back = np.arange(self._store.history, -1, -1)
        return self._store.read(self._moved(slot[:, None], -np.minimum(back, self._age[slot][:, None])))

    def _after(self, slot: Any) -> Any:
        """Return the slot after `slot`, or after each of an array of them, in the same environment's ring."""
        return self._moved(slot, 1)

    def _moved(self, slot: Any, by: Any) -> Any:
        """Return `slot` moved by `by` within its environment's ring."""
        start = slot - slot % self._slots
        return start + (slot - start + by) % self._slots

    def _open(self, env: int, slot: int) -> None:
        """Make `slot` the newest one of `env`; the transitions that need what stood there are gone."""
        for distance in range(self._store.history + 1):
            needing = self._moved(slot, distance)
            if self._age[needing] >= distance and self._sampleable[needing]:
                self._dismiss(needing)
        self._newest[env] = slot
        self._reached = max(self._reached, slot % self._slots + 1)

    def _admit(self, slot: int) -> None:
        self._sampleable[slot] = True
        self._size += 1
        if self._priorities is not None:
            self._priorities.admit(slot)

    def _dismiss(self, slot: int) -> None:
        self._sampleable[slot] = False
        self._size -= 1
        if self._priorities is not None:
            self._priorities.dismiss(slot)

    def _look_ahead(self, slot: Array) -> tuple[Array, Array, Array]:
        """Follow the transitions at `slot` (B,) for up to n steps, as far as their episodes go and are known.

        Returns:
            The rewards on the way, discounted and added up; what the value after it is worth, 0 if nothing follows;
            and the slot of the last transition.
        """
        reward, last, steps = self._reward[slot], slot, np.ones(len(slot), np.int64)
        for power in self._powers[1:-1]:
            following = self._after(last)
            goes_on = ~self._terminated[last] & self._sampleable[following]
            reward = np.where(goes_on, reward + power * self._reward[following], reward)
            last = np.where(goes_on, following, last)
            steps = steps + goes_on
        return reward, np.where(self._terminated[last], np.float32(0), self._powers[steps]), last

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
