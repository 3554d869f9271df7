"""Threads and floating-point modes of a process that trains."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Hold PyTorch and BLAS to `threads` threads, and flush numbers too small to be normal to zero.

    Adam's moments of a weight without gradient decay into such numbers, on which many processors are slow.
    """
    import scipy.linalg.cython_blas  # noqa: F401 - loads the BLAS that the compiled kernel calls, so that it is limited
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        with threadpool_limits(limits=threads):  # type: ignore[no-untyped-call]
            yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)
