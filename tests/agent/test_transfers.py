"""Copies to a device: packed in one buffer that is not written before the last copy has ended, none on the CPU."""

import numpy as np
import pytest
import torch

from bootdqn.agent.transfers import Staging, _parts

ARRAYS = (
    np.arange(7, dtype=np.int64),
    np.array([[True, False, True]]),
    np.linspace(0, 1, 5, dtype=np.float32),
    np.zeros((0, 0), np.bool_),
    np.arange(24, dtype=np.uint8).reshape(2, 3, 4).transpose(2, 0, 1),
    np.float64(3.5) * np.ones((2, 2)),
)


class SlowCopy:
    """The event of a copy that ends as late as it may: when somebody waits for it."""

    def __init__(self, staging):
        self._staging, self._reading, self.waits = staging, None, 0

    def record(self, stream):
        assert stream == self._staging._device, "the copy is in the stream of its own device"
        assert self._reading is None, "the last copy was never waited for"
        self._reading = self._staging._buffer, self._staging._buffer.clone()

    def synchronize(self):
        if self._reading is not None:
            buffer, content = self._reading
            assert torch.equal(buffer, content), "the buffer was written while it was copied"
        self._reading, self.waits = None, self.waits + 1


def test_on_the_cpu_nothing_is_copied():
    for array, tensor in zip(ARRAYS[:3], Staging(torch.device("cpu")).to_device(*ARRAYS[:3]), strict=True):
        assert np.shares_memory(array, tensor.numpy())


def test_arrays_of_all_types_and_layouts_are_packed_whole():
    staging = Staging(torch.device("meta"))
    for arrays in (ARRAYS[:2], ARRAYS, ARRAYS[::-1]):
        tensors = staging.to_device(*arrays)
        starts = [tensor.storage_offset() * tensor.element_size() for tensor in tensors]
        assert len({tensor.untyped_storage()._cdata for tensor in tensors}) == 1, "one copy for all"
        for array, packed, tensor in zip(arrays, _parts(staging._buffer, starts, tensors), tensors, strict=True):
            np.testing.assert_array_equal(packed.numpy(), array)
            assert packed.numpy().dtype == array.dtype
            assert (tensor.device.type, tensor.shape, tensor.dtype) == ("meta", packed.shape, packed.dtype)


def test_the_buffer_is_kept_and_grows():
    staging = Staging(torch.device("meta"))
    staging.to_device(*ARRAYS)
    buffer = staging._buffer
    staging.to_device(*ARRAYS[:2])
    assert staging._buffer is buffer
    staging.to_device(*ARRAYS, *ARRAYS)
    assert len(staging._buffer) > len(buffer)


@pytest.mark.parametrize("arrays", [ARRAYS, ARRAYS[:1], ARRAYS * 2], ids=["as large", "smaller", "larger"])
def test_the_buffer_is_not_written_before_the_last_copy_has_ended(arrays, monkeypatch):
    monkeypatch.setattr("torch.cuda.current_stream", lambda device: device)
    staging = Staging(torch.device("meta"))
    staging._copied = event = SlowCopy(staging)
    staging.to_device(*ARRAYS)
    staging.to_device(*(array + array for array in arrays))
    event.synchronize()
    assert event.waits == 3
