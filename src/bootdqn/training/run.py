"""One run in one folder: claim the folder, find out where the run stands, and train it to its end."""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from bootdqn.agent.compiled_learner import CompiledLearner
from bootdqn.agent.learner import precision_warning
from bootdqn.agent.torsos import describe_input
from bootdqn.common.errors import DamagedFileError, UsageError, check_writable
from bootdqn.common.files import is_present, remove_directory, remove_file, remove_files, write_json_atomically
from bootdqn.common.specs import BoxSpec
from bootdqn.config.train import (
    SavingConfig,
    TrainConfig,
    budget_change,
    differences,
    is_further,
    resolve,
    to_flat,
)
from bootdqn.envs.factory import effective_settings, package_of
from bootdqn.runs.checkpoint import Checkpoints, LoadedCheckpoint
from bootdqn.runs.cleanup import remove_leftovers, remove_partial_files
from bootdqn.runs.directory import SNAPSHOT_NAME, RunDirectory
from bootdqn.runs.lock import locked
from bootdqn.runs.provenance import Provenance
from bootdqn.runs.signals import stop_on_signal
from bootdqn.runs.status import budget_use
from bootdqn.runs.threads import pinned_threads
from bootdqn.training.callbacks import NO_CALLBACKS, RunCallbacks
from bootdqn.training.compiling import compile_kernels
from bootdqn.training.loggers import Logger, TensorBoardLogger, WandbLogger, check_loggers_installed, logger_errors
from bootdqn.training.loop import Components, make_components
from bootdqn.training.memory_estimate import (
    MOST_OVER_ESTIMATE,
    check_environments_fit,
    check_memory_and_disk,
    estimate,
)
from bootdqn.training.trainer import Trainer

TENSORBOARD_NAME = re.compile(r"events\.out\.tfevents\..*")

__all__ = ["RunOutcome", "default_run_dir", "finished_summary", "run"]


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended."""

    summary: dict[str, Any]
    exit_code: int
    already_finished: bool = False


def run(
    config: TrainConfig[Any],
    path: str | Path,
    callbacks: RunCallbacks = NO_CALLBACKS,
    *,
    saving: SavingConfig | None = None,
    restart: bool = False,
    tensorboard: bool = False,
    wandb: bool = False,
) -> RunOutcome:
    """Train the run that `config` describes in the folder `path`.

    A folder that holds the same run, finished, is left alone; one stopped before its end goes on exactly where its last
    checkpoint was made, and so does one with a smaller budget of episodes, frames or steps, if it has a checkpoint.

    Args:
        config: Everything that the numbers depend on.
        path: The folder, made if it is missing.
        callbacks: How the run speaks to people; by default it is silent.
        saving: When to make checkpoints, and whether to keep the last.
        restart: Begin again, even if the run was begun or finished before.
        tensorboard: Also write TensorBoard's event files.
        wandb: Also log to Weights & Biases.

    Raises:
        UsageError: The folder holds something else, or the configuration asks for what is not there.
        TrainingError: The run cannot go on; its last checkpoint is kept.
    """
    check_loggers_installed(*["tensorboard"] * tensorboard, *["wandb"] * wandb)
    config, path, saving = resolve(config), Path(path), saving or SavingConfig()
    folder = RunDirectory(path)
    folder.check()
    finished = finished_summary(folder, config, restart=restart)
    if finished is not None:
        remove_leftovers(folder)
        if saving.keep_checkpoint is False and Checkpoints(folder.checkpoints).exist():
            _remove_kept_checkpoint(folder)
        return RunOutcome(finished, 0, already_finished=True)
    check_writable(path, "--run-dir")
    with pinned_threads(config.run.threads), stop_on_signal() as stop:
        settings = effective_settings(config.env)
        components = _prepare(config, path, settings, callbacks)
        path.mkdir(parents=True, exist_ok=True)
        with locked(folder.lock) as lock:
            finished = finished_summary(folder, config, restart=restart)  # another process may have come first
            if finished is None and not restart:
                finished = _with_a_larger_cap(folder, config)
            if finished is not None:
                return RunOutcome(finished, 0, already_finished=True)
            remove_partial_files(folder)
            checkpoints = Checkpoints(folder.checkpoints, MOST_OVER_ESTIMATE * estimate(components).disk)
            loaded = None if restart else _find_checkpoint(folder, checkpoints, callbacks.warn)
            origin = _origin(config, folder, loaded, settings, components)
            origin = origin.keeping_checkpoint(saving.keep_checkpoint)
            saving = replace(saving, keep_checkpoint=origin.keeps_checkpoint)
            loggers = _open_loggers(config, folder, loaded, origin.identity, tensorboard=tensorboard, wandb=wandb)
            if loaded is None:
                _begin(folder, checkpoints, config, origin)
            trainer = Trainer(
                config, folder, components, lock, saving=saving, checkpoints=checkpoints, loaded=loaded,
                loggers=loggers, callbacks=callbacks, stop=stop,
            )  # fmt: skip
            remove_file(folder.summary)  # not before the run is back where it was
            if is_further(folder.read_config(), to_flat(config)):
                write_json_atomically(folder.config, to_flat(config))  # not before its summary of less is gone
            if loaded is not None:
                not_exact = [*trainer.not_exact, *_changes_since(origin, config, components)]
                _tell_resumption(origin, config, components, loaded, not_exact, callbacks)
            return RunOutcome(*trainer.train())


def _prepare(config: TrainConfig[Any], path: Path, settings: dict[str, Any], callbacks: RunCallbacks) -> Components:
    """Make what the run consists of, say what it is and what it needs, and refuse what this machine cannot hold."""
    check_environments_fit(config.run.num_envs)
    components = make_components(config)
    needed = estimate(components)
    check_memory_and_disk(needed, path)
    callbacks.info(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()))
    if isinstance(components.spec.observation, BoxSpec):
        callbacks.info(describe_input(components.spec.observation))
    callbacks.info(f"needs about {needed}")
    if advice := precision_warning(config.learner, config.run.device):
        callbacks.warn(advice)
    compile_kernels(config, components, callbacks.info)
    return components


def _begin(folder: RunDirectory, checkpoints: Checkpoints, config: TrainConfig[Any], origin: Provenance) -> None:
    """Make the folder, which is ours now, ready for the run's first step."""
    _clear(folder, checkpoints)
    write_json_atomically(folder.config, to_flat(config))
    origin.write()


def _open_loggers(
    config: TrainConfig[Any],
    folder: RunDirectory,
    loaded: LoadedCheckpoint | None,
    identity: str,
    *,
    tensorboard: bool,
    wandb: bool,
) -> list[Logger]:
    """Open them before anything in the folder is touched: where one refuses, a run to be begun again is still there."""
    loggers: list[Logger] = []
    if wandb:
        with logger_errors("wandb"):
            loggers.append(WandbLogger(folder.path, to_flat(config), identity))
    if tensorboard:
        loggers.append(TensorBoardLogger(folder.tensorboard, loaded.step + 1 if loaded else 0))
    return loggers


def _origin(
    config: TrainConfig[Any],
    folder: RunDirectory,
    loaded: LoadedCheckpoint | None,
    settings: dict[str, Any],
    components: Components,
) -> Provenance:
    """Return how the run came about: what its directory says, or this process where it begins."""
    if loaded is not None:
        return Provenance.read(folder)
    return Provenance.begin(folder, config.run.threads, settings, package_of(components.environments[0]))


def _changes_since(origin: Provenance, config: TrainConfig[Any], components: Components) -> list[str]:
    """Return a line for each thing that is no longer what it was when the run began, and its numbers depend on."""
    compiled = isinstance(components.learner, CompiledLearner)
    return [
        *origin.changes_of_user_code(),
        *origin.changes_of_packages(package_of(components.environments[0])),
        *origin.changes_of_arithmetic(compiled=compiled),
        *(origin.changes_of_gpu() if config.run.device != "cpu" else []),
    ]


def _tell_resumption(
    origin: Provenance,
    config: TrainConfig[Any],
    components: Components,
    loaded: LoadedCheckpoint,
    not_exact: list[str],
    callbacks: RunCallbacks,
) -> None:
    """Say, and write down, where the run goes on, and whether it can do so exactly."""
    callbacks.info(f"Resuming from step {loaded.step:,}")
    origin.note_resumption(loaded.step, config.run.threads, package_of(components.environments[0]), not_exact)
    for problem in not_exact:
        callbacks.warn(problem)


def default_run_dir(config: TrainConfig[Any], root: Path = Path("runs")) -> Path:
    """Return a readable folder below `root` for this configuration: the one that holds it already, or a new one."""
    config = resolve(config)
    words = re.findall(r"[a-z0-9.]+", f"{config.env.label} {config.actor.strategy}".lower())
    name = "-".join([config.env.kind, *words, f"seed{config.run.seed}"])
    for candidate in itertools.chain([root / name], (root / f"{name}-{count}" for count in itertools.count(2))):
        folder = RunDirectory(candidate)
        if not candidate.exists() or (
            is_present(folder.config) and not differences(folder.read_config(), to_flat(config))
        ):
            return candidate
    raise AssertionError("there is always a next number")


def finished_summary(folder: RunDirectory, config: TrainConfig[Any], *, restart: bool = False) -> dict[str, Any] | None:
    """Return the summary if `folder` holds this very run, finished; None if it is free for it, or with `restart`.

    It is free, too, where it holds the beginning of this run, made with a smaller budget, and a checkpoint of that.

    Raises:
        UsageError: The folder holds something else, or a finished beginning without a checkpoint.
        DamagedFileError: The summary cannot be read.
    """
    if is_present(folder.config):
        there, here = folder.read_config(), to_flat(config)
        different, change = differences(there, here), budget_change(there, here)
        if different and change is None:
            listed = ", ".join(f"{key:.50}: {old!r:.100} there, {new!r} here" for key, (old, new) in different.items())
            raise UsageError(f"{folder.path} holds another configuration ({listed}); choose another folder")
        if restart:
            return None
        further = is_further(there, here)
        if change is not None and not further:
            _refuse_less(folder, there, *change)
        summary = _read_finished_summary(folder)
        if summary is None:
            return None
        if change and not _ends_before_its_cap(there, summary) and not Checkpoints(folder.checkpoints).exist():
            budget, before, after = change
            raise UsageError(
                f"{folder.path} is finished ({budget} {before:,}) and cannot be taken further, to {after:,}: only "
                "--keep-checkpoint would have kept what to go on from; choose another folder, or remove this one"
            )
        return None if further else summary
    if folder.path.exists() and (not folder.path.is_dir() or any(not _is_ours(p) for p in folder.path.iterdir())):
        raise UsageError(f"{folder.path} exists and is not a run folder; choose another folder")
    return None


def _refuse_less(folder: RunDirectory, there: Mapping[str, Any], budget: str, before: int, after: int) -> NoReturn:
    """Raise a UsageError that says what the run in `folder` has behind it, and that it cannot have less."""
    try:
        behind = f"has {budget_use(folder, there)} behind it"
    except DamagedFileError:
        behind = f"was begun with {budget} {before:,}"
    raise UsageError(
        f"{folder.path} {behind}: a budget can be raised, and not lowered to {after:,}; choose another folder, or "
        "begin this run again with --restart"
    )


def _read_finished_summary(folder: RunDirectory) -> dict[str, Any] | None:
    """Return the summary of a run that is finished, or None; a DamagedFileError if it cannot be read."""
    try:
        summary = folder.read_summary() or {}
        if summary.get("status") != "finished":
            return None
        if lacking := ", ".join(sorted({"steps", "episodes", "seconds"} - summary.keys())):
            raise DamagedFileError(f"{folder.summary} lacks {lacking}")
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; --restart starts the run again") from error
    return summary


def _ends_before_its_cap(config: Mapping[str, Any], summary: Mapping[str, Any]) -> bool:
    """Return whether a finished run was over before its budget was: solved DeepSea is."""
    solved = summary.get("solved_at") is not None and summary.get("solved_at_strict") is not None
    return bool(config.get("stop_when_solved") and solved and summary["episodes"] < config["max_episodes"])


def _with_a_larger_cap(folder: RunDirectory, config: TrainConfig[Any]) -> dict[str, Any] | None:
    """Return the summary of a finished run that a larger cap changes nothing of, and give it that cap; else None."""
    summary = folder.read_summary() if is_present(folder.config) else None
    if summary is None or summary.get("status") != "finished":
        return None
    there = folder.read_config()
    if not is_further(there, to_flat(config)) or not _ends_before_its_cap(there, summary):
        return None
    write_json_atomically(folder.config, to_flat(config))
    return summary


def _remove_kept_checkpoint(folder: RunDirectory) -> None:
    """Remove the checkpoint that a finished run kept, and remember that."""
    with locked(folder.lock):
        Checkpoints(folder.checkpoints).remove()
        Provenance.read(folder).keeping_checkpoint(False).write()


def _find_checkpoint(
    folder: RunDirectory, checkpoints: Checkpoints, warn: Callable[[str], None]
) -> LoadedCheckpoint | None:
    """Return the checkpoint to go on from, or None where the run has not begun.

    Raises:
        DamagedFileError: The run has begun, and there is no checkpoint that can be read.
    """
    if checkpoints.exist():
        return checkpoints.load(lambda line: warn(f"{folder.path}: {line}"))
    if is_present(folder.metrics) and folder.metrics.stat().st_size:
        raise UsageError(f"{folder.path} was begun but has no checkpoint to go on from; --restart starts it again")
    return None


def _clear(folder: RunDirectory, checkpoints: Checkpoints) -> None:
    """Remove what an earlier attempt at this run left behind."""
    checkpoints.remove()
    remove_directory(folder.snapshots, SNAPSHOT_NAME)
    remove_files(folder.tensorboard, TENSORBOARD_NAME)
    for left_over in (folder.summary, folder.weights, folder.metrics, folder.timing):
        remove_file(left_over)


def _is_ours(path: Path) -> bool:
    """Return whether `path` is a file that a crash left behind before the run's first file was whole."""
    return path.name == "lock.json" or (path.name.startswith(".") and path.suffix == ".part")
