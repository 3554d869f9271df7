"""A GPU that is not there: PyTorch's meta device, which computes nothing, under a GPU's rules."""

from collections import Counter

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

COPIES = {"aten::_to_copy", "aten::copy_"}
"""What may take tensors of two devices: it copies from one to the other."""
READS = {
    "aten::_local_scalar_dense": lambda _: 0,
    "aten::equal": lambda *_: False,
    "aten::nonzero": lambda x: x.new_zeros((0, x.ndim), dtype=torch.int64),
    "aten::masked_select": lambda x, _: x.new_zeros(0),
}
"""What returns a number or a shape that depends on numbers, so that the host waits for the device; and a result."""
NO_KERNELS = {"aten::detach", "aten::_unsafe_view", "aten::empty", "aten::empty_like", "aten::empty_strided"}
"""What computes nothing, beside views."""


class PeakMemory(TorchDispatchMode):
    """Measure the most bytes that the storages on the meta device have at one time."""

    def __init__(self):
        super().__init__()
        self.peak = 0
        self._sizes = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor) and one.device.type == "meta":
                storage = one.untyped_storage()
                self._sizes[StorageWeakRef(storage)] = storage.nbytes()
        self._sizes = {storage: size for storage, size in self._sizes.items() if not storage.expired()}
        self.peak = max(self.peak, sum(self._sizes.values()))
        return result


class DeviceRules(TorchDispatchMode):
    """Stop operators that mix the meta device and the CPU, as CUDA does, and count the others.

    The meta device by itself accepts some of them, such as the step of Adam. Values copied or read from it are zero.
    """

    def __init__(self):
        super().__init__()
        self.kernels = []
        """Names of the operators that compute on the device, in their order."""
        self.uploads = 0
        """Copies from the host to the device."""
        self.synchronisations = 0
        """Copies and numbers that the host reads from the device, and waits for."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with self:
            if (result := func.decompose(*args, **kwargs)) is not NotImplemented:  # in inference mode
                return result
        name = func._schema.name
        devices = _devices((args, kwargs))
        if name not in COPIES and devices == {"meta", "cpu"}:
            raise RuntimeError(f"{name} was given tensors of two devices")
        if name in READS and devices == {"meta"}:
            self.synchronisations += 1
            return READS[name](*args)
        if name == "aten::_to_copy" and devices == {"meta"} and str(kwargs.get("device")) == "cpu":
            self.synchronisations += 1
            return torch.zeros(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        result = func(*args, **kwargs)
        devices |= _devices(result)
        self.uploads += devices == {"meta", "cpu"}
        if devices == {"meta"} and name not in NO_KERNELS and not _is_view(func):
            self.kernels.append(name.removeprefix("aten::"))
        return result

    @property
    def counts(self):
        """How often each operator ran on the device."""
        return Counter(self.kernels)


def _devices(values):
    return {one.device.type for one in tree_leaves(values) if isinstance(one, torch.Tensor)}


def _is_view(func):
    """Return whether an operator returns a view of its argument and writes nothing."""
    returned = [value.alias_info for value in func._schema.returns]
    return bool(returned) and all(alias is not None and not alias.is_write for alias in returned)
