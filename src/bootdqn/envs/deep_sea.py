"""DeepSea, and the rule by which it counts as solved (bsuite, Osband et al. 2020)."""

import math
import operator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from bootdqn.common.random_streams import legacy_generator, legacy_state

_COLOURS = {
    "line": (12, 22, 40),
    "unreachable": (38, 50, 72),
    "water": (46, 104, 158),
    "diagonal": (92, 154, 204),
    "treasure": (242, 190, 64),
    "diver": (228, 74, 58),
}


class DeepSea(gym.Env[int, int]):
    """DeepSea of bsuite as a Gymnasium environment, `bootdqn/DeepSea-v0`.

    An episode is N steps long and then *terminated*. In row r only the columns 0 to r can be reached, so the last
    column is reached in the last row or never.

    Action: 0 or 1; `action_mapping[row, column]` says which of them means right, the other one means left.

    Observation: `row * N + column`, one of N * N. After the last step there is no row left to sink to: that terminal
    observation is the last row with the column the diver moved to. Nothing is learned from it, because nothing is
    bootstrapped from a terminated transition.

    Reward: right costs `unscaled_move_cost / N`, and right in the last column pays 1.

    The windy version (`deterministic=False`): going right leaves the column as it is with probability 1/N (the cost is
    paid all the same), and the first and the last column of the last row add noise from N(0, 1) to the reward of
    either action. The wind is seeded by `reset(seed=...)`; a reset without a seed continues the same random stream.

    `info` of `reset` and `step`: `bad_episode`, whether the diver has gone left on the diagonal in this episode (wind
    that holds the diver back is not counted), and `denoised_return`, this episode's return so far without the noise.
    bsuite's count of the same name is another number: treasures found in all episodes, move costs left out.

    Args:
        size: N, the number of rows, of columns and of steps in an episode.
        deterministic: no wind and no noise.
        randomize_actions: sample the action map; otherwise 1 means right everywhere, which makes the problem easier.
        mapping_seed: seed of the action map; None gives every environment another map.
        unscaled_move_cost: cost of going right all the way down.
        render_mode: `"ansi"` for a text picture, `"rgb_array"` for an image, or None.

    Example:
        >>> env = DeepSea(size=4, randomize_actions=False)
        >>> env.reset(seed=0)
        (0, {'bad_episode': False, 'denoised_return': 0.0})
        >>> env.step(1)
        (5, -0.0025, False, False, {'bad_episode': False, 'denoised_return': -0.0025})
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 - as in gym.Env

    def __init__(
        self,
        size: int = 10,
        deterministic: bool = True,
        randomize_actions: bool = True,
        mapping_seed: int | None = None,
        unscaled_move_cost: float = 0.01,
        render_mode: str | None = None,
    ) -> None:
        size = operator.index(size)
        if size < 1:
            raise ValueError(f"size is the number of rows and columns, at least 1; got {size}")
        if not math.isfinite(unscaled_move_cost):
            raise ValueError(f"unscaled_move_cost must be a finite number; got {unscaled_move_cost}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be None or one of {self.metadata['render_modes']}; got {render_mode!r}")
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Discrete(size * size)  # type: ignore[assignment]
        self.action_space = gym.spaces.Discrete(2)  # type: ignore[assignment]

        self._size = size
        self._deterministic = bool(deterministic)
        self._unscaled_move_cost = float(unscaled_move_cost)
        self._move_cost = self._unscaled_move_cost / size
        self._hold_probability = 1 / size
        # One bytes object a row: indexing it gives a plain int, faster than a NumPy scalar.
        self._right = [bytes([1] * size)] * size
        if randomize_actions:
            mapping = np.random.RandomState(mapping_seed).binomial(1, 0.5, (size, size))
            self._right = [bytes(row) for row in mapping.tolist()]

        self._row = size + 1  # not started; `size` means over
        self._column = 0
        self._bad_episode = False
        self._denoised_return = 0.0
        self._wind: np.random.RandomState | None = None  # None in the deterministic version

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode at the top left; a seed also restarts the wind."""
        super().reset(seed=seed, options=options)
        if not self._deterministic and (seed is not None or self._wind is None):
            self._wind = legacy_generator(seed, self.np_random)
        self._row = 0
        self._column = 0
        self._bad_episode = False
        self._denoised_return = 0.0
        return 0, {"bad_episode": False, "denoised_return": 0.0}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Sink one row, to the left or to the right. The windy version samples noise first, then wind."""
        size = self._size
        row = self._row
        column = self._column
        if row >= size:
            raise gym.error.ResetNeeded(
                f"the episode is {'over' if row == size else 'not started'}: call reset() first"
            )
        right = self._right[row][column]
        wind = self._wind
        if action == right:
            # The order of the sums is part of the contract: noise is added before the cost is taken off.
            reward = 1.0 if column == size - 1 else 0.0
            self._denoised_return += reward - self._move_cost
            if wind is not None and row == size - 1 and column in (0, row):
                reward += wind.randn()
            reward -= self._move_cost
            if (wind is None or wind.rand() > self._hold_probability) and column < size - 1:
                column += 1
        elif action == 1 - right:
            reward = 0.0
            if wind is not None and row == size - 1 and column in (0, row):
                reward += wind.randn()
            if column == row:
                self._bad_episode = True
            if column > 0:
                column -= 1
        else:
            raise ValueError(f"action must be 0 or 1; got {action!r}")
        row += 1
        self._row = row
        self._column = column
        terminated = row == size
        return (
            (row - terminated) * size + column,
            reward,
            terminated,
            False,
            {"bad_episode": self._bad_episode, "denoised_return": self._denoised_return},
        )

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the grid by `render_mode`: text, or an RGB image (height, width, 3).

        After the last step the diver is in the last row, as in the terminal observation.
        """
        if self.render_mode is None:
            gym.logger.warn(f"nothing to render: make DeepSea with a render_mode, {self.metadata['render_modes']}")
            return None
        if self._row > self._size:
            raise gym.error.ResetNeeded("there is nothing to show yet: call reset() before render()")
        return self._text() if self.render_mode == "ansi" else self._image()

    @property
    def optimal_return(self) -> float:
        """The expected return of going right in every row, as in bsuite.

        Without wind this is 1 less the cost, and nothing does better as long as the cost lies between 0 and 1. With
        wind the treasure is within reach only if none of N - 1 moves fails, (1 - 1/N)^(N - 1), about 1/e; a diver
        that stops paying for moves once the wind has held it back would do better by less than the cost.
        """
        reached = 1.0 if self._deterministic else (1 - 1 / self._size) ** (self._size - 1)
        return reached - self._unscaled_move_cost

    @property
    def action_mapping(self) -> npt.NDArray[np.int64]:
        """The action that means right in every cell, (N, N): a read-only copy."""
        mapping = np.array([list(row) for row in self._right], dtype=np.int64)
        mapping.flags.writeable = False
        return mapping

    def optimal_action(self, row: int, column: int) -> int:
        """Return the action of the policy of `optimal_return` in a cell: right.

        Below the diagonal the treasure is out of reach and nothing but the cost of moving is left to decide.
        """
        if not (0 <= row < self._size and 0 <= column < self._size):
            raise ValueError(f"row and column must lie between 0 and {self._size - 1}; got ({row}, {column})")
        return self._right[row][column]

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, ready for JSON: position, returns, action map, random streams."""
        return {
            "settings": self._settings(),
            "action_mapping": ["".join(map(str, row)) for row in self._right],
            "row": self._row,
            "column": self._column,
            "bad_episode": self._bad_episode,
            "denoised_return": self._denoised_return,
            "wind": None if self._wind is None else legacy_state(self._wind),
            "np_random": self.np_random.bit_generator.state,
            "np_random_seed": self.np_random_seed,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, exactly.

        The action map is part of the state, so that an environment without a `mapping_seed` can be restored.

        Raises:
            ValueError: the state is of an environment with another size, wind or move cost.
        """
        if state["settings"] != self._settings():
            raise ValueError(
                f"the state is of a DeepSea with {state['settings']}, this one has {self._settings()}: "
                "make the environment with the settings it was saved with"
            )
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = state["np_random"]
        self._np_random, self._np_random_seed = generator, state["np_random_seed"]
        self._wind = None if state["wind"] is None else legacy_generator(state["wind"], generator)
        self._right = [bytes(map(int, row)) for row in state["action_mapping"]]
        self._row = state["row"]
        self._column = state["column"]
        self._bad_episode = state["bad_episode"]
        self._denoised_return = state["denoised_return"]

    def _settings(self) -> dict[str, Any]:
        return {
            "size": self._size,
            "deterministic": self._deterministic,
            "unscaled_move_cost": self._unscaled_move_cost,
        }

    def _diver(self) -> tuple[int, int]:
        return min(self._row, self._size - 1), self._column

    def _text(self) -> str:
        """Return one line a row: `@` the diver, `$` the treasure, `.` water, blank where it cannot get."""
        size = self._size
        picture = [["." if column <= row else " " for column in range(size)] for row in range(size)]
        picture[-1][-1] = "$"
        row, column = self._diver()
        picture[row][column] = "@"
        return "\n".join(" ".join(line).rstrip() for line in picture) + "\n"

    def _image(self) -> npt.NDArray[np.uint8]:
        """Return one square a cell, in the colours of `_COLOURS`."""
        size = self._size
        pixels = max(8, 320 // size)
        cells = np.empty((size, size, 3), dtype=np.uint8)
        cells[:] = _COLOURS["unreachable"]
        cells[np.tri(size, dtype=bool)] = _COLOURS["water"]
        cells[np.eye(size, dtype=bool)] = _COLOURS["diagonal"]
        cells[-1, -1] = _COLOURS["treasure"]
        cells[self._diver()] = _COLOURS["diver"]
        image = cells.repeat(pixels, axis=0).repeat(pixels, axis=1)
        image[::pixels] = _COLOURS["line"]
        image[:, ::pixels] = _COLOURS["line"]
        image[-1] = image[:, -1] = _COLOURS["line"]
        return image


BAD_FRACTION = 0.9
"""DeepSea is solved at the first episode at which fewer than this fraction of the episodes so far were bad."""
MIN_GOOD_EPISODES = 10


@dataclass
class SolvedRule:
    """The rule by which DeepSea is solved: an episode is bad if the agent went left on the diagonal.

    `solved_at` is bsuite's: the first episode e with (bad episodes so far) / e < 0.9. It has no minimum, so one good
    episode among the first nine is enough. `solved_at_strict` asks for 10 good episodes as well.
    """

    good_episodes: int = 0
    bad_episodes: int = 0
    first_good_episode: int | None = None
    solved_at: int | None = None
    solved_at_strict: int | None = None

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return self.good_episodes + self.bad_episodes

    @property
    def running_regret(self) -> float:
        """The fraction of bad episodes; 1 before the first episode."""
        return self.bad_episodes / self.episodes if self.episodes else 1.0

    @property
    def solved_by_both(self) -> bool:
        """Whether DeepSea is solved by both rules."""
        return self.solved_at is not None and self.solved_at_strict is not None

    def add_episode(self, *, bad: bool) -> None:
        """Count one finished episode."""
        self.bad_episodes += bad
        self.good_episodes += not bad
        if not bad and self.first_good_episode is None:
            self.first_good_episode = self.episodes
        if self.running_regret < BAD_FRACTION:
            self.solved_at = self.solved_at or self.episodes
            if self.good_episodes >= MIN_GOOD_EPISODES:
                self.solved_at_strict = self.solved_at_strict or self.episodes


def describe_solved(solved_at: int | None, solved_at_strict: int | None, otherwise: str) -> str:
    """Return where DeepSea was solved, or `otherwise`, and where by bsuite's rule if that differs.

    Example:
        >>> describe_solved(53, 57, "not solved")
        "solved at episode 57 (by bsuite's rule, which does not ask for 10 good ones, at episode 53)"
    """
    text = otherwise if solved_at_strict is None else f"solved at episode {solved_at_strict:,}"
    if solved_at is None or solved_at == solved_at_strict:
        return text
    return f"{text} (by bsuite's rule, which does not ask for {MIN_GOOD_EPISODES} good ones, at episode {solved_at:,})"
