"""Transfers between the arrays of the host and the tensors of a device: one copy each way for a step or an update."""

from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from bootdqn.common.specs import Array

ALIGNMENT = 64
"""Bytes at whose multiples the arrays in a staging buffer start."""


class Staging:
    """Copies arrays to a device together, through a buffer that every call uses again; it is pinned for a GPU.

    On the CPU there is no buffer: tensors share the memory of the arrays.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffer = torch.empty(0, dtype=torch.uint8)
        self._copied = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def to_device(self, *arrays: Array) -> list[Tensor]:
        """Return the arrays as tensors on the device. The copy to a GPU may end after this call."""
        tensors = [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
        if self._device.type == "cpu":
            return tensors
        *starts, size = accumulate((-(-tensor.nbytes // ALIGNMENT) * ALIGNMENT for tensor in tensors), initial=0)
        if self._copied is not None:
            self._copied.synchronize()  # the last copy may still read the buffer
        if size > len(self._buffer):
            self._buffer = torch.empty(size, dtype=torch.uint8, pin_memory=self._device.type == "cuda")
        for part, tensor in zip(_parts(self._buffer, starts, tensors), tensors, strict=True):
            part.copy_(tensor)
        on_device = self._buffer[:size].to(self._device, non_blocking=self._copied is not None)
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(self._device))
        return _parts(on_device, starts, tensors)


def to_host(tensor: Tensor) -> Array:
    """Return a tensor as a float32 array. This waits for a GPU, so call it once for all that is to be returned."""
    array: Array = tensor.float().cpu().numpy()
    return array


def _parts(buffer: Tensor, starts: list[int], tensors: list[Tensor]) -> list[Tensor]:
    """Return views of the bytes in `buffer` from each of `starts`, in the types and shapes of `tensors`."""
    return [
        buffer[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
        for start, tensor in zip(starts, tensors, strict=True)
    ]
