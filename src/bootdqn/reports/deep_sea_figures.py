"""Figures about DeepSea: episodes to solve, the fraction solved, running regret, and the problem itself."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter, StrMethodFormatter

from bootdqn.config.variants import Variant
from bootdqn.envs.deep_sea import BAD_FRACTION
from bootdqn.reports.deep_sea import cells, shaded
from bootdqn.reports.statistics import MIN_FOR_INTERVAL
from bootdqn.reports.style import (
    MAX_INSIDE_LEGEND,
    RC_PARAMS,
    VariantStyle,
    band,
    cap_ticks,
    labelled_lines,
    legend_below,
    mark_end,
    variant_styles,
)

BY_SIZE_CAPTION = (
    "Each dot is a seed that solved it. Lines are means over seeds, shaded their 95 % intervals, and dotted where an "
    "end has fewer than three seeds. Above the cap: how many seeds of the algorithm "
    "named beside them did not solve it, of how many. Where some did not, "
    "the mean counts them with the cap and is only a lower bound (△), without an interval; where none did, it is not "
    "plotted."
)
COLUMNS_CAPTION = (
    "Each dot is a seed, a cross one that did not solve it before the cap; bars are means over seeds. A triangle (△) "
    "is a mean that is only a lower bound, since it counts these with the cap."
)
MAX_SPREAD = 0.4
"""Part of the distance between two sizes over which the algorithms of one size are spread."""
COUNTS_LANE, LANE_PART = 1.27, 0.045
"""Counts of unsolved seeds stand above the cap, each algorithm's this factor above the one before, or this part of the
axis below where that is more."""
MAX_HORIZONTAL_LABEL = 20
"""Letters of a label that has no room beside others."""


def episodes_figure(runs: pd.DataFrame) -> tuple[Figure, str]:
    """Plot episodes to solve, against N where there are several sizes, else one column an algorithm.

    Args:
        runs: Runs with one cap.

    Returns:
        The figure and its caption.
    """
    by_size = runs["size"].nunique() > 1
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 5.4 if by_size else 4.5), layout="constrained")
        axes = figure.subplots()
        plot_episodes(axes, runs)
        if by_size:
            legend_below(figure, labelled_lines(axes))
        return figure, BY_SIZE_CAPTION if by_size else COLUMNS_CAPTION


def plot_episodes(axes: Axes, runs: pd.DataFrame) -> None:
    """Plot episodes to solve of runs with one cap, against N where there are several sizes, else a column each."""
    groups = cells(runs)
    cap = groups.cap[0]
    axes.axhline(cap, color="black", linewidth=0.8, linestyle=":")
    top = _against_size(axes, groups, cap) if groups["size"].nunique() > 1 else _columns(axes, groups, cap)
    axes.set_ylabel("episodes to solve (log scale)")
    axes.set_yscale("log")
    axes.set_ylim(top=top)
    axes.set_yticks(cap_ticks(axes.get_ylim()[0], cap))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())


def solved_fraction(runs: pd.DataFrame) -> Figure:
    """Plot the fraction of runs that solved it, by the strict reading, for each size and algorithm."""
    groups = cells(runs)
    sizes = sorted(set(groups["size"]))
    styles = variant_styles(groups.variant)
    width = 0.8 / len(styles)
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 3.2), layout="constrained")
        axes = figure.subplots()
        for number, (variant, style) in enumerate(styles.items()):
            mine = groups[groups.variant == variant].set_index("size").fraction
            at = [place + width * (number - (len(styles) - 1) / 2) for place, n in enumerate(sizes) if n in mine.index]
            axes.bar(at, mine, 0.9 * width, color=style.colour, label=style.label)
            axes.scatter(at, mine, s=8, color=style.colour)
        axes.set_xticks(range(len(sizes)), [f"N = {size}" for size in sizes])
        axes.set_ylabel("runs that solved it")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.grid(visible=False, axis="x")
        legend_below(figure, labelled_lines(axes))
        return figure


def running_regret(regret: pd.DataFrame, styles: dict[Variant, VariantStyle]) -> Figure:
    """Plot the fraction of bad episodes so far against episodes, a thin line for each run of one size.

    Args:
        regret: `run`, `variant`, `size`, `finished`, `episode` and `regret`.
        styles: The styles of all variants in the order of the legend.
    """
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 3.8), layout="constrained")
        axes = figure.subplots()
        for variant, style in styles.items():
            mine = regret[regret.variant == variant].groupby("run", sort=False)
            for number, (_, curve) in enumerate(mine):
                axes.plot(curve.episode, curve.regret, color=style.colour, linewidth=1.0, alpha=0.8,
                          linestyle=style.line, label=None if number else style.label)  # fmt: skip
                last = curve.iloc[-1]
                if not last.finished:
                    mark_end(axes, last.episode, last.regret, style.colour)
        axes.axhline(BAD_FRACTION, color="black", linewidth=0.8, linestyle=":")
        axes.annotate("solved below", (1.0, BAD_FRACTION), xycoords=("axes fraction", "data"), ha="right", va="top",
                      fontsize=9)  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlabel("episodes (log scale)")
        axes.set_ylabel("running regret")
        axes.set_title(f"DeepSea, N = {regret['size'].iloc[0]}")
        legend_below(figure, labelled_lines(axes))
        return figure


def _columns(axes: Axes, groups: pd.DataFrame, cap: int) -> float:
    """Plot a column for each algorithm, and return where it ends: crosses need room above the cap."""
    styles = variant_styles(groups.variant)
    axes.annotate("cap", (0.005, cap), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
                  va="bottom", fontsize=9)  # fmt: skip
    for x, cell in enumerate(groups.itertuples()):
        colour = styles[cell.variant].colour
        _seeds(axes, cell, x, 0.08, colour)
        axes.plot([x - 0.22, x + 0.22], [cell.mean_episodes] * 2, color=colour, linewidth=2.5)
        _mark_lower_bound(axes, cell, x, colour)
    axes.set_xticks(range(len(groups)), [styles[variant].label for variant in groups.variant])
    if len(groups) > MAX_INSIDE_LEGEND or max(len(style.label) for style in styles.values()) > MAX_HORIZONTAL_LABEL:
        for name in axes.get_xticklabels():
            name.set(rotation=20, ha="right")
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_title(f"DeepSea, N = {groups['size'][0]}")
    return 1.3 * cap


def _against_size(axes: Axes, groups: pd.DataFrame, cap: int) -> float:
    """Plot a line for each algorithm, and return where the counts of unsolved seeds above the cap end."""
    styles = variant_styles(groups.variant)
    all_sizes = sorted(set(groups["size"]))
    step = min(0.3, MAX_SPREAD * min(np.diff(all_sizes)) / len(styles))
    for number, (variant, style) in enumerate(styles.items()):
        mine = list(groups[groups.variant == variant].itertuples())
        xs = [cell.size + step * (number - (len(styles) - 1) / 2) for cell in mine]
        _means(axes, mine, xs, style)
        for x, cell in zip(xs, mine, strict=True):
            _seeds(axes, cell, x, 0.0, style.colour, only_solved=True)
    axes.set_xticks(all_sizes)
    axes.set_xlabel("size N of the grid")
    axes.set_title("DeepSea")
    return _count_unsolved(axes, groups, styles, cap)


def _count_unsolved(axes: Axes, groups: pd.DataFrame, styles: dict[Variant, VariantStyle], cap: int) -> float:
    """Write above the cap how many seeds did not solve it, in the order of the legend; return where that ends."""
    censored = groups[groups.censored]
    lane = max(COUNTS_LANE, (cap / min(map(min, groups.episodes))) ** LANE_PART)
    lanes = [variant for variant in styles if variant in set(censored.variant)]
    for number, variant in enumerate(reversed(lanes), start=1):
        for cell in censored[censored.variant == variant].itertuples():
            text = f"{cell.seeds - cell.solved}/{cell.seeds}"
            axes.annotate(text, (cell.size, cap * lane**number), ha="center", va="center", fontsize=8,
                          color=styles[variant].colour)  # fmt: skip
        axes.annotate(
            styles[variant].label,
            (1.01, cap * lane**number),
            ha="left",
            va="center",
            fontsize=8,
            color=styles[variant].colour,
            xycoords=("axes fraction", "data"),
            annotation_clip=False,
        )
    if lanes:
        middle = cap * lane ** ((len(lanes) + 1) / 2)
        axes.annotate("unsolved", (-0.02, middle), ha="right", va="center", fontsize=9,
                      xycoords=("axes fraction", "data"), annotation_clip=False)  # fmt: skip
    return float(cap * lane ** (len(lanes) + 1))


def _means(axes: Axes, cells: Sequence[Any], xs: Sequence[float], style: VariantStyle) -> None:
    """Plot the means of the cells that some seed solved, and the intervals of those that all did."""
    axes.plot([], [], color=style.colour, label=style.label, linewidth=2, linestyle=style.line)
    for (x, cell), (next_x, next_cell) in pairwise(zip(xs, cells, strict=True)):
        if cell.solved and next_cell.solved:
            few = min(cell.seeds, next_cell.seeds) < MIN_FOR_INTERVAL
            means = [cell.mean_episodes, next_cell.mean_episodes]
            axes.plot([x, next_x], means, color=style.colour, linewidth=1.2 if few else 2,
                      linestyle=":" if few else style.line)  # fmt: skip
    ends = np.asarray([(np.nan, np.nan) if cell.censored else shaded(cell) for cell in cells])
    band(axes, np.asarray(xs), ends[:, 0], ends[:, 1], style.colour)
    for x, cell in zip(xs, cells, strict=True):
        if cell.solved:
            _mark_lower_bound(axes, cell, x, style.colour)


def _mark_lower_bound(axes: Axes, cell: Any, x: float, colour: str) -> None:
    """Put a triangle on a mean that is only a lower bound."""
    if cell.censored:
        axes.scatter(x, cell.mean_episodes, marker="^", s=110, facecolors="white", edgecolors=colour, zorder=4)


def _seeds(axes: Axes, cell: Any, x: float, spread: float, colour: str, *, only_solved: bool = False) -> None:
    at = x + spread * (np.arange(cell.seeds) - (cell.seeds - 1) / 2)
    episodes, solved = np.array(cell.episodes, float), np.array(cell.is_solved)
    axes.scatter(at[solved], episodes[solved], color=colour, s=34, marker="o", alpha=0.8, zorder=5)
    if not only_solved:
        axes.scatter(at[~solved], episodes[~solved], color=colour, s=34, marker="x", alpha=0.8, zorder=5)
