"""One run in one directory: find its status, prepare it, and train it to its end."""

import itertools
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bootdqn.agent.discrete_learner import DiscreteLearner
from bootdqn.agent.learner import precision_warning
from bootdqn.agent.torsos import describe_input
from bootdqn.common.errors import check_writable
from bootdqn.common.files import remove_file, write_json_atomically
from bootdqn.common.specs import BoxSpec
from bootdqn.config.defaults import preset_settings
from bootdqn.config.settings import describe_settings, to_flat
from bootdqn.config.train import SavingConfig, TrainConfig, budget_warnings, resolve
from bootdqn.envs.factory import effective_settings, package_of, with_versioned_id
from bootdqn.runs.checkpoint import Checkpoints
from bootdqn.runs.cleanup import clear_run, remove_leftovers, remove_partial_files
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import Lock, locked
from bootdqn.runs.provenance import Provenance
from bootdqn.runs.resources import check_environments_fit, check_memory_and_disk
from bootdqn.runs.signals import StopRequest, stop_on_signal
from bootdqn.runs.status import RunState, RunStatus, run_status
from bootdqn.runs.threads import pinned_threads
from bootdqn.training.callbacks import NO_CALLBACKS, RunCallbacks
from bootdqn.training.compiling import compile_kernels
from bootdqn.training.loggers import Logger, TensorBoardLogger, WandbLogger, check_loggers_installed, logger_errors
from bootdqn.training.loop import Components, make_components
from bootdqn.training.trainer import Trainer

CHECKPOINT_MARGIN = 8
"""How many times the estimated disk a checkpoint may take before it counts as damaged: frames may not compress."""


@dataclass(frozen=True)
class RunExit:
    """How a run ended."""

    summary: dict[str, Any]
    exit_code: int
    already_finished: bool = False


def train_run(
    config: TrainConfig[Any],
    run_dir: str | Path,
    callbacks: RunCallbacks = NO_CALLBACKS,
    *,
    saving: SavingConfig | None = None,
    restart: bool = False,
    tensorboard: bool = False,
    wandb: bool = False,
    sweep: Path | None = None,
) -> RunExit:
    """Train the run that `config` describes in `run_dir`.

    A finished run is left alone. A stopped one is resumed exactly from its last checkpoint, and so is a finished one
    with a smaller budget of episodes, frames or steps, if it kept its checkpoint.

    Args:
        config: Everything that the numbers depend on.
        run_dir: The run directory, made if it is missing.
        callbacks: Called with progress, information and warnings.
        saving: When to make checkpoints, and whether to keep the last.
        restart: Start the run again, even if it was started or finished before.
        tensorboard: Also write TensorBoard's event files.
        wandb: Also log to Weights & Biases.
        sweep: Directory of the sweep that the run belongs to: its group in Weights & Biases.

    Raises:
        UsageError: The directory holds something else, or the configuration asks for something that is not there.
        TrainingError: Training cannot continue; the last checkpoint is kept.
    """
    check_loggers_installed(*["tensorboard"] * tensorboard, *["wandb"] * wandb)
    label, config = config.env.label, _resolved(config)
    if label != config.env.label:
        callbacks.info(f"{label} is {config.env.label}, its latest version")
    directory, saving = RunDirectory(Path(run_dir)), saving or SavingConfig()
    directory.check()
    status = _checked_status(directory, config, restart=restart)
    if status.state is RunState.FINISHED and not restart:
        return _leave_finished(status, config, saving)
    check_writable(directory.path, "--run-dir")
    check_environments_fit(config.run.num_envs)
    with pinned_threads(config.run.threads), stop_on_signal() as stop:
        settings = effective_settings(config.env)
        with closing(make_components(config)) as components:
            _check_and_describe(config, components, directory.path, settings, callbacks)
            directory.path.mkdir(parents=True, exist_ok=True)
            with locked(directory.lock) as lock:
                status = _checked_status(directory, config, restart=restart)  # another process may have been faster
                if status.state is RunState.FINISHED and not restart:
                    return RunExit(status.summary, 0, already_finished=True)
                trainer = _start_or_resume(
                    config,
                    status,
                    components,
                    lock,
                    restart=restart,
                    saving=saving,
                    environment_settings=settings,
                    open_loggers=partial(_open_loggers, config, directory, sweep, tensorboard=tensorboard, wandb=wandb),
                    callbacks=callbacks,
                    stop=stop,
                )
                return RunExit(*trainer.train())


def _start_or_resume(
    config: TrainConfig[Any],
    status: RunStatus,
    components: Components,
    lock: Lock,
    *,
    restart: bool,
    saving: SavingConfig,
    environment_settings: dict[str, Any],
    open_loggers: Callable[[Provenance, int], list[Logger]],
    callbacks: RunCallbacks,
    stop: StopRequest,
) -> Trainer:
    """Return the trainer of a run that starts, or that is restored from its last checkpoint."""
    directory, package = status.directory, package_of(components.environments[0])
    remove_partial_files(directory)
    checkpoints = Checkpoints(directory.checkpoints, CHECKPOINT_MARGIN * components.estimate_resources().disk)
    if restart or status.state is RunState.EMPTY:
        loaded, first_step = None, 0
        provenance = Provenance.start(directory, config.run.threads, environment_settings, package)
    else:
        loaded = checkpoints.load(lambda line: callbacks.warn(f"{directory.path}: {line}"))
        provenance, first_step = Provenance.read(directory), loaded.step + 1
    provenance = provenance.with_keep_checkpoint(saving.keep_checkpoint)
    # before anything is removed: if a logger cannot be opened, the run is still there
    loggers = open_loggers(provenance, first_step)
    if loaded is None:
        clear_run(directory)
        write_json_atomically(directory.config, to_flat(config))
        provenance.write()
    trainer = Trainer(
        config,
        directory,
        components,
        lock,
        saving=replace(saving, keep_checkpoint=provenance.keeps_checkpoint),
        checkpoints=checkpoints,
        loaded=loaded,
        loggers=loggers,
        callbacks=callbacks,
        stop=stop,
    )
    remove_file(directory.summary)  # not before the run is restored
    if loaded is not None:
        if status.new_budget:
            write_json_atomically(directory.config, to_flat(config))  # not before the old summary is removed
        inexact_reasons = [*trainer.inexact_reasons, *_changes(provenance, config, components)]
        provenance.write_resumption(loaded.step, config.run.threads, package, inexact_reasons)
        callbacks.info(f"Resuming from step {loaded.step:,}")
        for reason in inexact_reasons:
            callbacks.warn(reason)
    return trainer


def _resolved(config: TrainConfig[Any]) -> TrainConfig[Any]:
    """Return `config` with every value filled in that depends on another one, or on what is installed."""
    config = resolve(config)
    return replace(config, env=with_versioned_id(config.env))


def default_run_dir(config: TrainConfig[Any], root: Path = Path("runs")) -> Path:
    """Return a readable path below `root` for this configuration: of the run that has it already, or a free one."""
    config = _resolved(config)
    words = re.findall(r"[a-z0-9.]+", f"{config.env.label} {config.actor.strategy}".lower())
    name = "-".join([config.env.kind, *words, f"seed{config.run.seed}"])
    for candidate in itertools.chain([root / name], (root / f"{name}-{count}" for count in itertools.count(2))):
        status = run_status(RunDirectory(candidate), config)
        if status.state not in (RunState.OTHER_CONFIG, RunState.NOT_A_RUN) and not status.new_budget:
            return candidate
    raise AssertionError("there is always a next number")


def _checked_status(directory: RunDirectory, config: TrainConfig[Any], *, restart: bool) -> RunStatus:
    status = run_status(directory, config)
    status.check(restart=restart)
    return status


def _leave_finished(status: RunStatus, config: TrainConfig[Any], saving: SavingConfig) -> RunExit:
    """Return the outcome of a finished run, after it was given its new budget, and its kept checkpoint was removed."""
    directory = status.directory
    remove_leftovers(directory)
    remove_checkpoint = saving.keep_checkpoint is False and directory.last_checkpoint() is not None
    if status.new_budget or remove_checkpoint:
        with locked(directory.lock):
            if status.new_budget:
                write_json_atomically(directory.config, to_flat(config))
            if remove_checkpoint:
                Checkpoints(directory.checkpoints).remove()
                Provenance.read(directory).with_keep_checkpoint(False).write()
    return RunExit(status.summary, 0, already_finished=True)


def _check_and_describe(
    config: TrainConfig[Any],
    components: Components,
    run_dir: Path,
    environment_settings: dict[str, Any],
    callbacks: RunCallbacks,
) -> None:
    """Check that the run fits on this machine, report its settings and what it needs, and compile its kernels."""
    needed = components.estimate_resources()
    check_memory_and_disk(needed, run_dir)
    callbacks.info(describe_settings(config))
    callbacks.info(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in environment_settings.items()))
    if isinstance(components.spec.observation, BoxSpec):
        callbacks.info(describe_input(components.spec.observation))
        of_preset = preset_settings(config.run.preset, config.env.kind).get("embedding_scale")
        if config.network.embedding_scale not in (None, of_preset):
            callbacks.warn("--embedding-scale has no effect: these observations are boxes of numbers, not discrete")
    callbacks.info(f"needs about {needed}")
    for line in budget_warnings(config):
        callbacks.info(line)
    if advice := precision_warning(config.learner, config.run.device):
        callbacks.warn(advice)
    compile_kernels(config, components, callbacks.info)


def _open_loggers(
    config: TrainConfig[Any],
    directory: RunDirectory,
    sweep: Path | None,
    provenance: Provenance,
    first_step: int,
    *,
    tensorboard: bool,
    wandb: bool,
) -> list[Logger]:
    loggers: list[Logger] = []
    if wandb:
        with logger_errors("wandb"):
            loggers.append(WandbLogger(directory.path, to_flat(config), provenance.identity, sweep))
    if tensorboard:
        loggers.append(TensorBoardLogger(directory.tensorboard, first_step))
    return loggers


def _changes(provenance: Provenance, config: TrainConfig[Any], components: Components) -> list[str]:
    """Return a warning for each change since the start of the run that its numbers depend on."""
    return [
        *provenance.changes_of_user_code(),
        *provenance.changes_of_packages(package_of(components.environments[0])),
        *provenance.changes_of_arithmetic(compiled=isinstance(components.learner, DiscreteLearner)),
        *(provenance.changes_of_gpu() if config.run.device != "cpu" else []),
    ]
