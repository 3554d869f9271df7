"""How the figures show variants side by side: a colour, a line and a marker for each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bootdqn.common.text import as_plotted
from bootdqn.config.variants import Algorithm, Variant, algorithm, family, is_dqn, label, variant_order

DQN_COLOUR = "#555555"
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (2.5, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = "osD^vPX"
_SHADES = (0.0, -0.45, 0.4, -0.2, 0.2, -0.6, 0.55)
"""How far towards white, or where negative towards black."""


@dataclass(frozen=True)
class Look:
    """How a variant is shown among others."""

    label: str
    colour: str
    line: Any = "-"
    """Matplotlib's line style."""
    marker: str = "o"


def looks(variants: Iterable[Variant], named: Callable[[str], Algorithm] = algorithm) -> dict[Variant, Look]:
    """Return how to show variants side by side, in order: those of one strategy share its hue, not shade and line."""
    found: dict[Variant, Look] = {}
    taken: dict[str, int] = {}
    for variant in sorted(set(variants), key=lambda one: variant_order(one, named)):
        hue = DQN_COLOUR if is_dqn(variant) else named(family(variant.strategy)[0]).colour
        number = taken[hue] = taken.get(hue, -1) + 1
        found[variant] = Look(
            as_plotted(label(variant, named)),
            _shaded(hue, _SHADES[number % len(_SHADES)]),
            _LINES[number % len(_LINES)],
            _MARKERS[number % len(_MARKERS)],
        )
    return found


def without_line(
    expected: Iterable[Variant], drawn: Iterable[Variant], named: Callable[[str], Algorithm] = algorithm
) -> str:
    """Return the end of a caption that names the variants which a figure has no line of; nothing where it has all."""
    missing = sorted(set(expected) - set(drawn), key=lambda one: variant_order(one, named))
    return (
        f" Without a line, for lack of records: {', '.join(label(one, named) for one in missing)}." if missing else ""
    )


def _shaded(colour: str, shade: float) -> str:
    end = 255 if shade > 0 else 0
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + abs(shade) * (end - part)):02X}" for part in parts)
