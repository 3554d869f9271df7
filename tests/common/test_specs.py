"""Invalid observations are an error before they reach the networks."""

import numpy as np
import pytest

from bootdqn.common.specs import BoxSpec, DiscreteSpec, as_batch

CELLS = DiscreteSpec(9)
POLE = BoxSpec((4,), np.dtype(np.float32))
SCREENS = BoxSpec((4, 84, 84), np.dtype(np.uint8), stacked=True)
LIGHTS = BoxSpec((2, 3), np.dtype(np.bool_))


@pytest.mark.parametrize(
    ("observations", "spec"),
    [
        (np.arange(9), CELLS),
        (np.array([3, 0], np.uint8), CELLS),
        ([8, 1], CELLS),
        (np.zeros(0, np.int64), CELLS),
        (np.ones((5, 4), np.float32), POLE),
        (np.ones((5, 4)), POLE),
        (np.ones((5, 4), int), POLE),
        (np.full((2, 4, 84, 84), 255), SCREENS),
        (np.ones((1, 2, 3), bool), LIGHTS),
    ],
)
def test_a_batch_keeps_its_values_and_gets_the_type_of_the_environment(observations, spec):
    batch = as_batch(observations, spec)
    assert batch.dtype == spec.dtype
    np.testing.assert_array_equal(batch, observations)


@pytest.mark.parametrize(
    ("observations", "spec", "message"),
    [
        ([-1], CELLS, r"int64 of shape (B,) and in 0..8, got -1"),
        ([0, 9], CELLS, r"int64 of shape (B,) and in 0..8, got 9"),
        ([0.5], CELLS, "int64 of shape (B,), got float64"),
        ([True], CELLS, "int64 of shape (B,), got bool"),
        (3, CELLS, "int64 of shape (B,), got (); make a batch of a single one with numpy.asarray(x)[None]"),
        ([[1, 2]], CELLS, "int64 of shape (B,), got (1, 2)"),
        (np.zeros(4), POLE, "float32 of shape (B, 4), got (4,); make a batch of a single one"),
        (np.zeros((2, 5)), POLE, "float32 of shape (B, 4), got (2, 5)"),
        (np.zeros((2, 4), complex), POLE, "float32 of shape (B, 4), got complex128"),
        (np.zeros((2, 4), object), POLE, "float32 of shape (B, 4), got object"),
        (np.zeros((4, 84, 84), np.uint8), SCREENS, "uint8 of shape (B, 4, 84, 84), got (4, 84, 84)"),
        (np.zeros((1, 4, 84, 84)), SCREENS, "uint8 of shape (B, 4, 84, 84), got float64"),
        (np.full((1, 4, 84, 84), 256), SCREENS, "uint8 of shape (B, 4, 84, 84) and in 0..255, got 256"),
        (np.zeros((1, 2, 3)), LIGHTS, "bool of shape (B, 2, 3), got float64"),
    ],
)
def test_an_invalid_batch_of_observations_is_an_error_that_describes_a_valid_one(observations, spec, message):
    with pytest.raises(ValueError, match=r"^observations must be ") as caught:
        as_batch(observations, spec)
    assert message in str(caught.value)
