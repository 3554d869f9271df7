"""Many runs in a terminal: a bar for all of them, a line for each one under way, a line for each result."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from bootdqn.common.algorithms import algorithm
from bootdqn.experiments.plan import PlannedRun
from bootdqn.experiments.pool import Ended, Event, PoolOutcome, Started, Underway, run_all
from bootdqn.training.display import describe


def run_with_display(runs: list[PlannedRun], out: Path, workers: int, console: Console) -> PoolOutcome:
    """Train `runs` as `run_all` does, showing how they are doing; without a terminal, only the results are shown."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(*columns, console=console, transient=console.is_terminal, disable=not console.is_terminal) as bar:
        return run_all(runs, out, workers, _show_on(bar, len(runs), console))


def _show_on(bar: Progress, total: int, console: Console) -> Callable[[Event], None]:
    """Return what draws the events of a pool: a bar for all runs, and a line for each one under way."""
    overall = bar.add_task("runs", total=total, state="")
    lines: dict[PlannedRun, TaskID] = {}

    def show(event: Event) -> None:
        label = label_of(event.run)
        cap = event.run.config.env.max_episodes
        if isinstance(event, Started):
            lines[event.run] = bar.add_task(label, total=cap, state="starting")
        elif isinstance(event, Underway):
            bar.update(lines[event.run], completed=event.progress.episodes, state=describe(event.progress))
        else:
            bar.remove_task(lines.pop(event.run))
            bar.advance(overall)
            console.print(f"{label}: {result_of(event)}", markup=False, highlight=False)

    return show


def label_of(planned: PlannedRun) -> str:
    """Name a run for people."""
    config = planned.config
    return f"{algorithm(config.actor.strategy).label}, N = {config.env.size}, seed {config.run.seed}"


def result_of(end: Ended) -> str:
    """Say how a run ended."""
    if end.summary is None:
        return f"failed: {end.error}"
    if end.summary["status"] != "finished":
        return f"stopped at episode {end.summary['episodes']:,}"
    solved = end.summary["solved_at_strict"]
    return f"solved at episode {solved:,}" if solved else f"not solved in {end.summary['episodes']:,} episodes"
