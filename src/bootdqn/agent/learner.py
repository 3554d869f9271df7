"""The learner: online and target networks, an optimiser, one update from a batch. It never sees the replay."""

import copy
import math
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from bootdqn.agent.config import LearnerConfig
from bootdqn.agent.losses import head_losses, mean_owned_error, q_targets, taken_values
from bootdqn.common.errors import TrainingError
from bootdqn.common.specs import Array, Batch
from bootdqn.networks.ensemble import Ensemble


class UpdateResult(NamedTuple):
    """What one update found."""

    head_loss: Array
    """(K,): each head's loss over the transitions it owns."""
    td_error: Array
    """(B,): mean absolute TD error over the heads that own each transition."""


class Learner(Protocol):
    """What the training loop needs of a learner."""

    online: Ensemble

    def q_values(self, observation: Array) -> Array:
        """Return the online Q-values (E, K, A) of observations (E, ...)."""
        ...

    def update(self, batch: Batch) -> UpdateResult:
        """Take one gradient step."""
        ...

    def update_target(self) -> None:
        """Move the target networks towards the online ones, all the way unless the configuration says otherwise."""
        ...

    def get_state(self) -> dict[str, Array]:
        """Return every array that learning depends on, by name: views where that can be, good until the next update."""
        ...

    def set_state(self, state: dict[str, Array]) -> None:
        """Continue exactly from what `get_state` returned."""
        ...


class AutogradLearner:
    """Learns any ensemble with PyTorch's autograd and Adam, on any device.

    In bf16 a working copy of the online networks is kept in bfloat16 beside the float32 masters, and so are the target
    networks: every product reads half the bytes and nothing is cast on the way, while losses and Adam stay in float32.
    """

    def __init__(self, config: LearnerConfig, ensemble: Ensemble, device: str = "cpu") -> None:
        self._config = config
        self._device = torch.device(device)
        self.online = ensemble.to(self._device)
        reduced = config.precision == "bf16"
        self._working = copy.deepcopy(self.online).to(torch.bfloat16) if reduced else self.online
        self._target = copy.deepcopy(self._working).requires_grad_(False)
        self._target.prior = self._working.prior
        self._optimizer = torch.optim.Adam(self.online.learned().values(), lr=config.learning_rate, fused=True)
        for parameter in self.online.learned().values():
            self._optimizer.state[parameter] = {
                "step": torch.zeros((), device=self._device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }

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
        refuse_infinite("loss", losses)
        self._working.zero_grad(set_to_none=True)
        losses.mean().backward()  # type: ignore[no-untyped-call]
        self._refuse_infinite_gradients(len(losses))
        self._step_optimizer()
        errors = mean_owned_error(td_error.detach(), mask)
        return UpdateResult(losses.detach().cpu().numpy(), errors.cpu().numpy())

    def td_errors(self, batch: Batch) -> Tensor:
        """Return every head's value less its target (B, K), float32, differentiable by the value."""
        observation, next_observation = self._to_device(batch.observation), self._to_device(batch.next_observation)
        with torch.no_grad():
            next_target = self._target(next_observation).float()
        if self._config.double_q:
            q, next_choosing = self._working.forward_pair(observation, next_observation)
        else:
            q, next_choosing = self._working(observation), next_target
        reward, discount = self._to_device(batch.reward), self._to_device(batch.discount)
        with torch.no_grad():
            targets = q_targets(reward, discount, next_choosing.float(), next_target)
        return taken_values(q.float(), self._to_device(batch.action)) - targets

    def update_target(self) -> None:
        """Move the target networks towards the online ones, all the way unless the configuration says otherwise."""
        with torch.no_grad():
            for name, target in self._target.learned().items():
                target.lerp_(self._working.learned()[name], self._config.target_rate)

    def get_state(self) -> dict[str, Array]:
        """Return online, target and prior parameters, Adam's two moments and its step count."""
        state: dict[str, Tensor] = {f"online.{name}": value for name, value in self.online.state_dict().items()}
        state |= {f"target.{name}": value.float() for name, value in self._target.learned().items()}
        for name, parameter in self.online.learned().items():
            adam = self._optimizer.state[parameter]
            state[f"first_moment.{name}"] = adam["exp_avg"]
            state[f"second_moment.{name}"] = adam["exp_avg_sq"]
            state["adam_steps"] = adam["step"].to(torch.int64)
        return {name: value.detach().cpu().numpy() for name, value in state.items()}

    def set_state(self, state: dict[str, Array]) -> None:
        """Continue exactly from what `get_state` returned."""
        tensors = {name: torch.from_numpy(value.copy()) for name, value in state.items()}
        self.online.load_state_dict(_below("online.", tensors))
        if self._working is not self.online:
            self._working.load_state_dict(self.online.state_dict())
        for name, target in self._target.learned().items():
            target.copy_(tensors[f"target.{name}"])
        for name, parameter in self.online.learned().items():
            self._optimizer.state[parameter] = {
                "step": tensors["adam_steps"].to(self._device, torch.float32),
                "exp_avg": tensors[f"first_moment.{name}"].to(self._device),
                "exp_avg_sq": tensors[f"second_moment.{name}"].to(self._device),
            }

    def _refuse_infinite_gradients(self, num_heads: int) -> None:
        """Raise a TrainingError that names the layer, and the head where it has heads, of a gradient not finite."""
        shared_last = sorted(self._working.learned().items(), key=lambda named: not named[0].startswith("heads."))
        for name, parameter in shared_last:  # a head's gradient goes on into what all share: the head is to blame
            assert parameter.grad is not None
            of_head = name.startswith("heads.")
            total = parameter.grad.reshape(num_heads if of_head else 1, -1).sum(dim=1)
            refuse_infinite(f"gradient of {name}", total, shared=not of_head)

    def _step_optimizer(self) -> None:
        if self._working is not self.online:
            masters, copies = self.online.learned().values(), self._working.learned().values()
            for master, working in zip(masters, copies, strict=True):
                assert working.grad is not None
                master.grad = working.grad.float()
        self._optimizer.step()
        self._refresh_working_copy()

    def _refresh_working_copy(self) -> None:
        if self._working is not self.online:
            masters = [parameter.detach() for parameter in self.online.learned().values()]
            torch._foreach_copy_([parameter.detach() for parameter in self._working.learned().values()], masters)

    def _to_device(self, array: Array) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor.to(self._device)


def refuse_infinite(what: str, by_head: Tensor | Array, *, shared: bool = False) -> None:
    """Raise a TrainingError that names the first head whose number in `by_head` (K,) is not finite."""
    for head, value in enumerate(by_head.tolist()):
        if not math.isfinite(value):
            whose = "which all heads share" if shared else f"of head {head}"
            raise TrainingError(f"the {what} {whose} is {value}: lower --learning-rate or look at the rewards")


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
