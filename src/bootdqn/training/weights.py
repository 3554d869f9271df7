"""The online networks in a file, to be looked at by evaluation and inspection."""

from pathlib import Path
from typing import Any

import safetensors

from bootdqn.common.errors import UsageError
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import EnvSpec
from bootdqn.common.tensors import write_tensors
from bootdqn.networks.ensemble import Ensemble, make_ensemble
from bootdqn.training.config import TrainConfig


def save_weights(path: Path, ensemble: Ensemble, step: int) -> None:
    """Write the parameters of `ensemble` after `step` environment steps."""
    arrays = {name: value.cpu().numpy() for name, value in ensemble.state_dict().items()}
    path.parent.mkdir(exist_ok=True)
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
        UsageError: There is no such file, or it does not hold this ensemble.
    """
    ensemble = make_ensemble(config.network, spec, random_stream(0, "replaced at once"))
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            step = int((file.metadata() or {}).get("step", 0))
            ensemble.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 - no mapping
    except FileNotFoundError:
        raise UsageError(
            f"{path} is missing: a run saves its weights with each checkpoint, the first of which is made before its "
            "first step; wait until it has started, or name a file with --checkpoint"
        ) from None
    except (OSError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
        raise UsageError(f"{path} does not hold the networks of this run: {error}") from error
    return ensemble, step
