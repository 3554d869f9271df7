"""Which learner for which ensemble."""

import torch

from bootdqn.agent.compiled_learner import CompiledLearner
from bootdqn.agent.ensemble import Ensemble
from bootdqn.agent.learner import AutogradLearner, Learner
from bootdqn.common.errors import UsageError
from bootdqn.config.agent import LearnerConfig


def make_learner(config: LearnerConfig, ensemble: Ensemble, device: str) -> Learner:
    """Return the learner that `config.engine` asks for; `auto` takes the compiled kernel where it applies."""
    if device != "cpu" and not _is_there(device):
        raise UsageError(f"--device {device} is not there: PyTorch sees {torch.cuda.device_count()} CUDA devices")
    fused = device == "cpu" and config.precision == "fp32" and CompiledLearner.supports(ensemble)
    if config.engine == "fused" and not fused:
        raise UsageError(
            "--engine fused needs discrete observations, --ensemble independent, two --hidden-sizes, --precision fp32 "
            "and --device cpu; use --engine auto"
        )
    if fused and config.engine != "autograd":
        return CompiledLearner(config, ensemble)
    return AutogradLearner(config, ensemble, device)


def precision_advice(config: LearnerConfig, device: str) -> str:
    """Return what to know about `config.precision` on `device`, or nothing where it is a good choice."""
    if config.precision == "fp32":
        return ""
    on_processor = torch.ops.mkldnn._is_mkldnn_bf16_supported
    native = on_processor() if device == "cpu" else torch.cuda.is_bf16_supported(including_emulation=False)
    return "" if native else f"this {device} emulates bf16, many times slower than fp32: use --precision fp32"


def _is_there(device: str) -> bool:
    _, _, index = device.partition(":")
    return torch.cuda.is_available() and int(index or 0) < torch.cuda.device_count()
