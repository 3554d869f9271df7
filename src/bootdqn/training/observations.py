"""What an environment may show the networks, in the form in which they and the replay take it."""

from typing import Any

import numpy as np

from bootdqn.common.errors import TrainingError
from bootdqn.common.specs import Array, DiscreteSpec, ObservationSpec


def checked_observation(spec: ObservationSpec, culprit: str, observation: Any) -> Array:
    """Return an observation as an array of the type in `spec`.

    Raises:
        TrainingError: The networks have no row for it, it would poison the replay, or its space cannot hold it.
    """
    seen = np.asarray(observation)
    if seen.shape != spec.shape:
        raise TrainingError(f"{culprit} gave an observation of shape {seen.shape}, not {spec.shape}")
    if isinstance(spec, DiscreteSpec):
        if not (0 <= seen < spec.num_values and seen == int(seen)):
            raise TrainingError(f"{culprit} gave the observation {observation}, not one of 0..{spec.num_values - 1}")
        return seen.astype(spec.dtype, copy=False)
    if spec.dtype.kind == "f":
        with np.errstate(over="ignore"):
            taken = seen.astype(spec.dtype, copy=False)
            narrow = taken.astype(np.float32, copy=False)
        if not np.isfinite(narrow).all():
            where = np.argwhere(~np.isfinite(narrow))[0].tolist()
            beyond = " as the networks' float32" if np.isfinite(taken).all() else ""
            raise TrainingError(f"{culprit} gave an observation that is not finite{beyond} at {where}")
        return taken
    if seen.dtype == spec.dtype:
        return seen
    with np.errstate(invalid="ignore"):
        taken = seen.astype(spec.dtype)
    if (taken != seen).any():
        where = np.argwhere(taken != seen)[0].tolist()
        raise TrainingError(
            f"{culprit} gave an observation of {seen.dtype} that its space's {spec.dtype} does not hold, at {where}"
        )
    return taken
