"""Train, load and evaluate a run from Python. PyTorch is imported when there is work to do, not before."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bootdqn.common.errors import TrainingError
from bootdqn.common.specs import Array, as_batch
from bootdqn.exploration.registry import format_strategy, known_strategies, script_warning
from bootdqn.exploration.voting import VoteRule

if TYPE_CHECKING:
    import pandas as pd

    from bootdqn.reports.results import Paths
    from bootdqn.training.evaluation import Evaluation


@dataclass(frozen=True)
class Trained:
    """The ensemble of a run, as it was last saved or at one of its snapshots."""

    config: dict[str, Any]
    """The complete configuration of the run, flat."""
    step: int
    """Environment steps before its weights were saved."""
    q_values: Callable[[Array], Array]
    """From observations (B, ...) to Q-values (B, K, A); a ValueError where they are not of the environment's form."""


def train(settings: Mapping[str, Any], run_dir: str | Path, *, keep_checkpoint: bool | None = None) -> dict[str, Any]:
    """Train one run in the directory `run_dir`, and return its summary.

    As on the command line, a finished run is left alone and a stopped one is resumed. So is a finished one with a
    smaller budget of episodes, frames or steps, if it kept its checkpoint.

    Args:
        settings: `environment` (deep-sea, atari or gym) and what differs from its defaults; the keys of `config.json`.
            The strategy may be an object, numbers may be NumPy's, and `env_options` a mapping.
        run_dir: Run directory, created if it does not exist.
        keep_checkpoint: Keep the last checkpoint, from which a larger budget takes the finished run further (None: as
            the run was started; a new run does not keep it).

    Raises:
        ValueError: A setting that does not exist, or a value that it does not take.
        UsageError: The directory holds another run, or the settings need a device or a package that is missing.
        TrainingError: The run cannot continue, and its last checkpoint is kept; or its results could not be written.
        KeyboardInterrupt: It was stopped by Ctrl-C, SIGTERM or SIGHUP, and is saved; the same call resumes it.

    Example:
        >>> train({"environment": "deep-sea", "size": 10, "seed": 3}, "runs/first")  # doctest: +SKIP
    """
    from bootdqn.config.train import SavingConfig, from_flat
    from bootdqn.training.callbacks import RunCallbacks
    from bootdqn.training.run import run

    _check_settings(settings, run_dir)
    config = from_flat(_flat_settings(settings))
    if warning := script_warning(config.actor.strategy_from or ""):
        warnings.warn(warning, stacklevel=2)
    saving = SavingConfig(keep_checkpoint=keep_checkpoint)
    outcome = run(config, run_dir, RunCallbacks(warn=partial(warnings.warn, stacklevel=2)), saving=saving)
    if outcome.summary["status"] == "interrupted":
        raise KeyboardInterrupt
    if outcome.exit_code:
        raise TrainingError(f"{run_dir} could not be written in full; the same call resumes it")
    return outcome.summary


def _check_settings(settings: Any, run_dir: str | Path) -> None:
    """Raise a ValueError that shows how to call `train` unless the settings are a mapping."""
    if not isinstance(settings, Mapping):
        example = {"environment": settings if isinstance(settings, str) else "deep-sea", "seed": 0}
        raise ValueError(f"settings must be a mapping, as in bootdqn.train({example!r}, {str(run_dir)!r})")


def _flat_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as `config.json` has them: a strategy and options as text, numbers as Python's own."""
    flat = {key: _as_python(value) for key, value in settings.items()}
    strategy: Any = flat.get("strategy")
    options = flat.get("env_options")
    if type(strategy) in known_strategies().values():
        flat["strategy"] = format_strategy(strategy)
    elif is_dataclass(strategy) and not isinstance(strategy, type):
        raise ValueError(f"{type(strategy).__name__} is not known yet: write @bootdqn.register_strategy above it")
    if isinstance(options, Mapping):
        flat["env_options"] = {name: _as_python(value) for name, value in options.items()}
    return flat


def _as_python(value: Any) -> Any:
    """Return NumPy's numbers and arrays, alone or in a list, as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_as_python(item) for item in value] if isinstance(value, list | tuple) else value


def load_run(run_dir: str | Path, *, weights: int | str | Path | None = None) -> Trained:
    """Return the ensemble of the run in the directory `run_dir`, finished or not.

    Args:
        run_dir: Run directory.
        weights: The step of one of its snapshots, or a file of weights (None: the weights saved last).

    Raises:
        UsageError: The directory holds no run, or no weights yet, or no such snapshot.
    """
    from bootdqn.config.train import to_flat
    from bootdqn.runs.weights import open_run

    opened = open_run(Path(run_dir), weights)
    form = opened.spec.observation
    return Trained(to_flat(opened.config), opened.step, lambda seen: opened.q_values(as_batch(seen, form)))


def evaluate_run(
    run_dir: str | Path,
    *,
    weights: int | str | Path | None = None,
    episodes: int | None = None,
    max_steps: int | None = None,
    vote: VoteRule | None = None,
    seed: int = 0,
) -> "Evaluation":
    """Evaluate the run in the directory `run_dir` by the vote of its heads; return the returns and the vote diversity.

    Args:
        run_dir: Run directory, of a run that is finished or not.
        weights: The step of one of its snapshots, or a file of weights (None: the weights saved last).
        episodes: The most episodes to play (None: the run's `eval_episodes`).
        max_steps: The most steps to play (None: the run's `eval_max_steps`).
        vote: How the heads vote (None: the run's `vote`).
        seed: Seed of the environment.
    """
    from bootdqn.training.evaluation import evaluate_saved_run

    return evaluate_saved_run(
        Path(run_dir), episodes=episodes, max_steps=max_steps, rule=vote, seed=seed, weights=weights
    ).evaluation


def load_results(path: "Paths") -> "pd.DataFrame":
    """Return a table with a row for each run at or below a directory; see `bootdqn.reports.load_results`."""
    from bootdqn import reports

    return reports.load_results(path)


def load_metrics(runs: "Paths | pd.DataFrame", kind: str | None = None) -> "pd.DataFrame":
    """Return the metrics of runs as a long table; see `bootdqn.reports.load_metrics`."""
    from bootdqn import reports

    return reports.load_metrics(runs, kind)
