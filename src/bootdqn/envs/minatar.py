"""The games of MinAtar (Young and Tian 2019), with a state that can be saved. MinAtar is imported in this file only.

The games are MinAtar's own, through its own Gymnasium interface. Details that matter for whoever compares scores:

- Sticky actions are sampled at every step, also the first of an episode: the last action of the episode before may be
  repeated there. A reset with a seed forgets it, so that everything that follows is a function of the seed.
- Difficulty ramps within an episode in Asterix, Seaquest and Space Invaders, and starts anew with the next one.
- Freeway ends after 2,500 steps, and MinAtar calls that a termination, not a truncation.
"""

from typing import Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from bootdqn.common.errors import UsageError, install_command
from bootdqn.config.envs import MinAtarConfig

Grid = NDArray[np.bool_]
"""(10, 10, channels): which objects are in which cell."""
Image = NDArray[np.uint8]

ACTION_MEANINGS = {"n": "NOOP", "l": "LEFT", "u": "UP", "r": "RIGHT", "d": "DOWN", "f": "FIRE"}
CELL_PIXELS = 24
_CONSTANTS = ("random", "channels", "action_map", "ramping")
"""Attributes of a game that no step changes, and its random generator, which is saved apart."""


def make_minatar(config: MinAtarConfig, render_mode: str | None = None) -> "MinAtarGame":
    """Return a new game; its observations are (10, 10, channels) bool.

    Args:
        config: The game and its settings.
        render_mode: None or `"rgb_array"`, for `render`.

    Raises:
        UsageError: MinAtar is not installed.
    """
    try:
        from minatar.gym import BaseEnv
    except ImportError as error:
        raise UsageError(f"the MinAtar games need MinAtar: {install_command('minatar')} ({error})") from error
    game = BaseEnv(
        config.game.replace("-", "_"),
        render_mode=render_mode,
        use_minimal_action_set=not config.full_action_space,
        sticky_action_prob=config.sticky,
        difficulty_ramping=config.difficulty_ramping,
    )
    return MinAtarGame(game)


class MinAtarGame(gymnasium.Wrapper[Grid, int, Grid, int]):
    """A game of MinAtar that can be rendered in its own colours, and whose state can be saved.

    The state is the whole game: the positions and timers of its objects, the level of difficulty, the action that may
    stick, and its random generator, which sticky actions and objects share.

    Args:
        env: MinAtar's Gymnasium environment.
    """

    def __init__(self, env: gymnasium.Env[Grid, int]) -> None:
        super().__init__(env)
        self._game = cast(Any, env).game
        self._game.seed(np.random.SeedSequence().generate_state(1)[0])  # one generator; unseeded games have two
        self._palette = palette(self._game.n_channels)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Grid, dict[str, Any]]:
        """Start a new episode. A seed makes everything that follows a function of it and the actions."""
        if seed is not None:
            self._game.last_action = 0
        return super().reset(seed=seed, options=options)

    def render(self) -> Image | None:
        """Return the screen as an image (240, 240, 3), None without a render mode."""
        if self.render_mode is None:
            return None
        cells = render_grid(self._game.state(), self._palette)
        return cells.repeat(CELL_PIXELS, axis=0).repeat(CELL_PIXELS, axis=1)

    def get_action_meanings(self) -> tuple[str, ...]:
        """Return the names of the actions."""
        return tuple(ACTION_MEANINGS[self._game.env.action_map[action]] for action in cast(Any, self.env).action_set)

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, made of JSON values and bytes."""
        random = self._game.random.get_state(legacy=False)
        return {
            "game": self._game.env_name,
            "last_action": int(self._game.last_action),
            "random": _encode(random),
            "objects": {name: _encode(value) for name, value in vars(self._game.env).items() if name not in _CONSTANTS},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, exactly, in this process or in another one.

        Raises:
            ValueError: The state is of another game, or of another version of it.
        """
        game, objects = self._game.env, {name: _decode(value) for name, value in state["objects"].items()}
        expected = {name for name in vars(game) if name not in _CONSTANTS}
        if state["game"] != self._game.env_name or objects.keys() != expected:
            raise ValueError(
                f"the state is of {state['game']} with {', '.join(objects)}; "
                f"this game is {self._game.env_name} with {', '.join(sorted(expected))}"
            )
        self._game.random.set_state(_decode(state["random"]))
        self._game.last_action = int(state["last_action"])
        for name, value in objects.items():
            setattr(game, name, value)


def palette(num_channels: int) -> Image:
    """Return the colours (num_channels + 1, 3) of an empty cell, black, and of each channel.

    They are MinAtar's: the points 1/(n + 1), ..., n/(n + 1) of the cubehelix colour map (Green 2011) in 256 shades with
    start 0.5, -1.5 rotations, hue 1 and gamma 1.
    """
    shade = np.floor(np.linspace(0, 1, num_channels + 2)[1:-1] * 256) / 255
    angle = 2 * np.pi * (0.5 / 3 - 1.5 * shade)
    amplitude = shade * (1 - shade) / 2
    weights = np.array([[-0.14861, 1.78277], [-0.29227, -0.90649], [1.97294, 0.0]])
    colours = shade + amplitude * (weights @ np.stack([np.cos(angle), np.sin(angle)]))
    return np.concatenate([np.zeros((1, 3), np.uint8), np.round(colours.T.clip(0, 1) * 255).astype(np.uint8)])


def render_grid(grid: Grid, colours: Image) -> Image:
    """Return an image (10, 10, 3) of `grid`, a pixel for each cell; the object of the last channel is on top."""
    top = (grid * np.arange(1, grid.shape[-1] + 1)).max(axis=-1)
    image: Image = colours[top]
    return image


def _encode(value: Any) -> Any:
    """Return an attribute as JSON values and bytes; arrays and numbers of NumPy are converted."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": list(value.shape), "bytes": value.tobytes()}
    if isinstance(value, dict):
        return {name: _encode(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"dtype", "shape", "bytes"}:
        return np.frombuffer(value["bytes"], value["dtype"]).reshape(value["shape"]).copy()
    if isinstance(value, dict):
        return {name: _decode(item) for name, item in value.items()}
    return [_decode(item) for item in value] if isinstance(value, list) else value
