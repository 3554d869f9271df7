"""Torsos, the part of the networks that all heads share: observations (B, ...) -> features (B, F)."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from bootdqn.agent.layers import linear
from bootdqn.common.errors import UsageError
from bootdqn.common.specs import SMALLEST_SCREEN, BoxSpec
from bootdqn.common.text import format_count

ATARI_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, kernel and stride of the paper's three layers."""
SMALL_CONVOLUTIONS = ((16, 3, 1),)
"""The same for images that are too small for those, such as MinAtar's 10 x 10."""
MIN_SIDE = 3
"""Height and width that the small convolutions need."""
CHANNELS_FIRST_MIN_SIDE = 8
"""An image whose first axis is shorter than its last has its channels first if its sides are at least this long."""


class _Input(nn.Module):
    """The first layer of a torso, which converts observations to the floating-point type of its network."""

    _like: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_like", torch.empty(0), persistent=False)


class Flat(_Input):
    """Flatten observations of any shape and type to float vectors: (B, ...) -> (B, size)."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, ...) to (B, size)."""
        return x.reshape(len(x), -1).to(self._like.dtype)


class Pixels(_Input):
    """Convert images to scaled floats with channels first: (B, C, H, W) or (B, H, W, C) -> (B, C, H, W)."""

    def __init__(self, *, channels_last: bool, scale: float) -> None:
        super().__init__()
        self.channels_last = channels_last
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, ...) to (B, C, H, W)."""
        x = x.permute(0, 3, 1, 2) if self.channels_last else x
        if len(x) > 1:  # batches are convolved faster in this layout, and bytes rearranged faster than floats
            x = x.contiguous(memory_format=torch.channels_last)
        if self.scale == 1:
            return x.to(self._like.dtype)
        return (x.to(torch.get_default_dtype()) * self.scale).to(self._like.dtype)


def is_image(spec: BoxSpec) -> bool:
    """Return whether observations are images: a stack of frames, or height, width and channels."""
    return spec.stacked or len(spec.shape) == 3


def has_channels_first(spec: BoxSpec) -> bool:
    """Return whether images are channels x height x width: stacks of frames, and images whose shape suggests it."""
    channels, height, width = spec.shape
    return spec.stacked or (channels < width and min(height, width) >= CHANNELS_FIRST_MIN_SIDE)


def describe_input(spec: BoxSpec) -> str:
    """Return a sentence on how the networks read observations."""
    if not is_image(spec):
        return f"observations of shape {spec.shape} are flattened"
    first = has_channels_first(spec)
    channels, height, width = _channels_and_sides(spec)
    scaled = ", bytes scaled to [0, 1]" if _scale(spec) != 1 else ""
    axis = "the first axis" if first else "the last axis"
    return f"observations are images of {height} x {width} with {format_count(channels, 'channel')} ({axis}){scaled}"


def convolutional(spec: BoxSpec) -> tuple[nn.Sequential, int]:
    """Return a convolutional torso for the images of `spec` (the paper's if they are large enough) and its F.

    Raises:
        UsageError: The images are too small.
    """
    channels, height, width = _channels_and_sides(spec)
    if min(height, width) < MIN_SIDE:
        raise UsageError(
            f"observations of shape {spec.shape} are images of {height} x {width}, and convolutions need "
            f"{MIN_SIDE} x {MIN_SIDE}: wrap the environment in gymnasium.wrappers.FlattenObservation"
        )
    layers: list[nn.Module] = [Pixels(channels_last=not has_channels_first(spec), scale=_scale(spec))]
    for out, kernel, stride in ATARI_CONVOLUTIONS if _is_large(spec) else SMALL_CONVOLUTIONS:
        layers += [_convolution(channels, out, kernel, stride), nn.ReLU()]
        channels, height, width = out, (height - kernel) // stride + 1, (width - kernel) // stride + 1
    return nn.Sequential(*layers, nn.Flatten()), channels * height * width


def hidden_layers(sizes: tuple[int, ...]) -> list[nn.Module]:
    """Return the linear layers between `sizes`, each with a ReLU."""
    return [layer for before, after in pairwise(sizes) for layer in (linear(before, after), nn.ReLU())]


def _channels_and_sides(spec: BoxSpec) -> tuple[int, int, int]:
    first, second, third = spec.shape
    return (first, second, third) if has_channels_first(spec) else (third, first, second)


def _is_large(spec: BoxSpec) -> bool:
    return min(_channels_and_sides(spec)[1:]) >= SMALLEST_SCREEN


def _scale(spec: BoxSpec) -> float:
    """Return the factor for pixels: bytes of large images are scaled to [0, 1]; small images hold codes, not shades."""
    return 1 / 255 if spec.dtype == np.uint8 and (_is_large(spec) or spec.stacked) else 1.0


def _convolution(channels: int, out: int, kernel: int, stride: int) -> nn.Module:
    """Return an `nn.Conv2d` with uninitialised parameters: the default would use the global random generator."""
    layer: nn.Module = nn.utils.skip_init(nn.Conv2d, channels, out, kernel, stride)  # type: ignore[no-untyped-call]
    return layer
