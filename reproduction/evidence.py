"""The runs that claims are judged by, and the verdicts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from bootdqn.config.variants import Variant

SUPPORTED, CONTRADICTED, MIXED, OPEN = "supported", "contradicted", "mixed", "not enough evidence"


class Verdict(NamedTuple):
    """The judgement of a claim, with its reason."""

    status: str
    reason: str


@dataclass(frozen=True)
class Evidence:
    """The runs that claims are judged by: those with the paper's settings, unless said otherwise."""

    deep_sea: pd.DataFrame
    """Rows of the table of runs."""
    deep_sea_of_any_settings: pd.DataFrame
    atari: pd.DataFrame
    """Evaluations of runs with as many heads as in the paper's tables."""
    any_heads: pd.DataFrame
    """Evaluations of runs with any number of heads."""
    ensembles: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Measurements of ensembles while they learned."""

    @classmethod
    def among(cls, deep_sea: pd.DataFrame, atari: pd.DataFrame, ensembles: pd.DataFrame | None = None) -> "Evidence":
        """Return the runs that have the paper's settings, among others."""
        return cls(
            _select(deep_sea, lambda variant: not variant.settings),
            deep_sea,
            _select(atari, lambda variant: not variant.settings),
            _select(atari, lambda variant: not variant.without("num_heads").settings),
            pd.DataFrame() if ensembles is None else ensembles,
        )


def _select(table: pd.DataFrame, condition: Callable[[Variant], bool]) -> pd.DataFrame:
    """Return the rows whose variant meets a condition."""
    return table[table.variant.map(condition).astype(bool)]
