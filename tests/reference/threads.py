"""A number of PyTorch's threads, for a while."""

from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(number):
    """Let PyTorch use so many threads within."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
