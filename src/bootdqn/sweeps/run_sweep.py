"""Run a sweep in a terminal: skip the runs that are finished, and train the others on this machine or on Ray."""

from functools import partial
from pathlib import Path

from rich.console import Console

from bootdqn.common.errors import check_writable
from bootdqn.config.train import LoggerConfig, SavingConfig
from bootdqn.runs.cleanup import remove_leftovers
from bootdqn.runs.directory import RunDirectory
from bootdqn.sweeps.cost import in_scheduling_order, runs_at_a_time
from bootdqn.sweeps.executor import SweepOutcome, split_done
from bootdqn.sweeps.local import run_locally
from bootdqn.sweeps.progress import SweepDisplay
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.loggers import check_loggers_installed


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
) -> SweepOutcome:
    """Train the runs that are not finished in `out`, on this machine or on Ray, and return how all of them ended.

    Raises:
        UsageError: `out` is a file, a logger is not installed, or this machine has less memory than `workers` of the
            runs need at a time.
    """
    loggers = loggers or LoggerConfig()
    check_loggers_installed(*["tensorboard"] * loggers.tensorboard, *["wandb"] * loggers.wandb)
    todo, ended = split_done(runs, out)
    for end in ended:
        remove_leftovers(RunDirectory(out / end.run.name))
    if not todo:
        return SweepOutcome(ended)
    check_writable(out, "--out")
    todo = in_scheduling_order(todo)
    if ray is None:
        train = partial(run_locally, todo, out, runs_at_a_time(todo, workers, console.print))
    else:
        from bootdqn.sweeps.ray_sweep import run_on_ray

        train = partial(run_on_ray, todo, out, ray, gpus_per_run=gpus_per_run)
    with SweepDisplay(runs, ended, console) as display:
        outcome = train(display.update, retries=retries, saving=saving, loggers=loggers)
    return SweepOutcome([*ended, *outcome.ended], outcome.stop_exit_code)
