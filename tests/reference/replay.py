"""A slow, obvious replay: whole transitions in Python lists, the next observation of each copied beside it.

An environment's list has room for `capacity // num_envs` entries, and the oldest go first. A truncated end spends one
entry that holds no transition, because its final observation must be kept; a terminated end spends none.

Where observations are stacks of frames, each entry has room for its newest frame only. A transition is there as long
as the entries of the `history` frames before it are, or those back to its episode's first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Transition:
    """Everything there is to know of one step."""

    observation: np.ndarray
    action: int
    reward: float
    next_observation: np.ndarray
    mask: np.ndarray
    terminated: bool
    step: int
    """How many steps of its episode came before."""


class NaiveReplay:
    """The same calls as `ReplayBuffer`, without sampling."""

    def __init__(self, capacity: int, num_envs: int, history: int = 0) -> None:
        self._room = capacity // num_envs
        self._history = history
        self._step = [0] * num_envs
        self._entries: list[list[Transition | None]] = [[] for _ in range(num_envs)]
        self._current: list[Any] = [None] * num_envs

    def __len__(self) -> int:
        return len(self.transitions())

    def transitions(self) -> list[Transition]:
        """Return every transition that must be sampleable now, oldest first, one environment after the other."""
        return [
            entry
            for entries in self._entries
            for place, entry in enumerate(entries)
            if entry is not None and place >= min(entry.step, self._history)
        ]

    def ahead(self, transition: Transition, n_step: int, discount: float) -> tuple[float, float, np.ndarray]:
        """Return up to `n_step` rewards added up, the discount of the value after them, and the observation there."""
        entries = next(entries for entries in self._entries if any(entry is transition for entry in entries))
        place = next(place for place, entry in enumerate(entries) if entry is transition)
        total, worth, last = 0.0, 1.0, transition
        for entry in entries[place : place + n_step]:
            if entry is None:
                break
            total, worth, last = total + worth * entry.reward, worth * discount, entry
            if entry.terminated:
                return total, 0.0, last.next_observation
        return total, worth, last.next_observation

    def start_episode(self, env: int, observation: Any) -> None:
        """Remember where the next transition starts."""
        self._current[env] = np.array(observation)
        self._step[env] = 0

    def add(
        self,
        env: int,
        action: int,
        reward: float,
        next_observation: Any,
        mask: np.ndarray,
        *,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Append one transition, then drop the oldest entries that no longer fit."""
        after = np.array(next_observation)
        transition = Transition(self._current[env], action, reward, after, np.array(mask), terminated, self._step[env])
        self._entries[env].append(transition)
        self._step[env] += 1
        if truncated and not terminated:
            self._entries[env].append(None)
        while len(self._entries[env]) > self._room:
            del self._entries[env][0]
        self._current[env] = after
