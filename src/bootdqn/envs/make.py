"""One function that makes an environment from its configuration, and one that tells what an agent must know of it."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.envs.config import EnvConfig
from bootdqn.envs.deep_sea import DeepSea

Environment = gymnasium.Env[Any, Any]


def make_environment(config: EnvConfig) -> Environment:
    """Return a new environment."""
    return DeepSea(
        size=config.size,
        deterministic=config.deterministic,
        randomize_actions=config.randomize_actions,
        mapping_seed=config.mapping_seed,
        unscaled_move_cost=config.unscaled_move_cost,
    )


def spec_of(environment: Environment) -> EnvSpec:
    """Return what an agent must know of `environment`.

    Raises:
        TypeError: The actions are not discrete, or the observations neither discrete nor an array.
    """
    actions, observations = environment.action_space, environment.observation_space
    if not isinstance(actions, spaces.Discrete) or actions.start != 0:
        raise TypeError(f"Q-learning needs actions 0, 1, ..., n-1 (Discrete), this environment has {actions}")
    num_actions = int(actions.n)
    if isinstance(observations, spaces.Discrete) and observations.start == 0:
        return EnvSpec(DiscreteSpec(int(observations.n)), num_actions)
    if isinstance(observations, spaces.Box):
        return EnvSpec(BoxSpec(observations.shape, np.dtype(observations.dtype)), num_actions)
    raise TypeError(f"observations must be Box or Discrete from 0, this environment has {observations}")
