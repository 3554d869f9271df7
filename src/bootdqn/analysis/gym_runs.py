"""Runs of `train gym` into one table: what each algorithm came to in each environment. The paper has none of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bootdqn.analysis.runs import Run, Trouble, finite_number, read_finished, whole_number
from bootdqn.analysis.tables import Table
from bootdqn.common.variants import Variant, label, variant_order
from bootdqn.common.written import counted, rounded

RETURNS = {
    "last_evaluation": "last evaluation",
    "best_evaluation": "best evaluation",
    "recent_return": "training",
}
"""What the table tells of a run, by its column."""


@dataclass(frozen=True)
class GymRun:
    """One finished run."""

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


Cell = tuple[str, int, Variant]
"""What runs must share to be averaged: environment, steps and algorithm."""


def read_gym_runs(runs: Iterable[Run]) -> tuple[list[GymRun], list[Trouble]]:
    """Return every finished run, and the runs that do not count: a seed counts once."""
    return read_finished(runs, _gym_run, lambda one: (*_cell(one), one.seed))


def _gym_run(run: Run) -> GymRun:
    label(run.variant)  # settings that cannot be said are damaged
    options = run.config.get("env_options", [])
    return GymRun(
        name=run.name,
        environment=" ".join([str(run.config["env_id"]), *map(str, options)]),
        variant=run.variant,
        total_steps=whole_number(run.config, "total_steps"),
        seed=whole_number(run.config, "seed", least=0),
        recent_return=_number(run.summary, "recent_return"),
        last_evaluation=_number(run.summary, "last_evaluation"),
        best_evaluation=_number(run.summary, "max_evaluation"),
    )


def _number(summary: dict[str, Any], name: str) -> float | None:
    return None if summary.get(name) is None else finite_number(summary, name)


def _cell(run: GymRun) -> Cell:
    return run.environment, run.total_steps, run.variant


def table(found: Sequence[GymRun]) -> Table:
    """Return the mean over seeds of what each algorithm came to."""
    cells: dict[Cell, list[GymRun]] = {}
    for run in found:
        cells.setdefault(_cell(run), []).append(run)
    rows = []
    for cell in sorted(cells, key=lambda cell: (*cell[:2], variant_order(cell[2]))):
        (environment, total_steps, variant), runs = cell, cells[cell]
        returns = [_mean([getattr(run, name) for run in runs]) for name in RETURNS]
        rows.append((environment, f"{total_steps:,}", label(variant), str(len(runs)), *returns))
    columns = ("environment", "steps", "algorithm", "seeds", *RETURNS.values())
    note = (
        "Means over seeds. Training: of the last 100 episodes, in which the agent explores. Evaluations are by the "
        "vote of the heads; the best of many is also the luckiest. Empty where a run has none."
    )
    return Table("gym", "Returns", columns, rows, note, text_columns=("environment", "algorithm"))


def answer(found: Sequence[GymRun]) -> str:
    """Say how much there is in the table."""
    environments = counted(len({run.environment for run in found}), "environment")
    algorithms = counted(len({run.variant for run in found}), "algorithm")
    return f"{counted(len(found), 'run')} of Gymnasium: {environments}, {algorithms}; the table has their returns."


def _mean(values: Sequence[float | None]) -> str:
    """Return the mean of values, or nothing where one is missing: a mean over some seeds would not be that of all."""
    known = [value for value in values if value is not None]
    return rounded(float(np.mean(known))) if len(known) == len(values) else ""
