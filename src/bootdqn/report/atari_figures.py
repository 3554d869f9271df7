"""The paper's Atari figures: scores and vote diversity against frames, and scores for several K."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bootdqn.common.text import as_plotted
from bootdqn.config.variants import atari_algorithm
from bootdqn.report import paper
from bootdqn.report.atari import Played, curve, games_of, name_of, normalised_strata, of, variants_of
from bootdqn.report.atari_heads import by_heads
from bootdqn.report.figures import STYLE, legend_below, mean_line
from bootdqn.report.looks import Look, looks
from bootdqn.report.statistics import performance_profile

INSET_FRAMES = 5e6
CROWDED = 0.25
"""Final means closer together than this fraction of the axis call for an inset."""
WITHIN_SIGHT = 2.0
"""How many times our highest score the paper's may be and still share the axis: beyond, our curves would be flat."""
PAPERS_SCORES = "The paper's maximal scores are marked at the right edge, or told where they are far above."
HEAD_COLOURS = ("#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7", "#E69F00")


class Episode(NamedTuple):
    """An episode of training."""

    frames: int
    """Frames of the run so far."""
    score: float


def scores(played: list[Played]) -> Figure:
    """Fig. 2a of the paper: evaluation score against frames, one plot a game."""
    return _by_game(played, None, "evaluation score")


def diversity(played: list[Played], measure: str, label: str) -> Figure:
    """Fig. 2b of the paper: vote diversity against frames, one plot a game."""
    return _by_game(played, measure, label)


def heads(played: list[Played]) -> Figure:
    """Fig. 3 of the paper: evaluation score against frames for several K."""
    groups = by_heads(played)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.5), layout="constrained")
        axes = figure.subplots()
        for (k, runs), colour in zip(groups.items(), HEAD_COLOURS * len(groups), strict=False):
            _line(axes, runs, None, Look(f"K = {k} (n = {len(runs)})", colour))
        first = next(iter(groups.values()))[0]
        _random_play(axes, first.game)
        _from_zero(axes)
        axes.set_title(as_plotted(f"{name_of(first.variant.without('num_heads'))} on {paper.title_of(first.game)}"))
        _label(axes, "evaluation score")
        axes.legend(frameon=False, fontsize=9)
        return figure


def profiles(played: list[Played]) -> Figure:
    """Draw the fraction of runs above each human-normalised score, for each algorithm on the games of the paper."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.subplots()
        games = [game for game in games_of(played) if game in paper.GAMES]
        values = {
            variant: [v for stratum in normalised_strata(played, games, variant) for v in stratum]
            for variant in variants_of(played)
        }
        everything = [v for each in values.values() for v in each]
        thresholds = np.linspace(min(0.0, *everything), max(everything) * 1.05 + 1e-9, 200)
        for variant, look in looks(values, atari_algorithm).items():
            if found := values[variant]:
                axes.step(thresholds, performance_profile(found, thresholds), color=look.colour, label=look.label,
                          linestyle=look.line)  # fmt: skip
        axes.set_xlabel("human-normalised score τ (%)")
        axes.set_ylabel("fraction of runs above τ")
        axes.set_ylim(-0.03, 1.03)
        axes.legend(frameon=False, fontsize=9)
        return figure


def learning(played: Played, episodes: Sequence[Episode], first_update: int, random: float) -> Figure:
    """Draw one run as it was: every episode it trained on, every vote, what random play scores, and the first update.

    Args:
        played: The run.
        episodes: Its training episodes.
        first_update: Frames before it.
        random: What random play of the game scores.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.8), layout="constrained")
        axes = figure.subplots()
        colour = looks([played.variant], atari_algorithm)[played.variant].colour
        axes.scatter([one.frames / 1e6 for one in episodes], [one.score for one in episodes], s=16, color="#888888",
                     label="training episode of one head")  # fmt: skip
        axes.plot(np.asarray(played.frames) / 1e6, played.scores, color=colour, marker="o", linewidth=1.8,
                  label="evaluation by vote")  # fmt: skip
        axes.axhline(random, color="black", linewidth=0.8, linestyle=":", label="random play")
        axes.axvline(first_update / 1e6, color="black", linewidth=0.8, linestyle="--", label="first update")
        axes.set_title(as_plotted(f"{paper.title_of(played.game)}, K = {played.num_heads}, seed {played.seed}"))
        _label(axes, "score")
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure


def _by_game(played: list[Played], measure: str | None, label: str) -> Figure:
    games = games_of(played)
    columns = min(3, len(games))
    rows = -(-len(games) // columns)
    with mpl.rc_context(STYLE):
        size = (7.5, 4.2) if len(games) == 1 else (4.2 * columns, 3.3 * rows + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        labels: dict[str, Line2D] = {}
        for game, axes in zip(games, grid.flat, strict=False):
            cells = [
                (of(played, game, variant), look)
                for variant, look in looks(variants_of(played), atari_algorithm).items()
            ]
            cells = [(runs, look) for runs, look in cells if runs]
            for runs, look in cells:
                labels[look.label] = _line(axes, runs, measure, look)
            if measure is None:
                _random_play(axes, game)
                _from_zero(axes)
                labels |= _papers_scores(axes, game, cells)
                _inset_where_crowded(axes, cells)
            axes.set_title(as_plotted(paper.title_of(game)))
            _label(axes, label)
        for axes in list(grid.flat)[len(games) :]:
            axes.set_visible(False)
        legend_below(figure, labels)
        return figure


def _line(axes: Axes, runs: list[Played], measure: str | None, look: Look) -> Line2D:
    frames, values = curve(runs, measure)
    return mean_line(axes, frames / 1e6, values, look)


def _from_zero(axes: Axes) -> None:
    """Begin the axis of scores at 0 where none is below."""
    low, high = axes.get_ylim()
    if min(value for line in axes.get_lines() for value in np.atleast_1d(line.get_ydata())) >= 0:
        axes.set_ylim(min(0.0, low), high)


def _random_play(axes: Axes, game: str) -> None:
    """Mark what a random player scores, where the paper says it."""
    if game in paper.RANDOM_SCORE:
        axes.axhline(paper.RANDOM_SCORE[game], color="black", linewidth=0.8, linestyle=":")
        axes.annotate("random", (1.0, paper.RANDOM_SCORE[game]), xycoords=("axes fraction", "data"), ha="right",
                      va="bottom", fontsize=8)  # fmt: skip


def _papers_scores(axes: Axes, game: str, cells: Iterable[tuple[list[Played], Look]]) -> dict[str, Line2D]:
    """Mark the paper's maximal scores of the algorithms that are drawn, or tell those that are far above.

    Returns:
        What the legend says of the marks, if there are any.
    """
    colours: dict[str, str] = {}
    for runs, look in cells:
        colours.setdefault(runs[0].variant.strategy, look.colour)
    printed = {strategy: paper.MAXIMAL_SCORE.get(game, {}).get(strategy) for strategy in colours}
    known = {strategy: score for strategy, score in printed.items() if score is not None}
    limit = WITHIN_SIGHT * axes.get_ylim()[1]
    far_above = [strategy for strategy, score in known.items() if score > limit]
    for number, strategy in enumerate(far_above):
        text = f"↑ {atari_algorithm(strategy).label} in the paper: {known[strategy]:,.1f}"
        axes.text(0.02, 0.97 - 0.07 * number, text, transform=axes.transAxes, va="top", fontsize=8,
                  color=colours[strategy])  # fmt: skip
    for strategy in [one for one in known if one not in far_above]:
        axes.plot([1.0], [known[strategy]], transform=axes.get_yaxis_transform(), marker="<", markersize=7,
                  linestyle="none", color=colours[strategy], clip_on=False)  # fmt: skip
    mark = Line2D([], [], marker="<", linestyle="none", color="#666666")
    return {"the paper's maximal score": mark} if len(far_above) < len(known) else {}


def _inset_where_crowded(axes: Axes, cells: list[tuple[list[Played], Look]]) -> None:
    """Show the last 5M frames once more, larger, where several curves end close together."""
    ends = [curve(runs)[1].mean(axis=0)[-1] for runs, _ in cells]
    last = max(curve(runs)[0][-1] for runs, _ in cells)
    low, high = axes.get_ylim()
    if len(cells) < 2 or last < 2 * INSET_FRAMES or max(ends) - min(ends) > CROWDED * (high - low):
        return
    inset = axes.inset_axes((0.55, 0.08, 0.42, 0.36))
    for runs, look in cells:
        frames, values = curve(runs)
        late = frames >= last - INSET_FRAMES
        inset.plot(frames[late] / 1e6, values.mean(axis=0)[late], color=look.colour, linestyle=look.line)
    inset.tick_params(labelsize=7)


def _label(axes: Axes, label: str) -> None:
    axes.set_xlim(left=0)
    axes.set_xlabel("frames (millions)")
    axes.set_ylabel(label)
