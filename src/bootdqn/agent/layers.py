"""Layers that hold the weights of K heads in one tensor, and compute them in one call.

Weights are (K, in, out). They are drawn as K separate `nn.Linear` layers would draw theirs: uniformly within
1/sqrt(fan-in of one head).
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class BatchedLinear(nn.Module):
    """K linear layers on K inputs: (K, B, in) -> (K, B, out)."""

    def __init__(self, num_heads: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(num_heads, out_features))

    def forward(self, x: Tensor) -> Tensor:
        """Map (K, B, in) to (K, B, out)."""
        return torch.baddbmm(self.bias[:, None, :], x, self.weight)


class FanOutLinear(BatchedLinear):
    """K linear layers on one input that they share: (B, in) -> (K, B, out)."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, in) to (K, B, out)."""
        return super().forward(x.expand(self.weight.shape[0], *x.shape))


class FanOutTable(BatchedLinear):
    """K linear layers on the one-hot vector of an index, done by look-up: (B,) integers -> (K, B, out).

    Row `i` of the weights is what multiplying the one-hot vector of `i` would select, so both are exactly equal.
    """

    def forward(self, index: Tensor) -> Tensor:
        """Map (B,) to (K, B, out)."""
        rows: Tensor = _Rows.apply(self.weight, index)  # type: ignore[no-untyped-call]
        return rows + self.bias[:, None, :]


class _Rows(torch.autograd.Function):
    """The rows (..., B, out) of a table (..., values, out) that an index (B,) names.

    The gradients of a row that is named more than once are added in the order of the index, with any number of threads:
    how PyTorch itself adds them depends on which thread comes first.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[..., index, :]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        total = gradient.new_zeros(ctx.shape)
        if gradient.device.type == "cpu":
            return total.index_add_(-2, index, gradient), None
        total.movedim(-2, 0).index_put_((index,), gradient.movedim(-2, 0), accumulate=True)  # sorted on a GPU
        return total, None


class OneHotTable(nn.Module):
    """One linear layer on the one-hot vector of an index, done by look-up: (B,) integers -> (B, out)."""

    def __init__(self, num_values: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_values, out_features))
        self.bias = nn.Parameter(torch.empty(out_features))

    def forward(self, index: Tensor) -> Tensor:
        """Map (B,) to (B, out)."""
        rows: Tensor = _Rows.apply(self.weight, index)  # type: ignore[no-untyped-call]
        return rows + self.bias


def linear(in_features: int, out_features: int) -> nn.Module:
    """Return an `nn.Linear` whose parameters are not drawn yet, so that no global generator is touched."""
    layer: nn.Module = nn.utils.skip_init(nn.Linear, in_features, out_features)  # type: ignore[no-untyped-call]
    return layer


def sample_parameters(module: nn.Module, rng: np.random.Generator) -> None:
    """Draw every parameter below `module` uniformly within 1/sqrt(fan-in), PyTorch's default, from `rng` alone."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            fan_in = layer.weight[0].numel()
        elif isinstance(layer, BatchedLinear | OneHotTable):
            fan_in = layer.weight.shape[-2]
        else:
            continue
        for parameter in layer.parameters(recurse=False):
            values = rng.uniform(-1, 1, tuple(parameter.shape)) / np.sqrt(fan_in)
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(values))
