"""Which learner for which ensemble."""

import torch

from bootdqn.agent.config import LearnerConfig
from bootdqn.agent.learner import AutogradLearner, Learner
from bootdqn.agent.tabular_learner import TabularLearner
from bootdqn.common.errors import UsageError
from bootdqn.networks.ensemble import Ensemble


def make_learner(config: LearnerConfig, ensemble: Ensemble, device: str) -> Learner:
    """Return the learner that `config.engine` asks for; `auto` takes the compiled kernel where it applies."""
    if device != "cpu" and not _is_there(device):
        raise UsageError(f"--device {device} is not there: PyTorch sees {torch.cuda.device_count()} CUDA devices")
    fused = device == "cpu" and TabularLearner.supports(ensemble)
    if config.engine == "fused" and not fused:
        raise UsageError(
            "--engine fused needs discrete observations, --ensemble independent, two --hidden-sizes and --device cpu; "
            "use --engine auto"
        )
    if fused and config.engine != "autograd":
        return TabularLearner(config, ensemble)
    return AutogradLearner(config, ensemble, device)


def _is_there(device: str) -> bool:
    _, _, index = device.partition(":")
    return torch.cuda.is_available() and int(index or 0) < torch.cuda.device_count()
