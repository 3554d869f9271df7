"""Suites of games whose runs are compared by evaluation scores: Atari as in the paper, and MinAtar as its analogue."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from bootdqn.reports import paper
from bootdqn.reports.tables import Table


@dataclass(frozen=True, eq=False)
class Suite:
    """A suite of games: how its scores are normalised and its units named."""

    kind: str
    """As on the command line."""
    title: str
    unit: str
    """The unit in which runs are measured: frames or steps."""
    axis: str
    """Label of the axis of that unit, in units of `axis_scale`."""
    axis_scale: float
    games: tuple[str, ...]
    """Games that have a normalised score."""
    random: Mapping[str, float]
    """Scores of random play, which are 0 % of the normalised score."""
    reference: Mapping[str, float] | None
    """Scores that are 100 %; None: the best evaluation of any run of the study."""
    normalised: str
    """Name of the normalised score."""
    in_paper: bool
    """Whether the paper has numbers for it."""

    def adapt_table(self, table: Table) -> Table:
        """Return a table under the suite's name, without the columns of the paper's numbers where it has none."""
        if self.in_paper:
            return table
        columns = tuple(column.replace("frames", self.unit) for column in table.columns)
        named = Table(f"{self.kind}-{table.name}", table.title, columns, table.rows, table.note, table.text_columns)
        return named.without(*(column for column in columns if "paper" in column))

    def references(self, evaluations: pd.DataFrame) -> dict[str, float]:
        """Return by game the score that is 100 %, of the games where it is above that of random play."""
        best = evaluations.groupby("game").score.max() if self.reference is None else self.reference
        return {game: best[game] for game in self.games if game in best and best[game] > self.random[game]}


ATARI = Suite(
    kind="atari",
    title="Atari",
    unit="frames",
    axis="frames (millions)",
    axis_scale=1e6,
    games=paper.GAMES,
    random=paper.RANDOM_SCORE,
    reference=paper.HUMAN_SCORE,
    normalised="human-normalised score",
    in_paper=True,
)
MINATAR_RANDOM = {"asterix": 0.55, "breakout": 0.39, "freeway": 0.36, "seaquest": 0.09, "space-invaders": 3.92}
"""Mean returns of random play, measured by `reproduction/minatar_random.py`."""
MINATAR = Suite(
    kind="minatar",
    title="MinAtar",
    unit="steps",
    axis="steps (thousands)",
    axis_scale=1e3,
    games=tuple(MINATAR_RANDOM),
    random=MINATAR_RANDOM,
    reference=None,
    normalised="normalised score",
    in_paper=False,
)
SUITES = (ATARI, MINATAR)
