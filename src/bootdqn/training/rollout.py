"""One episode of an environment, step by step, and the checks of what an environment returns."""

from typing import Any

import numpy as np

from bootdqn.common.errors import TrainingError, blamed_on
from bootdqn.common.specs import Array, DiscreteSpec, ObservationSpec
from bootdqn.envs.factory import Environment, spec_of


class Rollout:
    """One episode, step by step; errors of the environment name `culprit`."""

    def __init__(self, environment: Environment, culprit: str, seed: int | None = None) -> None:
        """Reset `environment`.

        Raises:
            TrainingError: It raised.
        """
        self._environment, self._culprit = environment, culprit
        spec = spec_of(environment)
        self._spec, self._num_actions = spec.observation, spec.num_actions
        self._info: dict[str, Any]
        self.done, self.length, self.total_reward = False, 0, 0.0
        with blamed_on(culprit):
            self._observed: Any
            self._observed, self._info = environment.reset(seed=seed)

    def observation(self) -> Array:
        """Return the current observation, checked only now, of the type that the networks take.

        Raises:
            TrainingError: It is not in the environment's observation space.
        """
        with blamed_on(self._culprit):
            return checked_observation(self._spec, self._culprit, self._observed)

    def legal(self) -> Array | None:
        """Return the legal actions (1, A) of the current observation; None where the environment rules out none.

        Raises:
            TrainingError: Its action mask does not fit its actions.
        """
        with blamed_on(self._culprit):
            legal = legal_actions(self._info, self._num_actions, self._culprit)
        return None if legal is None else legal[None]

    def step(self, action: int) -> float:
        """Take an action, and return its raw reward.

        Raises:
            TrainingError: The environment raised, or the reward is not a number.
        """
        with blamed_on(self._culprit):
            self._observed, given, terminated, truncated, self._info = self._environment.step(action)
            reward, self.done = float(given), bool(terminated or truncated)
        self.length, self.total_reward = self.length + 1, self.total_reward + reward
        return reward


def checked_observation(spec: ObservationSpec, culprit: str, observation: Any) -> Array:
    """Return an observation as an array of the type in `spec`.

    Raises:
        TrainingError: The networks have no row for it, it would poison the replay, or its space cannot hold it.
    """
    if type(observation) is int and isinstance(spec, DiscreteSpec) and 0 <= observation < spec.num_values:
        return np.asarray(observation, spec.dtype)
    seen = np.asarray(observation)
    if seen.shape != spec.shape:
        raise TrainingError(f"{culprit} gave an observation of shape {seen.shape}, not {spec.shape}")
    if isinstance(spec, DiscreteSpec):
        if not (0 <= seen < spec.num_values and seen == int(seen)):
            raise TrainingError(f"{culprit} gave the observation {observation}, not one of 0..{spec.num_values - 1}")
        return seen.astype(spec.dtype, copy=False)
    if spec.dtype.kind == "f":
        with np.errstate(over="ignore"):
            taken = seen.astype(spec.dtype, copy=False)
            narrow = taken.astype(np.float32, copy=False)
        if not np.isfinite(narrow).all():
            where = np.argwhere(~np.isfinite(narrow))[0].tolist()
            beyond = " as the networks' float32" if np.isfinite(taken).all() else ""
            raise TrainingError(f"{culprit} gave an observation that is not finite{beyond} at {where}")
        return taken
    if seen.dtype == spec.dtype:
        return seen
    with np.errstate(invalid="ignore"):
        taken = seen.astype(spec.dtype)
    if (taken != seen).any():
        where = np.argwhere(taken != seen)[0].tolist()
        raise TrainingError(
            f"{culprit} gave an observation of {seen.dtype} that its space's {spec.dtype} does not hold, at {where}"
        )
    return taken


def legal_actions(info: dict[str, Any], num_actions: int, culprit: str, *, over: bool = False) -> Array | None:
    """Return the legal actions (A,) by an environment's `info["action_mask"]`; None where it has none.

    Raises:
        TrainingError: It is not one number for each action, or no action is legal although the episode is not `over`.
    """
    given = info.get("action_mask")
    if given is None:
        return None
    legal = np.asarray(given).astype(np.bool_)
    if legal.shape != (num_actions,):
        raise TrainingError(f"{culprit} gave an action_mask of shape {legal.shape}, not ({num_actions},)")
    if not (over or legal.any()):
        raise TrainingError(f"{culprit} gave an action_mask that rules out every action")
    return legal


def mask_illegal_actions(q: Array, legal: Array | None) -> Array:
    """Return Q-values (E, K, A) with -inf for the actions that are not `legal` (E, A); None stands for all."""
    return q if legal is None else np.where(legal[:, None], q, -np.inf)
