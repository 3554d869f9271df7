"""Substitutes for operators that a backend of PyTorch lacks: XLA has no inference tensors and no fused Adam."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor


def no_gradients(device: torch.device) -> AbstractContextManager[Any]:
    """Return the cheapest context without gradients that `device` has."""
    return torch.no_grad() if device.type == "xla" else torch.inference_mode()


def adam_operator(device: torch.device) -> Callable[..., Any]:
    """Return PyTorch's fused Adam, or on XLA, which compiles sequences of operators by itself, the same in steps."""
    return _adam_in_steps if device.type == "xla" else torch._fused_adam_


def _adam_in_steps(
    parameters: list[Tensor],
    gradients: list[Tensor],
    first_moments: list[Tensor],
    second_moments: list[Tensor],
    _: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    found_inf: Tensor,
    **_others: object,
) -> None:
    """Take the step of `torch._fused_adam_` without weight decay, in place, unless `found_inf` is 1."""
    taken = 1 - found_inf
    for parameter, slope, first, second, step in zip(
        parameters, gradients, first_moments, second_moments, steps, strict=True
    ):
        gradient = torch.where(taken > 0, slope, 0)
        first.add_(taken * (1 - beta1) * (gradient - first))
        second.add_(taken * (1 - beta2) * (gradient.square() - second))
        corrections = (-torch.expm1(step * math.log(beta)) for beta in (beta1, beta2))  # 1 - beta^step, not cancelled
        first_correction, second_correction = corrections
        size = (second / second_correction).sqrt() + eps
        parameter.sub_(torch.where(taken > 0, lr / first_correction * first / size, 0))
