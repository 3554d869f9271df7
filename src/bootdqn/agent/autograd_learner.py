"""The learner that uses PyTorch's autograd: any ensemble, on any device, in float32 or bfloat16."""

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bootdqn.agent.backends import no_gradients
from bootdqn.agent.ensemble import HEADS, Ensemble
from bootdqn.agent.learner import UpdateResult, check_finite
from bootdqn.agent.losses import action_values, head_losses, mean_masked_error, q_targets
from bootdqn.agent.optimizer import Adam
from bootdqn.agent.transfers import Staging, to_host
from bootdqn.common.errors import TrainingError
from bootdqn.common.specs import Array, Batch, ObservationSpec
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
        self._staging = Staging(self._device)
        self._adam = Adam(self.online.learned(), config.learning_rate)

    def q_values(self, observation: Array) -> Array:
        """Return the online Q-values (E, K, A) of observations (E, ...)."""
        with no_gradients(self._device):
            return to_host(self._working(*self._staging.to_device(observation)))

    def update(self, batch: Batch) -> UpdateResult:
        """Take one gradient step on the mean over heads of the masked losses."""
        results, gradients = self._update_on_device(self._to_device(batch))
        head_loss, norms, td_error = np.split(to_host(results), [batch.mask.shape[1], -len(batch.action)])
        check_finite("loss", head_loss)
        if not np.isfinite(norms).all():
            _report_gradients(gradients)
        return UpdateResult(head_loss, td_error)

    def _update_on_device(self, batch: "_DeviceBatch") -> tuple[Tensor, dict[str, Tensor]]:
        """Take the step, unless a loss or a gradient is not finite, and return what `update` reports.

        No number is read from the device and no decision depends on one, so a CUDA graph could capture this.

        Returns:
            The losses (K,), the norm of each gradient and the mean TD errors (B,) in one tensor; the gradients.
        """
        td_error = self._td_errors(batch)
        losses = head_losses(td_error, batch.mask, batch.weight, self._config.loss)
        slopes = torch.autograd.grad(losses.mean(), list(self._learned.values()))
        checked = torch.cat([losses.detach(), torch.stack(torch._foreach_norm(slopes)).float()])
        gradients = dict(zip(self._learned, slopes, strict=True))
        self._adam.step(gradients, skip=(checked - checked).ne(0).any().float())  # finite ones less themselves are 0
        if self._working is not self.online:
            torch._foreach_copy_(_values(self._learned), _values(self.online.learned()))
        return torch.cat([checked, mean_masked_error(td_error.detach(), batch.mask)]), gradients

    def td_errors(self, batch: Batch) -> Tensor:
        """Return the TD error, value less target, of every head (B, K) in float32; gradients flow through the value."""
        return self._td_errors(self._to_device(batch))

    def _td_errors(self, batch: "_DeviceBatch") -> Tensor:
        with torch.no_grad():
            next_target = self._target(batch.next_observation).float()
            double_q, legal = self._config.double_q, batch.next_legal if batch.next_legal.numel() else None
            next_choosing = self._working(batch.next_observation).float() if double_q else next_target
            targets = q_targets(batch.reward, batch.discount, next_choosing, next_target, legal)
        return action_values(self._working(batch.observation).float(), batch.action) - targets

    def update_target(self) -> None:
        """Move the target networks towards the online ones, by `target_rate` of the configuration."""
        torch._foreach_lerp_(_values(self._target.learned()), _values(self._learned), self._config.target_rate)

    def memory(self, observation: ObservationSpec) -> int:
        """Return the bytes that updates need on the learner's device: networks, optimizer, gradients, activations."""
        networks = (self.online, self._working, self._target)
        parameters = {parameter for network in networks for parameter in network.parameters()}
        learned = sum(parameter.nbytes for parameter in self.online.learned().values())
        moments_and_gradients = 3 * learned + (learned // 2 if self._working is not self.online else 0)
        batch = torch.from_numpy(np.empty((self._config.batch_size, *observation.shape), observation.dtype))
        passes = 3 * activation_bytes(self._working, batch)  # values, their gradients, and those of a prior
        return sum(parameter.nbytes for parameter in parameters) + moments_and_gradients + 2 * batch.nbytes + passes

    def get_state(self) -> dict[str, Array]:
        """Return online, target and prior parameters, Adam's two moments and its step count."""
        state: dict[str, Tensor] = {f"online.{name}": value for name, value in self.online.state_dict().items()}
        state |= {f"target.{name}": value.float() for name, value in self._target.learned().items()}
        state |= {f"first_moment.{name}": value for name, value in self._adam.first_moment.items()}
        state |= {f"second_moment.{name}": value for name, value in self._adam.second_moment.items()}
        state["adam_steps"] = self._adam.steps.long()
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
        self._adam.steps.copy_(tensors["adam_steps"])

    def _to_device(self, batch: Batch) -> "_DeviceBatch":
        arrays = batch._asdict()
        return _DeviceBatch(*self._staging.to_device(*(arrays[name] for name in _DeviceBatch._fields)))


class _DeviceBatch(NamedTuple):
    """The fields of a `Batch` that an update reads, on the device of the networks."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_observation: Tensor
    mask: Tensor
    weight: Tensor
    next_legal: Tensor


def _report_gradients(gradients: dict[str, Tensor]) -> None:
    """Raise a TrainingError for the first gradient whose norm, of each head where it has one, is not finite.

    The torso comes last: gradients flow from a head into it, and the head is to blame.
    """
    for name in sorted(gradients, key=lambda name: not name.startswith(HEADS)):
        rows = len(gradients[name]) if name.startswith(HEADS) else 1
        norms = to_host(gradients[name].reshape(rows, -1).norm(dim=1))
        check_finite(f"gradient of {name}", norms, shared=not name.startswith(HEADS))
    raise TrainingError("the gradients of all heads together overflow: lower --learning-rate or look at the rewards")


def activation_bytes(network: nn.Module, observation: Tensor) -> int:
    """Return the bytes that a forward pass keeps for the backward pass, by a pass on the meta device."""
    parameters = {
        name: torch.empty_like(value, device="meta", requires_grad=value.requires_grad)
        for name, value in network.named_parameters()
    }
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        q: Tensor = torch.func.functional_call(network, parameters, observation.to("meta"))
    for parameter in parameters.values():
        kept.pop(parameter.untyped_storage()._cdata, None)
    return sum(kept.values()) + q.nbytes


def _values(parameters: dict[str, nn.Parameter]) -> list[Tensor]:
    return [parameter.detach() for parameter in parameters.values()]


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
