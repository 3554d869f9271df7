"""What claims are judged by, and what a judge may say."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from bootdqn.report.atari import Played
from bootdqn.report.deep_sea import Result
from bootdqn.report.ensembles import Measured

SUPPORTED, CONTRADICTED, MIXED, OPEN = "supported", "contradicted", "mixed", "not enough evidence"


class Verdict(NamedTuple):
    """What the runs say about a claim."""

    status: str
    says: str
    rests_on: str = ""


@dataclass(frozen=True)
class Evidence:
    """The runs that claims are judged by: those with the paper's settings, where nothing else is said."""

    deep_sea: list[Result]
    atari: list[Played]
    """With as many heads as the paper's tables."""
    any_heads: list[Played]
    """With any number of heads."""
    ensembles: list[Measured] = field(default_factory=list)
    """Looked into while they learned."""
    deep_sea_of_any_settings: list[Result] = field(default_factory=list)

    @classmethod
    def among(
        cls,
        deep_sea: list[Result],
        atari: list[Played],
        ensembles: Iterable[Measured] = (),
    ) -> "Evidence":
        """Return the runs that have the paper's settings, among others."""
        return cls(
            [result for result in deep_sea if not result.variant.settings],
            [run for run in atari if not run.variant.settings],
            [run for run in atari if not run.variant.without("num_heads").settings],
            list(ensembles),
            deep_sea,
        )
