"""Tables of runs with made-up numbers, as the report loads them."""

from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from bootdqn.config.variants import Variant
from bootdqn.reports import paper
from bootdqn.reports.atari import RUN_COLUMNS
from bootdqn.reports.report_data import DIVERSITY


class DeepSeaRun(NamedTuple):
    """A finished run on DeepSea."""

    variant: Variant
    size: int
    seed: int
    cap: int
    solved_at: int | None
    solved_at_strict: int | None
    num_heads: int = 20


def deep_sea_table(runs):
    """Return the table of runs on DeepSea."""
    columns = ["variant", "size", "seed", "budget", "solved_at", "solved_at_strict", "num_heads"]
    return pd.DataFrame(list(runs), columns=columns).astype(dict.fromkeys(columns[1:], "Int64"))


@dataclass(frozen=True)
class AtariRun:
    """An Atari run with its evaluations."""

    game: str = "Hero"
    strategy: str = "evoi"
    seed: int = 0
    scores: tuple = (1.0,)
    frames: tuple | None = None
    """None: evenly spread over the paper's."""
    diversity: dict = field(default_factory=dict)
    """Series of measures; else ones."""
    num_heads: int = 10
    total_frames: int = paper.FRAMES
    seconds: float = 1.0
    computed: tuple = ()

    @property
    def variant(self):
        return Variant(self.strategy, () if self.num_heads == 10 else (("num_heads", self.num_heads),), "atari")

    @property
    def name(self):
        return f"{self.game}-{self.strategy}-{self.num_heads}-{self.seed}"


def evaluations_table(runs):
    """Return the table of the evaluations of Atari runs."""
    rows = []
    for run in runs:
        speed = run.total_frames / run.seconds
        described = (run.name, run.game, run.variant, run.num_heads, run.seed, "finished", speed, run.computed)
        count = len(run.scores)
        frames = run.frames or [paper.FRAMES * number // count for number in range(1, count + 1)]
        series = [run.diversity.get(measure, [1.0] * count) for measure in DIVERSITY]
        rows += [(*described, *values) for values in zip(frames, run.scores, *series, strict=True)]
    return pd.DataFrame(rows, columns=[*RUN_COLUMNS, "frames", "score", *DIVERSITY])
