"""Many runs in a terminal: how many are done, a line for each one under way, a line for each result."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bootdqn.common.text import format_count
from bootdqn.config.train import default_settings, to_flat
from bootdqn.config.variants import algorithm, is_dqn, label, nameless, on_atari, variant_of
from bootdqn.sweeps.events import Ended, Event, Notice, Started
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.training.callbacks import Progress
from bootdqn.training.display import can_redraw, describe, duration, length_of_summary, result_of_summary

PLAIN_LINE_EVERY_SECONDS = 60.0


class Display:
    """Draws the events of many runs."""

    def __init__(self, runs: list[PlannedRun], done: list[Ended], console: Console) -> None:
        self._console = console
        self._work = {planned.name: planned.config.env.longest_steps for planned in runs}
        self._total, self._done = len(runs), sum(end.finished for end in done)
        self._failed = sum(not end.finished for end in done)
        self._todo = {planned.name for planned in runs} - {end.run.name for end in done}
        self._left = set(self._todo)
        self._under_way: dict[PlannedRun, Progress | None] = {}
        self._start = self._last_line = time.monotonic()
        self._done_before: dict[PurePosixPath, float] = {}
        """How much of each run had been done when this sweep took it up."""
        self._done_now: dict[PurePosixPath, float] = {}
        """How much of each run is done as far as it has said; one that is tried again says so anew."""

    def show(self, event: Event) -> None:
        """Take in what happened."""
        if isinstance(event, Started):
            self._under_way[event.run] = None
        elif isinstance(event, Notice):
            self._console.print(event.text if event.run is None else f"{event.run.name}: {event.text}")
        elif isinstance(event, Ended):
            self._under_way.pop(event.run, None)
            if not event.retrying:
                self._left.discard(event.run.name)
                self._done += event.finished
                self._failed += event.error is not None
            self._console.print(f"{label_of(event.run)}: {result_of(event)}")
        else:
            self._under_way[event.run] = event.progress
            self._done_before.setdefault(event.run.name, event.progress.completed)
            self._done_now[event.run.name] = event.progress.completed
        if not can_redraw(self._console) and time.monotonic() - self._last_line >= PLAIN_LINE_EVERY_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(self._heading())

    def picture(self) -> Group:
        """Return the table of the runs under way, below a line about all of them."""
        table = Table.grid(padding=(0, 2))
        for planned, progress in self._under_way.items():
            state = "starting" if progress is None else f"{100 * progress.completed:3.0f} %  {describe(progress)}"
            table.add_row(Text(label_of(planned)), Text(state))
        return Group(Text(self._heading(), style="bold"), table)

    def _heading(self) -> str:
        waiting = len(self._left) - len(self._under_way)
        parts = [
            f"{self._done} of {format_count(self._total, 'run')} done",
            f"{len(self._under_way)} running",
            f"{waiting} waiting",
        ]
        parts += [f"{self._failed} failed"] if self._failed else []
        left = self._seconds_left()
        return ", ".join(parts) + ("" if left is None else f", about {duration(left)} left at most")

    def _seconds_left(self) -> float | None:
        done = {name: self._done_now.get(name, 0.0) if name in self._left else 1.0 for name in self._todo}
        left = sum(self._work[name] * (1 - done[name]) for name in self._todo)
        worked = sum(self._work[name] * (done[name] - self._done_before.get(name, 0.0)) for name in self._todo)
        return (time.monotonic() - self._start) * left / worked if worked > 0 else None


@contextmanager
def shown(display: Display, console: Console) -> Iterator[None]:
    """Keep the picture on the screen while runs are under way, where there is one."""
    if not can_redraw(console):
        yield
        return
    with Live(get_renderable=display.picture, console=console, refresh_per_second=4, transient=True):
        yield


def label_of(planned: PlannedRun) -> str:
    """Name a run for people."""
    kind, config = planned.config.env.kind, planned.config
    variant = variant_of(to_flat(config), default_settings()[kind])
    variant = variant.without(*nameless(variant))
    if kind == "deep-sea":
        return f"{label(variant)}, N = {config.env.label}, seed {config.run.seed}"
    heads_apart = variant if is_dqn(variant) else variant.without("num_heads")
    name = label(heads_apart, on_atari if kind == "atari" else algorithm)
    return f"{name}, {config.env.label}, K = {config.network.num_heads}, seed {config.run.seed}"


def result_of(end: Ended) -> str:
    """Say how a run ended."""
    if end.summary is None:
        return f"failed{', will be tried again' if end.retrying else ''}: {end.error}"
    if not end.finished:
        return f"stopped after {length_of_summary(end.summary)}; the same command goes on"
    return result_of_summary(end.summary)
