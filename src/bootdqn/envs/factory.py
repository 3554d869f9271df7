"""The factory of environments, their common interface, and their specs."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation

from bootdqn.common.errors import UsageError
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.config.envs import AtariConfig, EnvConfig, GymConfig, MinAtarConfig
from bootdqn.envs.cartpole_swingup import CartpoleSwingup
from bootdqn.envs.deep_sea import DeepSea
from bootdqn.envs.gymnasium_env import make_gymnasium_env
from bootdqn.envs.registration import versioned_id

WRAP_ACTIONS = "wrap it so that it has a few discrete actions, register that in a module of yours, and --import it"
WRAP_OBSERVATIONS = (
    "wrap it, for example in gymnasium.wrappers.FlattenObservation, register that in a module of yours, and --import it"
)


class Environment(Protocol):
    """A Gymnasium environment whose state can be saved and set."""

    @property
    def action_space(self) -> spaces.Space[Any]:
        """The space of actions."""
        ...

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """The space of observations."""
        ...

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; a seed makes everything that follows a function of it and the actions."""

    def step(self, action: int, /) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take an action; return observation, reward, terminated, truncated, info."""

    def render(self) -> Any:
        """Return an image or text, depending on the render mode."""

    def close(self) -> None:
        """Release its resources."""

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, made of JSON values and bytes."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, exactly."""


def make_environment(config: EnvConfig, render_mode: str | None = None) -> Environment:
    """Return a new environment.

    Args:
        config: The environment and its settings.
        render_mode: A render mode of Gymnasium, such as `"rgb_array"`.

    Raises:
        UsageError: It cannot be made, for example because a package is missing.
    """
    if isinstance(config, AtariConfig):
        from bootdqn.envs.atari import make_atari  # ale-py is an extra

        return make_atari(config, render_mode)
    if isinstance(config, MinAtarConfig):
        from bootdqn.envs.minatar import make_minatar  # MinAtar is an extra

        return make_minatar(config, render_mode)
    if isinstance(config, GymConfig):
        return make_gymnasium_env(config, render_mode)
    if isinstance(config, BsuiteConfig):
        if config.experiment == "cartpole_swingup":
            return CartpoleSwingup(**config.settings, render_mode=render_mode)
        return DeepSea(**config.settings, deterministic=config.experiment == "deep_sea", render_mode=render_mode)
    return DeepSea(
        size=config.size,
        deterministic=config.deterministic,
        randomize_actions=config.randomize_actions,
        mapping_seed=config.mapping_seed,
        unscaled_move_cost=config.unscaled_move_cost,
        render_mode=render_mode,
    )


def close_environment(environment: Environment) -> None:
    """Close an environment that is no longer needed; an exception that it raises then is ignored."""
    with contextlib.suppress(Exception):
        environment.close()


@contextlib.contextmanager
def new_environment(config: EnvConfig) -> Iterator[Environment]:
    """Make an environment, and close it at the end; raises as `make_environment` does."""
    environment = make_environment(config)
    try:
        yield environment
    finally:
        close_environment(environment)


def with_versioned_id(config: EnvConfig) -> EnvConfig:
    """Return the configuration with the version of a Gymnasium id, which a run records."""
    if not isinstance(config, GymConfig):
        return config
    try:
        return replace(config, env_id=versioned_id(config.env_id))
    except (gymnasium.error.Error, ImportError):
        return config  # `make_environment` reports it


def evaluation_config(config: EnvConfig) -> EnvConfig:
    """Return the configuration for evaluation: whole games, even if learning treats a lost life as an end."""
    return replace(config, terminal_on_life_loss=False) if isinstance(config, AtariConfig) else config


def effective_settings(config: EnvConfig) -> dict[str, Any]:
    """Return the effective settings where they are more than the flags, ready for printing and for JSON."""
    if isinstance(config, AtariConfig):
        from bootdqn.envs.atari import effective_settings as of_atari

        return of_atari(config)
    return {}


def package_of(environment: Environment) -> str:
    """Return the name of the package that defines an environment: ale_py, gymnasium, minigrid, ..."""
    return type(getattr(environment, "unwrapped", environment)).__module__.partition(".")[0]


def episode_limit(environment: Environment) -> int | None:
    """Return the most steps of an episode, by its registration or MiniGrid's own limit; None if unknown."""
    game: Any = environment
    limit = getattr(getattr(game, "spec", None), "max_episode_steps", None)
    if limit is None and package_of(environment) == "minigrid":
        limit = game.unwrapped.max_steps
    return None if limit is None else int(limit)


def spec_of(environment: Environment) -> EnvSpec:
    """Return the spec of `environment`.

    Raises:
        UsageError: The actions are not discrete, or the observations neither discrete nor an array.
    """
    actions, observations = environment.action_space, environment.observation_space
    if not isinstance(actions, spaces.Discrete) or actions.start != 0:
        raise UsageError(
            f"Q-learning needs actions 0, 1, ..., n-1 (Discrete), this environment has {actions}; {WRAP_ACTIONS}"
        )
    num_actions = int(actions.n)
    if isinstance(observations, spaces.Discrete) and observations.start == 0:
        return EnvSpec(DiscreteSpec(int(observations.n)), num_actions)
    if isinstance(observations, spaces.Box):
        stacked = isinstance(environment, FrameStackObservation)
        return EnvSpec(BoxSpec(observations.shape, np.dtype(observations.dtype), stacked), num_actions)
    raise UsageError(
        f"observations must be Box or Discrete from 0, this environment has {observations}; {WRAP_OBSERVATIONS}"
    )
