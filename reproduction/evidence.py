"""The runs that claims are judged by, and the verdicts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from bootdqn.config.defaults import MINATAR as MINATAR_CONFIG
from bootdqn.config.variants import Variant
from bootdqn.reports import paper, suites
from bootdqn.reports.suites import Suite

SUPPORTED, CONTRADICTED, MIXED, OPEN = "supported", "contradicted", "mixed", "not enough evidence"


class Verdict(NamedTuple):
    """The judgement of a claim, with its reason."""

    status: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The runs that claims about a suite of games need."""

    suite: Suite
    games: tuple[str, ...]
    seeds: int
    budget: int
    """Frames, or steps, of a run; none counts beyond them."""
    heads_game: str
    """Game of the study of K."""
    heads_budget: int
    heads: tuple[int, ...] = tuple(paper.RUNTIME_MINUTES)
    """Every K of that study."""


ATARI = Plan(suites.ATARI, paper.GAMES, paper.SEEDS, paper.FRAMES, "Hero", paper.HEADS_FRAMES)
"""The paper's own runs."""
_STEPS = MINATAR_CONFIG.env.total_steps
MINATAR = Plan(suites.MINATAR, suites.MINATAR.games, seeds=5, budget=_STEPS, heads_game="asterix", heads_budget=_STEPS)
"""The sweeps `paper-minatar` and `minatar-heads`."""


@dataclass(frozen=True)
class Evidence:
    """The runs that claims are judged by: those with the paper's settings, unless said otherwise."""

    deep_sea: pd.DataFrame
    """Rows of the table of runs."""
    deep_sea_options: pd.DataFrame
    """Runs by which options beyond the paper are compared, with them and without."""
    games: pd.DataFrame
    """Evaluations on the games of the plan, of runs with as many heads as in the paper's tables."""
    any_heads: pd.DataFrame
    """Evaluations of runs with any number of heads."""
    ensembles: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Measurements of ensembles while they learned."""
    plan: Plan = ATARI

    @classmethod
    def among(
        cls,
        deep_sea: pd.DataFrame,
        atari: pd.DataFrame,
        ensembles: pd.DataFrame | None = None,
        options: pd.DataFrame | None = None,
    ) -> "Evidence":
        """Return the runs that have the paper's settings, among others.

        Args:
            deep_sea: Runs on DeepSea.
            atari: Evaluations on Atari.
            ensembles: Measurements of ensembles.
            options: Runs on DeepSea by which options are compared (None: `deep_sea`).
        """
        return cls(
            plain_runs(deep_sea),
            deep_sea if options is None else options,
            plain_runs(atari),
            _select(atari, lambda variant: not variant.without("num_heads").settings),
            pd.DataFrame() if ensembles is None else ensembles,
        )

    @classmethod
    def of_plan(cls, plan: Plan, games: pd.DataFrame, heads: pd.DataFrame) -> "Evidence":
        """Return the runs of a plan, with the default settings, among others.

        Args:
            plan: Games, seeds and budget; a run that has not reached it does not count, nor does what comes after.
            games: Evaluations of the study of the games.
            heads: Evaluations of the study of K, of which EVOI's count.
        """
        of_games = plain_runs(games)
        of_heads = _select(heads, lambda variant: variant.without("num_heads") == Variant("evoi"))
        return cls(
            pd.DataFrame(),
            pd.DataFrame(),
            _planned(of_games[of_games.game.isin(plan.games)], plan.seeds, plan.budget),
            _planned(of_heads[of_heads.game == plan.heads_game], plan.seeds, plan.heads_budget),
            plan=plan,
        )


def plain_runs(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of runs with default settings."""
    return _select(table, lambda variant: not variant.settings)


def _select(table: pd.DataFrame, condition: Callable[[Variant], bool]) -> pd.DataFrame:
    """Return the rows whose variant meets a condition."""
    return table[table.variant.map(condition).astype(bool)]


def _planned(evaluations: pd.DataFrame, seeds: int, budget: int) -> pd.DataFrame:
    """Return the evaluations within the budget of the runs of the planned seeds that reached it."""
    reached = evaluations.groupby("run").frames.transform("max") >= budget
    return evaluations[reached & (evaluations.seed < seeds) & (evaluations.frames <= budget)]
