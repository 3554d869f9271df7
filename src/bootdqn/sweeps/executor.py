"""Execute the runs of a sweep on a backend: schedule, retry, stop, and report events.

The driver of a sweep on Ray uses this module, too, so it imports nothing heavy.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from bootdqn.common.errors import UsageError
from bootdqn.common.text import format_count
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.status import RunState, run_status
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.callbacks import Progress


@dataclass(frozen=True)
class Started:
    """A worker started to train a run."""

    run: PlannedRun


@dataclass(frozen=True)
class Progressed:
    """A run reported its progress."""

    run: PlannedRun
    progress: Progress


@dataclass(frozen=True)
class Message:
    """A line for the user about a run, or about the sweep as a whole (None)."""

    run: PlannedRun | None
    text: str


class Fault(Enum):
    """Where the cause of a failure lies, which decides whether the run is retried."""

    RUN = auto()
    """In the run or its worker process: it is retried up to `retries` times."""
    USAGE = auto()
    """In the configuration: it is not retried, since it would fail the same way again."""
    EXTERNAL = auto()
    """Outside, as where a node is lost: it is retried however often."""


@dataclass(frozen=True)
class Ended:
    """An attempt at a run ended: with a summary, or with the message of an error."""

    run: PlannedRun
    summary: dict[str, Any] | None
    error: str | None = None
    fault: Fault = Fault.RUN
    """Of an error."""
    retrying: bool = False

    @property
    def finished(self) -> bool:
        """Whether the run reached its end."""
        return self.summary is not None and self.summary.get("status") == "finished"


Event = Started | Progressed | Message | Ended


@dataclass(frozen=True)
class SweepExit:
    """The last end of every run that was started, and the exit code of the signal that stopped the sweep, if any."""

    ended: list[Ended]
    stop_exit_code: int | None = None


class Backend(Protocol):
    """Trains runs in worker processes, on this machine or elsewhere."""

    slots: int
    """How many runs it accepts at a time."""

    def start(self, planned: PlannedRun) -> None:
        """Start a run, or queue it; an `Ended` follows in any case."""

    def events(self) -> Iterable[Event]:
        """Wait a moment for events, and return them."""

    def stop(self) -> None:
        """Ask the runs that were started to save a checkpoint and stop, and drop those queued."""

    def close(self) -> None:
        """End the worker processes."""


def execute(
    runs: Iterable[PlannedRun],
    backend: Backend,
    on_event: Callable[[Event], None],
    is_stop_requested: Callable[[], bool],
    *,
    retries: int,
) -> list[Ended]:
    """Train every run on the backend, which is closed at the end, and return how each ended.

    A run that fails does not stop the others; it is retried after them, from its last checkpoint. Once a stop is
    requested no run is started or retried; those that were not started are left out of the result.
    """
    waiting, ended, failures = deque(runs), list[Ended](), Counter[PurePosixPath]()
    active, started, stopping = 0, set[PurePosixPath](), False
    try:
        while True:
            if is_stop_requested() and not stopping:
                stopping = True
                waiting.clear()
                backend.stop()
            while waiting and active < backend.slots:
                backend.start(waiting.popleft())
                active += 1
            if not active:
                return ended
            for event in backend.events():
                if isinstance(event, Started):
                    started.add(event.run.name)
                elif isinstance(event, Ended):
                    active -= 1
                    retrying = _may_retry(event, failures, retries) and not is_stop_requested()
                    event = replace(event, retrying=retrying)  # noqa: PLW2901
                    if retrying:
                        waiting.append(event.run)
                    if event.fault is Fault.EXTERNAL and event.run.name not in started:
                        continue  # its start was never reported
                    started.discard(event.run.name)
                    if not retrying:
                        ended.append(event)
                on_event(event)
    finally:
        backend.close()


def _may_retry(end: Ended, failures: Counter[PurePosixPath], retries: int) -> bool:
    """Count a failure of the run itself, and return whether the run may be retried."""
    if end.error is None or end.fault is Fault.USAGE:
        return False
    if end.fault is Fault.EXTERNAL:
        return True
    failures[end.run.name] += 1
    return failures[end.run.name] <= retries


def split_remaining(runs: Iterable[PlannedRun], out: Path) -> tuple[list[PlannedRun], list[Ended]]:
    """Return the runs still to be trained, and those that are finished or whose run directory holds something else.

    Of a finished run its configuration and its summary are enough.

    Raises:
        UsageError: `out` is a file.
    """
    check_is_directory(out)
    remaining, ended = [], []
    for planned in runs:
        status = run_status(RunDirectory(out / planned.name), planned.config)
        if status.problem:
            advice = "choose another --out" + (", or remove this run directory" if status.is_same_run else "")
            ended.append(Ended(planned, None, f"{status.problem}; {advice}", Fault.USAGE))
        elif status.state is RunState.FINISHED and not status.new_budget:
            ended.append(Ended(planned, status.summary))
        else:
            remaining.append(planned)
    return remaining, ended


def describe_failures(ended: Iterable[Ended], out: Path) -> list[str]:
    """Return why runs failed: a line for each reason, with one of its runs and the number of the others."""
    by_reason: dict[str, list[str]] = {}
    for end in ended:
        if end.error is not None:
            path = str(out / end.run.name)
            line = end.error if path in end.error else f"{path}: {end.error}"
            by_reason.setdefault(end.error.replace(path, ""), []).append(line)
    return [
        f"{first} ({format_count(len(others), 'other run')} likewise)" if others else first
        for first, *others in by_reason.values()
    ]


def check_is_directory(out: Path) -> None:
    """Raise a UsageError if the output directory is a file."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; choose a directory")
