"""How agents acted in the course of training, by their metrics of kind `update`; DeepSea at its largest size."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from bootdqn.common.text import figure_label
from bootdqn.reports.report_data import ReportData
from bootdqn.reports.statistics import smoothed
from bootdqn.reports.style import MAX_MARKED_POINTS, RC_PARAMS, legend_below, mark_end, variant_styles

TITLES = {
    "overruled": "steps with the active head overruled",
    "evoi": "EVOI of the actions taken",
    "disagreement": "disagreement of the heads",
}
"""The titles of the panels by measure."""
ACTING_CAPTION = (
    "Left: how often the action was not the one that the active head values most, because the strategy, or chance, had "
    "its way. Middle: the expected value of information (mean over heads) of the actions taken. Right: the standard "
    "deviation over heads of the Q-values, averaged over actions; both on a log scale. A line for each run whose "
    "metrics are here: averages over the steps since the previous entry, and of these a moving average "
    "over ten, or over a tenth of them if they are fewer than a hundred."
)
MIN_POINTS = 2
"""Of a run, for a line."""
LOG_SCALE_RATIO = 10
"""How many times as long as the shortest the longest run must be for steps on a log scale."""


def runs_by_task(data: ReportData) -> dict[str, pd.DataFrame]:
    """Return the runs, finished or not, of each task in which one has a line, with the column `has_line`."""
    points = data.acting.groupby("run").size()
    runs = data.runs[data.runs.variant.notna()]
    runs = runs.assign(has_line=runs.run.map(points).fillna(0) >= MIN_POINTS)
    largest = runs["size"][runs.has_line & (runs.environment == "deep-sea")].max()
    runs = runs[(runs.environment != "deep-sea") | (runs["size"] == largest)]
    settings = set(runs.task[runs.has_line & (runs.environment == "bsuite")])
    by_index = sorted(settings, key=lambda task: int(task.partition("/")[2]))
    hardest = {task.partition("/")[0]: task for task in by_index}  # of each experiment
    runs = runs[(runs.environment != "bsuite") | runs.task.isin(hardest.values())]
    return {task: group for task, group in runs.groupby("task", sort=False) if group.has_line.any()}


def acting_figure(runs: pd.DataFrame, acting: pd.DataFrame) -> Figure:
    """Plot how agents acted on one task: a panel for each measure, a line for each run.

    Args:
        runs: The runs that have a line: `run`, `environment`, `task`, `variant` and `finished`.
        acting: Their metrics: `run`, `step` and the measures.
    """
    metrics = dict(iter(acting[acting.run.isin(runs.run)].groupby("run", sort=False)))
    styles = variant_styles(runs.variant)
    ends = [table.step.iloc[-1] for table in metrics.values()]
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        lines = {}
        for axes, (measure, title) in zip(figure.subplots(1, len(TITLES)), TITLES.items(), strict=True):
            for variant, style in styles.items():
                for run in runs[runs.variant == variant].itertuples():
                    steps, values = metrics[run.run].step.to_numpy(), metrics[run.run][measure].to_numpy()
                    values = values if np.isnan(values).any() else smoothed(values)
                    marker = style.marker if len(steps) <= MAX_MARKED_POINTS else None
                    (lines[style.label],) = axes.plot(steps, values, color=style.colour,
                        linewidth=1.2, alpha=0.8, linestyle=style.line, marker=marker, markersize=4)  # fmt: skip
                    if not run.finished:
                        mark_end(axes, steps[-1], values[-1], style.colour)
            axes.set_title(title, fontsize=10)
            if max(ends) >= LOG_SCALE_RATIO * min(ends):
                axes.set_xscale("log")
                axes.set_xlabel("steps (log scale)")
            else:
                axes.set_xlim(left=0)
                axes.set_xlabel("steps")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            if measure == "overruled":
                axes.set_ylim(bottom=0)
                axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            elif any((table[measure] > 0).any() for table in metrics.values()):
                axes.set_yscale("log")
        figure.suptitle(figure_label(runs.task.iloc[0]), fontsize=11)
        legend_below(figure, lines)
    return figure
