"""What is told of many runs while they are under way, wherever they run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bootdqn.common.errors import UsageError
from bootdqn.runs.directory import RunDirectory
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.training.callbacks import Progress

if TYPE_CHECKING:
    from bootdqn.training.run import RunOutcome


@dataclass(frozen=True)
class Started:
    """A run was taken up."""

    run: PlannedRun


@dataclass(frozen=True)
class Underway:
    """A run reports where it is."""

    run: PlannedRun
    progress: Progress


@dataclass(frozen=True)
class Ended:
    """A run ended: with a summary, or with the message of what went wrong."""

    run: PlannedRun
    summary: dict[str, Any] | None
    error: str | None = None
    retrying: bool = False
    """Whether it will be tried again."""

    @property
    def finished(self) -> bool:
        """Whether the run reached its end."""
        return self.summary is not None and self.summary.get("status") == "finished"


@dataclass(frozen=True)
class Notice:
    """A warning about a run, or about the sweep as a whole (None)."""

    run: PlannedRun | None
    text: str


Event = Started | Underway | Notice | Ended


@dataclass(frozen=True)
class SweepOutcome:
    """How the runs that were begun ended, and the exit code of the signal that stopped them, if one did."""

    ended: list[Ended]
    stop_exit_code: int | None = None


def end_of(planned: PlannedRun, outcome: "RunOutcome", warnings: list[str]) -> Ended:
    """Return how a run that did not raise ended; one whose end is not on disk, as its last warning says, has failed."""
    if outcome.exit_code == 1:
        return Ended(planned, None, ": ".join(["its end is not on disk", *warnings[-1:]]))
    return Ended(planned, outcome.summary)


def check_is_directory(out: Path) -> None:
    """Raise a UsageError where the directory for the runs is a file."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; choose a directory")


def split_done(runs: list[PlannedRun], out: Path) -> tuple[list[PlannedRun], list[Ended]]:
    """Return the runs still to be made, and those that are finished or cannot be made where they should.

    Of a finished run its configuration and its summary are enough.

    Raises:
        UsageError: `out` is a file.
    """
    from bootdqn.training.run import finished_summary

    check_is_directory(out)
    todo, ended = [], []
    for planned in runs:
        try:
            summary = finished_summary(RunDirectory(out / planned.name), planned.config)
        except UsageError as error:
            ended.append(Ended(planned, None, str(error)))
            continue
        if summary is None:
            todo.append(planned)
        else:
            ended.append(Ended(planned, summary))
    return todo, ended
