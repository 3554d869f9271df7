"""Threads of a process that trains: their modes during a run and afterwards."""

import pytest
import torch

from bootdqn.runs.threads import pinned_threads
from reference.threads import torch_threads

COUNT = 200_000  # enough for PyTorch to share the work among its threads


def share_flushed():
    """Return how much of some work was done by threads that take numbers too small to be normal for zero."""
    products = torch.full((COUNT,), 1e-310, dtype=torch.float64) * 1.0
    return float((products.view(torch.int64) == 0).double().mean())


@pytest.fixture
def two_threads():
    with torch_threads(2):
        yield
        torch.set_flush_denormal(False)
        with pinned_threads(1):  # it leaves every thread in the mode it found
            pass


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("seen_before", [False, True], ids=["new threads", "threads from before"])
@pytest.mark.parametrize("flushed", [False, True], ids=["exact", "flushed"])
def test_every_thread_flushes_while_a_run_trains_and_is_afterwards_as_it_was(flushed, seen_before):
    with pinned_threads(1):
        pass
    torch.set_flush_denormal(flushed)
    if seen_before:
        assert share_flushed() == float(flushed)
    with pinned_threads(2):
        assert share_flushed() == 1.0
    assert share_flushed() == float(flushed)
    assert torch.get_num_threads() == 2
