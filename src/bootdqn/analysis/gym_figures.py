"""Learning curves of `train gym`, a figure for each environment."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from bootdqn.analysis.figures import STYLE, legend_below, mean_line
from bootdqn.analysis.gym_runs import Cell, GymRun, measure_of, ranked
from bootdqn.analysis.looks import looks
from bootdqn.analysis.statistics import Values, smoothed
from bootdqn.common.variants import Variant
from bootdqn.common.written import as_plotted, counted

FEWEST_EVALUATIONS = 2
"""Of every run, for a curve of evaluations."""
POINTS = 200
"""At which curves of training are drawn: the episodes of two runs end at different steps."""
RECENT_EPISODES = 100
"""Over how many episodes of training, at most, a curve is averaged."""


class Curves(NamedTuple):
    """A figure and what to say below it."""

    figure: Figure
    caption: str


def learning_curves(cells: Sequence[Cell], most: int) -> Curves | None:
    """Draw the returns of one environment against steps; None where no run has records of any.

    They are those of the evaluations where every run has some, otherwise those of the episodes of training.

    Args:
        cells: What was run in the environment.
        most: Algorithms to draw; where there are more, those that came out highest.
    """
    runs = [run for cell in cells for run in cell.runs if run.episodes.steps or run.evaluations.steps]
    evaluated = all(len(run.evaluations.steps) >= FEWEST_EVALUATIONS for run in runs)
    drawn = {
        cell.variant: [run for run in runs if run.variant == cell.variant and (evaluated or run.episodes.steps)]
        for cell in _highest(cells, most)
    }
    drawn = {variant: group for variant, group in drawn.items() if group}
    if not drawn:
        return None
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.subplots()
        lines = {}
        for variant, look in looks(drawn).items():
            steps, values = (evaluation_curve if evaluated else training_curve)(drawn[variant])
            lines[look.label] = mean_line(axes, steps, values, look)
        axes.set_title(as_plotted(cells[0].environment))
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xlabel("steps")
        axes.set_ylabel("evaluation return" if evaluated else "return of training episodes")
        legend_below(figure, lines)
    return Curves(figure, _caption(cells, drawn, evaluated=evaluated))


def evaluation_curve(runs: Sequence[GymRun]) -> tuple[Values, Values]:
    """Return steps (T,) and smoothed evaluations (runs, T), cut to the shortest; all are at the same steps."""
    length = min(len(run.evaluations.steps) for run in runs)
    steps = np.asarray(runs[0].evaluations.steps[:length], float)
    return steps, np.stack([smoothed(run.evaluations.values[:length]) for run in runs])


def training_curve(runs: Sequence[GymRun]) -> tuple[Values, Values]:
    """Return steps (T,) and smoothed returns (runs, T) of the episodes that had ended by then, in all of the runs."""
    first = max(run.episodes.steps[0] for run in runs)
    last = max(run.episodes.steps[-1] for run in runs)
    steps = np.linspace(first, last, POINTS)
    values = []
    for run in runs:
        ended = np.searchsorted(run.episodes.steps, steps, side="right")
        values.append(smoothed(run.episodes.values, RECENT_EPISODES)[ended - 1])
    return steps, np.stack(values)


def _highest(cells: Sequence[Cell], most: int) -> list[Cell]:
    measure = measure_of([run for cell in cells for run in cell.runs])
    return (ranked(cells, measure) if measure else list(cells))[:most]


def _caption(cells: Sequence[Cell], drawn: dict[Variant, list[GymRun]], *, evaluated: bool) -> str:
    what = "Evaluation return, by the vote of the heads," if evaluated else "Return of the episodes of training"
    over = "ten evaluations, or a tenth of them if they are fewer than a hundred"
    if not evaluated:
        over = f"{RECENT_EPISODES} episodes, or a tenth of them if they are fewer than {10 * RECENT_EPISODES:,}"
    text = (
        f"{what} in the course of {cells[0].total_steps:,} steps. Moving average over {over}; mean over seeds, "
        "shaded 95 % bootstrap intervals from three on."
    )
    if len(drawn) < len(cells):
        text += f" Drawn are {len(drawn)} of {counted(len(cells), 'algorithm')}, those that came out highest."
    there, here = sum(len(cell.runs) for cell in cells if cell.variant in drawn), sum(map(len, drawn.values()))
    return text if here == there else f"{text} Of {counted(there, 'run')}, {here} have their records here."
