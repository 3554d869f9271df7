"""Layers that hold the weights (K, in, out) of K heads in one tensor and apply them in one call.

The batch is the last axis of their outputs (K, out, B): products with few outputs are several times faster so.

Parameters are sampled as those of K separate `nn.Linear` layers: uniformly within 1/sqrt(fan-in of one head).
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

MIN_COLUMNS = 16
"""Batch size from which products of matrices with the batch in columns are faster than with the batch in rows."""


class BatchedLinear(nn.Module):
    """K linear layers on K inputs: (K, in, B) -> (K, out, B)."""

    def __init__(self, num_heads: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(num_heads, out_features))

    def forward(self, x: Tensor) -> Tensor:
        """Map (K, in, B) to (K, out, B)."""
        return torch.baddbmm(self.bias[:, :, None], self.weight.transpose(1, 2), x)


class FanOutLinear(BatchedLinear):
    """K linear layers on one input that they share: (B, in) -> (K, out, B).

    The weights are stored as one matrix (K * out, in), so that one product serves all heads, forward and backward. K
    separate products would read the input K times and add up K gradients of it.
    """

    def __init__(self, num_heads: int, in_features: int, out_features: int) -> None:
        super().__init__(num_heads, in_features, out_features)
        self.weight = nn.Parameter(torch.empty(num_heads, out_features, in_features).transpose(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, in) to (K, out, B)."""
        num_heads, in_features, out_features = self.weight.shape
        matrix, bias = self.weight.transpose(1, 2).reshape(-1, in_features), self.bias.reshape(-1)
        y = torch.addmm(bias, x, matrix.T).T if len(x) < MIN_COLUMNS else torch.addmm(bias[:, None], matrix, x.T)
        return y.reshape(num_heads, out_features, len(x))


class FanOutTable(BatchedLinear):
    """K linear layers on one-hot vectors, as a table look-up: indices (B,) -> (K, out, B).

    Multiplying the one-hot vector of `i` selects row `i` of the weights, so both are exactly equal.
    """

    def forward(self, index: Tensor) -> Tensor:
        """Map (B,) to (K, out, B)."""
        rows: Tensor = _Rows.apply(self.weight, index)  # type: ignore[no-untyped-call]
        return (rows + self.bias[:, None, :]).transpose(1, 2)


class _Rows(torch.autograd.Function):
    """Table look-up: a table (..., values, out) and an index (B,) -> rows (..., B, out).

    The gradients of a repeated row are added in the order of the index with any number of threads. PyTorch's own
    backward pass adds them in an order that depends on the threads.
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
    """One linear layer on one-hot vectors, as a table look-up: indices (B,) -> (B, out)."""

    def __init__(self, num_values: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_values, out_features))
        self.bias = nn.Parameter(torch.empty(out_features))

    def forward(self, index: Tensor) -> Tensor:
        """Map (B,) to (B, out)."""
        rows: Tensor = _Rows.apply(self.weight, index)  # type: ignore[no-untyped-call]
        return rows + self.bias


def linear(in_features: int, out_features: int) -> nn.Module:
    """Return an `nn.Linear` with uninitialised parameters: the default would use the global random generator."""
    layer: nn.Module = nn.utils.skip_init(nn.Linear, in_features, out_features)  # type: ignore[no-untyped-call]
    return layer


def sample_parameters(module: nn.Module, rng: np.random.Generator, embedding_scale: float | None) -> None:
    """Sample every parameter of `module` uniformly from `rng`: within 1/sqrt(fan-in), PyTorch's default.

    A one-hot vector has a single active unit, so with this default the values of different states are the more alike
    the more states there are. `embedding_scale` bounds the parameters of tables instead, if it is not None.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            inverse_bound = np.sqrt(layer.weight[0].numel())
        elif isinstance(layer, FanOutTable | OneHotTable) and embedding_scale is not None:
            inverse_bound = np.float64(1 / embedding_scale)
        elif isinstance(layer, BatchedLinear | OneHotTable):
            inverse_bound = np.sqrt(layer.weight.shape[-2])
        else:
            continue
        for parameter in layer.parameters(recurse=False):
            values = rng.uniform(-1, 1, tuple(parameter.shape)) / inverse_bound
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(values))
