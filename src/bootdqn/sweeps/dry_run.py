"""What a sweep would run and what that costs at most, without running it: a row for each cell, all seeds together."""

import heapq
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rich.table import Table

from bootdqn.common.errors import UsageError
from bootdqn.common.text import format_count
from bootdqn.sweeps.cost import Cost, costs, longest_first
from bootdqn.sweeps.events import split_done
from bootdqn.sweeps.executor import largest_together, runs_at_a_time
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.training.display import duration
from bootdqn.training.memory_estimate import gigabytes


class DryRun(NamedTuple):
    """What is known of a sweep before it is run."""

    table: Table
    problems: list[str]
    """A line for each reason why some runs cannot be made."""


def dry_run(
    runs: list[PlannedRun],
    out: Path,
    workers: int | None,
    *,
    keeps_checkpoints: bool = False,
    show: Callable[[str], None] = lambda _words: None,
) -> DryRun:
    """Return what the runs will cost at most, found by trying a little of each kind of run.

    Args:
        runs: All of them.
        out: Where they are, or will be.
        workers: How many at a time (None: as many as this machine holds).
        keeps_checkpoints: Whether they need their disk also when they are finished.
        show: Takes what is being tried, in words.

    Raises:
        UsageError: `out` is a file, or no run that is left can be made.
    """
    todo, ended = split_done(runs, out)
    todo = longest_first(todo)
    found = dict(zip((run.name for run in todo), costs(todo, show), strict=True))
    refused = [str(cost) for cost in found.values() if isinstance(cost, UsageError)]
    if refused and len(refused) == len(runs):
        raise UsageError(refused[0])
    problems = [f"{format_count(refused.count(why), 'run')} cannot be made: {why}" for why in dict.fromkeys(refused)]
    problems += [f"{out / end.run.name}: {end.error}" for end in ended if not end.finished]
    measured = {name: cost for name, cost in found.items() if isinstance(cost, Cost)}
    table = _table(runs, measured, {end.run.name for end in ended if end.finished})
    if measured:
        todo = [run for run in todo if run.name in measured]
        table.caption = _together(todo, measured, workers, keeps_checkpoints=keeps_checkpoints)
    return DryRun(table, problems)


def _table(runs: list[PlannedRun], measured: dict[PurePosixPath, Cost], done: set[PurePosixPath]) -> Table:
    """Return a row for each cell, which is what has the same settings but for the seed."""
    cells: dict[PurePosixPath, list[PlannedRun]] = {}
    for run in runs:
        cells.setdefault(run.name.parent, []).append(run)
    in_frames = all(run.config.env.kind == "atari" for run in runs)
    table = Table()
    table.add_column("settings", overflow="fold")
    for title in ("runs", "frames each" if in_frames else "steps each", "time each", "memory", "disk"):
        table.add_column(title, justify="right")
    for cell, group in cells.items():
        over = sum(run.name in done for run in group)
        seeds = f"{len(group)}, {over} done" if 0 < over < len(group) else str(len(group))
        found = [(run, measured[run.name]) for run in group if run.name in measured]
        words = " ".join(cell.parts) or "the base"
        if not found:
            table.add_row(words, seeds, "", "done" if over == len(group) else "not possible", "", "")
            continue
        run, cost = max(found, key=lambda one: one[1].seconds)
        length = cost.steps * (run.config.env.frames_per_step if in_frames else 1)
        needed = cost.needed
        table.add_row(
            words, seeds, f"{length:,}", duration(cost.seconds), gigabytes(needed.memory), gigabytes(needed.disk)
        )
    return table


def _together(
    todo: list[PlannedRun], measured: dict[PurePosixPath, Cost], workers: int | None, *, keeps_checkpoints: bool
) -> str:
    """Say what the runs take together, or that so many at a time do not fit."""
    found = [measured[run.name] for run in todo]
    memory, lines = [cost.needed.memory for cost in found], list[str]()
    try:
        at_a_time = runs_at_a_time(todo, workers, lines.append, memory)
    except UsageError as error:
        return str(error)
    seconds = _finishing_time([cost.seconds for cost in found], at_a_time)
    disk = largest_together((cost.needed.disk for cost in found), len(found) if keeps_checkpoints else at_a_time)
    lines.append(
        f"at most {duration(seconds)} with {at_a_time} at a time, {gigabytes(largest_together(memory, at_a_time))} of "
        f"memory and {gigabytes(disk)} of disk for "
        f"{'all, which keep their checkpoints' if keeps_checkpoints else 'those under way'}"
    )
    return "; ".join(lines)


def _finishing_time(seconds: list[float], at_a_time: int) -> float:
    """Return when the last of the runs is over if each begins, in this order, as soon as a worker is free."""
    free_at = [0.0] * at_a_time
    for one in seconds:
        heapq.heapreplace(free_at, free_at[0] + one)
    return max(free_at)
