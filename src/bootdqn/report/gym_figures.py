"""Learning curves of `train gym`, a figure for each environment."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from bootdqn.common.text import as_plotted, format_count
from bootdqn.config.variants import Variant
from bootdqn.report.figures import SO_FAR, STYLE, legend_below, mark_end, mean_line
from bootdqn.report.gym_runs import Cell, GymRun, measure_of, ranked
from bootdqn.report.looks import Look, looks, without_line
from bootdqn.report.statistics import Values, smoothed

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
    judged = [run for run in runs if run.finished] or runs
    evaluated = all(len(run.evaluations.steps) >= FEWEST_EVALUATIONS for run in judged)
    chosen = _highest(cells, most)
    drawn = {variant: [run for run in runs if run.variant == variant and _has(run, evaluated)] for variant in chosen}
    drawn = {variant: group for variant, group in drawn.items() if group}
    if not drawn:
        return None
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.subplots()
        curve_of = evaluation_curve if evaluated else training_curve
        lines: dict[str, Line2D] = {}
        for variant, look in looks(drawn).items():
            if finished := [run for run in drawn[variant] if run.finished]:
                lines[look.label] = mean_line(axes, *curve_of(finished), look)
            for run in (run for run in drawn[variant] if not run.finished):
                lines.setdefault(look.label, _line_so_far(axes, *curve_of([run]), look))
        axes.set_title(as_plotted(cells[0].environment))
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xlabel("steps")
        axes.set_ylabel("evaluation return" if evaluated else "return of training episodes")
        legend_below(figure, lines)
    return Curves(figure, _caption(cells, chosen, drawn, evaluated=evaluated))


def _has(run: GymRun, evaluated: bool) -> bool:
    return bool((run.evaluations if evaluated else run.episodes).steps)


def _line_so_far(axes: Axes, steps: Values, values: Values, look: Look) -> Line2D:
    """Draw a run that is not finished, values (1, T), by itself."""
    (line,) = axes.plot(steps, values[0], color=look.colour, linewidth=1.0, alpha=0.8, linestyle=look.line)
    mark_end(axes, steps[-1], values[0, -1], look.colour)
    return line


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


def _highest(cells: Sequence[Cell], most: int) -> list[Variant]:
    """Return the algorithms to draw: those whose finished runs came out highest first, then those without any."""
    finished = [Cell(cell.variant, runs) for cell in cells if (runs := tuple(run for run in cell.runs if run.finished))]
    measure = measure_of([run for cell in finished for run in cell.runs])
    best = [cell.variant for cell in (ranked(finished, measure) if measure else finished)]
    return [*best, *(cell.variant for cell in cells if cell.variant not in best)][:most]


def _caption(
    cells: Sequence[Cell], chosen: list[Variant], drawn: dict[Variant, list[GymRun]], *, evaluated: bool
) -> str:
    what = "Evaluation return, by the vote of the heads," if evaluated else "Return of the episodes of training"
    over = "ten evaluations, or a tenth of them if they are fewer than a hundred"
    if not evaluated:
        over = f"{RECENT_EPISODES} episodes, or a tenth of them if they are fewer than {10 * RECENT_EPISODES:,}"
    text = (
        f"{what} in the course of {cells[0].total_steps:,} steps. Moving average over {over}; mean over seeds, "
        "shaded 95 % bootstrap intervals from three on."
    )
    if len(chosen) < len(cells):
        text += f" Drawn are {len(chosen)} of {format_count(len(cells), 'algorithm')}, those that came out highest."
    text += without_line(chosen, drawn)
    runs = [run for cell in cells if cell.variant in drawn for run in cell.runs if run.finished]
    here = [run for group in drawn.values() for run in group]
    finished = sum(run.finished for run in here)
    text += (
        "" if finished == len(runs) else f" Of {format_count(len(runs), 'run')}, {finished} have their records here."
    )
    return text if finished == len(here) else f"{text} {SO_FAR}"
