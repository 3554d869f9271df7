"""Figures about DeepSea. Each takes results and returns a Matplotlib figure; none keeps state in Matplotlib."""

from collections.abc import Sequence
from itertools import pairwise

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator, PercentFormatter, StrMethodFormatter

from bootdqn.config.variants import Variant, algorithm
from bootdqn.envs.deep_sea import BAD_FRACTION
from bootdqn.report.deep_sea import Cell, Curve, Result, cells
from bootdqn.report.figures import FEW, STYLE, band, cap_ticks, legend, mark_end
from bootdqn.report.looks import Look, looks
from bootdqn.report.statistics import FEWEST_FOR_INTERVAL

BY_SIZE_CAPTION = (
    "Each dot is a seed that solved it. Lines are means over seeds, shaded their 95 % intervals, and dotted where an "
    "end has fewer than three seeds. Above the cap: how many seeds did not solve it, of how many. Where some did not, "
    "the mean counts them with the cap and is only a lower bound (△), without an interval; where none did, it is not "
    "drawn."
)
COLUMNS_CAPTION = (
    "Each dot is a seed, a cross one that did not solve it before the cap; bars are means over seeds. A triangle (△) "
    "is a mean that is only a lower bound, since it counts these with the cap."
)
COUNTS_LANE = 1.27
"""Counts of unsolved seeds stand above the cap, each algorithm's this factor above the one before."""
LONG = 20
"""Letters of a label that has no room beside others."""


def episodes_to_solve(results: list[Result]) -> tuple[Figure, str]:
    """Draw episodes to solve, against N where there are several sizes, else one column an algorithm.

    Args:
        results: Of runs with one cap.

    Returns:
        The figure, and what to say below it.
    """
    groups, cap = cells(results), results[0].cap
    by_size = len({cell.size for cell in groups}) > 1
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.8 if by_size else 4.5), layout="constrained")
        axes = figure.subplots()
        axes.axhline(cap, color="black", linewidth=0.8, linestyle=":")
        top = _against_size(axes, groups, cap) if by_size else _columns(axes, groups, cap)
        axes.set_ylabel("episodes to solve (log scale)")
        axes.set_yscale("log")
        axes.set_ylim(top=top)
        axes.set_yticks(cap_ticks(axes.get_ylim()[0], cap))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_minor_locator(NullLocator())
        return figure, BY_SIZE_CAPTION if by_size else COLUMNS_CAPTION


def solved_fraction(results: list[Result]) -> Figure:
    """Draw the fraction of runs that solved it, by the strict reading, for each size and algorithm."""
    groups = cells(results)
    sizes = sorted({cell.size for cell in groups})
    shown = looks(cell.variant for cell in groups)
    width = 0.8 / len(shown)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.2), layout="constrained")
        axes = figure.subplots()
        for number, (variant, look) in enumerate(shown.items()):
            mine = {cell.size: cell.solved_fraction for cell in groups if cell.variant == variant}
            at = [place + width * (number - (len(shown) - 1) / 2) for place, n in enumerate(sizes) if n in mine]
            axes.bar(at, [mine[n] for n in sizes if n in mine], 0.9 * width, color=look.colour, label=look.label)
            axes.scatter(at, [mine[n] for n in sizes if n in mine], s=8, color=look.colour)
        axes.set_xticks(range(len(sizes)), [f"N = {size}" for size in sizes])
        axes.set_ylabel("runs that solved it")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.grid(visible=False, axis="x")
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure


def running_regret(curves: Sequence[Curve], shown: dict[Variant, Look]) -> Figure:
    """Draw the fraction of bad episodes so far against episodes, a thin line for each run of one size."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.8), layout="constrained")
        axes = figure.subplots()
        for variant, look in shown.items():
            for number, curve in enumerate(one for one in curves if one.variant == variant):
                axes.plot(range(1, len(curve.regret) + 1), curve.regret, color=look.colour, linewidth=1.0, alpha=0.8,
                          linestyle=look.line, label=None if number else look.label)  # fmt: skip
                if not curve.finished:
                    mark_end(axes, len(curve.regret), curve.regret[-1], look.colour)
        axes.axhline(BAD_FRACTION, color="black", linewidth=0.8, linestyle=":")
        axes.annotate("solved below", (1.0, BAD_FRACTION), xycoords=("axes fraction", "data"), ha="right", va="top",
                      fontsize=9)  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlabel("episodes (log scale)")
        axes.set_ylabel("running regret")
        axes.set_title(f"DeepSea, N = {curves[0].size}")
        legend(axes, "lower left")
        return figure


def drawing(size: int = 6) -> Figure:
    """Draw the problem, as Fig. 4 of the paper does: the way to the treasure, and the way that looks better."""
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(4.6, 4.6), layout="constrained")
        axes = figure.subplots()
        for row in range(size):
            for column in range(size):
                colour = "white" if column <= row else "#d9d9d9"
                axes.add_patch(Rectangle((column, -row - 1), 1, 1, facecolor=colour, edgecolor="#888", linewidth=0.8))
        right, left = algorithm("evoi:reduce=sum").colour, algorithm("greedy").colour
        arrow = {"arrowstyle": "->", "linewidth": 2}
        for step in range(size - 1):
            start, down = (step + 0.5, -step - 0.5), -step - 1.5
            axes.annotate("", (step + 1.5, down), start, arrowprops=arrow | {"color": right})
            axes.annotate("", (0.5, down), (0.5, down + 1), arrowprops=arrow | {"color": left, "linestyle": "--"})
        axes.text(0.5, 0.12, "start", ha="center", va="bottom")
        axes.text(size - 0.5, -size + 0.22, "+1", ha="center", va="center", color=right, fontweight="bold")
        axes.text(0.5, -size + 0.22, "0", ha="center", va="center", color=left, fontweight="bold")
        axes.text(size / 2, -size - 0.15, "right costs 0.01/N, left costs nothing", ha="center", va="top", fontsize=9)
        axes.set_xlim(-0.1, size + 0.1)
        axes.set_ylim(-size - 0.6, 0.6)
        axes.set_aspect("equal")
        axes.axis("off")
        return figure


def _columns(axes: Axes, groups: list[Cell], cap: int) -> float:
    """Draw a column for each algorithm, and return where it ends: crosses need room above the cap."""
    shown = looks(cell.variant for cell in groups)
    axes.annotate("cap", (0.005, cap), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
                  va="bottom", fontsize=9)  # fmt: skip
    for x, cell in enumerate(groups):
        colour = shown[cell.variant].colour
        _seeds(axes, cell.results, x, 0.08, colour)
        axes.plot([x - 0.22, x + 0.22], [cell.mean] * 2, color=colour, linewidth=2.5)
        _mark_lower_bounds(axes, [cell], [x], colour)
    axes.set_xticks(range(len(groups)), [shown[cell.variant].label for cell in groups])
    if len(groups) > FEW or max(len(look.label) for look in shown.values()) > LONG:
        for name in axes.get_xticklabels():
            name.set(rotation=20, ha="right")
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_title(f"DeepSea, N = {groups[0].size}")
    return 1.3 * cap


def _against_size(axes: Axes, groups: list[Cell], cap: int) -> float:
    """Draw a line for each algorithm, and return where the counts of unsolved seeds above the cap end."""
    shown = looks(cell.variant for cell in groups)
    step = min(0.3, 0.6 * min(np.diff(sorted({cell.size for cell in groups}))) / len(shown))
    for number, (variant, look) in enumerate(shown.items()):
        mine = [cell for cell in groups if cell.variant == variant]
        sizes = [cell.size + step * (number - (len(shown) - 1) / 2) for cell in mine]
        _means(axes, mine, sizes, look)
        for x, cell in zip(sizes, mine, strict=True):
            _seeds(axes, [one for one in cell.results if one.solved_at_strict], x, 0.0, look.colour)
    axes.set_xticks(sorted({cell.size for cell in groups}))
    axes.set_xlabel("size N of the grid")
    axes.set_title("DeepSea")
    legend(axes, "lower right")
    return _count_unsolved(axes, groups, shown, cap)


def _count_unsolved(axes: Axes, groups: list[Cell], shown: dict[Variant, Look], cap: int) -> float:
    """Write above the cap how many seeds did not solve it, in the order of the legend; return where that ends."""
    unsolved = {variant: [cell for cell in groups if cell.variant == variant and cell.censored] for variant in shown}
    lanes = [variant for variant in shown if unsolved[variant]]
    for number, variant in enumerate(reversed(lanes), start=1):
        for cell in unsolved[variant]:
            told = f"{len(cell.results) - cell.solved}/{len(cell.results)}"
            axes.annotate(told, (cell.size, cap * COUNTS_LANE**number), ha="center", va="center", fontsize=8,
                          color=shown[variant].colour)  # fmt: skip
    if lanes:
        middle = cap * COUNTS_LANE ** ((len(lanes) + 1) / 2)
        axes.annotate("unsolved", (-0.02, middle), ha="right", va="center", fontsize=9,
                      xycoords=("axes fraction", "data"), annotation_clip=False)  # fmt: skip
    return cap * COUNTS_LANE ** (len(lanes) + 1)


def _means(axes: Axes, groups: list[Cell], xs: Sequence[float], look: Look) -> None:
    """Draw the means of the cells that some seed solved, and the intervals of those that all did."""
    axes.plot([], [], color=look.colour, label=look.label, linewidth=2, linestyle=look.line)
    for (x, cell), (next_x, next_cell) in pairwise(zip(xs, groups, strict=True)):
        if cell.solved and next_cell.solved:
            few = min(len(cell.results), len(next_cell.results)) < FEWEST_FOR_INTERVAL
            axes.plot([x, next_x], [cell.mean, next_cell.mean], color=look.colour, linewidth=1.2 if few else 2,
                      linestyle=":" if few else look.line)  # fmt: skip
    ends = np.asarray([(np.nan, np.nan) if cell.censored else cell.shaded for cell in groups])
    band(axes, np.asarray(xs), ends[:, 0], ends[:, 1], look.colour)
    solved = [(x, cell) for x, cell in zip(xs, groups, strict=True) if cell.solved]
    _mark_lower_bounds(axes, [cell for _, cell in solved], [x for x, _ in solved], look.colour)


def _mark_lower_bounds(axes: Axes, groups: list[Cell], xs: Sequence[float], colour: str) -> None:
    """Put an arrow on each mean that is only a lower bound."""
    for x, cell in zip(xs, groups, strict=True):
        if cell.censored:
            axes.scatter(x, cell.mean, marker="^", s=110, facecolors="white", edgecolors=colour, zorder=4)


def _seeds(axes: Axes, results: Sequence[Result], x: float, spread: float, colour: str) -> None:
    for number, result in enumerate(results):
        at = x + spread * (number - (len(results) - 1) / 2)
        solved = result.solved_at_strict is not None
        axes.scatter(at, result.episodes, color=colour, s=34, marker="o" if solved else "x", alpha=0.8, zorder=5)
