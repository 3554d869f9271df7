"""Progress of a run: a live line in a terminal or a notebook, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as ProgressBar
from rich.table import Column
from rich.text import Text

from bootdqn.common.text import format_duration
from bootdqn.training.callbacks import Progress, RunCallbacks

PLAIN_LINE_EVERY_SECONDS = 30.0
NOTEBOOK_UPDATE_EVERY_SECONDS = 0.5
T = TypeVar("T")


def describe(progress: Progress) -> str:
    """Return the progress of a run in a few words, the most important first: a narrow terminal cuts the rest."""
    left = [] if progress.seconds_left is None else [f"at most {format_duration(progress.seconds_left)} left"]
    return " | ".join([progress.position, *left, progress.speed, progress.note])


def can_redraw(console: Console) -> bool:
    """Return whether lines can be redrawn: not in a file, even if FORCE_COLOR is set, nor in a dumb terminal."""
    return console.file.isatty() and not console.is_dumb_terminal


@contextmanager
def progress_line(label: str, *, quiet: bool = False) -> Iterator[RunCallbacks]:
    """Show a run on standard error; `quiet` leaves only the warnings."""
    console = _stderr_console()

    def print_line(line: str) -> None:
        if line:
            console.print(line)

    if quiet:
        yield RunCallbacks(lambda _: None, lambda _: None, print_line)
    elif area := notebook_area():
        yield RunCallbacks(
            _in_notebook(area, lambda progress: f"{label}: {describe(progress)}"), print_line, print_line
        )
    elif not can_redraw(console):
        yield RunCallbacks(_plain_lines(label, console), print_line, print_line)
    else:
        name = Column(no_wrap=True, overflow="ellipsis", max_width=30)
        state = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        columns = (
            TextColumn("{task.description}", markup=False, table_column=name),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[state]}", markup=False, table_column=state),
        )
        bar = ProgressBar(*columns, console=console, transient=True, expand=True)
        task = bar.add_task(label, total=1.0, state="starting")
        terminal = _stderr_console()

        def show(progress: Progress) -> None:
            console.width = max(1, terminal.width - len("^C"))  # echoed by Ctrl-C, which would wrap a full line
            bar.update(task, completed=progress.completed, state=describe(progress))
            bar.start()  # not before the first step: until then an error may end the run

        try:
            yield RunCallbacks(show, print_line, print_line)
        finally:
            bar.stop()


@contextmanager
def status_line(label: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show progress in words on standard error: in place in a terminal or a notebook, plain lines elsewhere."""
    console = _stderr_console()
    if quiet:
        yield lambda _: None
    elif area := notebook_area():
        yield _in_notebook(area, lambda words: f"{label}: {words}")
    elif can_redraw(console):
        status = console.status(Text(label))  # a str would be read as markup

        def show(words: str) -> None:
            status.update(Text(f"{label}: {words}"))
            status.start()

        try:
            yield show
        finally:
            status.stop()
    else:
        yield _rate_limited(lambda words: console.print(f"{label}: {words}"))


def notebook_area() -> Callable[[str], None] | None:
    """Return a function that shows a text below the cell of a notebook, in place of its last; None elsewhere."""
    if not _stderr_console().is_jupyter:
        return None
    import IPython.display

    handle = IPython.display.display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


def _in_notebook(area: Callable[[str], None], describe: Callable[[T], str]) -> Callable[[T], None]:
    return _rate_limited(lambda value: area(describe(value)), NOTEBOOK_UPDATE_EVERY_SECONDS)


def _stderr_console() -> Console:
    return Console(stderr=True, soft_wrap=True, markup=False, highlight=False)


def _plain_lines(label: str, console: Console) -> Callable[[Progress], None]:
    return _rate_limited(lambda progress: console.print(f"{label}: {describe(progress)}"))


def _rate_limited(show: Callable[[T], None], seconds: float | None = None) -> Callable[[T], None]:
    """Return `show` such that it is called at most every so many seconds (None: as for plain lines), not at once."""
    last = time.monotonic()

    def call(value: T) -> None:
        nonlocal last
        if time.monotonic() - last >= (PLAIN_LINE_EVERY_SECONDS if seconds is None else seconds):
            last = time.monotonic()
            show(value)

    return call
