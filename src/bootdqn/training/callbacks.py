"""Progress of a run, as shown while it is under way. Nothing heavy is imported for it."""

from typing import NamedTuple


class Progress(NamedTuple):
    """What a run shows while it is under way."""

    episodes: int
    completed: float
    """From 0 to 1, of the longest the run can be."""
    position: str
    speed: str
    seconds_left: float | None
    """At most, if it goes on as it lately did."""
    note: str
