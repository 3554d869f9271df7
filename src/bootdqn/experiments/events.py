"""What is told of many runs while they are under way, wherever they run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bootdqn.common.errors import UsageError
from bootdqn.common.run_folder import RunFolder
from bootdqn.experiments.plan import PlannedRun
from bootdqn.training.run import Outcome as RunOutcome
from bootdqn.training.run import finished_summary
from bootdqn.training.session import Progress


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
    """A run has something to say that must be read."""

    run: PlannedRun
    text: str


Event = Started | Underway | Notice | Ended


@dataclass(frozen=True)
class Outcome:
    """How the runs that were begun ended, and the exit code of the signal that stopped them, if one did."""

    ended: list[Ended]
    stop_exit_code: int | None = None


def end_of(planned: PlannedRun, outcome: RunOutcome, warnings: list[str]) -> Ended:
    """Return how a run that did not raise ended; one whose end is not on disk, as its last warning says, has failed."""
    if outcome.exit_code == 1:
        return Ended(planned, None, ": ".join(["its end is not on disk", *warnings[-1:]]))
    return Ended(planned, outcome.summary)


def already_done(planned: PlannedRun, out: Path) -> dict[str, Any] | None:
    """Return the summary of a run that is finished, be it that only its configuration and summary were kept.

    Raises:
        UsageError: The folder holds another run.
    """
    folder = RunFolder(out / planned.name)
    if folder.summary.exists() and not folder.config.exists():
        summary = folder.read_summary()
        return summary if summary is not None and summary.get("status") == "finished" else None
    return finished_summary(folder, planned.config)


def split_done(runs: list[PlannedRun], out: Path) -> tuple[list[PlannedRun], list[Ended]]:
    """Return the runs still to be made, and those that are finished or cannot be made where they should."""
    todo, ended = [], []
    for planned in runs:
        try:
            summary = already_done(planned, out)
        except UsageError as error:
            ended.append(Ended(planned, None, str(error)))
            continue
        if summary is None:
            todo.append(planned)
        else:
            ended.append(Ended(planned, summary))
    return todo, ended
