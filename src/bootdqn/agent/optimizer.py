"""Adam with PyTorch's defaults, for parameters that may be stepped one head at a time."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Moves named parameters, and keeps their moments."""

    def __init__(self, parameters: Mapping[str, Tensor], learning_rate: float) -> None:
        self._learning_rate = learning_rate
        self._parameters = {name: value.detach() for name, value in parameters.items()}
        self.first_moment = {name: torch.zeros_like(value) for name, value in self._parameters.items()}
        self.second_moment = {name: torch.zeros_like(value) for name, value in self._parameters.items()}
        self._steps_before = torch.zeros((), device=next(iter(self._parameters.values())).device)
        self.steps = 0
        """Steps begun so far."""

    def begin_step(self) -> None:
        """Begin the next step, in which each parameter is moved once."""
        self._steps_before.fill_(self.steps)
        self.steps += 1

    def step(self, gradients: Mapping[str, Tensor], head: int | None = None) -> None:
        """Move the parameters that `gradients` names, or one head's part of them, in the step that was begun last."""
        kept = (self._parameters, self.first_moment, self.second_moment)
        parameters, first, second = (
            [tensors[name] if head is None else tensors[name][head] for name in gradients] for tensors in kept
        )
        adam(
            parameters,
            list(gradients.values()),
            first,
            second,
            [],
            [self._steps_before.clone() for _ in parameters],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
