"""Run a sweep in a terminal: skip the runs that are finished, and train the others on this machine or on Ray."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from bootdqn.agent.learner import check_device
from bootdqn.common.errors import check_writable
from bootdqn.common.text import format_count
from bootdqn.config.train import LoggerConfig, SavingConfig
from bootdqn.runs.cleanup import remove_leftovers
from bootdqn.runs.directory import RunDirectory
from bootdqn.sweeps.cluster_cost import simulate_sweep
from bootdqn.sweeps.cluster_file import load_cluster
from bootdqn.sweeps.cost import dry_run, in_scheduling_order, runs_at_a_time
from bootdqn.sweeps.executor import SweepExit, check_is_directory, split_remaining
from bootdqn.sweeps.local import run_locally
from bootdqn.sweeps.progress import SweepDisplay
from bootdqn.sweeps.sweep_file import PlannedRun, load_sweep
from bootdqn.training.display import status_line
from bootdqn.training.loggers import check_loggers_installed

_UNLIMITED_WIDTH = 10_000
"""Columns of the output where it is no terminal."""


class SweepPlan(NamedTuple):
    """The runs of an experiment, and where they are to be trained."""

    runs: list[PlannedRun]
    out: Path
    heading: list[str]
    """Lines that describe the experiment, what was changed, and the number of runs."""


def plan_sweep(
    name: str, overrides: Sequence[str] = (), out: str | Path | None = None, imports: Sequence[str] = ()
) -> SweepPlan:
    """Return the runs of an experiment: one that comes with the package, or a .toml file.

    Args:
        name: Name of the experiment, or its file.
        overrides: Settings to change, as `key=value`.
        out: Directory for the runs (None: runs/NAME).
        imports: Modules imported to register Gymnasium environments.

    Raises:
        UsageError: There is no such experiment, a setting does not exist, or `out` is a file.
    """
    sweep = load_sweep(name).with_overrides(overrides)
    runs, directory = sweep.runs(imports), Path("runs") / sweep.name if out is None else Path(out)
    check_is_directory(directory)
    changed = f"changed: {' '.join(overrides)}" if overrides else ""
    lines = (sweep.description, changed, f"{format_count(len(runs), 'run')} in {directory}")
    return SweepPlan(runs, directory, [line for line in lines if line])


def print_costs(
    plan: SweepPlan, workers: int | None, saving: SavingConfig, console: Console, cluster_file: Path | None = None
) -> list[str]:
    """Print the maximum cost of the runs, here or on a cluster, and return the problems of those that are left out."""
    cluster = None if cluster_file is None else load_cluster(cluster_file)
    with status_line("measuring", quiet=console.quiet) as show:
        if cluster is not None:
            table, problems = simulate_sweep(plan.runs, plan.out, cluster, saving, show=show)
        else:
            keep = bool(saving.keep_checkpoint)
            table, problems = dry_run(plan.runs, plan.out, workers, keeps_checkpoints=keep, show=show)
    for part in (*plan.heading, table):
        console.print(part, soft_wrap=False)  # words and rows whole
    return problems


def run_experiment(
    name: str,
    overrides: Sequence[str],
    console: Console,
    *,
    out: str | Path | None = None,
    imports: Sequence[str] = (),
    dry_run: bool = False,
    cluster_file: Path | None = None,
    workers: int | None = None,
    retries: int = 0,
    ray: str | None = None,
    gpus_per_run: float = 0.0,
    saving: SavingConfig,
    loggers: LoggerConfig,
) -> tuple[SweepPlan, SweepExit | None, list[str]]:
    """Plan an experiment, and train its runs or, in a dry run, print their maximum cost.

    Returns:
        The plan; how the runs ended (None: it was a dry run); and why runs are left out of a dry run.

    Raises:
        UsageError: As `plan_sweep` and `run_sweep`.
    """
    plan = plan_sweep(name, overrides, out, imports)
    if dry_run:
        return plan, None, print_costs(plan, workers, saving, console, cluster_file)
    for line in plan.heading:
        console.print(line)
    outcome = run_sweep(
        plan.runs,
        plan.out,
        console,
        workers=workers,
        retries=retries,
        ray=ray,
        gpus_per_run=gpus_per_run,
        saving=saving,
        loggers=loggers,
    )
    return plan, outcome, []


def output_console(*, quiet: bool = False) -> Console:
    """Return rich's console on standard output, which limits a table to the width of a terminal."""
    console = Console(soft_wrap=True, markup=False, highlight=False, quiet=quiet)
    if not console.is_terminal and not console.is_jupyter:
        console.width = _UNLIMITED_WIDTH
    return console


def run_sweep(
    runs: list[PlannedRun],
    out: Path,
    console: Console,
    *,
    workers: int | None = None,
    retries: int = 0,
    ray: str | None = None,
    gpus_per_run: float = 0.0,
    saving: SavingConfig | None = None,
    loggers: LoggerConfig | None = None,
) -> SweepExit:
    """Train the runs that are not finished in `out`, on this machine or on Ray, and return how all of them ended.

    Raises:
        UsageError: `out` is a file, a logger is not installed, or this machine does not have a device of the runs, or
            the memory that `workers` of them need at a time.
    """
    loggers = loggers or LoggerConfig()
    check_loggers_installed(*["tensorboard"] * loggers.tensorboard, *["wandb"] * loggers.wandb)
    todo, ended = split_remaining(runs, out)
    for end in ended:
        remove_leftovers(RunDirectory(out / end.run.name))
    if not todo:
        return SweepExit(ended)
    check_writable(out, "--out")
    todo = in_scheduling_order(todo)
    if ray is None:
        for device in sorted({run.config.run.device for run in todo}):
            check_device(device)
        train = partial(run_locally, todo, out, runs_at_a_time(todo, workers, console.print))
    else:
        from bootdqn.sweeps.ray_sweep import run_on_ray

        train = partial(run_on_ray, todo, out, ray, gpus_per_run=gpus_per_run)
    with SweepDisplay(runs, ended, console) as display:
        outcome = train(display.update, retries=retries, saving=saving, loggers=loggers)
    return SweepExit([*ended, *outcome.ended], outcome.stop_exit_code)
