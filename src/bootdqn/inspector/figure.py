"""The paper's Fig. 1 for one step: what was seen, and bars of Q, gain and EVOI for every action."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bootdqn.common.algorithms import algorithm
from bootdqn.inspector.recording import Recording, Step


def draw_step(recording: Recording, number: int) -> Figure:
    """Return the figure for the step `number`."""
    step = recording.steps[number]
    with mpl.rc_context(
        {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}
    ):
        figure = Figure(figsize=(9, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 2.2))
        _show(left, step, recording)
        _bars(right, step, recording)
        return figure


def save(figure: Figure, path: Path) -> None:
    """Write the figure in the format that the name of `path` says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200)


def _show(axes: Axes, step: Step, recording: Recording) -> None:
    axes.axis("off")
    axes.set_title(recording.title, fontsize=9)
    if step.frame is not None:
        axes.imshow(step.frame)
    elif step.cell is not None:
        size = 1 + max(max(other.cell or (0, 0)) for other in recording.steps)
        grid = np.tril(np.ones((size, size)))
        grid[step.cell] = 2
        axes.imshow(grid, cmap="Blues", vmin=0, vmax=2.4)


def _bars(axes: Axes, step: Step, recording: Recording) -> None:
    found = recording.opinions(step)
    x = np.arange(len(step.names))
    low = float(step.q.min())
    high = float(max(step.q.max(), (found.own + found.gain).max(), (found.own + found.evoi).max()))
    if 0 < low < high / 2:
        low = 0.0
    floor = 0.0 if low <= 0 <= high else low
    colours = {"gain": algorithm("gain").colour, "EVOI": algorithm("evoi:reduce=sum").colour}
    for (label, extra), shift in zip((("gain", found.gain), ("EVOI", found.evoi)), (-0.2, 0.2), strict=True):
        label_of_q = "Q of the head" if shift < 0 else None
        axes.bar(x + shift, found.own - floor, 0.36, bottom=floor, color="#b8c4d6", label=label_of_q)
        axes.bar(x + shift, extra, 0.36, bottom=found.own, color=colours[label], label=label)
        axes.axhline(float((found.own + extra).max()), color=colours[label], linestyle="--", linewidth=1)
    for values in step.q:
        axes.scatter(x, values, s=9, color="black", alpha=0.5, zorder=3)
    axes.set_xticks(x, step.names, rotation=45 if len(x) > 6 else 0, ha="right" if len(x) > 6 else "center", fontsize=8)
    axes.get_xticklabels()[step.action].set_fontweight("bold")
    axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    axes.set_ylabel("value")
    axes.set_title(f"head {step.head} did {step.names[step.action]}", fontsize=9)
    axes.figure.legend(loc="outside upper right", ncols=3, frameon=False, fontsize=8)
