"""The comparisons that the answer of a report rests on: the best algorithm against the next, on each task."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bootdqn.common.text import format_difference, format_number
from bootdqn.config.variants import label
from bootdqn.reports import atari, deep_sea, gymnasium, paper
from bootdqn.reports.statistics import can_differ, format_p_value, interval_of_difference, rank_test
from bootdqn.reports.suites import Suite
from bootdqn.reports.tables import Table

MAX_ROWS = 8
"""Comparisons on the first screen."""


class Comparison(NamedTuple):
    """The values of two algorithms on one task, a value for each seed."""

    task: str
    measure: str
    first: str
    """The algorithm that came out best."""
    second: str
    ours: Sequence[float]
    theirs: Sequence[float]
    ours_censored: bool = False
    """Whether one of our values is only a lower bound, as of a run that reached the cap unsolved."""
    theirs_censored: bool = False

    def row(self) -> tuple[str, ...]:
        """Return the row of the table."""
        seeds = f"{len(self.ours)} and {len(self.theirs)}"
        difference, interval = self._difference()
        means = [format_number(float(np.mean(values))) for values in (self.ours, self.theirs)]
        bounds = [f"{'≥ ' if censored else ''}{mean}" for mean, censored in zip(means, self._censored, strict=True)]
        first, second = (f"{name}: {mean}" for name, mean in zip((self.first, self.second), bounds, strict=True))
        return self.task, self.measure, first, second, difference, interval, self._test(), seeds

    @property
    def _censored(self) -> tuple[bool, bool]:
        return self.ours_censored, self.theirs_censored

    def _difference(self) -> tuple[str, str]:
        """Return ours less theirs with its interval: an upper bound where theirs is censored, unknown where ours is."""
        if self.ours_censored:
            return "", ""
        ends = interval_of_difference(self.ours, self.theirs)
        difference = format_difference(float(np.mean(self.ours) - np.mean(self.theirs)))
        if self.theirs_censored:
            return f"≤ {difference}", "" if ends is None else f"≤ {format_difference(ends[1])}"
        return difference, "" if ends is None else f"{format_difference(ends[0])} to {format_difference(ends[1])}"

    def _test(self) -> str:
        if not can_differ(len(self.ours), len(self.theirs)):
            return "too few seeds"
        return format_p_value(rank_test(self.ours, self.theirs)[1])


def comparisons_table(
    deep_sea_runs: pd.DataFrame, evaluations: Mapping[Suite, pd.DataFrame], gym_runs: pd.DataFrame
) -> Table | None:
    """Return the best algorithm against the next on each task; None where there is nothing to compare.

    Args:
        deep_sea_runs: Runs on DeepSea that count.
        evaluations: Those of the runs of each suite that count.
        gym_runs: Finished runs of `train gym` that count.
    """
    comparisons = [
        *_on_deep_sea(deep_sea_runs),
        *(row for found in evaluations.values() if len(found) for row in _on_games(atari.with_paper_heads(found))),
        *_in_gymnasium(gym_runs),
    ]
    if not comparisons:
        return None
    columns = ("task", "measure", "best", "next", "difference", "95 % interval", "rank test", "seeds")
    note = (
        "Means over seeds; the difference is the best less the next. Its interval is a percentile bootstrap over "
        "seeds, from three on. The test is Mann and Whitney's exact one, two-sided. The pair was chosen by its means, "
        "which favours the first."
    )
    if any(one.ours_censored or one.theirs_censored for one in comparisons):
        note += " A run that did not solve DeepSea counts with its cap, so ≥ and ≤ mark bounds."
    rows = [comparison.row() for comparison in comparisons[:MAX_ROWS]]
    return Table("comparisons", "The comparison this rests on", columns, rows, note, text_columns=columns[:4])


def _on_deep_sea(runs: pd.DataFrame) -> Iterator[Comparison]:
    """Yield the comparison at the largest size of the largest cap."""
    for group in list(deep_sea.by_cap(runs).values())[:1]:
        largest = group["size"].max()
        ranked = deep_sea.ranked_cells(group[group["size"] == largest])
        if len(ranked) > 1 and ranked[0].solved:
            first, second = ranked[:2]
            yield Comparison(
                f"DeepSea, N = {largest}",
                "episodes to solve",
                first.label,
                second.label,
                first.episodes,
                second.episodes,
                first.censored,
                second.censored,
            )


def _on_games(evaluations: pd.DataFrame) -> Iterator[Comparison]:
    """Yield the comparison in each game, by the maximal scores within the frames that all its runs have."""
    scores: dict[str, dict[str, list[float]]] = {}
    for (game, variant), runs in atari.by_cell(atari.in_common(evaluations)).items():
        scores.setdefault(game, {})[atari.name_of(variant)] = atari.best_scores(runs)
    for game, by_name in scores.items():
        yield from _first_two(paper.title_of(game), "maximal score", by_name)


def _in_gymnasium(runs: pd.DataFrame) -> Iterator[Comparison]:
    """Yield the comparison in each environment, by the measure that all its runs have."""
    for (task, _), of_task in gymnasium.by_task(runs).items():
        if measure := gymnasium.measure_of(of_task):
            groups = gymnasium.by_variant(of_task)
            by_name = {label(variant): list(group[measure]) for variant, group in groups.items()}
            yield from _first_two(task, gymnasium.RETURNS[measure], by_name)


def _first_two(task: str, measure: str, values: dict[str, list[float]]) -> Iterator[Comparison]:
    ranked = sorted(values, key=lambda name: -float(np.mean(values[name])))
    if len(ranked) > 1:
        first, second = ranked[:2]
        yield Comparison(task, measure, first, second, values[first], values[second])
