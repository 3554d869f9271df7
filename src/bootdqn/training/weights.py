"""The online networks in a file, to be looked at by evaluation and inspection."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from bootdqn.common.errors import DamagedFileError, UsageError
from bootdqn.common.files import check_file
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import EnvSpec
from bootdqn.common.tensors import read_tensors_and_metadata, write_tensors
from bootdqn.networks.ensemble import Ensemble, make_ensemble
from bootdqn.replay.stores import like
from bootdqn.training.config import TrainConfig

HEADER_BYTES = 2**24
"""The most that the names and shapes of a file of weights take."""


def save_weights(path: Path, ensemble: Ensemble, step: int) -> None:
    """Write the parameters of `ensemble` after `step` environment steps."""
    arrays = {name: value.cpu().numpy() for name, value in ensemble.state_dict().items()}
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        write_tensors(part, arrays, {"step": str(step)})
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def load_ensemble(path: Path, config: TrainConfig[Any], spec: EnvSpec) -> tuple[Ensemble, int]:
    """Return the ensemble of `config` with the parameters in `path`, and the step they were saved after.

    Raises:
        UsageError: There is no such file, or it does not hold this ensemble, or parameters that are not finite.
    """
    ensemble = make_ensemble(config.network, spec, random_stream(0, "replaced at once"))
    expected = {name: value.numpy() for name, value in ensemble.state_dict().items()}
    check_file(path)
    try:
        found, metadata = read_tensors_and_metadata(path, sum(one.nbytes for one in expected.values()) + HEADER_BYTES)
        if foreign := sorted(found.keys() - expected.keys()):
            raise ValueError(f"it has no {foreign[0]!r}")
        arrays = {name: like(found, name, array) for name, array in expected.items()}
        step = int(metadata.get("step", 0))
        if not 0 <= step < 2**63:
            raise ValueError(f"its step is {step}")
    except FileNotFoundError:
        raise UsageError(
            f"{path} is missing: a run saves its weights with each checkpoint, the first of which is made before its "
            "first step; wait until it has started, or name a file with --checkpoint"
        ) from None
    except (DamagedFileError, OSError, ValueError) as error:
        raise DamagedFileError(f"{path} does not hold the networks of this run: {error}") from error
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise DamagedFileError(
                f"{path} has weights that are not finite, in {name}: no action can be chosen by them"
            )
    ensemble.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    return ensemble, step
