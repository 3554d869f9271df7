"""Torsos: what all heads share, from observations (B, ...) to features (B, F)."""

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
"""For images too small for the paper's, as MinAtar's 10 x 10."""
SMALLEST_SIDE = 3
"""What the small ones need."""
SMALLEST_SIDE_BEHIND_CHANNELS = 8
"""An image whose first axis is shorter than its last has its channels first, if its sides are as long as this."""


class _Entrance(nn.Module):
    """Takes observations of any type in; knows the type of the network it belongs to."""

    _like: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_like", torch.empty(0), persistent=False)


class Flat(_Entrance):
    """Observations of any shape and type as float vectors: (B, ...) -> (B, size)."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, ...) to (B, size)."""
        return x.reshape(len(x), -1).to(self._like.dtype)


class Pixels(_Entrance):
    """Images as floats with channels first: (B, C, H, W) or (B, H, W, C) -> (B, C, H, W), times a scale."""

    def __init__(self, *, channels_last: bool, scale: float) -> None:
        super().__init__()
        self._channels_last = channels_last
        self._scale = scale

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, ...) to (B, C, H, W)."""
        x = x.permute(0, 3, 1, 2) if self._channels_last else x
        if len(x) > 1:  # in this layout whole batches are convolved faster, and bytes are rearranged faster than floats
            x = x.contiguous(memory_format=torch.channels_last)
        return (x.to(torch.get_default_dtype()) * self._scale).to(self._like.dtype)


def is_image(spec: BoxSpec) -> bool:
    """Return whether observations are images: a stack of frames, or height, width and channels."""
    return spec.stacked or len(spec.shape) == 3


def has_channels_first(spec: BoxSpec) -> bool:
    """Return whether images are channels x height x width: stacks of frames are, and images that look like it."""
    channels, height, width = spec.shape
    return spec.stacked or (channels < width and min(height, width) >= SMALLEST_SIDE_BEHIND_CHANNELS)


def seen_as(spec: BoxSpec) -> str:
    """Say what the networks take observations for."""
    if not is_image(spec):
        return f"observations of shape {spec.shape} are flattened"
    first = has_channels_first(spec)
    channels, height, width = _channels_and_sides(spec)
    scaled = ", bytes scaled to [0, 1]" if _scale(spec) != 1 else ""
    axis = "the first axis" if first else "the last axis"
    return f"observations are images of {height} x {width} with {format_count(channels, 'channel')} ({axis}){scaled}"


def convolutional(spec: BoxSpec) -> tuple[nn.Sequential, int]:
    """Return a convolutional torso for the images of `spec`, the paper's where they are large enough, and its F."""
    channels, height, width = _channels_and_sides(spec)
    if min(height, width) < SMALLEST_SIDE:
        raise UsageError(
            f"observations of shape {spec.shape} are images of {height} x {width}, and convolutions need "
            f"{SMALLEST_SIDE} x {SMALLEST_SIDE}: wrap the environment in gymnasium.wrappers.FlattenObservation"
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
    """Return what pixels are multiplied by: bytes of large images become [0, 1]; small ones hold codes, not shades."""
    return 1 / 255 if spec.dtype == np.uint8 and (_is_large(spec) or spec.stacked) else 1.0


def _convolution(channels: int, out: int, kernel: int, stride: int) -> nn.Module:
    """Return an `nn.Conv2d` whose parameters are not drawn yet, so that no global generator is touched."""
    layer: nn.Module = nn.utils.skip_init(nn.Conv2d, channels, out, kernel, stride)  # type: ignore[no-untyped-call]
    return layer
