"""What all figures share: one look, and ways out of Matplotlib that keep no state in it."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bootdqn.report.looks import Look
from bootdqn.report.statistics import Values, intervals_of_means

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.fonttype": "none",
    "svg.hashsalt": "bootdqn",
}
FEW = 6
"""Curves whose names have room inside the axes."""
FEW_POINTS = 10
"""Points of a curve that are each marked."""
HANDLE_INCHES, LETTER_INCHES = 0.6, 0.07
"""Room of a label in a legend: what stands before it, and each letter."""
MOST_COLUMNS = 3
SO_FAR = "○ marks how far a run has come that is not finished."


def to_svg(figure: Figure) -> str:
    """Return the figure as SVG text that is the same for the same data."""
    buffer = io.StringIO()
    with _drawing():
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def to_png(figure: Figure) -> bytes:
    """Return the figure as a PNG image."""
    buffer = io.BytesIO()
    with _drawing():
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


@contextmanager
def _drawing() -> Iterator[None]:
    """Draw in our style, and without Matplotlib's complaints about names that are too long or in another script."""
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="constrained_layout not applied|Glyph .* missing from font")
        yield


def cap_ticks(low: float, cap: float) -> list[float]:
    """Return 1, 2, 5, 10, ... from `low` to the cap, and the cap itself in place of what is close to it."""
    round_numbers = [step * 10.0**power for power in range(10) for step in (1, 2, 5)]
    return [value for value in round_numbers if low <= value <= 0.6 * cap] + [cap]


def legend(axes: Axes, place: Literal["lower left", "lower right"]) -> None:
    """Name the curves inside the axes, or beside them where they are many."""
    if len(axes.get_legend_handles_labels()[1]) <= FEW:
        axes.legend(frameon=False, fontsize=9, loc=place)
    else:
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def band(axes: Axes, x: Values, low: Values, high: Values, colour: str) -> None:
    """Shade an interval around a line."""
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def mean_line(axes: Axes, x: Values, values: Values, look: Look) -> Line2D:
    """Draw the mean over runs, and shade its interval where they are enough for one.

    Args:
        axes: Where to.
        x: The places (T,).
        values: One row a run (runs, T).
        look: The name, colour, line and marker; points are marked where they are few.
    """
    if ends := intervals_of_means(values):
        band(axes, x, *ends, look.colour)
    marker = look.marker if len(x) <= FEW_POINTS else None
    (line,) = axes.plot(x, values.mean(axis=0), color=look.colour, label=look.label, linewidth=1.8, marker=marker,
                        linestyle=look.line)  # fmt: skip
    return line


def mark_end(axes: Axes, x: float, y: float, colour: str) -> None:
    """Mark how far a run has come that is not finished."""
    axes.plot(x, y, marker="o", markersize=6, color=colour, markerfacecolor="white", zorder=4)


def legend_below(figure: Figure, lines: dict[str, Line2D]) -> None:
    """Name the lines below the figure, as many side by side as there is room for."""
    widest = HANDLE_INCHES + LETTER_INCHES * max(map(len, lines))
    columns = max(1, min(MOST_COLUMNS, int(figure.get_figwidth() / widest)))
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=columns, frameon=False,
                  fontsize=9)  # fmt: skip
