"""A run opened from its folder: its configuration, an environment to play, and its networks as they were saved."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.common.files import is_present
from bootdqn.common.run_folder import RunFolder, find_runs, find_weights
from bootdqn.common.specs import Array, EnvSpec
from bootdqn.common.written import did_you_mean, printable
from bootdqn.envs.make import Environment, for_evaluation, make_environment, spec_of
from bootdqn.networks.ensemble import Ensemble
from bootdqn.training.config import TrainConfig, from_flat
from bootdqn.training.left_overs import remove_left_overs
from bootdqn.training.weights import load_ensemble

MOST_NAMED = 4
"""Run directories that a message names."""
MOST_DIRECTORIES = 10_000
"""Directories that are searched for them: somebody may have named the root of a disk."""


class Opened(NamedTuple):
    """A run to be played and looked at."""

    config: TrainConfig[Any]
    environment: Environment
    """As evaluations have it."""
    spec: EnvSpec
    ensemble: Ensemble
    step: int
    """Environment steps before the weights were saved."""

    def q_values(self, observations: Array) -> Array:
        """Return Q-values (B, K, A) of observations (B, ...) of the type in `spec`.

        Raises:
            TrainingError: Some are not finite, as of weights that are too large to choose an action by.
        """
        with torch.inference_mode():
            q: Array = self.ensemble(torch.from_numpy(np.ascontiguousarray(observations))).numpy()
        if not np.isfinite(q).all():
            raise TrainingError("the Q-values of the weights that were loaded are not finite")
        return q

    def with_weights(self, weights: Path) -> "Opened":
        """Return the same run, its environment shared, with the networks in another of its files."""
        ensemble, step = load_ensemble(weights, self.config, self.spec)
        return self._replace(ensemble=ensemble, step=step)


def open_run(path: Path, checkpoint: str | int | None = None, *, render_mode: str | None = None) -> Opened:
    """Open the run in folder `path` at a snapshot's step, or with the weights in a file (None: those saved last).

    Raises:
        UsageError: There is no such run, or no such weights of it.
        CannotBeShownError: The environment has no such render mode.
    """
    config = read_run_config(path)
    remove_left_overs(RunFolder(path))
    weights = find_weights(path, checkpoint) or RunFolder(path).weights
    environment = make_environment(for_evaluation(config.env), render_mode=render_mode)
    spec = spec_of(environment)
    return Opened(config, environment, spec, *load_ensemble(weights, config, spec))


def read_run_config(path: Path) -> TrainConfig[Any]:
    """Return the configuration of the run in folder `path`; a UsageError if there is none."""
    folder = RunFolder(path)
    if not is_present(folder.config):
        raise UsageError(_no_run(path))
    try:
        return from_flat(folder.read_config())
    except ValueError as error:
        raise UsageError(f"{folder.config}: {error}") from error


def _no_run(path: Path) -> str:
    """Say that `path` is no run directory, and name those that are in it or are called almost the same."""
    if not is_present(path):
        near = [printable(str(one)) for one in sorted(path.parent.glob("*")) if is_present(RunFolder(one).config)]
        return f"{path} does not exist{did_you_mean(str(path), near)}"
    told = f"{path} is not a run directory: it has no config.json"
    below = [printable(str(run.path)) for run in find_runs(path, MOST_DIRECTORIES)] if path.is_dir() else []
    if not below:
        return told
    more = f" and {len(below) - MOST_NAMED} more" if len(below) > MOST_NAMED else ""
    return f"{told}; choose one of those in it: {', '.join(below[:MOST_NAMED])}{more}"
