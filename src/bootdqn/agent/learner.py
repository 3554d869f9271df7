"""The interface of a learner (online and target networks, an optimizer, one update from a batch) and its factory."""

import math
from typing import NamedTuple, Protocol

import torch

from bootdqn.agent.ensemble import Ensemble
from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.common.specs import Array, Batch, ObservationSpec
from bootdqn.common.text import format_count
from bootdqn.config.agent import LearnerConfig


class UpdateResult(NamedTuple):
    """Losses and TD errors of one update."""

    head_loss: Array
    """(K,): each head's loss over the transitions it owns."""
    td_error: Array
    """(B,): mean absolute TD error over the heads that own each transition."""


class Learner(Protocol):
    """A learner, as the training loop uses it. It never sees the replay."""

    @property
    def online(self) -> Ensemble:
        """The networks that learn."""
        ...

    def q_values(self, observation: Array) -> Array:
        """Return the online Q-values (E, K, A) of observations (E, ...)."""
        ...

    def update(self, batch: Batch) -> UpdateResult:
        """Take one gradient step on the mean over heads of the masked losses."""
        ...

    def update_target(self) -> None:
        """Move the target networks towards the online ones, by `target_rate` of the configuration."""
        ...

    def memory(self, observation: ObservationSpec) -> int:
        """Return the bytes that updates need on the learner's device: networks, optimizer, gradients, activations."""
        ...

    def get_state(self) -> dict[str, Array]:
        """Return every array that learning depends on, by name; views where possible, valid until the next update."""
        ...

    def set_state(self, state: dict[str, Array]) -> None:
        """Restore what `get_state` returned, exactly."""
        ...


def make_learner(config: LearnerConfig, ensemble: Ensemble, device: str) -> Learner:
    """Return the learner that `config.engine` asks for; `auto` takes a compiled kernel where one applies.

    Raises:
        UsageError: There is no such device, or no compiled kernel supports these settings.
    """
    from bootdqn.agent.autograd_learner import AutogradLearner  # they import this module
    from bootdqn.agent.discrete_learner import DiscreteLearner
    from bootdqn.agent.shared_torso_learner import SharedTorsoLearner

    check_device(device)
    if device == "cpu" and config.precision == "fp32" and config.engine != "autograd":
        for learner in (DiscreteLearner, SharedTorsoLearner):
            if learner.supports(ensemble):
                return learner(config, ensemble)
    if config.engine == "compiled":
        raise UsageError(
            "--engine compiled needs --precision fp32, --device cpu and, with --ensemble independent, two "
            "--hidden-sizes on discrete observations and one elsewhere; use --engine auto"
        )
    return AutogradLearner(config, ensemble, device)


def check_device(device: str) -> None:
    """Raise a UsageError if the device is not available."""
    if device != "cpu" and not _is_available(device):
        found = format_count(torch.cuda.device_count(), "CUDA device")
        raise UsageError(f"--device {device} is not available: PyTorch finds {found}; use --device cpu")


def precision_warning(config: LearnerConfig, device: str) -> str:
    """Return a warning if `device` has no instructions for `config.precision`, and an empty string otherwise."""
    if config.precision == "fp32":
        return ""
    on_processor = torch.ops.mkldnn._is_mkldnn_bf16_supported
    native = on_processor() if device == "cpu" else torch.cuda.is_bf16_supported(including_emulation=False)
    return "" if native else f"this {device} emulates bf16, many times slower than fp32: use --precision fp32"


def check_finite(what: str, by_head: Array, *, shared: bool = False) -> None:
    """Raise a TrainingError that names the first head whose number (K,) is not finite, or the one that all share."""
    for head, value in enumerate(by_head.tolist()):
        if not math.isfinite(value):
            whose = "which all heads share" if shared else f"of head {head}"
            raise TrainingError(f"the {what} {whose} is {value}: lower --learning-rate or look at the rewards")


def _is_available(device: str) -> bool:
    _, _, index = device.partition(":")
    return torch.cuda.is_available() and int(index or 0) < torch.cuda.device_count()
