"""The learner of independent networks with two hidden layers on discrete observations, by a compiled kernel.

`--engine auto` and `--engine compiled` select it where it applies.
"""

import numpy as np
import torch

from bootdqn.agent import discrete_kernel as kernel
from bootdqn.agent.ensemble import Ensemble
from bootdqn.agent.kernel_memory import BLOCK, Shape, Weights, addresses, make_networks, make_scratch, nbytes, padded
from bootdqn.agent.layers import FanOutTable
from bootdqn.agent.learner import UpdateResult, check_finite
from bootdqn.common.specs import Array, Batch, ObservationSpec
from bootdqn.config.agent import LearnerConfig


class DiscreteLearner:
    """A learner that changes the parameters of a PyTorch ensemble in place, by `discrete_kernel.update`.

    The ensemble's parameters become views of the kernel's arrays.
    """

    def __init__(self, config: LearnerConfig, ensemble: Ensemble) -> None:
        self._config = config
        self._online = ensemble
        self._shape = _shape_of(ensemble)
        self._networks = make_networks(self._shape, config.learning_rate)
        self._at = addresses(self._networks)
        online = _views(self._networks.online, ensemble)
        for view, target_view, parameter in zip(
            online, _views(self._networks.target, ensemble), ensemble.learned().values(), strict=True
        ):
            view[:] = target_view[:] = parameter.detach().numpy()
            parameter.data = torch.from_numpy(view)
        self._steps = 0
        self._set_scratch(1)
        self._compute_prior_q()

    @staticmethod
    def supports(ensemble: Ensemble) -> bool:
        """Return whether the kernel supports this architecture."""
        return len(ensemble.heads) == 3 and isinstance(ensemble.heads[0], FanOutTable)

    @property
    def online(self) -> Ensemble:
        """The networks that learn, with every row of their tables up to date."""
        kernel.apply_pending_steps(self._at)
        return self._online

    def q_values(self, observation: Array) -> Array:
        """Return the online Q-values (E, K, A) of observations (E,)."""
        if len(observation) > 2 * self._scratch_size:
            self._set_scratch(len(observation))
        q = np.empty((len(observation), self._shape.heads, self._shape.actions), np.float32)
        kernel.q_values(self._at, self._scratch_at, observation, q)
        return q

    def update(self, batch: Batch) -> UpdateResult:
        """Take one gradient step on the mean over heads of the masked losses."""
        self._steps += 1
        if len(batch.action) > self._scratch_size:
            self._set_scratch(len(batch.action))
        head_loss = np.empty(self._shape.heads, np.float32)
        td_error = np.empty(len(batch.action), np.float32)
        double_q, huber = self._config.double_q, self._config.loss == "huber"
        status = kernel.update(self._at, self._scratch_at, batch, double_q, huber, head_loss, td_error)
        if status != kernel.DONE:
            check_finite("loss" if status == kernel.INFINITE_LOSS else "gradient", head_loss)
        return UpdateResult(head_loss, td_error)

    def update_target(self) -> None:
        """Move the target networks towards the online ones."""
        rate, networks = np.float32(self._config.target_rate), self._networks
        if rate == 1:
            networks.copy_steps[:] = networks.steps  # a row of the table is copied when it is next read
            for target, online in zip(networks.target[1:], networks.online[1:], strict=True):
                target[:] = online
        else:
            kernel.apply_pending_steps(self._at)
            for target, online in zip(networks.target, networks.online, strict=True):
                target[:] = target + rate * (online - target)
        networks.copies[0] += 1

    def memory(self, observation: ObservationSpec) -> int:  # noqa: ARG002 - the tables have a row for each already
        """Return the bytes of the kernel's arrays and of the prior's, padding included."""
        prior = () if self._online.prior is None else self._networks.online  # as large
        return nbytes((self._networks, make_scratch(self._shape, self._config.batch_size), prior))

    def get_state(self) -> dict[str, Array]:
        """Return all parameters, and Adam's two moments and step count."""
        kernel.apply_pending_steps(self._at)
        state = self._named_arrays() | self._prior_arrays()
        state["adam_steps"] = np.asarray(self._steps, np.int64)
        return state

    def set_state(self, state: dict[str, Array]) -> None:
        """Restore what `get_state` returned, exactly, or the state of an `AutogradLearner`."""
        for name, array in (self._named_arrays() | self._prior_arrays()).items():
            if state[name].shape != array.shape:
                raise ValueError(f"{name} has shape {array.shape} here, {state[name].shape} in the state")
            array[:] = state[name]
        self._compute_prior_q()
        self._steps = int(state["adam_steps"])
        networks = self._networks
        networks.steps[:], networks.row_steps[:], networks.copy_steps[:] = self._steps, self._steps, -1
        networks.copies[0] += 1  # no target Q-value is known

    def _named_arrays(self) -> dict[str, Array]:
        names, networks = list(self._online.learned()), self._networks
        parts = {
            "online": networks.online,
            "target": networks.target,
            "first_moment": networks.first_moment,
            "second_moment": networks.second_moment,
        }
        return {
            f"{part}.{name}": array
            for part, weights in parts.items()
            for name, array in zip(names, _views(weights, self._online), strict=True)
        }

    def _prior_arrays(self) -> dict[str, Array]:
        prior = {} if self._online.prior is None else self._online.prior.state_dict(prefix="online.prior.")
        return {name: value.numpy() for name, value in prior.items()}

    def _set_scratch(self, batch_size: int) -> None:
        """Allocate the memory that the kernel needs for a batch."""
        self._scratch_size = batch_size
        self._scratch = make_scratch(self._shape, batch_size)
        self._scratch_at = addresses(self._scratch)

    def _compute_prior_q(self) -> None:
        """Compute the prior's Q-values of every observation: they never change."""
        prior = self._online.prior
        if prior is not None:
            values = DiscreteLearner(self._config, prior.ensemble).q_values(np.arange(self._shape.values))
            self._networks.prior_q[:] = np.float32(prior.scale) * values.swapaxes(0, 1)


def _layers(ensemble: Ensemble) -> list[torch.nn.Parameter]:
    return [parameter for layer in ensemble.heads for parameter in (layer.weight, layer.bias)]  # type: ignore[misc]


def _shape_of(ensemble: Ensemble) -> Shape:
    table, _, hidden, _, output, _ = (parameter.shape for parameter in _layers(ensemble))
    widths = (*hidden[1:], output[-1])
    return Shape(*table[:2], *widths, *(padded(width, BLOCK) for width in widths))


def _views(weights: Weights, ensemble: Ensemble) -> list[Array]:
    """Return views of the kernel's arrays in the shapes of the ensemble's learned parameters."""
    unpadded = weights._replace(output=weights.output.swapaxes(1, 2))
    shapes = [parameter.shape for parameter in _layers(ensemble)]
    return [array[tuple(map(slice, shape))] for array, shape in zip(unpadded, shapes, strict=True)]
