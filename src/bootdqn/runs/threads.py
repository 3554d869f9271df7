"""Threads, floating-point modes and memory allocation of a process that trains."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_BUFFER = 2**30
_OMP_PAUSE_SOFT = 1


@contextmanager
def full_precision_on_cuda() -> Iterator[None]:
    """Let a GPU multiply and convolve in full single precision, add bfloat16 in it, and do so deterministically.

    cuBLAS reads its workspace from the environment when CUDA starts, so that stays as it is set here; yours is kept.
    """
    from torch.backends import cuda, cudnn

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    wanted = (
        (cudnn, "allow_tf32", False),
        (cuda.matmul, "allow_tf32", False),
        (cuda.matmul, "allow_bf16_reduced_precision_reduction", False),
        (cudnn, "deterministic", True),
        (cudnn, "benchmark", False),
    )
    before = [(backend, name, getattr(backend, name)) for backend, name, _ in wanted]
    for backend, name, value in wanted:
        setattr(backend, name, value)
    try:
        yield
    finally:
        for backend, name, value in before:
            setattr(backend, name, value)


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Limit PyTorch and BLAS to `threads` threads and full precision, and flush denormal numbers to zero.

    Adam's moments of a weight without gradient decay into such numbers, on which many processors are slow.
    """
    import numpy.ma  # noqa: F401  numba imports it on first use, and NumPy 2.0 warns if denormals are flushed by then
    import torch
    from threadpoolctl import threadpool_limits

    before, flushed = torch.get_num_threads(), _flushes_denormals()
    torch.set_num_threads(threads)
    _flush_denormals(on=True)
    keep_freed_memory()
    try:
        with threadpool_limits(limits=threads), full_precision_on_cuda():  # type: ignore[no-untyped-call]
            yield
    finally:
        _flush_denormals(on=flushed)
        torch.set_num_threads(before)


def _flushes_denormals() -> bool:
    """Return whether this thread flushes denormal numbers to zero."""
    return sys.float_info.min / 2 == 0


def _flush_denormals(*, on: bool) -> None:
    """Set the mode of this thread and of OpenMP's: those are released, and new ones inherit the mode."""
    import torch
    from threadpoolctl import ThreadpoolController

    torch.set_flush_denormal(on)
    for library in ThreadpoolController().select(user_api="openmp").lib_controllers:  # type: ignore[no-untyped-call]
        release = getattr(library.dynlib, "omp_pause_resource_all", None)  # since OpenMP 5.0
        if release is not None:
            release(_OMP_PAUSE_SOFT)


def keep_freed_memory() -> None:
    """Let glibc keep large freed buffers instead of returning them to the kernel.

    Every update of a large ensemble allocates its gradients anew. By default glibc returns such buffers at once, and
    the kernel hands them out again a page at a time, zeroed: a third of the time of an update on Atari.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _LARGEST_BUFFER)
            mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST_BUFFER - 1)
