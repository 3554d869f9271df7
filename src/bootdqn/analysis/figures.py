"""Figures. Each takes results and returns a Matplotlib figure; none keeps state in Matplotlib."""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from bootdqn.analysis.deep_sea import Cell, Result, cells
from bootdqn.common.algorithms import algorithm, algorithm_order

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.fonttype": "none",
    "svg.hashsalt": "bootdqn",
}


def episodes_to_solve(results: list[Result]) -> Figure:
    """Draw episodes to solve: against N where there are several sizes, else one column an algorithm."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.5), layout="constrained")
        axes = figure.subplots()
        groups = cells(results)
        caps = sorted({result.cap for result in results})
        for cap in caps:
            axes.axhline(cap, color="black", linewidth=0.8, linestyle=":")
            axes.annotate(f"cap: {cap:,} episodes", (0.995, cap), xycoords=("axes fraction", "data"),
                          ha="right", va="bottom", fontsize=9)  # fmt: skip
        if len({cell.size for cell in groups}) > 1:
            _against_size(axes, groups)
        else:
            _columns(axes, groups)
        axes.set_ylabel("episodes to solve (log scale)")
        axes.set_yscale("log")
        axes.set_ylim(top=max(caps) * 1.35)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_minor_locator(NullLocator())
        return figure


def to_svg(figure: Figure) -> str:
    """Return the figure as SVG text that is the same for the same data."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _columns(axes: Axes, groups: list[Cell]) -> None:
    for x, cell in enumerate(groups):
        colour = algorithm(cell.strategy).colour
        _seeds(axes, cell, x, 0.08, colour)
        axes.plot([x - 0.22, x + 0.22], [cell.mean] * 2, color=colour, linewidth=2.5)
        _mark_lower_bounds(axes, [cell], [x], colour)
    axes.set_xticks(range(len(groups)), [algorithm(cell.strategy).label for cell in groups])
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_title(f"DeepSea, N = {groups[0].size}")


def _against_size(axes: Axes, groups: list[Cell]) -> None:
    strategies = sorted({cell.strategy for cell in groups}, key=algorithm_order)
    for number, strategy in enumerate(strategies):
        mine = [cell for cell in groups if cell.strategy == strategy]
        look = algorithm(strategy)
        shift = 0.3 * (number - (len(strategies) - 1) / 2)
        sizes = [cell.size + shift for cell in mine]
        axes.plot(sizes, [cell.mean for cell in mine], color=look.colour, label=look.label, linewidth=2)
        _mark_lower_bounds(axes, mine, sizes, look.colour)
        for x, cell in zip(sizes, mine, strict=True):
            _seeds(axes, cell, x, 0.0, look.colour)
    axes.set_xticks(sorted({cell.size for cell in groups}))
    axes.set_xlabel("size N of the grid")
    axes.set_title("DeepSea")
    axes.legend(frameon=False, fontsize=9, loc="lower right")


def _mark_lower_bounds(axes: Axes, groups: list[Cell], xs: Sequence[float], colour: str) -> None:
    """Put an arrow on each mean that is only a lower bound."""
    for x, cell in zip(xs, groups, strict=True):
        if cell.censored:
            axes.scatter(x, cell.mean, marker="^", s=70, color=colour, zorder=4)


def _seeds(axes: Axes, cell: Cell, x: float, spread: float, colour: str) -> None:
    for number, result in enumerate(cell.results):
        at = x + spread * (number - (len(cell.results) - 1) / 2)
        solved = result.solved_at_strict is not None
        axes.scatter(at, result.episodes, color=colour, s=34, marker="o" if solved else "x", alpha=0.8, zorder=3)
