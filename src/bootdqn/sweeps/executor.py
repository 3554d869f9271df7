"""Conducting an experiment: skip what is done, run the rest somewhere, show how it goes."""

import heapq
import itertools
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from rich.console import Console

from bootdqn.common.errors import UsageError, check_writable
from bootdqn.config.train import SavingConfig
from bootdqn.runs.cleanup import remove_leftovers
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.resources import available_cores, available_memory
from bootdqn.sweeps.cost import longest_first, memory_needed
from bootdqn.sweeps.events import SweepOutcome, split_done
from bootdqn.sweeps.local import run_all
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.sweeps.progress import Display, shown
from bootdqn.training.memory_estimate import gigabytes


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
) -> SweepOutcome:
    """Make the runs that are not finished in `out` yet, on this machine or on Ray, and return how all of them ended.

    Raises:
        UsageError: `out` is a file, or this machine has less memory than `workers` of the runs need at a time.
    """
    todo, ended = split_done(runs, out)
    for end in ended:
        remove_leftovers(RunDirectory(out / end.run.name))
    if not todo:
        return SweepOutcome(ended)
    check_writable(out, "--out")
    todo = longest_first(todo)
    if ray is None:
        make = partial(run_all, todo, out, runs_at_a_time(todo, workers, console.print))
    else:
        from bootdqn.sweeps.ray_runs import run_on_ray

        make = partial(run_on_ray, todo, out, ray, gpus_per_run=gpus_per_run)
    display = Display(runs, ended, console)
    with shown(display, console):
        outcome = make(display.show, retries=retries, saving=saving)
    return SweepOutcome([*ended, *outcome.ended], outcome.stop_exit_code)


def default_workers(runs: list[PlannedRun]) -> int:
    """Return how many runs fit on the cores that there are for them, each with the threads that its settings say."""
    return max(1, available_cores() // max(planned.config.run.threads for planned in runs))


def runs_at_a_time(
    runs: list[PlannedRun],
    workers: int | None,
    tell: Callable[[str], None] = lambda _: None,
    memory: list[int] | None = None,
) -> int:
    """Return `workers`, or if that is None as many as this machine's cores and memory hold.

    Where memory holds fewer than the cores do, `tell` is given a line that says so.

    A run that does not even fit alone takes no memory: it will refuse itself, and the others are made.

    Args:
        runs: All of them.
        workers: How many at a time were asked for.
        tell: Takes that line.
        memory: Bytes that each run needs, where that is known already.

    Raises:
        UsageError: The largest `workers` of the runs need more memory together than there is.
    """
    at_a_time, available = min(workers or default_workers(runs), len(runs)), available_memory()
    if at_a_time == 1 or available is None:
        return at_a_time
    sizes = sorted((size for size in memory or memory_needed(runs) if size <= available), reverse=True)
    needed = largest_together(sizes, at_a_time)
    if needed <= available:
        return at_a_time
    fitting = sum(total <= available for total in itertools.accumulate(sizes))
    lack = f"{at_a_time} runs at a time need {gigabytes(needed)} of memory, and {gigabytes(available)} are available"
    if workers is not None:
        raise UsageError(f"{lack}; choose --workers {fitting}")
    tell(f"{lack}; {fitting} at a time will be made")
    return fitting


def largest_together(sizes: Iterable[int], at_a_time: int) -> int:
    """Return what `at_a_time` of the sizes come to at most."""
    return sum(heapq.nlargest(at_a_time, sizes))
