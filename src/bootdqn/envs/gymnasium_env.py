"""Environments of Gymnasium's registry, with a state that can be saved."""

import hashlib
import inspect
import warnings
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import TransformObservation

from bootdqn.common.errors import RenderModeError, UsageError
from bootdqn.common.random_streams import random_stream
from bootdqn.common.text import did_you_mean
from bootdqn.config.envs import GymConfig
from bootdqn.envs.minatar import MinAtarGame
from bootdqn.envs.minigrid import SymbolicPlanes, is_minigrid
from bootdqn.envs.registration import install_hint, versioned_id


class EpisodeNotReproducedError(Exception):
    """A replayed episode, from the same seed and actions, differs from the original."""


class SeededEpisodes(gymnasium.Wrapper[Any, int, Any, int]):
    """A wrapper that seeds every episode, with seeds sampled from the seed of the first reset.

    Its state is the seed and the actions of the current episode. Setting it replays the episode and compares a digest,
    which detects an environment whose randomness does not come from its seed alone.
    """

    def __init__(self, env: gymnasium.Env[Any, int]) -> None:
        super().__init__(env)
        self._seeds = np.random.default_rng()
        self._episode_seed: int | None = None
        self._actions: list[int] = []
        self._digest = hashlib.sha256()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode. A seed makes everything that follows a function of it and the actions."""
        if seed is not None:
            self._seeds = random_stream(seed, "episodes")
        return self._start(int(self._seeds.integers(2**31)), options)

    def step(self, action: int) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take an action and record it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._actions.append(int(action))
        self._record(observation, float(reward), terminated, truncated)
        return observation, reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """Return the seeds, the actions and a digest of the current episode, ready for JSON."""
        return {
            "seeds": self._seeds.bit_generator.state,
            "episode_seed": self._episode_seed,
            "actions": list(self._actions),
            "digest": self._digest.hexdigest(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Replay the episode of `state`.

        Raises:
            EpisodeNotReproducedError: It differs from the original, or could not be replayed.
        """
        self._seeds.bit_generator.state = state["seeds"]
        if state["episode_seed"] is None:
            return
        actions = [int(action) for action in state["actions"]]
        try:
            self._replay(int(state["episode_seed"]), actions)
        except Exception as error:  # an environment may raise anything at an action that is no longer legal
            raise EpisodeNotReproducedError(f"the episode could not be played again: {error}") from error
        if self._digest.hexdigest() != state["digest"]:
            raise EpisodeNotReproducedError("the episode came out differently when it was played again")

    def _replay(self, seed: int, actions: list[int]) -> None:
        """Replay an episode, or a part of it if it ends early."""
        self._start(seed)
        for action in actions:
            _, _, terminated, truncated, _ = self.step(action)
            if terminated or truncated:
                return

    def _start(self, seed: int, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._episode_seed = seed
        self._actions.clear()
        self._digest = hashlib.sha256()
        self._record(observation, 0.0, False, False)
        return observation, info

    def _record(self, observation: Any, *outcome: float) -> None:
        self._digest.update(np.asarray(observation).tobytes())
        self._digest.update(np.array(outcome, np.float64).tobytes())


def make_gymnasium_env(config: GymConfig, render_mode: str | None = None) -> SeededEpisodes | MinAtarGame:
    """Return the environment `config.env_id` of Gymnasium's registry, or of an installed package.

    MiniGrid's observations become planes (`SymbolicPlanes`); of another dictionary with an `image` only that is used.

    Raises:
        RenderModeError: It takes no `render_mode`. One that does not support the mode raises when it is rendered.
        UsageError: It cannot be made.
    """
    options = config.options if render_mode is None else config.options | {"render_mode": render_mode}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not in the possible render_modes")
            environment = gymnasium.make(versioned_id(config.env_id), **options)
    except gymnasium.error.DependencyNotInstalled as error:
        raise UsageError(f"--env-id {config.env_id}: {error}") from error
    except (gymnasium.error.Error, ImportError) as error:
        message = str(error).partition(" Did you mean")[0].rstrip(".")  # ours includes the version
        closest = f"{did_you_mean(config.env_id, gymnasium.registry) or ';'} --import MODULE imports a module that"
        known = install_hint(config.env_id)
        hint = f"; {known}" if known else f"{closest} registers one"
        raise UsageError(f"--env-id {config.env_id}: {message}{hint}") from error
    except TypeError as error:
        if "'render_mode'" in str(error):
            raise RenderModeError(f"--env-id {config.env_id} cannot be shown: it takes no render_mode") from error
        _check_option_names(config)
        blamed = "does not take these --env-options" if config.env_options else "cannot be made"
        raise UsageError(f"--env-id {config.env_id} {blamed}: {error}") from error
    except Exception as error:
        raise UsageError(f"--env-id {config.env_id} cannot be made: {type(error).__name__}: {error}") from error
    observations = environment.observation_space
    if is_minigrid(environment):
        environment = SymbolicPlanes(environment)
    elif isinstance(observations, spaces.Dict) and isinstance(observations.get("image"), spaces.Box):
        environment = TransformObservation(environment, lambda dictionary: dictionary["image"], observations["image"])
    if config.env_id.startswith("MinAtar/"):
        if (limit := config.options.get("max_episode_steps")) is not None:
            raise UsageError(
                f"--env-options max_episode_steps={limit}: episodes of {config.env_id} cannot be limited; leave it out"
            )
        return MinAtarGame(environment.unwrapped)  # no seed replays its episodes: the last action outlives a reset
    return SeededEpisodes(environment)


def _check_option_names(config: GymConfig) -> None:
    """Raise a UsageError that suggests the closest option if the environment does not have one of --env-options."""
    entry = gymnasium.spec(versioned_id(config.env_id)).entry_point
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    parameters = inspect.signature(creator).parameters if creator else {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    accepted = [name for name in parameters if name not in ("self", "render_mode")]
    for name in config.options:
        if name not in accepted:
            hint = did_you_mean(name, accepted, f"it takes {', '.join(accepted) or 'none'}")
            raise UsageError(f"--env-options: {config.env_id} has no option {name!r}{hint}")
