"""The live line of a run in a terminal; a line now and then where there is none."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as ProgressBar

from bootdqn.training.run import Progress

PLAIN_LINE_EVERY_SECONDS = 30.0


def describe(progress: Progress) -> str:
    """Return the state of a run in a few words."""
    left = "?" if progress.seconds_left is None else duration(progress.seconds_left)
    return f"{progress.position} | {progress.speed} | {progress.note} | about {left} left at most"


def summary_line(summary: dict[str, Any]) -> str:
    """Say in a line how a run ended."""
    if "solved_at_strict" in summary:
        solved = summary["solved_at_strict"]
        result = f"solved at episode {solved:,}" if solved else f"not solved in {summary['episodes']:,} episodes"
    else:
        best = summary.get("max_evaluation")
        result = "not evaluated" if best is None else f"best evaluation {best:,.1f}"
    return f"{summary['status']}, {result} ({summary['steps']:,} steps, {duration(summary['seconds'])})"


def duration(seconds: float) -> str:
    """Return a time span as people say it: 45s, 12m 05s, 3h 20m, 2d 4h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


@contextmanager
def live_line(label: str, *, quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """Show a run on standard error; yields the function to call with its progress."""
    console = Console(stderr=True)
    if quiet:
        yield lambda _: None
    elif not console.is_terminal:
        yield _plain_lines(label, console)
    else:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[state]}"))
        with ProgressBar(*columns, console=console, transient=True) as bar:
            task = bar.add_task(label, total=1.0, state="starting")
            yield lambda progress: bar.update(task, completed=progress.completed, state=describe(progress))


def _plain_lines(label: str, console: Console) -> Callable[[Progress], None]:
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_LINE_EVERY_SECONDS:
            last = time.monotonic()
            console.print(f"{label}: {describe(progress)}", soft_wrap=True, markup=False, highlight=False)

    return show
