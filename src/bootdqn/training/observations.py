"""What an environment may show the networks."""

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from bootdqn.common.errors import TrainingError
from bootdqn.envs.make import Environment


def refuse_observation(environment: Environment, culprit: str, observation: Any) -> None:
    """Raise a TrainingError for an observation that the networks have no row for, or that would poison the replay."""
    space = environment.observation_space
    if isinstance(space, Discrete):
        if not 0 <= observation < space.n:
            raise TrainingError(f"{culprit} gave the observation {observation}, not one of 0..{space.n - 1}")
        return
    seen = np.asarray(observation)
    if seen.shape != space.shape:
        raise TrainingError(f"{culprit} gave an observation of shape {seen.shape}, not {space.shape}")
    if seen.dtype.kind == "f" and not np.isfinite(seen).all():
        where = np.argwhere(~np.isfinite(seen))[0].tolist()
        raise TrainingError(f"{culprit} gave an observation that is not finite at {where}")
