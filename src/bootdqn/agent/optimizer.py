"""Adam with PyTorch's defaults, for named parameters."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Adam (Kingma and Ba 2015) with its moments by name, to be saved and restored."""

    def __init__(self, parameters: Mapping[str, Tensor], learning_rate: float) -> None:
        self._learning_rate = learning_rate
        self._parameters = {name: value.detach() for name, value in parameters.items()}
        self.first_moment = {name: torch.zeros_like(value) for name, value in self._parameters.items()}
        self.second_moment = {name: torch.zeros_like(value) for name, value in self._parameters.items()}
        self.steps = 0
        """Steps taken so far."""

    def step(self, gradients: Mapping[str, Tensor]) -> None:
        """Move the parameters that `gradients` names."""
        parameters = [self._parameters[name] for name in gradients]
        first, second = (
            [_flat(tensors[name]) for name in gradients] for tensors in (self.first_moment, self.second_moment)
        )
        steps = [torch.full((), float(self.steps), device=parameter.device) for parameter in parameters]
        adam(
            [_flat(parameter) for parameter in parameters],
            [_flat(_like(*pair)) for pair in zip(gradients.values(), parameters, strict=True)],
            first,
            second,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
        self.steps += 1


def _flat(tensor: Tensor) -> Tensor:
    """Return a view (numel,) of a dense tensor in the order of its memory; the fused Adam would copy a strided one."""
    return tensor.as_strided((tensor.numel(),), (1,))


def _like(gradient: Tensor, parameter: Tensor) -> Tensor:
    """Return the gradient with the memory layout of its parameter."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)
