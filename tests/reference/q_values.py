"""Q-values to test with: exactly representable ones, so that no rounding decides a tie."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

BATCHES = ((), (0,), (1,), (3,), (0, 2), (2, 0), (2, 2))
"""Leading axes: none, one, two, and empty ones."""


@st.composite
def exact_q(draw, *, heads=(1, 2, 4, 8), min_actions=2, max_actions=6, batches=((),)):
    """Generate float64 (..., K, A) of quarters between -4 and 4, K a power of two: every mean is exact."""
    shape = (draw(st.sampled_from(heads)), draw(st.integers(min_actions, max_actions)))
    quarters = st_numpy.arrays(np.int64, draw(st.sampled_from(batches)) + shape, elements=st.integers(-16, 16))
    return draw(quarters) / 4


@st.composite
def exact_q_of_any_size(draw):
    """Generate float64 (K, A) of multiples of K / 4 for any K: every mean is a multiple of a quarter."""
    num_heads = draw(st.integers(1, 11))
    shape = (num_heads, draw(st.integers(2, 6)))
    return draw(st_numpy.arrays(np.int64, shape, elements=st.integers(-8, 8))) * num_heads / 4


@st.composite
def exact_q_with_heads(draw, **sizes):
    """Generate Q-values (..., K, A) and one active head (...) for each of their states."""
    q = draw(exact_q(**sizes))
    return q, draw(st_numpy.arrays(np.int64, q.shape[:-2], elements=st.integers(0, q.shape[-2] - 1)))


def coarse_q(*batch, num_heads=4, num_actions=5, seed=0):
    """Return float64 (*batch, K, A) of quarters between -1 and 1: with K = 4, exact even in bfloat16."""
    return np.random.default_rng(seed).integers(-4, 5, (*batch, num_heads, num_actions)) / 4


def assert_every_state(actual, q, expected_of_state):
    """Compare `actual` (..., ...) exactly with `expected_of_state(q of one state, its index)`."""
    actual = np.asarray(actual)
    for index in np.ndindex(q.shape[:-2]):
        assert actual[index].tolist() == expected_of_state(q[index].tolist(), index)
