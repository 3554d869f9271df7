"""Comparisons of algorithms on each task: the best against the next, and every algorithm against a baseline."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd

from bootdqn.common.errors import UsageError
from bootdqn.common.text import did_you_mean, format_count, format_difference, format_number
from bootdqn.config.variants import Variant, base_strategy, is_dqn, label, variant_order
from bootdqn.reports import atari, deep_sea, gymnasium, paper
from bootdqn.reports.statistics import (
    LEVEL,
    can_differ,
    format_p_value,
    holm,
    interval_of_difference,
    rank_test,
    seeds_to_differ,
)
from bootdqn.reports.suites import Suite
from bootdqn.reports.tables import Table

MAX_ROWS = 8
"""Comparisons on the first screen."""
TEST_NOTE = (
    "Its interval is a percentile bootstrap over seeds, from three on. The test is Mann and Whitney's exact one, "
    "two-sided and unpaired."
)
CENSORING_NOTE = " A run that did not solve DeepSea counts with its cap, so ≥ and ≤ mark bounds."


class Result(NamedTuple):
    """The values of an algorithm on one task, a value for each seed."""

    label: str
    values: Sequence[float]
    censored: bool = False
    """Whether one of the values is only a lower bound, as of a run that reached the cap unsolved."""

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.values))

    def __str__(self) -> str:
        """Return the label and the mean, marked where it is a lower bound."""
        return f"{self.label}: {'≥ ' if self.censored else ''}{format_number(self.mean)}"


class Comparison(NamedTuple):
    """The results of two algorithms on one task."""

    task: str
    measure: str
    ours: Result
    theirs: Result

    def row(self) -> tuple[str, ...]:
        """Return the row of the table."""
        seeds = f"{len(self.ours.values)} and {len(self.theirs.values)}"
        difference, interval = self._difference()
        p = self.p_value()
        test = "too few seeds" if p is None else format_p_value(p)
        return self.task, self.measure, str(self.ours), str(self.theirs), difference, interval, test, seeds

    def p_value(self) -> float | None:
        """Return the p-value of the rank test; None where no values of so few seeds would differ significantly."""
        ours, theirs = self.ours.values, self.theirs.values
        return rank_test(ours, theirs)[1] if can_differ(len(ours), len(theirs)) else None

    @property
    def censored(self) -> bool:
        """Whether a mean is only a lower bound."""
        return self.ours.censored or self.theirs.censored

    def _difference(self) -> tuple[str, str]:
        """Return ours less theirs with its interval: a bound where one of them is censored, unknown where both are."""
        if self.ours.censored and self.theirs.censored:
            return "", ""
        ends = interval_of_difference(self.ours.values, self.theirs.values)
        low, high = ("", "") if ends is None else map(format_difference, ends)
        difference = format_difference(self.ours.mean - self.theirs.mean)
        if self.ours.censored:
            return f"≥ {difference}", low and f"≥ {low}"
        if self.theirs.censored:
            return f"≤ {difference}", high and f"≤ {high}"
        return difference, low and f"{low} to {high}"


class TaskResults(NamedTuple):
    """The results of all algorithms on one task, in the paper's order."""

    task: str
    measure: str
    results: Mapping[Variant, Result]
    best_first: Sequence[Variant]

    def compare(self, ours: Variant, theirs: Variant) -> Comparison:
        """Return the comparison of two of the algorithms."""
        return Comparison(self.task, self.measure, self.results[ours], self.results[theirs])


def comparisons_table(
    deep_sea_runs: pd.DataFrame, evaluations: Mapping[Suite, pd.DataFrame], gym_runs: pd.DataFrame
) -> Table | None:
    """Return the best algorithm against the next on each task; None where there is nothing to compare.

    On DeepSea the task is the largest size of the largest cap.

    Args:
        deep_sea_runs: Runs on DeepSea that count.
        evaluations: Those of the runs of each suite that count.
        gym_runs: Finished runs of `train gym` that count.
    """
    tasks = chain.from_iterable(_results_by_section(_at_largest_size(deep_sea_runs), evaluations, gym_runs))
    comparisons = [task.compare(*task.best_first[:2]) for task in tasks if len(task.results) > 1]
    if not comparisons:
        return None
    columns = ("task", "measure", "best", "next", "difference", "95 % interval", "rank test", "seeds")
    note = (
        f"Means over seeds; the difference is the best less the next. {TEST_NOTE} The pair was chosen by its "
        "means, which favours the first."
    )
    note += CENSORING_NOTE if any(comparison.censored for comparison in comparisons) else ""
    rows = [comparison.row() for comparison in comparisons[:MAX_ROWS]]
    return Table("comparisons", "The comparison this rests on", columns, rows, note, text_columns=columns[:4])


def baseline_table(
    deep_sea_runs: pd.DataFrame,
    evaluations: Mapping[Suite, pd.DataFrame],
    gym_runs: pd.DataFrame,
    baseline: str | None = None,
) -> Table | None:
    """Return every algorithm against the baseline on each task; None where nothing was run beside it.

    Args:
        deep_sea_runs: Runs on DeepSea that count.
        evaluations: Those of the runs of each suite that count.
        gym_runs: Finished runs of `train gym` that count.
        baseline: Label of an algorithm (None: BootDQN, that with the fewest settings).

    Raises:
        UsageError: No algorithm has the label.
    """
    sections = _results_by_section(deep_sea_runs, evaluations, gym_runs)
    if baseline is not None:
        _check_label(baseline, [result.label for task in chain(*sections) for result in task.results.values()])
    against = [(task, _baseline_of(task, section, baseline)) for section in sections for task in section]
    comparisons = [
        task.compare(variant, theirs)
        for task, theirs in against
        if theirs is not None
        for variant in task.results
        if variant != theirs
    ]
    if not comparisons:
        return None
    labels = {comparison.theirs.label for comparison in comparisons}
    rival = labels.pop() if len(labels) == 1 else "the baseline"
    p_values = [comparison.p_value() for comparison in comparisons]
    corrected = iter(holm([p for p in p_values if p is not None]))
    rows = []
    for comparison, p in zip(comparisons, p_values, strict=True):
        *cells, seeds = comparison.row()
        rows.append((*cells, "" if p is None else format_p_value(next(corrected)), seeds))
    columns = (
        "task", "measure", "algorithm", "baseline", "difference", "95 % interval", "rank test", "corrected", "seeds",
    )  # fmt: skip
    note = f"Means over seeds; the difference is the algorithm less {rival}. {TEST_NOTE}"
    note += _correction_note(comparisons, sum(p is not None for p in p_values))
    note += CENSORING_NOTE if any(comparison.censored for comparison in comparisons) else ""
    if left_out := [task.task for task, theirs in against if theirs is None and len(task.results) > 1]:
        note += f" Left out, since {baseline or 'BootDQN'} was not run there: {', '.join(left_out)}."
    title = f"Every algorithm against {rival}"
    return Table("against-baseline", title, columns, rows, note, text_columns=columns[:4])


def _correction_note(comparisons: Sequence[Comparison], tested: int) -> str:
    """Return what the corrected p-values mean, and how many seeds they would need where none can be significant."""
    text = ""
    if tested:
        text = (
            " Corrected are the p-values, not the intervals: by Holm's method for the "
            f"{format_count(tested, 'comparison')} tested in this table, so that the chance of even one false "
            f"difference among those below {LEVEL} is {100 * LEVEL:.0f} % at most."
        )
    pairs = ((len(each.ours.values), len(each.theirs.values)) for each in comparisons)
    if not any(can_differ(*pair, LEVEL / max(tested, 1)) for pair in pairs):
        enough = seeds_to_differ(LEVEL / len(comparisons))
        text += f" With these seeds no corrected p-value can be below {LEVEL}; with {enough} of each algorithm one can."
    return text


def _check_label(wanted: str, labels: Sequence[str]) -> None:
    known = list(dict.fromkeys(labels))
    if wanted not in known:
        longer = [name for name in known if name.lower().startswith(wanted.lower())]
        nothing = "no run on DeepSea, Atari, MinAtar or Gymnasium has a result yet"
        choices = f"choose from {', '.join(map(repr, known))}" if known else nothing
        hint = did_you_mean(min(longer, key=len) if longer else wanted, known, choices)
        raise UsageError(f"--baseline must be the label of an algorithm in these results, got {wanted!r}{hint}")


def _baseline_of(task: TaskResults, section: Sequence[TaskResults], wanted: str | None) -> Variant | None:
    """Return the baseline on a task: that of its section if it was run there, else the task's own; None without one."""
    of_section = _find_baseline(section, wanted)
    return of_section if of_section in task.results else _find_baseline([task], wanted)


def _find_baseline(section: Sequence[TaskResults], wanted: str | None) -> Variant | None:
    """Return the variant with the label `wanted`, or BootDQN with the fewest changed settings; None without one."""
    results = {variant: result for task in section for variant, result in task.results.items()}
    if wanted is None:
        matching = [
            variant for variant in results if base_strategy(variant.strategy)[0] == "greedy" and not is_dqn(variant)
        ]
    else:
        matching = [variant for variant, result in results.items() if result.label == wanted]
    return min(matching, key=variant_order, default=None)


def _results_by_section(
    deep_sea_runs: pd.DataFrame, evaluations: Mapping[Suite, pd.DataFrame], gym_runs: pd.DataFrame
) -> list[list[TaskResults]]:
    """Return the results on each task of each section: within one, variants lack the settings that all of it share."""
    return [
        list(_on_deep_sea(deep_sea_runs)),
        *(list(_on_games(atari.with_paper_heads(of_suite))) for of_suite in evaluations.values() if len(of_suite)),
        list(_in_gymnasium(gym_runs)),
    ]


def _at_largest_size(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs at the largest size of the largest cap; none where no run there solved it."""
    compared = runs[runs.budget == runs.budget.max()]
    compared = compared[compared["size"] == compared["size"].max()]
    return compared if compared.solved_at_strict.notna().any() else runs[:0]


def _on_deep_sea(runs: pd.DataFrame) -> Iterator[TaskResults]:
    """Yield the episodes to solve each size, by cap: runs with different caps are not compared."""
    groups = deep_sea.by_cap(runs)
    for cap, group in groups.items():
        capped = "" if len(groups) == 1 else f", at most {cap:,} episodes"
        for size, of_size in group.groupby("size"):
            results = {
                cell.variant: Result(cell.label, cell.episodes, cell.censored)
                for cell in deep_sea.cells(of_size).itertuples()
            }
            best_first = [cell.variant for cell in deep_sea.ranked_cells(of_size)]
            yield TaskResults(f"DeepSea, N = {size}{capped}", "episodes to solve", results, best_first)


def _on_games(evaluations: pd.DataFrame) -> Iterator[TaskResults]:
    """Yield the maximal scores in each game, within the frames that all its runs have."""
    results: dict[str, dict[Variant, Result]] = {}
    for (game, variant), runs in atari.by_game_and_variant(atari.within_common_budget(evaluations)).items():
        results.setdefault(game, {})[variant] = Result(label(variant), atari.best_scores(runs))
    for game, by_variant in results.items():
        yield TaskResults(paper.title_of(game), "maximal score", by_variant, _highest_first(by_variant))


def _in_gymnasium(runs: pd.DataFrame) -> Iterator[TaskResults]:
    """Yield the returns in each environment and number of steps, by the measure that all its runs have."""
    tasks = gymnasium.by_task(runs)
    names = [task for task, _ in tasks]
    for (task, budget), of_task in tasks.items():
        if measure := gymnasium.measure_of(of_task):
            groups = gymnasium.by_variant(of_task)
            results = {variant: Result(label(variant), list(group[measure])) for variant, group in groups.items()}
            name = task if names.count(task) == 1 else f"{task}, {budget:,} steps"
            yield TaskResults(name, gymnasium.RETURNS[measure], results, _highest_first(results))


def _highest_first(results: Mapping[Variant, Result]) -> list[Variant]:
    return sorted(results, key=lambda variant: -results[variant].mean)
