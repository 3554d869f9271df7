"""How agents acted in the course of training, by the `update` records of their runs; DeepSea at its largest size."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bootdqn.analysis.runs import UNREADABLE, Run, shortfall, task_of, whole_number
from bootdqn.analysis.statistics import Values
from bootdqn.common.variants import Variant

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


def courses_by_task(runs: Iterable[Run]) -> dict[str, list[Course]]:
    """Return the courses of all runs that recorded them, by what was to be learnt: finished ones, and Atari's anyway.

    Records that are damaged, or were made before there was any of this, have no course.
    """
    courses = list(_courses(runs))
    largest = max((course.size for course in courses), default=0)
    found: dict[str, list[Course]] = {}
    for course in courses:
        if course.size in (0, largest):
            found.setdefault(course.task, []).append(course)
    return found


def _courses(runs: Iterable[Run]) -> Iterator[Course]:
    for run in runs:
        if (run.status != "finished" and run.kind != "atari") or shortfall(run):  # as runs count for other figures
            continue
        try:
            course = _course(run)
        except UNREADABLE:
            continue
        if len(course.steps) >= FEWEST_RECORDS:
            yield course


def _course(run: Run) -> Course:
    updates = (record for record in run.folder.read_metrics("update") if all(name in record for name in MEASURES))
    records = [record for record in updates if any(record[name] is not None for name in MEASURES)]  # or no step between
    size = whole_number(run.config, "size") if run.kind == "deep-sea" else 0
    return Course(
        kind=run.kind,
        task=f"DeepSea, N = {size}" if size else task_of(run),
        size=size,
        variant=run.variant,
        steps=np.array([whole_number(record, "step") for record in records], float),
        means={name: np.array([record[name] for record in records], float) for name in MEASURES},
    )
