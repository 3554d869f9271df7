"""Passes of a torso for `shared_torso_kernel`, which takes features (F, B') with the batch, padded, in the last axis.

PyTorch's convolutions are fast on large images. On small ones, such as MinAtar's, they spend most of their time around
the products, so one convolution and its gradient are compiled here.
"""

from typing import Any, Protocol

import numba
import numpy as np
import torch
from torch import Tensor, nn

from bootdqn.agent.kernel_memory import padded
from bootdqn.agent.shared_torso_kernel import ROWS
from bootdqn.agent.torsos import Pixels
from bootdqn.agent.vectors import WIDE, data_of, filled_wide, fma, load_wide, rectified, store, total, where_nonzero
from bootdqn.common.specs import Array

_FLOAT = np.float32
_ZERO = _FLOAT(0)
_compiled = numba.njit(cache=True, error_model="numpy")


class TorsoPass(Protocol):
    """A torso, as `SharedTorsoLearner` uses it."""

    def forward(self, observation: Array, out: Array, first: int = 0, *, learn: bool = False) -> None:
        """Write the features of observations (B, ...) into the columns of `out` (F, ...) from `first` on.

        What the gradient needs is kept if `learn`; then `first` is 0.
        """
        ...

    def backward(self, gradients: Array) -> list[Array]:
        """Return the gradients of the parameters from those of the features (F, B') of the last pass to learn from."""
        ...


def make_torso_pass(torso: nn.Module) -> TorsoPass:
    """Return the faster one for this torso."""
    layers = [layer for layer in torso.modules() if not isinstance(layer, nn.Sequential)]
    if [type(layer) for layer in layers] == [Pixels, nn.Conv2d, nn.ReLU, nn.Flatten]:
        return ConvolutionPass(*layers[:2])
    return AutogradPass(torso)


class AutogradPass:
    """Any torso, by PyTorch's autograd."""

    def __init__(self, torso: nn.Module) -> None:
        self._torso = torso
        self._features = torch.empty(0)

    def forward(self, observation: Array, out: Array, first: int = 0, *, learn: bool = False) -> None:
        """Write the features of observations (B, ...) into the columns of `out` (F, ...) from `first` on.

        What the gradient needs is kept if `learn`; then `first` is 0.
        """
        with torch.set_grad_enabled(learn):
            features: Tensor = self._torso(torch.from_numpy(np.ascontiguousarray(observation)))
        torch.from_numpy(out)[: features.shape[1], first : first + len(features)] = features.detach().T
        if learn:
            self._features = features

    def backward(self, gradients: Array) -> list[Array]:
        """Return the gradients of the parameters from those of the features (F, B') of the last pass to learn from."""
        features, parameters = self._features, list(self._torso.parameters())
        if not parameters:
            return []
        by_feature = torch.from_numpy(gradients)[: features.shape[1], : len(features)].T
        return [gradient.numpy() for gradient in torch.autograd.grad(features, parameters, by_feature)]


class ConvolutionPass:
    """One convolution of small images, and a ReLU, compiled."""

    def __init__(self, pixels: Any, layer: Any) -> None:
        self._pixels, self._layer = pixels, layer
        self._size = 0

    def forward(self, observation: Array, out: Array, first: int = 0, *, learn: bool = False) -> None:
        """Write the features of observations (B, ...) into the columns of `out` (F, ...) from `first` on.

        What the gradient needs is kept if `learn`; then `first` is 0.
        """
        if not self._size:
            self._locate(observation.shape[1:])
        pixels = np.zeros((self._size, padded(len(observation), WIDE)), _FLOAT)
        _transpose(observation.reshape(len(observation), -1), _FLOAT(self._pixels.scale), pixels)
        _convolve(*self._arrays(), self._starts, self._offsets, pixels, out, first)
        if learn:
            self._input, self._output = pixels, out

    def backward(self, gradients: Array) -> list[Array]:
        """Return the gradients of the parameters from those of the features (F, B') of the last pass to learn from."""
        by_weight, by_bias = map(np.empty_like, self._arrays())
        _differentiate(self._starts, self._offsets, self._input, self._output, gradients, by_weight, by_bias)
        return [by_weight.reshape(self._layer.weight.shape), by_bias]

    def _arrays(self) -> tuple[Array, Array]:
        weight, bias = self._layer.weight.detach().numpy(), self._layer.bias.detach().numpy()
        return weight.reshape(len(weight), -1), bias

    def _locate(self, shape: tuple[int, ...]) -> None:
        """Compute where in an image of `shape` each window starts, and where its pixels are from there."""
        grid = np.arange(np.prod(shape)).reshape(shape)
        grid = np.moveaxis(grid, -1, 0) if self._pixels.channels_last else grid
        (height, width), (stride, _) = self._layer.kernel_size, self._layer.stride
        self._offsets = grid[:, :height, :width].ravel()
        self._starts = grid[0, : grid.shape[1] - height + 1 : stride, : grid.shape[2] - width + 1 : stride].ravel()
        self._size = grid.size


@_compiled
def _transpose(images: Array, scale: np.float32, pixels: Array) -> None:
    """Write images (B, pixels) of any type as numbers (pixels, B') times a scale."""
    for b in range(images.shape[0]):
        for i in range(images.shape[1]):
            pixels[i, b] = _FLOAT(images[b, i]) * scale


@_compiled
def _convolve(
    weights: Array, bias: Array, starts: Array, offsets: Array, pixels: Array, out: Array, first: int
) -> None:
    """Write the features (channels x windows) of images (pixels, B') into columns, after a ReLU.

    Args:
        weights: (channels, pixels of a window).
        bias: (channels,).
        starts: The first pixel of each window.
        offsets: The pixels of a window, from its first one.
        pixels: The images.
        out: (channels x windows, ...).
        first: The first of the B' columns of `out` that are written.
    """
    windows, columns, x, to = len(starts), pixels.shape[1], data_of(pixels), data_of(out)
    for channel in range(0, weights.shape[0], ROWS):
        for window in range(windows):
            for column in range(0, columns, WIDE):
                sum0, sum1 = filled_wide(bias[channel]), filled_wide(bias[channel + 1])
                sum2, sum3 = filled_wide(bias[channel + 2]), filled_wide(bias[channel + 3])
                for i in range(len(offsets)):
                    vector = load_wide(x, (starts[window] + offsets[i]) * columns + column)
                    sum0 = fma(filled_wide(weights[channel, i]), vector, sum0)
                    sum1 = fma(filled_wide(weights[channel + 1, i]), vector, sum1)
                    sum2 = fma(filled_wide(weights[channel + 2, i]), vector, sum2)
                    sum3 = fma(filled_wide(weights[channel + 3, i]), vector, sum3)
                at = (channel * windows + window) * out.shape[1] + first + column
                row = windows * out.shape[1]
                store(to, at, rectified(sum0))
                store(to, at + row, rectified(sum1))
                store(to, at + 2 * row, rectified(sum2))
                store(to, at + 3 * row, rectified(sum3))


@_compiled
def _differentiate(
    starts: Array, offsets: Array, pixels: Array, features: Array, gradients: Array, by_weight: Array, by_bias: Array
) -> None:
    """Write the gradients of the weights and the bias of `_convolve` from those of its features, in `gradients`."""
    windows, columns, zero = len(starts), pixels.shape[1], filled_wide(_ZERO)
    before = np.empty((ROWS, windows, columns), _FLOAT)
    x, by_sum, row = data_of(pixels), data_of(before), windows * columns
    for channel in range(0, by_bias.shape[0], ROWS):
        for i in range(ROWS):
            sums, feature = zero, (channel + i) * windows
            for window in range(windows):
                for column in range(0, columns, WIDE):
                    unit = load_wide(data_of(features), (feature + window) * features.shape[1] + column)
                    gradient = where_nonzero(unit, load_wide(data_of(gradients), (feature + window) * columns + column))
                    store(by_sum, i * row + window * columns + column, gradient)
                    sums = sums + gradient
            by_bias[channel + i] = total(sums)
        for i in range(len(offsets)):
            sum0 = sum1 = sum2 = sum3 = zero
            for window in range(windows):
                for column in range(0, columns, WIDE):
                    vector, at = (
                        load_wide(x, (starts[window] + offsets[i]) * columns + column),
                        window * columns + column,
                    )
                    sum0 = fma(load_wide(by_sum, at), vector, sum0)
                    sum1 = fma(load_wide(by_sum, at + row), vector, sum1)
                    sum2 = fma(load_wide(by_sum, at + 2 * row), vector, sum2)
                    sum3 = fma(load_wide(by_sum, at + 3 * row), vector, sum3)
            by_weight[channel, i], by_weight[channel + 1, i] = total(sum0), total(sum1)
            by_weight[channel + 2, i], by_weight[channel + 3, i] = total(sum2), total(sum3)
