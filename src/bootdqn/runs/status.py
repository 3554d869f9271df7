"""The status of a run directory: one function decides whether a run can be started, resumed, or is finished."""

from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from bootdqn.common.errors import DamagedFileError, UsageError
from bootdqn.common.files import is_present
from bootdqn.config.settings import budget_change, differences, to_flat
from bootdqn.config.train import TrainConfig
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import is_held
from bootdqn.runs.summary import budget_use

_RESTART = "--restart starts the run again"
_CHOOSE_ANOTHER = "choose another run directory"
_CHOOSE_OR_RESTART = f"{_CHOOSE_ANOTHER}, or start the run again with --restart"


class RunState(Enum):
    """States of a run directory, for the run that is to be trained in it."""

    EMPTY = "nothing, or a run that has not taken a step"
    INCOMPLETE = "this run, under way or stopped, or finished with a smaller budget"
    FINISHED = "this run, finished"
    NO_CHECKPOINT = "this run, without a checkpoint to resume from"
    SMALLER_BUDGET = "this run, beyond the budget that it is to have"
    OTHER_CONFIG = "a run with another configuration"
    DAMAGED = "a run whose files cannot be read"
    NOT_A_RUN = "something that is not a run"


@dataclass(frozen=True)
class RunStatus:
    """The status of a run directory, for the run that is to be trained in it."""

    directory: RunDirectory
    state: RunState
    config: dict[str, Any] = field(default_factory=dict)
    """The configuration in the directory, flat."""
    summary: dict[str, Any] = field(default_factory=dict)
    """Empty where the run has not ended."""
    new_budget: bool = False
    """Whether the run is to have another budget than in the directory."""
    problem: str = ""
    """Why the run cannot be trained."""
    advice: str = ""
    """What to do about the problem with `train` or `resume`; a sweep has no --restart."""

    def check(self, *, restart: bool = False) -> None:
        """Raise an error unless the run can be trained, or was, in this directory.

        Args:
            restart: Whether the run is to start again, for which its configuration is enough.

        Raises:
            DamagedFileError: A file cannot be read.
            UsageError: The directory holds something else, or the run cannot be resumed.
        """
        if self.problem and not (restart and self.is_same_run):
            message = f"{self.problem}; {self.advice}" if self.advice else self.problem
            raise (DamagedFileError if self.state is RunState.DAMAGED else UsageError)(message)

    @property
    def is_same_run(self) -> bool:
        """Whether the directory holds the run that is to be trained in it, whatever the state of its other files."""
        return bool(self.config) and self.state is not RunState.OTHER_CONFIG

    @property
    def label(self) -> str:
        """The status in the summary; without one `under way` while a process trains the run, else `stopped`."""
        if "status" in self.summary:
            return str(self.summary["status"])
        return "under way" if is_held(self.directory.lock) else "stopped"


def run_status(directory: RunDirectory, config: TrainConfig[Any] | None = None) -> RunStatus:
    """Return the status of a run directory, for a run with `config` (None: the run in it, finished or incomplete)."""
    if not is_present(directory.config):
        if _is_free(directory.path):
            return RunStatus(directory, RunState.EMPTY)
        problem = f"{directory.path} is not a run directory: it has no config.json"
        return RunStatus(directory, RunState.NOT_A_RUN, problem=problem, advice=_CHOOSE_ANOTHER)
    try:
        stored = directory.read_config()
    except DamagedFileError as error:
        return RunStatus(directory, RunState.DAMAGED, problem=str(error))
    wanted = None if config is None else to_flat(config)
    change = None if wanted is None else budget_change(stored, wanted)
    status = RunStatus(directory, RunState.INCOMPLETE, stored, new_budget=change is not None)
    if wanted is not None and change is None and (different := differences(stored, wanted)):
        listed = ", ".join(f"{key:.50}: {old!r:.100} there, {new!r} here" for key, (old, new) in different.items())
        problem = f"{directory.path} holds another configuration ({listed})"
        return replace(status, state=RunState.OTHER_CONFIG, problem=problem, advice=_CHOOSE_ANOTHER)
    try:
        # before the summary: a run that finishes writes its summary before it removes its checkpoints
        checkpoint = None if config is None else directory.last_checkpoint()
        status = replace(status, summary=directory.read_summary() or {})
        if config is not None:
            return _trainable(status, checkpoint, change)
    except DamagedFileError as error:
        advice = "" if config is None else _RESTART
        return replace(status, state=RunState.DAMAGED, problem=str(error), advice=advice)
    finished = status.summary.get("status") == "finished"
    return replace(status, state=RunState.FINISHED) if finished else status


def _trainable(status: RunStatus, checkpoint: int | None, change: tuple[str, int, int] | None) -> RunStatus:
    """Return whether the run in a directory is finished or can be resumed, with its budget or another one."""
    directory, summary = status.directory, status.summary
    finished = summary.get("status") == "finished"
    if finished and (missing := ", ".join(sorted({"steps", "episodes", "seconds"} - summary.keys()))):
        raise DamagedFileError(f"{directory.summary} lacks {missing}")
    if change is None and finished:
        return replace(status, state=RunState.FINISHED)
    if change is not None:
        setting, before, after = change
        if after < before and (problem := _budget_problem(status, checkpoint or 0, after)):
            return replace(status, state=RunState.SMALLER_BUDGET, problem=problem, advice=_CHOOSE_OR_RESTART)
        if finished and _ended_early(status):
            return replace(status, state=RunState.FINISHED)
        if finished and checkpoint is None:
            problem = (
                f"{directory.path} is finished ({setting} {before:,}) and has no checkpoint to resume from to train to "
                f"{after:,}: only --keep-checkpoint keeps it"
            )
            return replace(status, state=RunState.NO_CHECKPOINT, problem=problem, advice=_CHOOSE_OR_RESTART)
    if checkpoint is not None:
        return status
    if is_present(directory.metrics) and directory.metrics.stat().st_size:
        problem = f"{directory.path} has no checkpoint to resume from"
        return replace(status, state=RunState.NO_CHECKPOINT, problem=problem, advice=_RESTART)
    return replace(status, state=RunState.EMPTY)


def _budget_problem(status: RunStatus, checkpoint: int, budget: int) -> str:
    """Return why a run cannot have a smaller budget, or nothing where it has not used more yet."""
    path = status.directory.path
    try:
        use = budget_use(status.directory, status.config, status.summary, checkpoint)
    except DamagedFileError as error:
        return f"{path} cannot have a smaller budget: {error}"
    return "" if use.used <= budget else f"{path} has used {use}, more than a budget of {budget:,}"


def _ended_early(status: RunStatus) -> bool:
    """Return whether a finished run ended before its budget was used: solved DeepSea does."""
    config, summary = status.config, status.summary
    solved = summary.get("solved_at") is not None and summary.get("solved_at_strict", summary["solved_at"]) is not None
    return bool(config.get("stop_when_solved") and solved and summary["episodes"] < config["max_episodes"])


def _is_free(path: Path) -> bool:
    """Return whether a directory is missing, or holds only files of a crash before the first file was complete."""
    if not path.exists():
        return True
    return path.is_dir() and all(
        entry.name == "lock.json" or (entry.name.startswith(".") and entry.suffix == ".part")
        for entry in path.iterdir()
    )
