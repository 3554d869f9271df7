"""An episode outside of training: the heads vote, or somebody wants to see what the agent does."""

from typing import Any

from bootdqn.common.errors import blamed_on
from bootdqn.common.specs import Array
from bootdqn.envs.make import Environment, spec_of
from bootdqn.training.observations import checked_observation


class Play:
    """An episode under way; whatever the environment does wrong is blamed on `culprit`."""

    def __init__(self, environment: Environment, culprit: str, seed: int | None = None) -> None:
        """Reset `environment`.

        Raises:
            TrainingError: It raised something.
        """
        self._environment, self._culprit = environment, culprit
        self._spec = spec_of(environment).observation
        self.over, self.length, self.total = False, 0, 0.0
        with blamed_on(culprit):
            self._shown: Any
            self._shown, _ = environment.reset(seed=seed)

    def look(self) -> Array:
        """Return what the environment shows, as the networks take it. What nobody looks at is not checked.

        Raises:
            TrainingError: It is not what the environment's space promised.
        """
        with blamed_on(self._culprit):
            return checked_observation(self._spec, self._culprit, self._shown)

    def step(self, action: int) -> float:
        """Take an action, and return its reward, which is raw.

        Raises:
            TrainingError: The environment raised something, or the reward is not a number.
        """
        with blamed_on(self._culprit):
            self._shown, given, terminated, truncated, _ = self._environment.step(action)
            reward, self.over = float(given), bool(terminated or truncated)
        self.length, self.total = self.length + 1, self.total + reward
        return reward
