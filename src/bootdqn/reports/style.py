"""The style that all figures share: colours, lines and labels of variants, legends, intervals, and files."""

import io
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bootdqn.common.text import figure_label
from bootdqn.config.variants import Variant, algorithm, base_strategy, is_dqn, label, variant_order
from bootdqn.reports.statistics import Values, intervals_of_means

_PROCESS_PARAMS = ("backend", "date.epoch", "interactive", "timezone", "tk.", "toolbar", "webagg")
"""Parameters of Matplotlib that are about the process, not about how a figure looks."""
RC_PARAMS: dict[Any, Any] = {
    name: value for name, value in mpl.rcParamsDefault.items() if not name.startswith(_PROCESS_PARAMS)
} | {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.fonttype": "none",
    "svg.hashsalt": "bootdqn",
}
"""The style of all figures, whatever style the user's own have."""
MAX_INSIDE_LEGEND = 6
"""Curves whose names have room inside the axes."""
MAX_MARKED_POINTS = 10
"""Points of a curve that are each marked."""
HANDLE_INCHES, LETTER_INCHES = 0.6, 0.07
"""Room of a label in a legend: what stands before it, and each letter."""
MAX_COLUMNS = 3
UNFINISHED_CAPTION = "○ marks how far a run has come that is not finished."

DQN_COLOUR = "#555555"
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (2.5, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = "osD^vPX"
_SHADES = (0.0, -0.45, 0.4, -0.2, 0.2, -0.6, 0.55)
"""How far towards white, or where negative towards black."""


@dataclass(frozen=True)
class VariantStyle:
    """The label, colour, line and marker of a variant among others."""

    label: str
    colour: str
    line: Any = "-"
    """Matplotlib's line style."""
    marker: str = "o"


def variant_styles(variants: Iterable[Variant]) -> dict[Variant, VariantStyle]:
    """Return the styles of variants, in order: those of one strategy share its hue, not shade and line."""
    found: dict[Variant, VariantStyle] = {}
    taken: dict[str, int] = {}
    for variant in sorted(set(variants), key=variant_order):
        base, _ = base_strategy(variant.strategy)
        hue = DQN_COLOUR if is_dqn(variant) else algorithm(base, variant.environment).colour
        number = taken[hue] = taken.get(hue, -1) + 1
        found[variant] = VariantStyle(
            figure_label(label(variant)),
            _shaded(hue, _SHADES[number % len(_SHADES)]),
            _LINES[number % len(_LINES)],
            _MARKERS[number % len(_MARKERS)],
        )
    return found


def missing_lines(expected: Iterable[Variant], plotted: Iterable[Variant]) -> str:
    """Return the end of a caption that names the variants which a figure has no line of; nothing where it has all."""
    missing = sorted(set(expected) - set(plotted), key=variant_order)
    return (
        f" Without a line, for lack of metrics: {', '.join(label(variant) for variant in missing)}." if missing else ""
    )


def _shaded(colour: str, shade: float) -> str:
    end = 255 if shade > 0 else 0
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + abs(shade) * (end - part)):02X}" for part in parts)


def to_svg(figure: Figure) -> str:
    """Return the figure as SVG text that is the same for the same data."""
    buffer = io.StringIO()
    with _saving():
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def to_png(figure: Figure) -> bytes:
    """Return the figure as a PNG image."""
    buffer = io.BytesIO()
    with _saving():
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


@contextmanager
def _saving() -> Iterator[None]:
    """Save in our style, and without Matplotlib's complaints about names that are too long or in another script."""
    with mpl.rc_context(RC_PARAMS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="constrained_layout not applied|Glyph .* missing from font")
        yield


def cap_ticks(low: float, cap: float) -> list[float]:
    """Return 1, 2, 5, 10, ... from `low` to the cap, and the cap itself in place of what is close to it."""
    round_numbers = [step * 10.0**power for power in range(10) for step in (1, 2, 5)]
    return [value for value in round_numbers if low <= value <= 0.6 * cap] + [cap]


def band(axes: Axes, x: Values, low: Values, high: Values, colour: str) -> None:
    """Shade an interval around a line."""
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def mean_line(axes: Axes, x: Values, values: Values, style: VariantStyle) -> Line2D:
    """Plot the mean over runs, and shade its interval where they are enough for one.

    Args:
        axes: Where to.
        x: The places (T,).
        values: One row a run (runs, T).
        style: The name, colour, line and marker; points are marked where they are few.
    """
    if ends := intervals_of_means(values):
        band(axes, x, *ends, style.colour)
    marker = style.marker if len(x) <= MAX_MARKED_POINTS else None
    (line,) = axes.plot(x, values.mean(axis=0), color=style.colour, label=style.label, linewidth=1.8, marker=marker,
                        linestyle=style.line)  # fmt: skip
    return line


def mark_end(axes: Axes, x: float, y: float, colour: str) -> None:
    """Mark how far a run has come that is not finished."""
    axes.plot(x, y, marker="o", markersize=6, color=colour, markerfacecolor="white", zorder=4)


def legend_below(figure: Figure, lines: Mapping[str, Artist]) -> None:
    """Name the lines below the figure, where none crosses the names, as many side by side as fit."""
    widest = HANDLE_INCHES + LETTER_INCHES * max(map(len, lines))
    columns = max(1, min(MAX_COLUMNS, int(figure.get_figwidth() / widest)))
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=columns, frameon=False,
                  fontsize=9)  # fmt: skip


def labelled_lines(axes: Axes) -> dict[str, Artist]:
    """Return the artists of the axes by their labels, for `legend_below`."""
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))
