"""The paper's Atari figures, also for MinAtar: scores and vote diversity against frames, and scores for several K."""

from collections.abc import Iterable

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bootdqn.common.text import figure_label
from bootdqn.config.variants import algorithm, label
from bootdqn.reports import paper
from bootdqn.reports.atari import by_game_and_variant, curve, games_of, normalised_strata, variants_of
from bootdqn.reports.atari_heads import by_heads
from bootdqn.reports.statistics import performance_profile
from bootdqn.reports.style import RC_PARAMS, VariantStyle, labelled_lines, legend_below, mean_line, variant_styles
from bootdqn.reports.suites import ATARI, Suite

INSET_FRAMES = 5e6
INSET_THRESHOLD = 0.25
"""Final means closer together than this fraction of the axis call for an inset."""
MAX_PAPER_SCORE_RATIO = 2.0
"""How many times our highest score the paper's may be and still share the axis: beyond, our curves would be flat."""
PAPER_SCORES_CAPTION = "The paper's maximal scores are marked at the right edge, or printed where they are far above."
HEAD_COLOURS = ("#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7", "#E69F00")


def scores(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Figure:
    """Plot Fig. 2a of the paper: evaluation score against frames, one plot a game."""
    return _by_game(evaluations, "score", "evaluation score", suite)


def diversity(evaluations: pd.DataFrame, measure: str, axis_label: str, suite: Suite = ATARI) -> Figure:
    """Plot Fig. 2b of the paper: vote diversity against frames, one plot a game."""
    return _by_game(evaluations, measure, axis_label, suite)


def heads(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Figure:
    """Plot Fig. 3 of the paper: evaluation score against frames for several K."""
    groups = by_heads(evaluations)
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 4.5), layout="constrained")
        axes = figure.subplots()
        for (k, runs), colour in zip(groups.items(), HEAD_COLOURS * len(groups), strict=False):
            _line(axes, runs, "score", VariantStyle(f"K = {k} (n = {runs.run.nunique()})", colour), suite)
        first = next(iter(groups.values())).iloc[0]
        _random_play(axes, first.game, suite)
        _from_zero(axes)
        axes.set_title(figure_label(f"{label(first.variant.without('num_heads'))} on {paper.title_of(first.game)}"))
        _label(axes, "evaluation score", suite)
        legend_below(figure, labelled_lines(axes))
        return figure


def profiles(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Figure:
    """Plot the fraction of runs above each normalised score, for each algorithm on the games that have one."""
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.subplots()
        strata = normalised_strata(evaluations, suite)
        values = {variant: [value for game in games.values() for value in game] for variant, games in strata.items()}
        everything = [value for each in values.values() for value in each]
        thresholds = np.linspace(min(0.0, *everything), max(everything) * 1.05 + 1e-9, 200)
        for variant, style in variant_styles(variants_of(evaluations)).items():
            if variant in values:
                fractions = performance_profile(values[variant], thresholds)
                axes.step(thresholds, fractions, color=style.colour, label=style.label, linestyle=style.line)
        axes.set_xlabel(f"{suite.normalised} τ (%)")
        axes.set_ylabel("fraction of runs above τ")
        axes.set_ylim(-0.03, 1.03)
        legend_below(figure, labelled_lines(axes))
        return figure


def _by_game(evaluations: pd.DataFrame, measure: str, axis_label: str, suite: Suite) -> Figure:
    games, by_game = games_of(evaluations), by_game_and_variant(evaluations)
    styles = variant_styles(variants_of(evaluations))
    columns = min(3, len(games))
    rows = -(-len(games) // columns)
    with mpl.rc_context(RC_PARAMS):
        size = (7.5, 4.2) if len(games) == 1 else (4.2 * columns, 3.3 * rows + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        labels: dict[str, Line2D] = {}
        for game, axes in zip(games, grid.flat, strict=False):
            cells = [(by_game[game, variant], style) for variant, style in styles.items() if (game, variant) in by_game]
            for runs, style in cells:
                labels[style.label] = _line(axes, runs, measure, style, suite)
            if measure == "score":
                _random_play(axes, game, suite)
                _from_zero(axes)
                labels |= _papers_scores(axes, game, cells)
                _inset_where_crowded(axes, cells, suite)
            axes.set_title(figure_label(paper.title_of(game)))
            _label(axes, axis_label, suite)
        for axes in list(grid.flat)[len(games) :]:
            axes.set_visible(False)
        legend_below(figure, labels)
        return figure


def _line(axes: Axes, runs: pd.DataFrame, measure: str, style: VariantStyle, suite: Suite) -> Line2D:
    frames, values = curve(runs, measure)
    return mean_line(axes, frames / suite.axis_scale, values, style)


def _from_zero(axes: Axes) -> None:
    """Begin the axis of scores at 0 where none is below."""
    low, high = axes.get_ylim()
    if min(value for line in axes.get_lines() for value in np.atleast_1d(line.get_ydata())) >= 0:
        axes.set_ylim(min(0.0, low), high)


def _random_play(axes: Axes, game: str, suite: Suite) -> None:
    """Mark what a random player scores, where it is known."""
    if game in suite.random:
        axes.axhline(suite.random[game], color="black", linewidth=0.8, linestyle=":")
        axes.annotate("random", (1.0, suite.random[game]), xycoords=("axes fraction", "data"), ha="right",
                      va="bottom", fontsize=8)  # fmt: skip


def _papers_scores(axes: Axes, game: str, cells: Iterable[tuple[pd.DataFrame, VariantStyle]]) -> dict[str, Line2D]:
    """Mark the paper's maximal scores of the algorithms that are plotted, or write down those that are far above.

    Returns:
        The entry of the marks in the legend, if there are any.
    """
    colours: dict[str, str] = {}
    for runs, style in cells:
        colours.setdefault(runs.variant.iloc[0].strategy, style.colour)
    printed = {strategy: paper.MAXIMAL_SCORE.get(game, {}).get(strategy) for strategy in colours}
    known = {strategy: score for strategy, score in printed.items() if score is not None}
    limit = MAX_PAPER_SCORE_RATIO * axes.get_ylim()[1]
    far_above = [strategy for strategy, score in known.items() if score > limit]
    for number, strategy in enumerate(far_above):
        text = f"↑ {algorithm(strategy, 'atari').label} in the paper: {known[strategy]:,.1f}"
        axes.text(0.02, 0.97 - 0.07 * number, text, transform=axes.transAxes, va="top", fontsize=8,
                  color=colours[strategy])  # fmt: skip
    for strategy in [one for one in known if one not in far_above]:
        axes.plot([1.0], [known[strategy]], transform=axes.get_yaxis_transform(), marker="<", markersize=7,
                  linestyle="none", color=colours[strategy], clip_on=False)  # fmt: skip
    mark = Line2D([], [], marker="<", linestyle="none", color="#666666")
    return {"the paper's maximal score": mark} if len(far_above) < len(known) else {}


def _inset_where_crowded(axes: Axes, cells: list[tuple[pd.DataFrame, VariantStyle]], suite: Suite) -> None:
    """Show the last 5M frames once more, larger, where several curves end close together."""
    ends = [curve(runs)[1].mean(axis=0)[-1] for runs, _ in cells]
    last = max(curve(runs)[0][-1] for runs, _ in cells)
    low, high = axes.get_ylim()
    if len(cells) < 2 or last < 2 * INSET_FRAMES or max(ends) - min(ends) > INSET_THRESHOLD * (high - low):
        return
    inset = axes.inset_axes((0.55, 0.08, 0.42, 0.36))
    for runs, style in cells:
        frames, values = curve(runs)
        late = frames >= last - INSET_FRAMES
        inset.plot(frames[late] / suite.axis_scale, values.mean(axis=0)[late], color=style.colour, linestyle=style.line)
    inset.tick_params(labelsize=7)


def _label(axes: Axes, axis_label: str, suite: Suite) -> None:
    axes.set_xlim(left=0)
    axes.set_xlabel(suite.axis)
    axes.set_ylabel(axis_label)
