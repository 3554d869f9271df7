"""One episode of an environment, step by step, and the checks of what an environment returns."""

from typing import Any

import numpy as np

from bootdqn.common.errors import TrainingError, attribute_errors_to
from bootdqn.common.specs import Array, DiscreteSpec, ObservationSpec
from bootdqn.envs.factory import Environment, spec_of


class Rollout:
    """One episode, step by step; in messages the environment is called `source`."""

    def __init__(self, environment: Environment, source: str, seed: int | None = None) -> None:
        """Reset `environment`.

        Raises:
            TrainingError: It raised.
        """
        self._environment, self._source = environment, source
        spec = spec_of(environment)
        self._spec, self._num_actions = spec.observation, spec.num_actions
        self._info: dict[str, Any]
        self.done, self.length, self.total_reward = False, 0, 0.0
        with attribute_errors_to(source):
            self._raw_observation: Any
            self._raw_observation, self._info = environment.reset(seed=seed)

    def observation(self) -> Array:
        """Return the current observation, checked only now, of the type that the networks take.

        Raises:
            TrainingError: It is not in the environment's observation space.
        """
        with attribute_errors_to(self._source):
            return checked_observation(self._spec, self._source, self._raw_observation)

    def legal(self) -> Array | None:
        """Return the legal actions (1, A) of the current observation; None where the environment rules out none.

        Raises:
            TrainingError: Its action mask does not fit its actions.
        """
        with attribute_errors_to(self._source):
            legal = legal_actions(self._info, self._num_actions, self._source)
        return None if legal is None else legal[None]

    def step(self, action: int) -> float:
        """Take an action, and return its raw reward.

        Raises:
            TrainingError: The environment raised, or the reward is not a number.
        """
        with attribute_errors_to(self._source):
            self._raw_observation, raw_reward, terminated, truncated, self._info = self._environment.step(action)
            reward, self.done = float(raw_reward), bool(terminated or truncated)
        self.length, self.total_reward = self.length + 1, self.total_reward + reward
        return reward


def checked_observation(spec: ObservationSpec, source: str, observation: Any) -> Array:
    """Return an observation as an array of the type in `spec`.

    Raises:
        TrainingError: The networks have no row for it, it would poison the replay, or its space cannot hold it.
    """
    if type(observation) is int and isinstance(spec, DiscreteSpec) and 0 <= observation < spec.num_values:
        return np.asarray(observation, spec.dtype)
    array = np.asarray(observation)
    if array.shape != spec.shape:
        raise TrainingError(f"{source} gave an observation of shape {array.shape}, not {spec.shape}")
    if isinstance(spec, DiscreteSpec):
        if not (0 <= array < spec.num_values and array == int(array)):
            raise TrainingError(f"{source} gave the observation {observation}, not one of 0..{spec.num_values - 1}")
        return array.astype(spec.dtype, copy=False)
    if spec.dtype.kind == "f":
        with np.errstate(over="ignore"):
            converted = array.astype(spec.dtype, copy=False)
            narrow = converted.astype(np.float32, copy=False)
        if not np.isfinite(narrow).all():
            index = np.argwhere(~np.isfinite(narrow))[0].tolist()
            beyond = " as the networks' float32" if np.isfinite(converted).all() else ""
            raise TrainingError(f"{source} gave an observation that is not finite{beyond} at {index}")
        return converted
    if array.dtype == spec.dtype:
        return array
    with np.errstate(invalid="ignore"):
        converted = array.astype(spec.dtype)
    if (converted != array).any():
        index = np.argwhere(converted != array)[0].tolist()
        raise TrainingError(
            f"{source} gave an observation of {array.dtype} that its space's {spec.dtype} does not hold, at {index}"
        )
    return converted


def legal_actions(info: dict[str, Any], num_actions: int, source: str, *, over: bool = False) -> Array | None:
    """Return the legal actions (A,) by an environment's `info["action_mask"]`; None where it has none.

    Raises:
        TrainingError: It is not one number for each action, or no action is legal although the episode is not `over`.
    """
    mask = info.get("action_mask")
    if mask is None:
        return None
    legal = np.asarray(mask).astype(np.bool_)
    if legal.shape != (num_actions,):
        raise TrainingError(f"{source} gave an action_mask of shape {legal.shape}, not ({num_actions},)")
    if not (over or legal.any()):
        raise TrainingError(f"{source} gave an action_mask that rules out every action")
    return legal


def mask_illegal_actions(q: Array, legal: Array | None) -> Array:
    """Return Q-values (E, K, A) with -inf for the actions that are not `legal` (E, A); None stands for all."""
    return q if legal is None else np.where(legal[:, None], q, -np.inf)
