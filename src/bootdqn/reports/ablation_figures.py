"""Figures for many variants at once: how far each gets on DeepSea, and what a change of settings is worth."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from bootdqn.config.variants import Variant, algorithm, base_strategy, is_dqn
from bootdqn.reports.deep_sea import cells, format_mean, largest_solved, shaded
from bootdqn.reports.style import MAX_INSIDE_LEGEND, RC_PARAMS, VariantStyle, cap_ticks, variant_styles

FRONTIERS_CAPTION = (
    "Dots are seeds, lines their means, hollow marks lower bounds: a seed did not solve it, and counts with the cap. "
    "Crosses above the cap, a lane for each algorithm, are sizes that seeds did not solve, the larger the more of "
    "them. A circle marks the largest N that at least half of the seeds solved; the legend says where none larger was "
    "run."
)
ABLATION_CAPTION = (
    "Each dot is a seed, a cross one that did not solve it before the cap; bars are means over seeds, shaded their "
    "95 % intervals. Beside each row its mean, and how many solved it. Where the mean is only a lower bound (≥) the "
    "interval is shaded up to it, and open beyond (▶)."
)
PANELS_IN_A_ROW = 3
LANE = 1.16
"""Unsolved runs stand above the cap, each variant's in a lane this factor above the one before."""
MAX_TICKS = 8
MAX_SIZES = 4
"""Of the figure of ablations."""


def frontiers(runs: pd.DataFrame) -> Figure:
    """Plot episodes to solve against N for each variant, where they are many in a panel for each strategy.

    Runs that did not solve it stand in lanes above the cap, and the legend says how far each variant got.
    """
    styles = variant_styles(runs.variant)
    panels = _panels(styles)
    columns = min(PANELS_IN_A_ROW, len(panels))
    rows = -(-len(panels) // columns)
    deepest = max(map(len, panels.values()))
    with mpl.rc_context(RC_PARAMS):
        height = 3.6 + 0.09 * deepest + 0.19 * deepest
        figure = Figure(figsize=(max(7.5, 4.3 * columns), height * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        groups = cells(runs)
        for (title, panel), axes in zip(panels.items(), grid.flat, strict=False):
            _plot_frontiers(axes, groups, {variant: styles[variant] for variant in panel}, deepest)
            axes.set_title(title)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        middle = groups.cap.max() * LANE ** (deepest / 2 + 0.5)
        for row in grid:
            row[0].set_ylabel("episodes to solve (log scale)")
            row[0].annotate("unsolved", (-0.02, middle), ha="right", va="center",
                            xycoords=("axes fraction", "data"), fontsize=8, annotation_clip=False)  # fmt: skip
        return figure


def ablation_sizes(runs: pd.DataFrame) -> list[int]:
    """Return the sizes at which there is most to compare; none where there are no variants, or very many sizes.

    That is where at least half as many variants were run as at the size that has the most, or if those are too many
    sizes, as many.
    """
    if all(variant.plain for variant in runs.variant):
        return []
    counts = runs.groupby("size").variant.nunique()
    for share in (0.5, 1.0):
        found = [int(size) for size in counts.index[counts >= share * counts.max()]]
        if len(found) <= MAX_SIZES:
            return found
    return []


def ablation(runs: pd.DataFrame) -> Figure:
    """Plot a row for each variant and a panel for each size: every seed, the mean and its 95 % interval."""
    sizes = ablation_sizes(runs)
    groups = cells(runs[runs["size"].isin(sizes)])
    everything, compared = variant_styles(runs.variant), set(groups.variant)
    styles = {variant: style for variant, style in everything.items() if variant in compared}
    with mpl.rc_context(RC_PARAMS):
        letters = max(len(style.label) for style in styles.values())
        figure = Figure(
            figsize=(0.8 + 0.075 * letters + 3.4 * len(sizes), 1.1 + 0.3 * len(styles)), layout="constrained"
        )
        grid = figure.subplots(1, len(sizes), squeeze=False, sharey=True)
        for size, axes in zip(sizes, grid.flat, strict=True):
            _plot_rows(axes, groups[groups["size"] == size], styles)
            axes.set_title(f"DeepSea, N = {size}")
        grid[0, 0].set_yticks(range(len(styles)), [style.label for style in styles.values()], fontsize=9)
        grid[0, 0].set_ylim(len(styles) - 0.4, -0.6)
        return figure


def _panels(styles: dict[Variant, VariantStyle]) -> dict[str, list[Variant]]:
    """Return the variants of each panel by its title: all together where they are few, else by strategy."""
    if len(styles) <= MAX_INSIDE_LEGEND:
        return {"DeepSea": list(styles)}
    panels: dict[str, list[Variant]] = {}
    for variant in styles:
        title = "DQN" if is_dqn(variant) else algorithm(base_strategy(variant.strategy)[0]).label
        panels.setdefault(title, []).append(variant)
    return panels


def _plot_frontiers(axes: Axes, groups: pd.DataFrame, styles: dict[Variant, VariantStyle], lanes: int) -> None:
    cap, largest = groups.cap.max(), groups["size"].max()
    axes.axhline(cap, color="black", linewidth=0.8, linestyle=":")
    for number, (variant, style) in enumerate(styles.items()):
        mine = groups[groups.variant == variant]
        furthest = largest_solved(mine)
        text = f"{style.label}: {_reach(furthest, list(mine['size']), largest)}"
        seeds = mine.explode(["episodes", "is_solved"])
        seeds = seeds[seeds.is_solved.astype(bool)]
        axes.scatter(seeds["size"], seeds.episodes.astype(float), color=style.colour, s=6, alpha=0.6, linewidths=0)
        means = mine.mean_episodes.where(mine.solved > 0, np.nan)
        axes.plot(mine["size"], means, color=style.colour, linestyle=style.line, marker=style.marker,
                  markersize=4.5, linewidth=1.6, label=text)  # fmt: skip
        bounds = mine[(mine.solved > 0) & mine.censored]
        axes.plot(bounds["size"], bounds.mean_episodes, color=style.colour, linestyle="none", marker=style.marker,
                  markersize=4.5, markerfacecolor="white")  # fmt: skip
        lane = cap * LANE ** (number + 1)
        for cell in mine[mine.censored].itertuples():
            size = 8 + 18 * (1 - cell.fraction)
            axes.scatter(cell.size, lane, marker="x", s=size, linewidths=1.2, color=style.colour)
        if furthest is not None:
            mean = mine.mean_episodes[mine["size"] == furthest].item()
            axes.scatter(furthest, mean, s=120, facecolors="none", edgecolors=style.colour, linewidths=1.4, zorder=4)
    axes.set_yscale("log")
    quickest = min(map(min, groups.episodes))
    axes.set_ylim(0.8 * quickest, cap * LANE ** (lanes + 1))
    sizes = sorted(set(groups["size"]))
    axes.set_xlim(sizes[0] - 2, sizes[-1] + 2)
    if len(sizes) <= MAX_TICKS:
        axes.set_xticks(sizes)
    axes.set_yticks(cap_ticks(axes.get_ylim()[0], cap))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size N of the grid")
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _reach(furthest: int | None, tried: Sequence[int], largest: int) -> str:
    """Describe how far a variant got, or what it did not solve, among sizes up to `largest`."""
    if furthest is not None:
        return f"to N = {furthest}" + (", none larger was run" if furthest == tried[-1] < largest else "")
    return f"N = {tried[0]} unsolved" if len(tried) == 1 else f"none of N = {tried[0]} to {tried[-1]}"


def _plot_rows(axes: Axes, groups: pd.DataFrame, styles: dict[Variant, VariantStyle]) -> None:
    cap = groups.cap.max()
    axes.axvline(cap, color="black", linewidth=0.8, linestyle=":")
    rows = {variant: row for row, variant in enumerate(styles)}
    for cell in groups.itertuples():
        _plot_row(axes, cell, rows[cell.variant], styles[cell.variant].colour)
    families = [base_strategy(variant.strategy)[0] for variant in styles]
    for row in range(1, len(families)):
        if families[row] != families[row - 1]:
            axes.axhline(row - 0.5, color="#999999", linewidth=0.6)
    axes.set_xscale("log")
    axes.set_xlim(right=cap * 1.12)
    axes.set_xticks(cap_ticks(axes.get_xlim()[0], cap))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("episodes to solve (log scale)")
    axes.tick_params("x", labelsize=9)
    axes.tick_params("y", length=0)


def _plot_row(axes: Axes, cell: Any, row: int, colour: str) -> None:
    at = row + 0.5 * ((np.arange(cell.seeds) + 0.5) / cell.seeds - 0.5)
    episodes, solved = np.array(cell.episodes, float), np.array(cell.is_solved)
    for marker, shown in (("o", solved), ("x", ~solved)):
        axes.scatter(episodes[shown], at[shown], color=colour, s=20, marker=marker, alpha=0.75, zorder=3)
    low, high = shaded(cell)
    axes.plot([low, high], [row, row], color=colour, linewidth=5, alpha=0.3, solid_capstyle="butt")
    axes.plot([cell.mean_episodes] * 2, [row - 0.32, row + 0.32], color=colour, linewidth=2.2, zorder=4)
    if cell.censored and not np.isnan(cell.low):
        axes.plot(cell.mean_episodes, row, marker=">", markersize=10, color=colour, zorder=4)
    axes.annotate(f"{format_mean(cell)} ({cell.solved}/{cell.seeds})", (1.0, row), (5, 0),
                  xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=8,
                  annotation_clip=False)  # fmt: skip
