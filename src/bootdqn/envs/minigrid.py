"""Observations of MiniGrid (Chevalier-Boisvert et al. 2023) as one array. MiniGrid itself is not imported here."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bootdqn.config.envs import MINIGRID_PREFIXES

OBJECTS, COLOURS, STATES, DIRECTIONS = 11, 6, 4, 4
"""Numbers of codes: kinds of objects, their colours, states (of doors; in wrappers also directions), directions."""


class SymbolicPlanes(gymnasium.ObservationWrapper[NDArray[np.bool_], int, dict[str, Any]]):
    """The view of the agent as planes (height, width, 25) of booleans, one plane for each code.

    MiniGrid shows each cell by three codes: object, colour and state. As numbers they would claim that a key, 5, lies
    between a door, 4, and a ball, 6; here each code has a plane of its own. The direction of the agent fills one of
    the last four planes. The mission, a sentence, is left out: in DoorKey, MultiRoom, KeyCorridor and Empty there is
    only one thing to do.
    """

    def __init__(self, env: gymnasium.Env[dict[str, Any], int]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        height, width, _ = env.observation_space["image"].shape or (0, 0, 0)
        self._numbers = np.arange(OBJECTS), np.arange(COLOURS), np.arange(STATES)
        shape = (height, width, OBJECTS + COLOURS + STATES + DIRECTIONS)
        self.observation_space = spaces.Box(0, 1, shape, np.bool_)  # type: ignore[assignment, arg-type]

    def observation(self, observation: dict[str, Any]) -> NDArray[np.bool_]:
        """Return the planes of an observation."""
        image = observation["image"]
        facing = np.zeros((*image.shape[:2], DIRECTIONS), np.bool_)
        facing[..., int(observation["direction"])] = True
        codes = [image[..., number, None] == known for number, known in enumerate(self._numbers)]
        return np.concatenate([*codes, facing], axis=-1)


def is_minigrid(environment: gymnasium.Env[Any, Any]) -> bool:
    """Return whether an environment is one of MiniGrid's with its own observations: image, direction and mission."""
    observations, spec = environment.observation_space, environment.spec
    named = spec is not None and spec.id.startswith(MINIGRID_PREFIXES)
    return named and isinstance(observations, spaces.Dict) and set(observations) >= {"image", "direction"}
