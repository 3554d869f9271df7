"""How agents acted in the course of training, by the `update` records of their runs; DeepSea at its largest size."""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bootdqn.config.variants import Variant
from bootdqn.report.runs import UNREADABLE, Run, shortfall, task_of, whole_number
from bootdqn.report.statistics import Values

MEASURES = {
    "overruled": "steps with the active head overruled",
    "evoi": "EVOI of the actions taken",
    "disagreement": "disagreement of the heads",
}
"""What the records tell of it, and how people call that."""
FEWEST_RECORDS = 2
"""Of a run, for a line."""


@dataclass(frozen=True)
class Course:
    """One run's acting, a window of training after another."""

    kind: str
    """The environment's kind."""
    task: str
    """What was to be learnt."""
    size: int
    """Of the grid; 0 elsewhere."""
    variant: Variant
    steps: Values
    """(T,): where the windows end."""
    means: dict[str, Values]
    """(T,): by measure, the mean over the window; NaN where it was too large to tell."""
    finished: bool = True

    @property
    def has_line(self) -> bool:
        """Whether its records are enough for a line."""
        return len(self.steps) >= FEWEST_RECORDS


def courses_by_task(runs: Iterable[Run]) -> dict[str, list[Course]]:
    """Return the courses of runs, finished or not, by what was to be learnt, where at least one of them has a line.

    Records that are damaged, or were made before there was any of this, have no line.
    """
    courses = list(_courses(runs))
    largest = max((course.size for course in courses if course.has_line), default=0)
    found: dict[str, list[Course]] = {}
    for course in courses:
        if course.size in (0, largest):
            found.setdefault(course.task, []).append(course)
    return {task: group for task, group in found.items() if any(course.has_line for course in group)}


def _courses(runs: Iterable[Run]) -> Iterator[Course]:
    for run in runs:
        with contextlib.suppress(*UNREADABLE):  # a run whose settings cannot be read is listed elsewhere
            size = whole_number(run.config, "size") if run.kind == "deep-sea" else 0
            records = _records(run)
            yield Course(
                kind=run.kind,
                task=f"DeepSea, N = {size}" if size else task_of(run),
                size=size,
                variant=run.variant,
                steps=np.array([step for step, _ in records]),
                means={name: np.array([means[name] for _, means in records]) for name in MEASURES},
                finished=run.status == "finished",
            )


def _records(run: Run) -> list[tuple[float, dict[str, float]]]:
    """Return step and means of each record of how the agent acted; none where they cannot be trusted."""
    if shortfall(run):
        return []
    found = []
    try:
        for record in run.folder.read_metrics("update"):
            if all(name in record for name in MEASURES):
                means = {name: np.nan if record[name] is None else float(record[name]) for name in MEASURES}
                if not all(map(math.isnan, means.values())):  # or no step was taken since the record before
                    found.append((float(whole_number(record, "step")), means))
    except UNREADABLE:
        return []
    return found
