"""All the runs below a folder, whatever became of them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import is_present
from bootdqn.common.text import printable
from bootdqn.config.variants import Variant, variant_of
from bootdqn.runs.directory import RunDirectory, find_runs
from bootdqn.runs.status import RunState, budget_use, run_status

ReadT = TypeVar("ReadT")
Defaults = Mapping[str, Mapping[str, Any]]
"""The default settings of each kind of environment, which tell what is special about a run."""


@dataclass(frozen=True)
class Run:
    """One run folder that can be read."""

    name: str
    """Its path below the folder that was asked for, or all of it where several were."""
    folder: RunDirectory
    config: dict[str, Any]
    summary: dict[str, Any]
    """Empty where the run has not ended."""
    status: str
    """`finished`, `interrupted` or `failed`; without a summary `under way` while a process trains, else `stopped`."""
    defaults: Mapping[str, Any]
    """Of its environment."""

    @property
    def kind(self) -> str:
        """The environment's kind."""
        return str(self.config.get("environment"))

    @property
    def variant(self) -> Variant:
        """What was run."""
        return variant_of(self.config, self.defaults)


def task_of(run: Run) -> str:
    """Return the game, or the environment with its options, that an Atari or Gymnasium run is about."""
    if run.kind == "atari":
        return str(run.config["game"])
    return " ".join([str(run.config["env_id"]), *map(str, run.config.get("env_options", []))])


UNREADABLE = (DamagedFileError, ArithmeticError, LookupError, TypeError, ValueError)
"""What reading a damaged run may raise."""


def whole_number(record: Mapping[str, Any], name: str, least: int = 1) -> int:
    """Return a whole number of a record, or raise a `DamagedFileError` that says what stands there instead."""
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise DamagedFileError(f"{name} is {value!r}, not a whole number from {least} on")
    return value


def finite_number(record: Mapping[str, Any], name: str) -> float:
    """Return a number of a record, or raise a `DamagedFileError` that says what stands there instead."""
    value = record.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise DamagedFileError(f"{name} is {value!r}, not a number")
    return float(value)


@dataclass(frozen=True)
class Trouble:
    """A run that does not count, and why."""

    name: str
    problem: str


def unreadable(name: str, error: Exception) -> Trouble:
    """Return the entry of an unreadable run, with what reading it raised as the reason."""
    reason = str(error) if isinstance(error, DamagedFileError) else f"{type(error).__name__}: {error}"
    return Trouble(name, f"unreadable: {printable(reason)}")


def read_runs(root: Path | Sequence[Path], defaults: Defaults) -> tuple[list[Run], list[Trouble]]:
    """Return the runs at and below a folder, or several, and those whose files cannot be read."""
    runs, troubles = [], []
    for name, folder in _named(root if isinstance(root, Sequence) else [root]):
        status = run_status(folder)
        if status.state is RunState.DAMAGED:
            troubles.append(Trouble(name, f"unreadable: {printable(status.problem)}"))
        elif not status.config:
            troubles.append(Trouble(name, "unreadable: it has no config.json"))
        else:
            own = defaults.get(str(status.config.get("environment")), {})
            runs.append(Run(name, folder, status.config, status.summary, status.label, own))
    return runs, troubles


def _named(roots: Sequence[Path]) -> Iterator[tuple[str, RunDirectory]]:
    """Yield each run folder once, named by its path below the folder that was asked for, or by all of it of several."""
    known = set()
    for root in roots:
        for folder in find_runs(root):
            below = str(folder.path.relative_to(root)) if folder.path != root else folder.path.name
            if (place := folder.path.resolve()) not in known:
                known.add(place)
                yield printable(below if len(roots) == 1 else str(folder.path)), folder


def shortfall(run: Run) -> str:
    """Say where a run's records end, if that is before the last episode that its summary counts.

    Nothing where there are no records at all: they may have been left behind on purpose.
    """
    episodes = run.summary.get("episodes")
    if not isinstance(episodes, int) or not is_present(run.folder.metrics):
        return ""
    try:
        last = run.folder.last_metrics("episode")
        reached = whole_number(last, "episode") if last else 0
    except UNREADABLE as error:
        return str(error)
    return f"its records end at episode {reached:,} of {episodes:,}" if reached < episodes else ""


def so_far(run: Run) -> str:
    """Say in brackets how much of its budget a run has used; nothing where its files do not tell, or it is none."""
    try:
        use = budget_use(run.folder, run.config, run.summary)
    except DamagedFileError:
        return ""
    return f" ({use} so far)" if use.used else ""


def not_drawn(name: str, problem: str) -> Trouble:
    """Return the trouble of a run whose result counts and whose curve is missing."""
    return Trouble(name, f"unreadable: {problem}; what summary.json says is counted, and no curve of it is drawn")


def read_finished(
    runs: Iterable[Run], read: Callable[[Run], ReadT], identity: Callable[[ReadT], Any]
) -> tuple[list[ReadT], list[Trouble]]:
    """Return what `read` makes of every finished run, and the runs that do not count.

    Of those with the same `identity`, which are copies of one seed, the first counts.
    """
    found: dict[Any, tuple[ReadT, str]] = {}
    troubles = []
    for run in runs:
        if run.status != "finished":
            troubles.append(Trouble(run.name, f"{run.summary.get('error', run.status)}{so_far(run)}"))
            continue
        try:
            one = read(run)
        except UNREADABLE as error:
            troubles.append(unreadable(run.name, error))
            continue
        _, first = found.setdefault(identity(one), (one, run.name))
        if first != run.name:
            troubles.append(Trouble(run.name, f"the same algorithm and seed as {first}, which is counted"))
    return [one for one, _ in found.values()], troubles
