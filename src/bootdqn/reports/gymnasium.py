"""Runs of `train gym`: returns and learning curves of each algorithm in each environment. The paper has none."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from bootdqn.common.text import figure_label, format_count, format_number
from bootdqn.config.variants import Variant, label, variant_order
from bootdqn.reports.report_data import ReportData
from bootdqn.reports.statistics import Values, interval_of_mean, smoothed
from bootdqn.reports.style import (
    RC_PARAMS,
    UNFINISHED_CAPTION,
    VariantStyle,
    legend_below,
    mark_end,
    mean_line,
    missing_lines,
    variant_styles,
)
from bootdqn.reports.tables import Table
from bootdqn.runs.summary import RECENT_EPISODES

RETURNS = {"last_evaluation": "last evaluation", "max_evaluation": "best evaluation", "recent_return": "training"}
"""Values of a run's summary, and their columns in the table."""
FINAL = {"last_evaluation": "last evaluation", "recent_return": "return of the last episodes of training"}
"""The values that runs may be compared by, the first that all have."""
MIN_EVALUATIONS = 2
"""Of every run, for a curve of evaluations."""
POINTS = 200
"""Points of a curve of training: the episodes of two runs end at different steps."""


def gym_runs(data: ReportData) -> pd.DataFrame:
    """Return the runs that count, and those that are not finished and have returns to plot."""
    runs = data.runs[(data.runs.environment == "gym") & data.runs.variant.notna()]
    unfinished = ~runs.finished & runs.run.isin(data.returns.run)
    return runs[runs.counted | unfinished].astype(dict.fromkeys(RETURNS, float))


def by_task(runs: pd.DataFrame) -> dict[tuple[str, int], pd.DataFrame]:
    """Return the runs of each environment and number of steps."""
    return dict(iter(runs.groupby(["task", "budget"])))


def by_variant(runs: pd.DataFrame) -> dict[Variant, pd.DataFrame]:
    """Return the runs of each variant by seed, in the paper's order of strategies."""
    groups = dict(iter(runs.sort_values("seed", kind="stable").groupby("variant", sort=False)))
    return {variant: groups[variant] for variant in sorted(groups, key=variant_order)}


def measure_of(runs: pd.DataFrame) -> str | None:
    """Return the value that all runs can be compared by: last evaluation, else last episodes of training, else None."""
    return next((name for name in FINAL if runs[name].notna().all()), None)


def ranked(runs: pd.DataFrame, measure: str) -> dict[Variant, pd.DataFrame]:
    """Return the runs of each variant, those with the highest mean first."""
    return dict(sorted(by_variant(runs).items(), key=lambda group: -np.mean(group[1][measure])))


def returns_table(runs: pd.DataFrame) -> Table:
    """Return what each algorithm came to: the mean over seeds, its interval, and each seed."""
    rows = []
    for (task, budget), of_task in by_task(runs).items():
        for variant, group in by_variant(of_task).items():
            last, best, training = (_mean(group[name]) for name in RETURNS)
            measure = measure_of(group)
            values = list(group[measure]) if measure else []
            interval = interval_of_mean(values)
            shown = f"{format_number(interval[0])} to {format_number(interval[1])}" if interval else ""
            each = ", ".join(map(format_number, values))
            seeds = str(len(group))
            rows.append((task, f"{budget:,}", label(variant), seeds, last, shown, each, best, training))
    last, best, training = RETURNS.values()
    columns = ("environment", "steps", "algorithm", "seeds", last, "95 % interval", "each seed", best, training)
    note = (
        "Means over seeds. Training: of the last 100 episodes, in which the agent explores. Evaluations are by the "
        "vote of the heads; the best of many is also the luckiest. Empty where a run has none. The interval and each "
        "seed are of the last evaluation, or of training where a run was never evaluated; the interval is a percentile "
        "bootstrap over seeds, from three on; that of three is their range."
    )
    text_columns = ("environment", "algorithm", "each seed")
    return Table("gym", "Returns", columns, rows, note, text_columns=text_columns, detail_columns=("each seed",))


def _mean(values: pd.Series) -> str:
    """Return the mean of values, or nothing where one is missing: a mean over some seeds would not be that of all."""
    return format_number(float(np.mean(values))) if values.notna().all() else ""


def learning_curves(runs: pd.DataFrame, returns: pd.DataFrame, max_variants: int) -> tuple[Figure, str] | None:
    """Plot the returns of one environment against steps; None where no run has any.

    They are those of the evaluations where every run has some, otherwise those of the episodes of training.

    Args:
        runs: The runs in the environment.
        returns: Their metrics: `run`, `kind`, `step` and `value`.
        max_variants: Algorithms to plot; where there are more, those that came out highest.

    Returns:
        The figure and its caption.
    """
    returns = returns[returns.run.isin(runs.run)]
    evaluations = returns[returns.kind == "evaluation"]
    with_metrics = runs[runs.run.isin(returns.run)]
    judged = with_metrics[with_metrics.finished] if with_metrics.finished.any() else with_metrics
    number = judged.run.map(evaluations.groupby("run").size()).fillna(0)
    evaluated = bool((number >= MIN_EVALUATIONS).all())
    curves = dict(iter((evaluations if evaluated else returns[returns.kind == "episode"]).groupby("run", sort=False)))
    chosen = _highest(runs, max_variants)
    plotted = runs[runs.run.isin(list(curves)) & runs.variant.isin(chosen)]
    if plotted.empty:
        return None
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.subplots()
        curve_of = evaluation_curve if evaluated else training_curve
        lines: dict[str, Line2D] = {}
        groups = by_variant(plotted)
        for variant, style in variant_styles(groups).items():
            group = groups[variant]
            if group.finished.any():
                finished = [curves[run] for run in group.run[group.finished]]
                lines[style.label] = mean_line(axes, *curve_of(finished), style)
            for run in group.run[~group.finished]:
                lines.setdefault(style.label, _unfinished_line(axes, *curve_of([curves[run]]), style))
        axes.set_title(figure_label(runs.task.iloc[0]))
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xlabel("steps")
        axes.set_ylabel("evaluation return" if evaluated else "return of training episodes")
        legend_below(figure, lines)
    return figure, _caption(runs, chosen, plotted, evaluated=evaluated)


def _unfinished_line(axes: Axes, steps: Values, values: Values, style: VariantStyle) -> Line2D:
    """Plot a run that is not finished, values (1, T), by itself."""
    (line,) = axes.plot(steps, values[0], color=style.colour, linewidth=1.0, alpha=0.8, linestyle=style.line)
    mark_end(axes, steps[-1], values[0, -1], style.colour)
    return line


def evaluation_curve(runs: Sequence[pd.DataFrame]) -> tuple[Values, Values]:
    """Return steps (T,) and smoothed evaluations (runs, T), cut to the shortest; all are at the same steps."""
    length = min(map(len, runs))
    return runs[0].step.to_numpy(float)[:length], np.stack([smoothed(run.value.to_numpy()[:length]) for run in runs])


def training_curve(runs: Sequence[pd.DataFrame]) -> tuple[Values, Values]:
    """Return steps (T,) and smoothed returns (runs, T) of the episodes that had ended by then, in all of the runs."""
    first, last = max(run.step.iloc[0] for run in runs), max(run.step.iloc[-1] for run in runs)
    steps = np.linspace(first, last, POINTS)
    values = []
    for run in runs:
        ended = np.searchsorted(run.step.to_numpy(), steps, side="right")
        values.append(smoothed(run.value.to_numpy(), RECENT_EPISODES)[ended - 1])
    return steps, np.stack(values)


def _highest(runs: pd.DataFrame, most: int) -> list[Variant]:
    """Return the algorithms to plot: those whose finished runs came out highest first, then those without any."""
    finished = runs[runs.finished]
    measure = measure_of(finished)
    groups: Mapping[Variant, pd.DataFrame] = ranked(finished, measure) if measure else by_variant(finished)
    return list(dict.fromkeys([*groups, *by_variant(runs)]))[:most]


def _caption(runs: pd.DataFrame, chosen: list[Variant], plotted: pd.DataFrame, *, evaluated: bool) -> str:
    what = "Evaluation return, by the vote of the heads," if evaluated else "Return of the episodes of training"
    over = "ten evaluations, or a tenth of them if they are fewer than a hundred"
    if not evaluated:
        over = f"{RECENT_EPISODES} episodes, or a tenth of them if they are fewer than {10 * RECENT_EPISODES:,}"
    text = (
        f"{what} in the course of {runs.budget.iloc[0]:,} steps. Moving average over {over}; mean over seeds, "
        "shaded 95 % bootstrap intervals from three on."
    )
    if len(chosen) < runs.variant.nunique():
        algorithms = format_count(runs.variant.nunique(), "algorithm")
        text += f" Plotted are {len(chosen)} of {algorithms}, those that came out highest."
    text += missing_lines(chosen, plotted.variant)
    expected, finished = sum(runs.finished & runs.variant.isin(plotted.variant)), sum(plotted.finished)
    text += "" if finished == expected else f" Of {format_count(expected, 'run')}, {finished} have their metrics here."
    return text if finished == len(plotted) else f"{text} {UNFINISHED_CAPTION}"
