"""Files of weights, and runs loaded from their directories for evaluation and inspection."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from bootdqn.agent.ensemble import Ensemble, make_ensemble
from bootdqn.common.errors import DamagedFileError, TrainingError, UsageError
from bootdqn.common.files import check_file, is_present
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array, EnvSpec
from bootdqn.common.tensor_files import checked_array, read_tensors_and_metadata, write_tensors
from bootdqn.common.text import did_you_mean, escape_unprintable
from bootdqn.config.settings import from_flat
from bootdqn.config.train import TrainConfig
from bootdqn.envs.factory import Environment, close_environment, evaluation_config, make_environment, spec_of
from bootdqn.runs.cleanup import remove_leftovers
from bootdqn.runs.directory import RunDirectory, find_runs, find_weights

HEADER_BYTES = 2**24
"""The most that the names and shapes in a file of weights take."""
MOST_NAMED = 4
"""Run directories that a message names."""
MOST_DIRECTORIES = 10_000
"""Directories that are searched for them: the root of a disk has many."""


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
    """Return the ensemble of `config` with the weights in `path`, and the step they were saved after.

    Raises:
        UsageError: There is no such file, or it holds another ensemble, or weights that are not finite.
    """
    ensemble = make_ensemble(config.network, spec, random_stream(0, "replaced at once"))
    expected = {name: value.numpy() for name, value in ensemble.state_dict().items()}
    check_file(path)
    try:
        max_bytes = sum(array.nbytes for array in expected.values()) + HEADER_BYTES
        saved, metadata = read_tensors_and_metadata(path, max_bytes)
        if foreign := sorted(saved.keys() - expected.keys()):
            raise ValueError(f"it has no {foreign[0]!r}")
        arrays = {name: checked_array(saved, name, array) for name, array in expected.items()}
        step = int(metadata.get("step", 0))
        if not 0 <= step < 2**63:
            raise ValueError(f"its step is {step}")
    except FileNotFoundError:
        raise UsageError(
            f"{path} is missing: a run saves its weights with each checkpoint, the first of which is made before its "
            "first step; wait until it has started, or name a file with --weights"
        ) from None
    except (DamagedFileError, OSError, ValueError) as error:
        raise DamagedFileError(f"{path} does not hold the networks of this run: {error}") from error
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise DamagedFileError(f"{path} has weights that are not finite, in {name}")
    ensemble.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    return ensemble, step


class LoadedRun(NamedTuple):
    """A run loaded for evaluation or inspection."""

    config: TrainConfig[Any]
    environment: Environment
    """As in evaluations."""
    spec: EnvSpec
    ensemble: Ensemble
    step: int
    """Environment steps before the weights were saved."""

    def q_values(self, observations: Array) -> Array:
        """Return Q-values (B, K, A) of observations (B, ...) of the type in `spec`.

        Raises:
            TrainingError: Some are not finite, because the weights are too large.
        """
        with torch.inference_mode():
            q: Array = self.ensemble(torch.from_numpy(np.ascontiguousarray(observations))).numpy()
        if not np.isfinite(q).all():
            raise TrainingError("the Q-values of the weights that were loaded are not finite")
        return q

    def with_weights(self, weights: Path) -> "LoadedRun":
        """Return the same run with other weights; both share the environment."""
        ensemble, step = load_ensemble(weights, self.config, self.spec)
        return self._replace(ensemble=ensemble, step=step)

    def close(self) -> None:
        """Close the environment."""
        close_environment(self.environment)


def open_run(path: Path, weights: str | Path | int | None = None, *, render_mode: str | None = None) -> LoadedRun:
    """Load the run in directory `path` with its `weights`: the step of a snapshot, or a file (None: those saved last).

    Close it at the end.

    Raises:
        UsageError: There is no such run, or no such weights of it.
        RenderModeError: The environment has no such render mode.
    """
    config = read_run_config(path)
    remove_leftovers(RunDirectory(path))
    file = find_weights(path, weights) or RunDirectory(path).weights
    environment = make_environment(evaluation_config(config.env), render_mode=render_mode)
    try:
        spec = spec_of(environment)
        return LoadedRun(config, environment, spec, *load_ensemble(file, config, spec))
    except BaseException:
        close_environment(environment)
        raise


def read_run_config(path: Path) -> TrainConfig[Any]:
    """Return the configuration of the run in directory `path`; a UsageError if there is none."""
    directory = RunDirectory(path)
    if not is_present(directory.config):
        raise UsageError(_no_run(path))
    try:
        return from_flat(directory.read_config())
    except ValueError as error:
        raise UsageError(f"{directory.config}: {error}") from error


def _no_run(path: Path) -> str:
    """Return the message that `path` is not a run directory; it names those in it, or one with a similar name."""
    if not is_present(path):
        siblings = (sibling for sibling in sorted(path.parent.glob("*")) if is_present(RunDirectory(sibling).config))
        near = [escape_unprintable(str(sibling)) for sibling in siblings]
        return f"{path} does not exist{did_you_mean(str(path), near)}"
    message = f"{path} is not a run directory: it has no config.json"
    below = [escape_unprintable(str(run.path)) for run in find_runs(path, MOST_DIRECTORIES)] if path.is_dir() else []
    if not below:
        return message
    more = f" and {len(below) - MOST_NAMED} more" if len(below) > MOST_NAMED else ""
    return f"{message}; choose one of those in it: {', '.join(below[:MOST_NAMED])}{more}"
