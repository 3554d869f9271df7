"""Episodes to solve DeepSea: results from run folders, aggregated without losing the runs that did not solve it."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import rich.table

from bootdqn.common.errors import DamagedFileError
from bootdqn.config.variants import Variant, label, variant_order
from bootdqn.report.runs import UNREADABLE, Run, Trouble, not_drawn, read_finished, shortfall, whole_number
from bootdqn.report.statistics import interval_of_mean
from bootdqn.report.tables import Table


@dataclass(frozen=True)
class Result:
    """One finished run."""

    variant: Variant
    size: int
    seed: int
    cap: int
    solved_at: int | None
    """bsuite's reading of "solved"."""
    solved_at_strict: int | None
    """The same, with at least 10 good episodes."""

    @property
    def episodes(self) -> int:
        """Episodes until it was solved by the strict reading; the cap where it was not (censored)."""
        return self.cap if self.solved_at_strict is None else self.solved_at_strict

    @property
    def thin(self) -> bool:
        """Whether bsuite's rule called it solved before there were 10 good episodes."""
        return self.solved_at is not None and self.solved_at != self.solved_at_strict


@dataclass(frozen=True)
class Curve:
    """The running regret of one run, finished or not: the fraction of bad episodes so far, after each episode."""

    variant: Variant
    size: int
    cap: int
    regret: tuple[float, ...]
    finished: bool


@dataclass(frozen=True)
class Cell:
    """All runs of one variant at one size, with one cap."""

    variant: Variant
    size: int
    results: tuple[Result, ...]

    @property
    def solved(self) -> int:
        """How many runs solved it."""
        return sum(result.solved_at_strict is not None for result in self.results)

    @property
    def solved_fraction(self) -> float:
        """How many of the runs solved it, as a fraction."""
        return self.solved / len(self.results)

    @property
    def mean(self) -> float:
        """Mean episodes to solve; a lower bound where a run is censored."""
        return float(np.mean([result.episodes for result in self.results]))

    @property
    def censored(self) -> bool:
        """Whether a run reached the cap unsolved, so that the mean is a lower bound."""
        return self.solved < len(self.results)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % bootstrap interval of the mean; None where the runs are too few or all equal.

        Where a run is censored its lower end is a lower bound, and its upper end says nothing.
        """
        return interval_of_mean([result.episodes for result in self.results])

    @property
    def shaded(self) -> tuple[float, float]:
        """The part of the interval to draw: where a run is censored only up to the mean, as the rest is not known."""
        low, high = self.interval or (self.mean, self.mean)
        return low, self.mean if self.censored else high


def read_results(runs: Iterable[Run]) -> tuple[list[Result], list[Trouble]]:
    """Return the result of every finished run, and the runs that do not count, or only in part: a seed counts once."""
    runs = list(runs)
    results, troubles = read_finished(
        runs, _result, lambda result: (result.variant, result.size, result.cap, result.seed)
    )
    listed = {trouble.name for trouble in troubles}
    short = ((run.name, shortfall(run)) for run in runs if run.name not in listed)
    return results, troubles + [not_drawn(name, problem) for name, problem in short if problem]


def regret_curves(runs: Iterable[Run]) -> tuple[list[Curve], list[Trouble]]:
    """Return the running regret of runs whose records are there, finished or not, and the unreadable ones.

    Of each cap these are the runs of the largest size that is finished, and of the largest that is not. Records that
    end early have no curve: its end would be wrong.
    """
    placed: dict[tuple[int, int], list[Run]] = {}
    largest: dict[tuple[int, bool], int] = {}
    for run in runs:
        with contextlib.suppress(DamagedFileError):  # it is listed as that already
            cap, size = whole_number(run.config, "max_episodes"), whole_number(run.config, "size")
            placed.setdefault((cap, size), []).append(run)
            key = (cap, run.status == "finished")
            largest[key] = max(size, largest.get(key, 0))
    curves, troubles = [], []
    for cap, size in sorted({(cap, size) for (cap, _), size in largest.items()}):
        for run in (run for run in placed[cap, size] if not shortfall(run)):
            try:
                label(run.variant)
                bad = [bool(record["bad"]) for record in run.folder.read_metrics("episode")]
            except UNREADABLE as error:
                troubles.append(not_drawn(run.name, str(error)))
                continue
            if bad:
                regret = np.cumsum(bad) / np.arange(1, len(bad) + 1)
                curves.append(Curve(run.variant, size, cap, tuple(regret.tolist()), run.status == "finished"))
    return curves, troubles


def _result(run: Run) -> Result:
    label(run.variant)  # settings that cannot be said are damaged
    return Result(
        variant=run.variant,
        size=whole_number(run.config, "size"),
        seed=whole_number(run.config, "seed", least=0),
        cap=whole_number(run.config, "max_episodes"),
        solved_at=_episode(run.summary, "solved_at"),
        solved_at_strict=_episode(run.summary, "solved_at_strict"),
    )


def _episode(summary: dict[str, Any], name: str) -> int | None:
    return None if summary[name] is None else whole_number(summary, name)


def cells(results: list[Result]) -> list[Cell]:
    """Group results by size and variant.

    Raises:
        ValueError: Runs of one cell have different caps; their means must not be taken together.
    """
    groups: dict[tuple[int, Variant], list[Result]] = {}
    for result in results:
        groups.setdefault((result.size, result.variant), []).append(result)
    for (size, variant), group in groups.items():
        caps = sorted({result.cap for result in group})
        if len(caps) > 1:
            raise ValueError(f"runs of {label(variant)} at N = {size} have different caps {caps}; analyse them apart")
    ordered = sorted(groups, key=lambda key: (key[0], variant_order(key[1])))
    return [
        Cell(variant, size, tuple(sorted(groups[size, variant], key=lambda result: result.seed)))
        for size, variant in ordered
    ]


def by_cap(results: list[Result]) -> dict[int, list[Result]]:
    """Return the results by their cap, the largest first: runs with different caps are never averaged together."""
    caps = sorted({result.cap for result in results}, reverse=True)
    return {cap: [result for result in results if result.cap == cap] for cap in caps}


BSUITES_RULE, THIN = "solved, bsuite's rule", "solved with < 10 good"
COLUMNS = ("N", "algorithm", "solved", "mean episodes", "95 % interval", BSUITES_RULE, THIN, "each seed")


def table(results: list[Result], name: str = "deep-sea") -> Table:
    """Return episodes to solve for each size and algorithm, by both readings of "solved"."""
    rows = [
        (
            str(cell.size),
            label(cell.variant),
            f"{cell.solved}/{len(cell.results)}",
            f"{'≥ ' if cell.censored else ''}{cell.mean:,.0f}",
            _interval_of(cell),
            f"{sum(result.solved_at is not None for result in cell.results)}/{len(cell.results)}",
            str(sum(result.thin for result in cell.results)),
            ", ".join(f"{'> ' if r.solved_at_strict is None else ''}{r.episodes:,}" for r in cell.results),
        )
        for cell in cells(results)
    ]
    note = (
        "A run is solved at the first episode at which fewer than 90 % of its episodes so far were bad and at least 10 "
        "were good: bsuite's rule with a minimum. bsuite's own has none. A run that did not solve it counts with its "
        "cap, so a mean marked ≥ is a lower bound, and so is the lower end of its interval; an upper one is not known. "
        "The interval is a percentile bootstrap over seeds, from three on; that of three is their range."
    )
    return Table(name, "Episodes to solve DeepSea", COLUMNS, rows, note, text_columns=("algorithm", "each seed"))


def _interval_of(cell: Cell) -> str:
    if cell.interval is None:
        return ""
    low, high = cell.interval
    return f"≥ {low:,.0f}" if cell.censored else f"{low:,.0f} to {high:,.0f}"


def summary_table(results: list[Result]) -> rich.table.Table:
    """Return the columns of the table that fit a terminal."""
    shown = rich.table.Table(title="Episodes to solve DeepSea")
    numbers = [COLUMNS.index(column) for column in ("N", "algorithm", "solved", "mean episodes", "each seed")]
    for number in numbers:
        left = COLUMNS[number] in ("algorithm", "each seed")
        shown.add_column(COLUMNS[number], justify="left" if left else "right", no_wrap=COLUMNS[number] == "algorithm")
    for row in table(results).rows:
        shown.add_row(*(row[number] for number in numbers))
    if any(cell.censored for cell in cells(results)):
        shown.caption = "≥: a lower bound, since a run reached the cap unsolved"
    return shown
