"""Runs of `train gym`: what each algorithm came to in each environment. The paper has none of them."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.text import format_number
from bootdqn.config.variants import Variant, label, variant_order
from bootdqn.report.runs import (
    UNREADABLE,
    Run,
    Trouble,
    finite_number,
    not_drawn,
    read_finished,
    shortfall,
    task_of,
    whole_number,
)
from bootdqn.report.statistics import interval_of_mean
from bootdqn.report.tables import Table

RETURNS = {
    "last_evaluation": "last evaluation",
    "best_evaluation": "best evaluation",
    "recent_return": "training",
}
"""What the table tells of a run, by its column."""
FINAL = {"last_evaluation": "last evaluation", "recent_return": "return of the last episodes of training"}
"""What a run may be judged by, the first that is there."""


class Returns(NamedTuple):
    """Returns, and the steps of the run after which they were found."""

    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class GymRun:
    """One run, finished or not."""

    name: str
    environment: str
    variant: Variant
    total_steps: int
    seed: int
    recent_return: float | None
    """Mean return of the last episodes of training; None where none ended, or the run is older than this number."""
    last_evaluation: float | None
    best_evaluation: float | None
    """None where the run was never evaluated."""
    evaluations: Returns
    episodes: Returns
    """Of training. Both are empty where there are no records."""
    unreadable: str
    """What is wrong with the records; nothing where they are whole, or not there."""
    finished: bool


@dataclass(frozen=True)
class Cell:
    """All runs of one variant in one environment for one number of steps, by seed."""

    variant: Variant
    runs: tuple[GymRun, ...]

    @property
    def environment(self) -> str:
        """The environment and its options."""
        return self.runs[0].environment

    @property
    def total_steps(self) -> int:
        """Steps of each run."""
        return self.runs[0].total_steps

    def values(self, measure: str) -> list[float]:
        """Return what each run came to; only for a measure that all of them have."""
        return [float(getattr(run, measure)) for run in self.runs]

    def mean(self, measure: str) -> float:
        """Return the mean over seeds; only for a measure that all of them have."""
        return float(np.mean(self.values(measure)))


def read_gym_runs(runs: Iterable[Run]) -> tuple[list[GymRun], list[Trouble]]:
    """Return every finished run, and the runs that do not count, or only in part: a seed counts once."""
    found, troubles = read_finished(
        runs, _gym_run, lambda one: (one.environment, one.total_steps, one.variant, one.seed)
    )
    return found, troubles + [not_drawn(one.name, one.unreadable) for one in found if one.unreadable]


def read_unfinished(runs: Iterable[Run]) -> list[GymRun]:
    """Return the runs that are not finished and have records to draw."""
    found = []
    for run in (run for run in runs if run.status != "finished"):
        with contextlib.suppress(*UNREADABLE):  # it is listed already, since it is not finished
            found.append(_gym_run(run))
    return [run for run in found if run.evaluations.steps or run.episodes.steps]


def _gym_run(run: Run) -> GymRun:
    label(run.variant)  # settings that cannot be said are damaged
    evaluations, episodes, problem = _records(run)
    return GymRun(
        name=run.name,
        environment=task_of(run),
        variant=run.variant,
        total_steps=whole_number(run.config, "total_steps"),
        seed=whole_number(run.config, "seed", least=0),
        recent_return=_number(run.summary, "recent_return"),
        last_evaluation=_number(run.summary, "last_evaluation"),
        best_evaluation=_number(run.summary, "max_evaluation"),
        evaluations=evaluations,
        episodes=episodes,
        unreadable=problem,
        finished=run.status == "finished",
    )


def _number(summary: dict[str, Any], name: str) -> float | None:
    return None if summary.get(name) is None else finite_number(summary, name)


def _records(run: Run) -> tuple[Returns, Returns, str]:
    """Return the evaluations and the episodes of training; neither where the records are damaged, and how."""
    if problem := shortfall(run):
        return Returns(), Returns(), problem
    found: dict[str, list[tuple[int, float]]] = {"evaluation": [], "episode": []}
    names = {"evaluation": "mean_return", "episode": "return"}
    try:
        for record in run.folder.read_metrics():
            if (kind := record.get("kind")) in found:
                found[kind].append((whole_number(record, "step"), finite_number(record, names[kind])))
    except UNREADABLE as error:
        return Returns(), Returns(), str(error)
    evaluations, episodes = (
        Returns(tuple(step for step, _ in pairs), tuple(value for _, value in pairs)) for pairs in found.values()
    )
    return evaluations, episodes, ""


def by_task(found: Iterable[GymRun]) -> dict[tuple[str, int], list[Cell]]:
    """Return what was run in each environment, for each number of steps, in the paper's order of strategies."""
    groups: dict[tuple[str, int], dict[Variant, list[GymRun]]] = {}
    for run in found:
        groups.setdefault((run.environment, run.total_steps), {}).setdefault(run.variant, []).append(run)
    return {
        task: [
            Cell(variant, tuple(sorted(groups[task][variant], key=lambda run: run.seed)))
            for variant in sorted(groups[task], key=variant_order)
        ]
        for task in sorted(groups)
    }


def measure_of(runs: Iterable[GymRun]) -> str | None:
    """Return by what all the runs can be judged: the last evaluation, else the last episodes of training, else None."""
    runs = list(runs)
    return next((name for name in FINAL if all(getattr(run, name) is not None for run in runs)), None)


def ranked(cells: Iterable[Cell], measure: str) -> list[Cell]:
    """Return the cells by their mean, the highest first."""
    return sorted(cells, key=lambda cell: -cell.mean(measure))


def table(found: Iterable[GymRun]) -> Table:
    """Return what each algorithm came to: the mean over seeds, its interval, and each seed."""
    rows = [_row(cell) for cells in by_task(found).values() for cell in cells]
    last, best, training = RETURNS.values()
    columns = ("environment", "steps", "algorithm", "seeds", last, "95 % interval", "each seed", best, training)
    note = (
        "Means over seeds. Training: of the last 100 episodes, in which the agent explores. Evaluations are by the "
        "vote of the heads; the best of many is also the luckiest. Empty where a run has none. The interval and each "
        "seed are of the last evaluation, or of training where a run was never evaluated; the interval is a percentile "
        "bootstrap over seeds, from three on; that of three is their range."
    )
    return Table("gym", "Returns", columns, rows, note, text_columns=("environment", "algorithm", "each seed"))


def _row(cell: Cell) -> tuple[str, ...]:
    last, best, training = (_mean([getattr(run, name) for run in cell.runs]) for name in RETURNS)
    measure = measure_of(cell.runs)
    values = cell.values(measure) if measure else []
    interval = interval_of_mean(values)
    return (
        cell.environment,
        f"{cell.total_steps:,}",
        label(cell.variant),
        str(len(cell.runs)),
        last,
        f"{format_number(interval[0])} to {format_number(interval[1])}" if interval else "",
        ", ".join(map(format_number, values)),
        best,
        training,
    )


def _mean(values: Sequence[float | None]) -> str:
    """Return the mean of values, or nothing where one is missing: a mean over some seeds would not be that of all."""
    known = [value for value in values if value is not None]
    return format_number(float(np.mean(known))) if len(known) == len(values) else ""
