"""Figures for many variants at once: how far each gets on DeepSea, and what a change of settings is worth."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from bootdqn.config.variants import Variant, algorithm, family, is_dqn
from bootdqn.report.bsuite_score import frontier
from bootdqn.report.deep_sea import Cell, Result, cells
from bootdqn.report.figures import FEW, STYLE, cap_ticks
from bootdqn.report.looks import Look, looks

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
MOST_TICKS = 8
MOST_SIZES = 4
"""Of the figure of ablations."""


def frontiers(results: list[Result]) -> Figure:
    """Draw episodes to solve against N for each variant, where they are many in a panel for each strategy.

    Runs that did not solve it stand in lanes above the cap, and the legend says how far each variant got.
    """
    shown = looks(result.variant for result in results)
    panels = _panels(shown)
    columns = min(PANELS_IN_A_ROW, len(panels))
    rows = -(-len(panels) // columns)
    deepest = max(map(len, panels.values()))
    with mpl.rc_context(STYLE):
        height = 3.6 + 0.09 * deepest + 0.19 * deepest
        figure = Figure(figsize=(max(7.5, 4.3 * columns), height * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        groups = cells(results)
        for (title, panel), axes in zip(panels.items(), grid.flat, strict=False):
            _draw_frontiers(axes, groups, {variant: shown[variant] for variant in panel}, deepest)
            axes.set_title(title)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        for row in grid:
            row[0].set_ylabel("episodes to solve (log scale)")
            row[0].annotate("unsolved", (-0.02, _cap(groups) * LANE ** (deepest / 2 + 0.5)), ha="right", va="center",
                            xycoords=("axes fraction", "data"), fontsize=8, annotation_clip=False)  # fmt: skip
        return figure


def ablation_sizes(results: list[Result]) -> list[int]:
    """Return the sizes at which there is most to compare; none where there are no variants, or very many sizes.

    That is where at least half as many variants were run as at the size that has the most, or if those are too many
    sizes, as many.
    """
    groups = cells(results)
    if all(cell.variant.plain for cell in groups):
        return []
    counts = {size: sum(cell.size == size for cell in groups) for size in sorted({cell.size for cell in groups})}
    for share in (0.5, 1.0):
        found = [size for size, count in counts.items() if count >= share * max(counts.values())]
        if len(found) <= MOST_SIZES:
            return found
    return []


def ablation(results: list[Result]) -> Figure:
    """Draw a row for each variant and a panel for each size: every seed, the mean and its 95 % interval."""
    sizes = ablation_sizes(results)
    groups = [cell for cell in cells(results) if cell.size in sizes]
    everything = looks(result.variant for result in results)
    shown = {variant: look for variant, look in everything.items() if any(cell.variant == variant for cell in groups)}
    with mpl.rc_context(STYLE):
        letters = max(len(look.label) for look in shown.values())
        figure = Figure(
            figsize=(0.8 + 0.075 * letters + 3.4 * len(sizes), 1.1 + 0.3 * len(shown)), layout="constrained"
        )
        grid = figure.subplots(1, len(sizes), squeeze=False, sharey=True)
        for size, axes in zip(sizes, grid.flat, strict=True):
            _draw_rows(axes, [cell for cell in groups if cell.size == size], shown)
            axes.set_title(f"DeepSea, N = {size}")
        grid[0, 0].set_yticks(range(len(shown)), [look.label for look in shown.values()], fontsize=9)
        grid[0, 0].set_ylim(len(shown) - 0.4, -0.6)
        return figure


def _panels(shown: dict[Variant, Look]) -> dict[str, list[Variant]]:
    """Return the variants of each panel by its title: all together where they are few, else by strategy."""
    if len(shown) <= FEW:
        return {"DeepSea": list(shown)}
    panels: dict[str, list[Variant]] = {}
    for variant in shown:
        title = "DQN" if is_dqn(variant) else algorithm(family(variant.strategy)[0]).label
        panels.setdefault(title, []).append(variant)
    return panels


def _cap(groups: Sequence[Cell]) -> int:
    return max(result.cap for cell in groups for result in cell.results)


def _draw_frontiers(axes: Axes, groups: Sequence[Cell], shown: dict[Variant, Look], lanes: int) -> None:
    cap, largest = _cap(groups), max(cell.size for cell in groups)
    axes.axhline(cap, color="black", linewidth=0.8, linestyle=":")
    for number, (variant, look) in enumerate(shown.items()):
        mine = [cell for cell in groups if cell.variant == variant]
        means = [cell.mean if cell.solved else np.nan for cell in mine]
        furthest = frontier(mine)
        told = f"{look.label}: {_got(furthest, [cell.size for cell in mine], largest)}"
        solved = [(cell.size, one.episodes) for cell in mine for one in cell.results if one.solved_at_strict]
        axes.scatter([x for x, _ in solved], [y for _, y in solved], color=look.colour, s=6, alpha=0.6, linewidths=0)
        axes.plot([cell.size for cell in mine], means, color=look.colour, linestyle=look.line, marker=look.marker,
                  markersize=4.5, linewidth=1.6, label=told)  # fmt: skip
        bounds = [(cell.size, cell.mean) for cell in mine if cell.solved and cell.censored]
        axes.plot([x for x, _ in bounds], [y for _, y in bounds], color=look.colour, linestyle="none",
                  marker=look.marker, markersize=4.5, markerfacecolor="white")  # fmt: skip
        lane = cap * LANE ** (number + 1)
        for cell in mine:
            if cell.censored:
                unsolved = 1 - cell.solved_fraction
                axes.scatter(cell.size, lane, marker="x", s=8 + 18 * unsolved, linewidths=1.2, color=look.colour)
        if furthest is not None:
            mean = next(cell.mean for cell in mine if cell.size == furthest)
            axes.scatter(furthest, mean, s=120, facecolors="none", edgecolors=look.colour, linewidths=1.4, zorder=4)
    axes.set_yscale("log")
    quickest = min(result.episodes for cell in groups for result in cell.results)
    axes.set_ylim(0.8 * quickest, cap * LANE ** (lanes + 1))
    sizes = sorted({cell.size for cell in groups})
    axes.set_xlim(sizes[0] - 2, sizes[-1] + 2)
    if len(sizes) <= MOST_TICKS:
        axes.set_xticks(sizes)
    axes.set_yticks(cap_ticks(axes.get_ylim()[0], cap))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size N of the grid")
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _got(furthest: int | None, tried: Sequence[int], largest: int) -> str:
    """Say how far a variant got, or what it did not solve, among sizes up to `largest`."""
    if furthest is not None:
        return f"to N = {furthest}" + (", none larger was run" if furthest == tried[-1] < largest else "")
    return f"N = {tried[0]} unsolved" if len(tried) == 1 else f"none of N = {tried[0]} to {tried[-1]}"


def _draw_rows(axes: Axes, groups: Sequence[Cell], shown: dict[Variant, Look]) -> None:
    cap = _cap(groups)
    axes.axvline(cap, color="black", linewidth=0.8, linestyle=":")
    for row, (variant, look) in enumerate(shown.items()):
        for cell in (one for one in groups if one.variant == variant):
            _draw_row(axes, cell, row, look.colour)
    families = [family(variant.strategy)[0] for variant in shown]
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


def _draw_row(axes: Axes, cell: Cell, row: int, colour: str) -> None:
    for number, result in enumerate(cell.results):
        at = row + 0.5 * ((number + 0.5) / len(cell.results) - 0.5)
        solved = result.solved_at_strict is not None
        axes.scatter(result.episodes, at, color=colour, s=20, marker="o" if solved else "x", alpha=0.75, zorder=3)
    low, high = cell.shaded
    axes.plot([low, high], [row, row], color=colour, linewidth=5, alpha=0.3, solid_capstyle="butt")
    axes.plot([cell.mean] * 2, [row - 0.32, row + 0.32], color=colour, linewidth=2.2, zorder=4)
    if cell.censored and cell.interval is not None:
        axes.plot(cell.mean, row, marker=">", markersize=10, color=colour, zorder=4)
    bound = "≥ " if cell.censored else ""
    axes.annotate(f"{bound}{cell.mean:,.0f} ({cell.solved}/{len(cell.results)})", (1.0, row), (5, 0),
                  xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=8,
                  annotation_clip=False)  # fmt: skip
