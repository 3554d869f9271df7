"""The actor: a strategy and the active heads, one for each environment."""

import numpy as np

from bootdqn.common.errors import TrainingError, training_error_from
from bootdqn.common.specs import Array
from bootdqn.config.agent import ActorConfig
from bootdqn.exploration.formulas import information_gain
from bootdqn.exploration.registry import parse_strategy
from bootdqn.exploration.strategies import Greedy, Strategy


class Actor:
    """An actor: chooses actions for E environments from their Q-values."""

    def __init__(self, config: ActorConfig, num_envs: int, num_heads: int, rng: np.random.Generator) -> None:
        self._config = config
        self._strategy = parse_strategy(config.strategy)
        self.num_heads = num_heads
        self._rng = rng
        self.heads = np.zeros(num_envs, np.int64)

    def sample_head(self, env: int) -> None:
        """Sample the active head of `env` for a new episode."""
        self.heads[env] = self._rng.integers(self.num_heads)

    def act(self, q: Array, step: int, *, learning: bool, legal: Array | None = None) -> Array:
        """Return actions (E,) for Q-values (E, K, A).

        Args:
            q: Q-values (E, K, A), -inf for actions that are ruled out.
            step: Environment steps taken before this one.
            learning: Whether the first update has been made.
            legal: Legal actions (E, A); None where all are.

        Raises:
            TrainingError: A Q-value is NaN, the strategy raised an exception, or it returned something else.
        """
        if not learning and self._config.before_learning == "uniform":
            return self._uniform(q, legal)
        strategy = Greedy() if step < self._config.warmup_steps else self._strategy
        actions = self._checked_select(strategy, q)
        if legal is not None and not legal[np.arange(len(q)), actions].all():
            raise TrainingError(f"strategy {self._config.strategy} returned illegal actions {actions}; legal: {legal}")
        epsilon = self._config.epsilon_at(step)
        if not epsilon:
            return actions
        uniform = self._uniform(q, legal)
        return np.where(self._rng.random(len(q)) < epsilon, uniform, actions)

    def _uniform(self, q: Array, legal: Array | None) -> Array:
        """Sample legal actions (E,) uniformly."""
        if legal is None:
            return self._rng.integers(q.shape[-1], size=len(q))
        ranks = (self._rng.random(len(q)) * legal.sum(axis=1)).astype(np.int64) + 1  # the first, second, ... legal one
        actions: Array = (legal.cumsum(axis=1) == ranks[:, None]).argmax(axis=1)
        return actions

    def bonuses(self, q: Array) -> Array:
        """Return the bonuses (E,) to the rewards: `info_bonus` times the information gain of Q-values (E, K, A)."""
        if not self._config.info_bonus:
            return np.zeros(len(q))
        gains: Array = information_gain(q, self._config.info_temperature)
        return self._config.info_bonus * gains.astype(np.float64)

    def _checked_select(self, strategy: Strategy, q: Array) -> Array:
        try:
            actions = self._select(strategy, q)
        except Exception as error:
            (_, heads, _) = np.nonzero(np.isnan(q))
            if len(heads):
                whose = f"a Q-value of head {heads[0]}"
                raise TrainingError(f"{whose} is NaN: lower --learning-rate or look at the rewards") from error
            raise training_error_from(f"strategy {self._config.strategy}", error) from error
        num_actions, are_actions = q.shape[-1], actions.shape == (len(q),) and actions.dtype.kind in "iu"
        if not (are_actions and all(0 <= action < num_actions for action in actions.tolist())):
            raise TrainingError(
                f"strategy {self._config.strategy} must return one action in 0..{num_actions - 1} per state, "
                f"returned {actions}"
            )
        return actions

    def _select(self, strategy: Strategy, q: Array) -> Array:
        if len(q) == 1:  # one state and an int are faster than arrays of one, and most runs have one environment
            return np.asarray([strategy.select(_read_only(q)[0], int(self.heads[0]), self._rng)])
        actions: Array = strategy.select(_read_only(q), _read_only(self.heads), self._rng)
        return actions


def _read_only(array: Array) -> Array:
    """Return a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view
