"""The preset `explorer` beside `paper`, by the rule in `sweeps/explorer-harm.toml`, and on MinAtar."""

import numpy as np
import pandas as pd

from bootdqn.common.text import format_difference, format_number
from bootdqn.reports.statistics import LEVEL, format_p_value, interval_of_difference, rank_test
from bootdqn.reports.tables import Table
from reproduction import studies

PRESETS = ("paper", "explorer")


def last_evaluations(study: str) -> pd.DataFrame:
    """Return `task`, `preset`, `seed` and `value`, the mean return of the last evaluation, of every finished run."""
    runs = studies.read_study(study).runs
    runs = runs[runs.counted & runs.finished]
    return runs[["task", "preset", "seed"]].assign(value=runs.last_evaluation.astype(float))


def preset_table(study: str) -> str:
    """Return the last evaluations of both presets, their difference, and the verdict of the rank test, by task."""
    rows = []
    for task, group in last_evaluations(study).groupby("task", sort=False):
        paper, explorer = (list(group[group.preset == preset].sort_values("seed").value) for preset in PRESETS)
        ends = interval_of_difference(explorer, paper)
        explorer_is_lower, p = rank_test(explorer, paper)
        verdict = "no difference found" if p >= LEVEL else "worse" if explorer_is_lower else "better"
        rows.append(
            (
                str(task),
                *(_mean_and_each(values) for values in (paper, explorer)),
                format_difference(float(np.mean(explorer) - np.mean(paper))),
                "" if ends is None else " to ".join(map(_bound, ends)),
                format_p_value(p),
                verdict,
            )
        )
    columns = ("environment", *PRESETS, "difference", "95 % interval", "rank test", "`explorer` is")
    return Table("", "", columns, rows, text_columns=(columns[0], *PRESETS, columns[-1])).to_markdown()


def _mean_and_each(values: list[float]) -> str:
    return f"**{format_number(float(np.mean(values)))}** ({', '.join(map(format_number, values))})"


def _bound(end: float) -> str:
    """Return an end of an interval to two digits: versions of SciPy differ in the fourth."""
    return format_difference(float(f"{end:.2g}"))
