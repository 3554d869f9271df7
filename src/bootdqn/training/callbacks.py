"""Callbacks of a run: progress, information and warnings. Nothing heavy is imported for them."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """The progress of a run."""

    completed: float
    """The fraction of the longest possible run, from 0 to 1."""
    position: str
    speed: str
    seconds_left: float | None
    """At most, at the recent speed."""
    note: str


class RunCallbacks(NamedTuple):
    """Functions that a run calls to report to the user."""

    show: Callable[[Progress], None] = lambda _: None
    """Called with the progress, a few times a second."""
    info: Callable[[str], None] = lambda _: None
    """Called before the first step with a line about the run: its environment, memory, and where it resumes."""
    warn: Callable[[str], None] = lambda _: None
    """Called with a line about a problem that does not end the run."""


NO_CALLBACKS = RunCallbacks()
