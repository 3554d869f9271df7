"""How agents acted in the course of training, drawn: a panel for each measure, a line for each run."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from bootdqn.common.text import as_plotted
from bootdqn.config.variants import algorithm, atari_algorithm
from bootdqn.report.acting import MEASURES, Course
from bootdqn.report.figures import FEW_POINTS, STYLE, legend_below, mark_end
from bootdqn.report.looks import looks
from bootdqn.report.statistics import smoothed

ACTING_CAPTION = (
    "Left: how often the action was not the one that the active head values most, because the strategy, or chance, had "
    "its way. Middle: the expected value of information (mean over heads) of the actions taken. Right: the standard "
    "deviation over heads of the Q-values, averaged over actions; both on a log scale. A line for each run whose "
    "records are here: averages over the steps since the last record, and of these a moving average "
    "over ten, or over a tenth of them if they are fewer than a hundred."
)
UNLIKE = 10
"""How many times as long as the shortest the longest run must be for steps on a log scale."""


def acting(courses: Sequence[Course]) -> Figure:
    """Draw the courses of one task that have a line."""
    courses = [course for course in courses if course.has_line]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        lines, ends = {}, [course.steps[-1] for course in courses]
        shown = looks(
            [course.variant for course in courses], atari_algorithm if courses[0].kind == "atari" else algorithm
        )
        for axes, (measure, title) in zip(figure.subplots(1, len(MEASURES)), MEASURES.items(), strict=True):
            for variant, look in shown.items():
                for course in (one for one in courses if one.variant == variant):
                    marker = look.marker if len(course.steps) <= FEW_POINTS else None
                    values = course.means[measure]
                    values = values if np.isnan(values).any() else smoothed(values.tolist())
                    (lines[look.label],) = axes.plot(course.steps, values, color=look.colour,
                        linewidth=1.2, alpha=0.8, linestyle=look.line, marker=marker, markersize=4)  # fmt: skip
                    if not course.finished:
                        mark_end(axes, course.steps[-1], values[-1], look.colour)
            axes.set_title(title, fontsize=10)
            if max(ends) >= UNLIKE * min(ends):
                axes.set_xscale("log")
                axes.set_xlabel("steps (log scale)")
            else:
                axes.set_xlim(left=0)
                axes.set_xlabel("steps")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            if measure == "overruled":
                axes.set_ylim(bottom=0)
                axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            elif any((course.means[measure] > 0).any() for course in courses):
                axes.set_yscale("log")
        figure.suptitle(as_plotted(courses[0].task), fontsize=11)
        legend_below(figure, lines)
    return figure
