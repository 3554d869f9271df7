"""Adam with PyTorch's defaults, for named parameters."""

from collections.abc import Mapping

import torch
from torch import Tensor

from bootdqn.agent.backends import adam_operator


class Adam:
    """Adam (Kingma and Ba 2015) with its moments by name, to be saved and restored.

    All numbers stay on the device of the parameters, and `step` reads none of them, so that it never waits for a GPU.
    """

    def __init__(self, parameters: Mapping[str, Tensor], learning_rate: float) -> None:
        self._learning_rate = learning_rate
        self._parameters = {name: value.detach() for name, value in parameters.items()}
        self.first_moment = {name: torch.zeros_like(value) for name, value in self._parameters.items()}
        self.second_moment = {name: torch.zeros_like(value) for name, value in self._parameters.items()}
        some = next(iter(self._parameters.values()))
        self._operator = adam_operator(some.device)
        self.steps = some.new_zeros(())
        """Steps taken so far, one for all parameters; it stops at 2^24, long after the bias corrections are 1."""

    def step(self, gradients: Mapping[str, Tensor], skip: Tensor) -> None:
        """Move the parameters that `gradients` names, unless `skip`, a number on the device, is 1 instead of 0."""
        parameters = [self._parameters[name] for name in gradients]
        self.steps += 1 - skip
        self._operator(
            _flat(parameters),
            _flat(_like(parameters, list(gradients.values()))),
            _flat([self.first_moment[name] for name in gradients]),
            _flat([self.second_moment[name] for name in gradients]),
            [],
            [self.steps] * len(parameters),
            lr=self._learning_rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
            found_inf=skip,
        )


def _flat(tensors: list[Tensor]) -> list[Tensor]:
    """Return views (numel,) of dense tensors in the order of their memory; the fused Adam would copy strided ones."""
    return [tensor.as_strided((tensor.numel(),), (1,)) for tensor in tensors]


def _like(parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
    """Return the gradients with the memory layouts and the type of their parameters, converted in one call."""
    same_layout = [
        gradient
        if gradient.stride() == parameter.stride()
        else torch.empty_like(parameter, dtype=gradient.dtype).copy_(gradient)
        for parameter, gradient in zip(parameters, gradients, strict=True)
    ]
    if gradients[0].dtype == parameters[0].dtype:
        return same_layout
    converted = [torch.empty_like(parameter) for parameter in parameters]
    torch._foreach_copy_(converted, same_layout)  # a GPU does it in one kernel where layouts are equal
    return converted
