"""The figure of one step, as Fig. 1 of the paper: the state, and bars of Q, gain and EVOI for every action."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bootdqn.common.specs import Array
from bootdqn.common.text import figure_label
from bootdqn.config.variants import algorithm
from bootdqn.inspector.recording import Recording, Step, StepAnalysis

VISIBLE_SHARE = 0.04
"""A bonus below this share of the axis of Q-values is hard to see: 10 of 250 pixels."""


def plot_step(recording: Recording, number: int) -> Figure:
    """Return the figure of step `number`."""
    step = recording.steps[number]
    with mpl.rc_context(
        {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}
    ):
        scores_below = not recording.scores_in_bars
        figure = Figure(figsize=(9, 5.2 if scores_below else 3.8), layout="constrained")
        grid = figure.add_gridspec(
            2 if scores_below else 1, 2, width_ratios=(1, 2.2), height_ratios=(3, 1.2)[: 1 + scores_below]
        )
        _plot_state(figure.add_subplot(grid[0, 0]), step, recording)
        _plot_values(figure.add_subplot(grid[0, 1]), step, recording)
        if scores_below:
            _plot_scores(figure.add_subplot(grid[1, 1]), step, recording)
        return figure


def bonuses_are_invisible(recording: Recording) -> bool:
    """Return whether gain and EVOI are too small to see beside the Q-values in most of the steps that have any."""
    shares = []
    for step in recording.steps:
        found = recording.analysis(step)
        low, high = _limits(_plotted_values(step, found))
        bonus = float(max(found.gain.max(), found.evoi.max()))
        if bonus > 0:
            shares.append(bonus / (high - low))
    return bool(shares) and float(np.median(shares)) < VISIBLE_SHARE


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format of the suffix of `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200)


def _plot_state(axes: Axes, step: Step, recording: Recording) -> None:
    axes.axis("off")
    axes.set_title(figure_label(recording.title), fontsize=9)
    if step.frame is not None:
        axes.imshow(step.frame)
    elif step.cell is not None:
        size = 1 + max(max(other.cell or (0, 0)) for other in recording.steps)
        grid = np.tril(np.ones((size, size)))
        grid[step.cell] = 2
        axes.imshow(grid, cmap="Blues", vmin=0, vmax=2.4)


def _plot_values(axes: Axes, step: Step, recording: Recording) -> None:
    found = recording.analysis(step)
    relative = bonuses_are_invisible(recording)
    shift = float(found.mean.max()) if relative else 0.0
    q, own = step.q - shift, found.own - shift
    x = np.arange(len(step.names))
    floor = _scale_to_bonuses(axes, q, own, found) if relative else _scale(axes, _plotted_values(step, found))
    colours = {"gain": algorithm("gain").colour, "EVOI": algorithm("evoi:reduce=sum").colour}
    for (label, extra), side in zip((("gain", found.gain), ("EVOI", found.evoi)), (-0.2, 0.2), strict=True):
        label_of_q = f"Q of head {step.head}" if side < 0 else None
        axes.bar(x + side, own - floor, 0.36, bottom=floor, color="#b8c4d6", label=label_of_q)
        axes.bar(x + side, extra, 0.36, bottom=own, color=colours[label], label=label)
        axes.axhline(float((own + extra).max()), color=colours[label], linestyle="--", linewidth=1)
    for values in q:
        axes.scatter(x, values, s=9, color="black", alpha=0.5, zorder=3)
    _label_actions(axes, step)
    axes.set_ylabel(f"Q less the value of the state, {shift:.3g}" if relative else "value")
    who = f"head {step.head}" if recording.follows_head else recording.strategy_text
    axes.set_title(figure_label(f"{who} did {step.names[step.action]}"), fontsize=9)
    axes.figure.legend(loc="outside upper right", ncols=3, frameon=False, fontsize=8)


def _plotted_values(step: Step, found: StepAnalysis) -> Array:
    values: Array = np.concatenate([step.q.ravel(), found.own + found.gain, found.own + found.evoi])
    return values


def _plot_scores(axes: Axes, step: Step, recording: Recording) -> None:
    """Plot the numbers by which the strategy chose; an infinite one has no bar."""
    numbers = recording.decision_values(step)
    finite = np.isfinite(numbers)
    from_zero = recording.scores_start_at_zero or not finite.any()
    floor = _scale(axes, np.concatenate([numbers[finite], np.zeros(int(from_zero))]), margin=0.22)
    heights = np.where(finite, numbers - floor, 0.0)
    colour = algorithm(recording.strategy_text).colour
    bars = axes.bar(np.arange(len(numbers)), heights, 0.4, bottom=floor, color=colour)
    axes.bar_label(bars, [f"{number:.3g}" for number in numbers], fontsize=6 if len(numbers) > 6 else 8)
    _label_actions(axes, step)
    axes.set_title(figure_label(recording.score_title), fontsize=9)


def _label_actions(axes: Axes, step: Step) -> None:
    names, many = [figure_label(name) for name in step.names], len(step.names) > 6
    axes.set_xticks(
        np.arange(len(names)), names, rotation=45 if many else 0, ha="right" if many else "center", fontsize=8
    )
    axes.get_xticklabels()[step.action].set_fontweight("bold")
    axes.set_xlim(-0.6, len(step.names) - 0.4)


def _scale(axes: Axes, values: Array, margin: float = 0.08) -> float:
    """Fit the axis to `values`, with a line at zero if that is near, and return the bottom of the bars."""
    low, high = _limits(values)
    pad = margin * (high - low or 1)
    axes.set_ylim(low - pad, high + pad)
    if low <= 0 <= high:
        axes.axhline(0, color="black", linewidth=0.8)
        return 0.0
    return low - pad


def _scale_to_bonuses(axes: Axes, q: Array, own: Array, found: StepAnalysis) -> float:
    """Fit the axis to the bonuses on relative Q-values, mark actions far below, and return the bottom of the bars."""
    bonus = float(max(found.gain.max(), found.evoi.max()))
    high = float(max(q.max(), (own + found.gain).max(), (own + found.evoi).max()))
    low = float(max(q.min(), min(0.0, own.max()) - 6 * bonus)) if bonus > 0 else float(q.min())
    pad = 0.08 * (high - low or 1)
    axes.set_ylim(low - pad, high + pad)
    axes.axhline(0, color="black", linewidth=0.8)
    for action in np.flatnonzero(own < low - pad):
        axes.annotate(f"▼ {own[action]:.2g}", (action, low - pad), ha="center", va="bottom", fontsize=6)
    return low - pad


def _limits(values: Array) -> tuple[float, float]:
    """Return the lowest and the highest of `values`, or zero in their place if it is near."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and (low < high / 2 or low == high):
        low = 0.0
    if high < 0 and (high > low / 2 or low == high):
        high = 0.0
    return low, high
