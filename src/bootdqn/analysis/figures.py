"""What all figures share: one look, and ways out of Matplotlib that keep no state in it."""

import io
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bootdqn.analysis.statistics import Values

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


def to_svg(figure: Figure) -> str:
    """Return the figure as SVG text that is the same for the same data."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def to_png(figure: Figure) -> bytes:
    """Return the figure as a PNG image."""
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def legend(axes: Axes, place: Literal["lower left", "lower right"]) -> None:
    """Name the curves inside the axes, or beside them where they are many."""
    if len(axes.get_legend_handles_labels()[1]) <= FEW:
        axes.legend(frameon=False, fontsize=9, loc=place)
    else:
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def band(axes: Axes, x: Values, low: Values, high: Values, colour: str) -> None:
    """Shade an interval around a line."""
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
