"""Layers that hold the weights of K heads in one tensor, and compute them in one call.

Weights are (K, in, out). They are drawn as K separate `nn.Linear` layers would draw theirs: uniformly within
1/sqrt(fan-in of one head).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LARGE = 2**18
"""A head's matrix of at least so many numbers is worth a gradient of its own: all heads' together leave the cache."""


class BatchedLinear(nn.Module):
    """K linear layers on K inputs: (K, B, in) -> (K, B, out)."""

    def __init__(self, num_heads: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(num_heads, out_features))
        self._pending: tuple[Tensor, Tensor] | None = None

    @property
    def learns_by_head(self) -> bool:
        """Whether `forward_pair` leaves the weights' gradient to `weight_gradients`."""
        return self.weight.device.type == "cpu" and self.weight[0].numel() >= LARGE

    def forward(self, x: Tensor) -> Tensor:
        """Map (K, B, in) to (K, B, out)."""
        return torch.baddbmm(self.bias[:, None, :], x, self.weight)

    def forward_pair(self, x: Tensor, constant: Tensor) -> tuple[Tensor, Tensor]:
        """Map `x` and `constant`, reading the weights once for both; gradients flow through `x` only."""
        self._pending, keep = None, self._keep if self.learns_by_head else None
        pair: tuple[Tensor, Tensor] = _PairLinear.apply(x, constant, self.weight, self.bias, keep)  # type: ignore[no-untyped-call]
        return pair

    @property
    def has_weight_gradients(self) -> bool:
        """Whether the last backward pass left the weights' gradient to `weight_gradients`."""
        return self._pending is not None

    def weight_gradients(self) -> Iterator[Tensor]:
        """Yield the gradient (in, out) of each head's weights, of the last backward pass through `forward_pair`.

        Each is used before the next is computed in its place: it never leaves the processor's cache, while the gradient
        of all heads would be written to memory and read again by whatever looks at it.
        """
        assert self._pending is not None, "no backward pass left any"
        x, gradient = self._pending
        self._pending, buffer = None, torch.empty_like(self.weight[0].detach())
        for head in range(len(gradient)):
            yield torch.mm((x[head] if x.dim() == 3 else x).T, gradient[head], out=buffer)

    def _keep(self, x: Tensor, gradient: Tensor) -> None:
        assert self._pending is None, "one backward pass to a forward pass: the gradients are not added up"
        self._pending = (x.detach(), gradient)


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

    def forward_pair(self, x: Tensor, constant: Tensor) -> tuple[Tensor, Tensor]:
        """Look both up; gradients flow through `x` only."""
        with torch.no_grad():
            mapped_constant = self(constant)
        return self(x), mapped_constant


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


class _PairLinear(torch.autograd.Function):
    """K linear layers on two inputs (K, B, in), or (B, in) if all share them, of which the second is a constant.

    What the gradient of the weights is made of can be handed to `keep` instead of being multiplied out.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        constant: Tensor,
        weight: Tensor,
        bias: Tensor,
        keep: Callable[[Tensor, Tensor], None] | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight)
        ctx.keep = keep
        both = torch.cat([x, constant], dim=-2).expand(weight.shape[0], -1, -1)
        mapped = torch.baddbmm(bias[:, None, :], both, weight)
        learned, rest = mapped[:, : x.shape[-2]], mapped[:, x.shape[-2] :]
        ctx.mark_non_differentiable(rest)
        return learned, rest

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Tensor | None, None, Tensor | None, Tensor, None]:
        x, weight = ctx.saved_tensors
        of_input = of_weight = None
        if ctx.needs_input_grad[0]:
            of_input = torch.bmm(gradient, weight.transpose(1, 2))
            of_input = of_input if x.dim() == 3 else of_input.sum(dim=0)
        if ctx.keep is None:
            of_weight = torch.bmm(x.expand(weight.shape[0], -1, -1).transpose(1, 2), gradient)
        else:
            ctx.keep(x, gradient)
        return of_input, None, of_weight, gradient.sum(dim=1), None


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
