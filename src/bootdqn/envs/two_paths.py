"""TwoPaths, the introductory example of the paper: the smallest problem that needs deep exploration.

A short path pays a little at once. A long one pays much more, but only at its end, and everywhere along it the agent
can turn back to the short one.
"""

import operator
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

SHORT_REWARD = 1.0
LONG_REWARD = 10.0
_ROUNDS_IN_AN_EPISODE = 4
_PIXELS = 24
_COLOURS = {
    "line": (12, 22, 40),
    "path": (46, 104, 158),
    "fork": (92, 154, 204),
    "end": (242, 190, 64),
    "walker": (228, 74, 58),
}


class TwoPaths(gym.Env[int, int]):
    """A fork, a short path to +1 and a long one to +10, `bootdqn/TwoPaths-v0`.

        +1 <--- fork ---> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> 10 ---> +10
                 ^        |    |    |    |    |    |    |    |    |
                 +--------+----+----+----+----+----+----+----+----+
                                         back

    Action: 0 or 1. At the fork one of them enters the short path and the other the long one; on a path one continues
    and the other goes back to the fork. Which is which is sampled for every state from `mapping_seed`; otherwise an
    agent that always does the same would reach the end of the long path without having learned anything.

    Going back is what makes the long path long for a dithering agent: a coin that decides every step comes to its end
    once in 1 + 2^(long - 1) episodes. And back is worth `discount` times the fork, so that whoever knows the short path
    has, everywhere on the long one, a good reason to turn round. Were a wrong step the end of the episode, it would be
    worth nothing, and any hope at all would carry a greedy agent past it.

    Observation: 0 at the fork, 1 to `short` on the short path, then `short + 1` to `short + long` on the long one. The
    last of each is its end, where the episode is *terminated*.

    Reward: 1 at the end of the short path, 10 at the end of the long one, otherwise 0. The long path is the better one
    where `10 * discount**long > discount**short`: by default, where the discount is above 0.774.

    An episode is *truncated* after 4 * (short + long) steps. Nothing is random.

    Args:
        short: steps from the fork to the end of the short path.
        long: steps from the fork to the end of the long path.
        mapping_seed: seed of what the actions mean.
        render_mode: `"ansi"` for a line of text, `"rgb_array"` for an image, or None.

    Example:
        >>> env = TwoPaths(short=1, long=4, render_mode="ansi")
        >>> env.reset()
        (0, {})
        >>> env.step(env.get_action_meanings().index("long"))
        (2, 0.0, False, False, {})
        >>> env.render()
        '+1 Y @ . . +10'
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 - as in gym.Env

    def __init__(self, short: int = 1, long: int = 10, mapping_seed: int = 0, render_mode: str | None = None) -> None:
        short, long = operator.index(short), operator.index(long)
        if short < 1 or long < 1:
            raise ValueError(f"short and long are numbers of steps, at least 1; got {short} and {long}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be None or one of {self.metadata['render_modes']}; got {render_mode!r}")
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Discrete(1 + short + long)  # type: ignore[assignment]
        self.action_space = gym.spaces.Discrete(2)  # type: ignore[assignment]
        self._short = short
        self._long = long
        self._forward = np.random.default_rng(operator.index(mapping_seed)).integers(2, size=1 + short + long).tolist()
        self._position = 0  # the fork; the short path lies below it, the long one above
        self._steps_left = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode at the fork; a seed changes nothing."""
        super().reset(seed=seed, options=options)
        self._position = 0
        self._steps_left = _ROUNDS_IN_AN_EPISODE * (self._short + self._long)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Enter a path, continue along it, or go back to the fork."""
        if self._steps_left == 0:
            raise gym.error.ResetNeeded("the episode is over or not started: call reset() first")
        if action not in (0, 1):
            raise ValueError(f"action must be 0 or 1; got {action!r}")
        forward = action == self._forward[self._observation()]
        if self._position == 0:
            self._position = 1 if forward else -1
        elif forward:
            self._position += 1 if self._position > 0 else -1
        else:
            self._position = 0
        reward = {self._long: LONG_REWARD, -self._short: SHORT_REWARD}.get(self._position, 0.0)
        terminated = reward > 0
        self._steps_left = 0 if terminated else self._steps_left - 1
        return self._observation(), reward, terminated, not terminated and self._steps_left == 0, {}

    def get_action_meanings(self) -> tuple[str, str]:
        """Return the meanings of the actions 0 and 1 here: `short` and `long` at the fork, else `on` and `back`."""
        other, forward = ("short", "long") if self._position == 0 else ("back", "on")
        return (other, forward) if self._forward[self._observation()] == 1 else (forward, other)

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the two paths by `render_mode`, the short one to the left of the fork and the long one to the right.

        In the text `@` is the agent and `Y` the fork; in the image the agent is red and the ends are yellow.
        """
        if self.render_mode is None:
            gym.logger.warn(f"nothing to render: make TwoPaths with a render_mode, {self.metadata['render_modes']}")
            return None
        return self._text() if self.render_mode == "ansi" else self._image()

    def _observation(self) -> int:
        return self._short + self._position if self._position > 0 else -self._position

    def _text(self) -> str:
        line = ["."] * (self._short + 1 + self._long)
        line[0], line[self._short], line[-1] = "+1", "Y", "+10"
        line[self._short + self._position] = "@"
        return " ".join(line)

    def _image(self) -> npt.NDArray[np.uint8]:
        cells = np.empty((1, self._short + 1 + self._long, 3), np.uint8)
        cells[:] = _COLOURS["path"]
        cells[0, self._short] = _COLOURS["fork"]
        cells[0, [0, -1]] = _COLOURS["end"]
        cells[0, self._short + self._position] = _COLOURS["walker"]
        image = cells.repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)
        image[[0, -1]] = _COLOURS["line"]
        image[:, ::_PIXELS] = image[:, -1:] = _COLOURS["line"]
        return image
