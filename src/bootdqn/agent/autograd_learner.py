"""The learner that uses PyTorch's autograd: any ensemble, on any device, in float32 or bfloat16."""

import copy

import numpy as np
import torch
from torch import Tensor

from bootdqn.agent.ensemble import HEADS, Ensemble
from bootdqn.agent.learner import UpdateResult, check_finite
from bootdqn.agent.losses import head_losses, mean_owned_error, q_targets, taken_values
from bootdqn.agent.optimizer import Adam
from bootdqn.common.specs import Array, Batch
from bootdqn.config.agent import LearnerConfig


class AutogradLearner:
    """A learner for any ensemble, by PyTorch's autograd and Adam.

    In bf16, a working copy of the online networks and the target networks are kept in bfloat16 beside float32 master
    weights: products read half the bytes without casts, while losses and Adam stay in float32.
    """

    def __init__(self, config: LearnerConfig, ensemble: Ensemble, device: str = "cpu") -> None:
        self._config = config
        self._device = torch.device(device)
        self.online = ensemble.to(self._device)
        reduced = config.precision == "bf16"
        self._working = copy.deepcopy(self.online).to(torch.bfloat16) if reduced else self.online
        self._target = copy.deepcopy(self._working).requires_grad_(False)
        self._target.prior = self._working.prior  # never learned, so one serves both
        self._learned = self._working.learned()
        self._adam = Adam(self.online.learned(), config.learning_rate)

    def q_values(self, observation: Array) -> Array:
        """Return the online Q-values (E, K, A) of observations (E, ...)."""
        with torch.inference_mode():
            q: Array = self._working(self._to_device(observation)).float().cpu().numpy()
        return q

    def update(self, batch: Batch) -> UpdateResult:
        """Take one gradient step on the mean over heads of the masked losses."""
        mask, weight = self._to_device(batch.mask), self._to_device(batch.weight)
        td_error = self.td_errors(batch)
        losses = head_losses(td_error, mask, weight, self._config.loss)
        slopes = torch.autograd.grad(losses.mean(), list(self._learned.values()))
        gradients = dict(zip(self._learned, slopes, strict=True))
        head_loss, error, *sums = _to_host(
            losses.detach(),
            mean_owned_error(td_error.detach(), mask),
            *(gradient.sum()[None] for gradient in gradients.values()),
        )
        check_finite("loss", head_loss)
        if not np.isfinite(sums).all():
            _check_gradients(gradients)
        self._adam.step({name: gradient.float() for name, gradient in gradients.items()})
        self._refresh_working_copy()
        return UpdateResult(head_loss, error)

    def td_errors(self, batch: Batch) -> Tensor:
        """Return the TD error, value less target, of every head (B, K) in float32; gradients flow through the value."""
        observation, next_observation = self._to_device(batch.observation), self._to_device(batch.next_observation)
        reward, discount = self._to_device(batch.reward), self._to_device(batch.discount)
        with torch.no_grad():
            next_target = self._target(next_observation).float()
            next_choosing = self._working(next_observation).float() if self._config.double_q else next_target
            legal = self._to_device(batch.next_legal) if batch.next_legal.size else None
            targets = q_targets(reward, discount, next_choosing, next_target, legal)
        q = self._working(observation).float()
        return taken_values(q, self._to_device(batch.action)) - targets

    def update_target(self) -> None:
        """Move the target networks towards the online ones, by `target_rate` of the configuration."""
        with torch.no_grad():
            for target, working in zip(self._target.learned().values(), self._working.learned().values(), strict=True):
                target.lerp_(working, self._config.target_rate)

    def get_state(self) -> dict[str, Array]:
        """Return online, target and prior parameters, Adam's two moments and its step count."""
        state: dict[str, Tensor] = {f"online.{name}": value for name, value in self.online.state_dict().items()}
        state |= {f"target.{name}": value.float() for name, value in self._target.learned().items()}
        state |= {f"first_moment.{name}": value for name, value in self._adam.first_moment.items()}
        state |= {f"second_moment.{name}": value for name, value in self._adam.second_moment.items()}
        state["adam_steps"] = torch.tensor(self._adam.steps)
        return {name: value.detach().cpu().numpy() for name, value in state.items()}

    def set_state(self, state: dict[str, Array]) -> None:
        """Restore what `get_state` returned, exactly."""
        tensors = {name: torch.from_numpy(value.copy()) for name, value in state.items()}
        self.online.load_state_dict(_below("online.", tensors))
        if self._working is not self.online:
            self._working.load_state_dict(self.online.state_dict())
        for name, target in self._target.learned().items():
            target.copy_(tensors[f"target.{name}"])
            self._adam.first_moment[name].copy_(tensors[f"first_moment.{name}"])
            self._adam.second_moment[name].copy_(tensors[f"second_moment.{name}"])
        self._adam.steps = int(tensors["adam_steps"])

    def _refresh_working_copy(self) -> None:
        if self._working is not self.online:
            masters = [parameter.detach() for parameter in self.online.learned().values()]
            torch._foreach_copy_([parameter.detach() for parameter in self._working.learned().values()], masters)

    def _to_device(self, array: Array) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor.to(self._device)


def _check_gradients(gradients: dict[str, Tensor]) -> None:
    """Raise a TrainingError for the first gradient whose sum, of each head where it has one, is not finite.

    The torso comes last: gradients flow from a head into it, and the head is to blame.
    """
    for name in sorted(gradients, key=lambda name: not name.startswith(HEADS)):
        rows = len(gradients[name]) if name.startswith(HEADS) else 1
        sums = gradients[name].reshape(rows, -1).sum(dim=1)
        check_finite(f"gradient of {name}", sums.float().cpu().numpy(), shared=not name.startswith(HEADS))


def _to_host(*vectors: Tensor) -> list[Array]:
    """Return vectors as float32 arrays, copied together, so that a GPU is synchronised once."""
    joined: Array = torch.cat([vector.float() for vector in vectors]).cpu().numpy()
    return np.split(joined, np.cumsum([len(vector) for vector in vectors])[:-1])


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
