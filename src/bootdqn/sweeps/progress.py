"""Show the progress of a sweep in a terminal: a count, a line for each active run, a line for each result."""

import time
from collections.abc import Iterator
from pathlib import PurePosixPath

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bootdqn.common.text import format_count, format_duration
from bootdqn.config.settings import default_settings, to_flat
from bootdqn.config.variants import is_dqn, label, unnamed_settings, variant_of
from bootdqn.runs.summary import describe_length, describe_result
from bootdqn.sweeps.executor import Ended, Event, Message, Started
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.callbacks import Progress
from bootdqn.training.display import (
    NOTEBOOK_UPDATE_EVERY_SECONDS,
    can_redraw,
    describe,
    notebook_area,
)

PLAIN_LINE_SECONDS = 60.0
"""Time between two lines where lines cannot be redrawn, as in a file."""
ECHO_COLUMNS = 6
"""Width of a few ^C."""


class SweepDisplay:
    """Shows the events of a sweep, live while it is used as a context."""

    def __init__(self, runs: list[PlannedRun], ended: list[Ended], console: Console) -> None:
        self._console = console
        self._work = {planned.name: planned.config.env.max_training_steps for planned in runs}
        self._total, self._done = len(runs), sum(end.finished for end in ended)
        self._failed = sum(not end.finished for end in ended)
        self._todo = {planned.name for planned in runs} - {end.run.name for end in ended}
        self._left = set(self._todo)
        self._active: dict[PlannedRun, Progress | None] = {}
        self._start = self._last_line = time.monotonic()
        self._done_before: dict[PurePosixPath, float] = {}
        """Completed part of each run when this sweep first heard of it."""
        self._done_now: dict[PurePosixPath, float] = {}
        """Completed part of each run as it last reported."""
        self._area = None if console.quiet else notebook_area()
        self._live = Live(get_renderable=self._narrow, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> "SweepDisplay":
        if can_redraw(self._console):
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, Started):
            self._active[event.run] = None
        elif isinstance(event, Message):
            self._console.print(event.text if event.run is None else f"{event.run.name}: {event.text}")
        elif isinstance(event, Ended):
            self._active.pop(event.run, None)
            if not event.retrying:
                self._left.discard(event.run.name)
                self._done += event.finished
                self._failed += event.error is not None
            self._console.print(f"{run_label(event.run)}: {describe_end(event)}")
        else:
            self._active[event.run] = event.progress
            self._done_before.setdefault(event.run.name, event.progress.completed)
            self._done_now[event.run.name] = event.progress.completed
        if self._area is not None:
            if time.monotonic() - self._last_line >= NOTEBOOK_UPDATE_EVERY_SECONDS or isinstance(event, Ended):
                self._last_line = time.monotonic()
                self._area("\n".join([self._heading(), *(f"{name}  {state}" for name, state in self._lines())]))
        elif not can_redraw(self._console) and time.monotonic() - self._last_line >= PLAIN_LINE_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(self._heading())

    def render(self) -> Group:
        """Return a table of the active runs below a line about the whole sweep."""
        table, lines = Table.grid(padding=(0, 2), expand=True), list(self._lines())
        longest = max((len(name) for name, _ in lines), default=0)
        table.add_column(no_wrap=True, overflow="ellipsis", width=min(longest, self._console.width // 2))
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for name, state in lines:
            table.add_row(Text(name), Text(state))
        return Group(Text(self._heading(), style="bold"), table)

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the state of each active run."""
        for planned, progress in self._active.items():
            state = "starting" if progress is None else f"{100 * progress.completed:3.0f} %  {describe(progress)}"
            yield run_label(planned), state

    def _narrow(self) -> Constrain:
        """Leave room for the ^C that a terminal adds: a line that it wraps would not be erased."""
        return Constrain(self.render(), self._console.width - ECHO_COLUMNS)

    def _heading(self) -> str:
        waiting = len(self._left) - len(self._active)
        parts = [
            f"{self._done} of {format_count(self._total, 'run')} done",
            f"{len(self._active)} running",
            f"{waiting} waiting",
        ]
        parts += [f"{self._failed} failed"] if self._failed else []
        left = self._seconds_left()
        return ", ".join(parts) + ("" if left is None else f", at most {format_duration(left)} left")

    def _seconds_left(self) -> float | None:
        done = {name: self._done_now.get(name, 0.0) if name in self._left else 1.0 for name in self._todo}
        left = sum(self._work[name] * (1 - done[name]) for name in self._todo)
        worked = sum(self._work[name] * (done[name] - self._done_before.get(name, 0.0)) for name in self._todo)
        return (time.monotonic() - self._start) * left / worked if worked > 0 else None


def run_label(planned: PlannedRun) -> str:
    """Return the label of a run: its algorithm, its environment and its seed."""
    kind, config = planned.config.env.kind, planned.config
    variant = variant_of(to_flat(config), default_settings()[kind])
    variant = variant.without(*unnamed_settings(variant))
    if kind == "deep-sea":
        return f"{label(variant)}, N = {config.env.label}, seed {config.run.seed}"
    heads_apart = variant if is_dqn(variant) else variant.without("num_heads")
    name = label(heads_apart)
    return f"{name}, {config.env.label}, K = {config.network.num_heads}, seed {config.run.seed}"


def describe_end(end: Ended) -> str:
    """Describe how a run ended."""
    if end.summary is None:
        return f"failed{', will be retried' if end.retrying else ''}: {end.error}"
    if not end.finished:
        return f"stopped after {describe_length(end.summary)}; the same command resumes it"
    return describe_result(end.summary)
