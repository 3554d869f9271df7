"""The learner that runs the compiled kernel: independent networks of two hidden layers on discrete observations.

`--engine fused` selects it.
"""

import copy

import numpy as np
import torch

from bootdqn.agent import compiled_kernel as kernel
from bootdqn.agent.compiled_kernel import Weights
from bootdqn.agent.ensemble import Ensemble
from bootdqn.agent.layers import FanOutTable
from bootdqn.agent.learner import UpdateResult, check_finite
from bootdqn.common.specs import Array, Batch
from bootdqn.config.agent import LearnerConfig

PRIOR_BATCH_SIZE = 4096


class CompiledLearner:
    """A learner that changes the parameters of a PyTorch ensemble in place, by `compiled_kernel.update`."""

    def __init__(self, config: LearnerConfig, ensemble: Ensemble) -> None:
        self._config = config
        self.online = ensemble
        target = copy.deepcopy(ensemble)
        target.prior = None
        self._weights = _weights(ensemble)
        self._target = _weights(target)
        self._adam = kernel.make_adam(self._weights)
        self._steps = 0
        self._num_heads, num_values, _ = self._weights.table.shape
        self._num_actions = self._weights.output.shape[-1]
        self._target_known = np.zeros((self._num_heads, num_values), np.bool_)
        self._target_q = np.zeros((self._num_heads, num_values, self._num_actions), np.float32)
        self._prior_q = np.zeros_like(self._target_q)
        self._compute_prior_q()

    @staticmethod
    def supports(ensemble: Ensemble) -> bool:
        """Return whether the kernel supports this architecture."""
        return len(ensemble.heads) == 3 and isinstance(ensemble.heads[0], FanOutTable)

    def q_values(self, observation: Array) -> Array:
        """Return the online Q-values (E, K, A) of observations (E,)."""
        q = np.empty((len(observation), self._num_heads, self._num_actions), np.float32)
        kernel.q_values(self._weights, self._prior_q, observation, q)
        return q

    def update(self, batch: Batch) -> UpdateResult:
        """Take one gradient step on the mean over heads of the masked losses."""
        self._steps += 1
        head_loss = np.empty(self._num_heads, np.float32)
        td_error = np.empty(len(batch.action), np.float32)
        status = kernel.update(
            self._weights,
            self._target,
            self._prior_q,
            self._adam,
            kernel.adam_step(self._config.learning_rate, self._steps),
            self._target_q,
            self._target_known,
            batch,
            self._config.double_q,
            self._config.loss == "huber",
            head_loss,
            td_error,
        )
        check_finite("loss" if status == kernel.INFINITE_LOSS else "gradient", head_loss)
        return UpdateResult(head_loss, td_error)

    def update_target(self) -> None:
        """Move the target networks towards the online ones, and forget their known Q-values."""
        rate = np.float32(self._config.target_rate)
        for target, online in zip(self._target, self._weights, strict=True):
            target[:] = online if rate == 1 else target + rate * (online - target)
        self._target_known[:] = False

    def get_state(self) -> dict[str, Array]:
        """Return all parameters, Adam's two moments and step count, and the target Q-values known so far.

        The last could be computed again, but not to the last bit: the rounding of a product depends on its shape.
        """
        state = self._named_arrays() | self._prior_arrays()
        state["adam_steps"] = np.asarray(self._steps, np.int64)
        state["target_q"] = self._target_q
        state["target_known"] = self._target_known
        return state

    def set_state(self, state: dict[str, Array]) -> None:
        """Restore what `get_state` returned, exactly, or the state of an `AutogradLearner`."""
        for name, array in (self._named_arrays() | self._prior_arrays()).items():
            if state[name].shape != array.shape:
                raise ValueError(f"{name} has shape {array.shape} here, {state[name].shape} in the state")
            array[:] = state[name]
        self._compute_prior_q()
        self._steps = int(state["adam_steps"])
        self._target_q[:] = state.get("target_q", 0)
        self._target_known[:] = state.get("target_known", False)
        first, second = self._adam.first_moment.table, self._adam.second_moment.table
        self._adam.moving[:] = (first != 0).any(axis=-1) | (second != 0).any(axis=-1)

    def _named_arrays(self) -> dict[str, Array]:
        names = list(self.online.learned())
        parts = {
            "online": self._weights,
            "target": self._target,
            "first_moment": self._adam.first_moment,
            "second_moment": self._adam.second_moment,
        }
        return {
            f"{part}.{name}": array
            for part, weights in parts.items()
            for name, array in zip(names, weights, strict=True)
        }

    def _prior_arrays(self) -> dict[str, Array]:
        prior = {} if self.online.prior is None else self.online.prior.state_dict(prefix="online.prior.")
        return {name: value.numpy() for name, value in prior.items()}

    def _compute_prior_q(self) -> None:
        """Compute the prior's Q-values of every observation: they never change."""
        if self.online.prior is not None:
            for start in range(0, self._prior_q.shape[1], PRIOR_BATCH_SIZE):
                rows = torch.arange(start, min(start + PRIOR_BATCH_SIZE, self._prior_q.shape[1]))
                self._prior_q[:, rows] = self.online.prior(rows).transpose(0, 1).numpy()


def _weights(ensemble: Ensemble) -> Weights:
    """Return the learned parameters of `ensemble` as NumPy arrays that share its memory."""
    return Weights(*(parameter.detach().numpy() for parameter in ensemble.learned().values()))
