"""Observations, as the networks and the replay take them: of the declared type, and only what that type holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.common.errors import TrainingError
from bootdqn.common.specs import BoxSpec, DiscreteSpec
from bootdqn.training.rollout import checked_observation

CELLS = DiscreteSpec(9)
PIXELS = BoxSpec((2,), np.dtype(np.uint8))
FLOATS = BoxSpec((2,), np.dtype(np.float32))


@given(st.integers(-3, 12), st.sampled_from([int, float, np.int8, np.int64, np.float32]))
def test_a_number_is_taken_in_any_type_if_there_is_a_row_for_it(number, kind):
    if 0 <= number < 9:
        taken = checked_observation(CELLS, "the env", kind(number))
        assert (taken.dtype, taken.shape, taken) == (np.int64, (), number)
    else:
        with pytest.raises(TrainingError, match=rf"the env gave the observation {number}(\.0)?, not one of 0\.\.8"):
            checked_observation(CELLS, "the env", kind(number))


@pytest.mark.parametrize("number", [2.5, float("nan"), float("inf")])
def test_a_number_between_two_rows_has_none(number):
    with pytest.raises(TrainingError, match="not one of"):
        checked_observation(CELLS, "the env", number)


@given(st.lists(st.one_of(st.integers(-300, 300), st.floats(-300, 300)), min_size=2, max_size=2))
def test_an_integer_space_accepts_exact_values_and_rejects_others(values):
    held = all(value == int(value) and 0 <= value <= 255 for value in values)
    if held:
        taken = checked_observation(PIXELS, "the env", np.array(values))
        assert (taken.dtype, taken.tolist()) == (np.uint8, values)
    else:
        with pytest.raises(TrainingError, match="that its space's uint8 does not hold, at"):
            checked_observation(PIXELS, "the env", np.array(values))


@given(st.lists(st.floats(width=64), min_size=2, max_size=2))
def test_a_float_space_rounds_and_rejects_values_that_are_not_finite(values):
    with np.errstate(over="ignore"):
        rounded = np.array(values).astype(np.float32)
    if np.isfinite(rounded).all():
        taken = checked_observation(FLOATS, "the env", values)
        assert taken.dtype == np.float32
        np.testing.assert_array_equal(taken, rounded)
    else:
        with pytest.raises(TrainingError, match=r"not finite at \[[01]\]"):
            checked_observation(FLOATS, "the env", values)


def test_a_double_that_the_networks_cannot_hold_is_the_environments_fault():
    doubles = BoxSpec((2,), np.dtype("float64"))
    assert checked_observation(doubles, "the env", [1e-300, 1e38]).dtype == np.float64
    with pytest.raises(TrainingError, match=r"the env gave .* not finite as the networks' float32 at \[1\]"):
        checked_observation(doubles, "the env", [1.0, -1e300])
    with pytest.raises(TrainingError, match=r"the env gave an observation that is not finite at \[0\]"):
        checked_observation(doubles, "the env", [np.inf, 1.0])


@pytest.mark.parametrize("spec", [CELLS, PIXELS, FLOATS])
def test_another_shape_is_an_error(spec):
    with pytest.raises(TrainingError, match=r"the env gave an observation of shape \(3,\)"):
        checked_observation(spec, "the env", np.zeros(3))


def test_what_is_of_the_type_already_is_not_copied():
    for spec, given_ in ((PIXELS, np.array([1, 2], np.uint8)), (FLOATS, np.array([1, 2], np.float32))):
        assert checked_observation(spec, "the env", given_) is given_
