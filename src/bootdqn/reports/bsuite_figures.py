"""Figures of bsuite's exploration experiments: its radar of the three scores, and the runs behind them."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.projections.polar import PolarAxes

from bootdqn.config.bsuite import EXPERIMENTS
from bootdqn.config.variants import Variant
from bootdqn.reports.bsuite import DEEP_SEA_EPISODES, GOOD_RETURN, RANDOM_PLAY_MARGIN, TITLES, tag_scores
from bootdqn.reports.style import RC_PARAMS, VariantStyle, legend_below, variant_styles

RADAR_CAPTION = (
    "bsuite's scores of its exploration experiments, 1 is best: as a radar, one corner for each experiment, and as "
    "bars, with their mean, the score of the tag."
)
SETTINGS_CAPTION = (
    "Each setting. DeepSea: the episode at which it was solved by bsuite's rule; with a cross, at their last episode, "
    "the settings that were not solved; below the dashed line it was sooner than by random play. Swing-up: the best "
    "return of an episode, by the height that the pole must be above; above the dashed line it counts as a swing-up."
)


def radar(scores: pd.DataFrame) -> Figure:
    """Plot the scores of each variant: a radar, and bars with their mean.

    Args:
        scores: Those of `experiment_scores`.
    """
    styles = variant_styles(scores.variant)
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(9.5, 4.6), layout=ConstrainedLayoutEngine(h_pad=0.15))  # the names of the corners
        grid = figure.add_gridspec(1, 2, width_ratios=[1, 1.35])
        polar = figure.add_subplot(grid[0], projection="polar")
        assert isinstance(polar, PolarAxes)
        by_variant = {
            variant: mine.set_index("experiment").score for variant, mine in scores.groupby("variant", sort=False)
        }
        _plot_radar(polar, by_variant, styles)
        bars = figure.add_subplot(grid[1])
        tags, width = tag_scores(scores), 0.8 / len(styles)
        for number, (variant, style) in enumerate(styles.items()):
            values = [*by_variant[variant].reindex(list(EXPERIMENTS)), tags.get(variant, np.nan)]
            places = np.arange(len(values)) + (number - (len(styles) - 1) / 2) * width
            bars.bar(places, np.nan_to_num(values), 0.9 * width, color=style.colour, label=style.label)
        bars.axvline(len(EXPERIMENTS) - 0.5, color="#888888", linewidth=0.8)
        bars.set_xticks(range(len(TITLES) + 1), [*(title.replace(" ", "\n") for title in TITLES.values()), "mean"])
        bars.grid(visible=False, axis="x")
        bars.set_ylim(0, 1.02)
        bars.set_ylabel("score")
        legend_below(figure, dict(zip(*reversed(bars.get_legend_handles_labels()), strict=True)))
    return figure


def _plot_radar(axes: PolarAxes, by_variant: dict[Variant, pd.Series], styles: dict[Variant, VariantStyle]) -> None:
    """Plot one polygon for each variant; a corner whose experiment is missing is at 0."""
    angles = np.linspace(0, 2 * np.pi, len(EXPERIMENTS), endpoint=False)
    around = [*angles, angles[0]]
    for variant, style in styles.items():
        values = by_variant[variant].reindex(list(EXPERIMENTS)).fillna(0.0).tolist()
        axes.plot(around, [*values, values[0]], color=style.colour, linestyle=style.line, linewidth=1.8)
        axes.fill(around, [*values, values[0]], color=style.colour, alpha=0.12)
    axes.set_theta_zero_location("N")
    axes.set_xticks(angles, [title.replace(", ", ",\n").replace(" swing", "\nswing") for title in TITLES.values()])
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"], fontsize=8)
    for text, angle in zip(axes.get_xticklabels(), angles, strict=True):
        text.set_horizontalalignment("center" if not angle else "right" if angle < np.pi else "left")


def settings(runs: pd.DataFrame) -> Figure:
    """Plot the runs behind the scores, a panel for each experiment.

    Args:
        runs: Those of `bsuite_runs`.
    """
    styles = variant_styles(runs.variant)
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(11, 3.8), layout="constrained")
        panels = dict(zip(EXPERIMENTS, figure.subplots(1, len(EXPERIMENTS)), strict=True))
        lines = {}
        for number, (variant, style) in enumerate(styles.items()):
            mine = runs[runs.variant == variant]
            for experiment, axes in panels.items():
                here = mine[mine.experiment == experiment].sort_values("index")
                plot = _plot_swing_up if experiment == "cartpole_swingup" else _plot_solved
                plot(axes, here, style, (number - (len(styles) - 1) / 2) / max(len(styles), 4))
            (lines[style.label],) = panels["deep_sea"].plot(
                [], [], color=style.colour, marker=style.marker, linestyle=""
            )
        for experiment, axes in panels.items():
            axes.set_title(TITLES[experiment], fontsize=11)
            (_format_swing_up if experiment == "cartpole_swingup" else _format_solved)(axes)
        legend_below(figure, lines)
    return figure


def _plot_solved(axes: Axes, runs: pd.DataFrame, style: VariantStyle, shift: float) -> None:
    solved = runs[runs.solved_at.notna()]
    missed = runs[runs.solved_at.isna()]
    size = solved["size"].astype(float) + 1.6 * shift
    axes.plot(size, solved.solved_at.astype(float), style.marker, color=style.colour, markersize=5, alpha=0.9)
    axes.plot(missed["size"].astype(float) + 1.6 * shift, missed.budget.astype(float), "x", color=style.colour)


def _format_solved(axes: Axes) -> None:
    sizes = np.linspace(8, 52, 200)
    axes.plot(
        sizes, np.minimum(2.0**sizes + RANDOM_PLAY_MARGIN, 3 * DEEP_SEA_EPISODES), "--", color="#888888", linewidth=1
    )
    axes.set_yscale("log")
    axes.set_ylim(0.8, 1.8 * DEEP_SEA_EPISODES)
    axes.set_xlim(8, 52)
    axes.set_xlabel("N")
    axes.set_ylabel("solved at episode")


def _plot_swing_up(axes: Axes, runs: pd.DataFrame, style: VariantStyle, shift: float) -> None:
    heights = runs["index"].astype(float) / len(EXPERIMENTS["cartpole_swingup"].settings)
    axes.plot(heights + 0.04 * shift, runs.best_episode, style.marker, color=style.colour, markersize=5, alpha=0.9)


def _format_swing_up(axes: Axes) -> None:
    axes.axhline(GOOD_RETURN, linestyle="--", color="#888888", linewidth=1)
    axes.set_xlim(-0.05, 1)
    axes.set_ylim(bottom=-20)
    axes.set_xlabel("height threshold")
    axes.set_ylabel("best return")
