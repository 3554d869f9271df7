"""Episodes to solve DeepSea: results from run folders, aggregated without losing the runs that did not solve it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from scipy import stats

from bootdqn.common.algorithms import algorithm, algorithm_order
from bootdqn.common.run_folder import RunFolder


@dataclass(frozen=True)
class Result:
    """One finished run."""

    strategy: str
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
class Cell:
    """All runs of one strategy at one size, with one cap."""

    strategy: str
    size: int
    results: tuple[Result, ...]

    @property
    def solved(self) -> int:
        """How many runs solved it."""
        return sum(result.solved_at_strict is not None for result in self.results)

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
        """95 % bootstrap interval of the mean; None where the runs are too few or all equal."""
        episodes = [result.episodes for result in self.results]
        if len(set(episodes)) < 2:
            return None
        bootstrap = stats.bootstrap((episodes,), np.mean, method="percentile", rng=np.random.default_rng(0))
        return float(bootstrap.confidence_interval.low), float(bootstrap.confidence_interval.high)


def read_results(folders: Iterable[RunFolder]) -> list[Result]:
    """Return the result of every finished DeepSea run among `folders`."""
    results = []
    for folder in folders:
        config, summary = folder.read_config(), folder.read_summary()
        if config.get("environment") == "deep-sea" and summary is not None and summary["status"] == "finished":
            results.append(_result(config, summary))
    return results


def _result(config: dict[str, Any], summary: dict[str, Any]) -> Result:
    return Result(
        strategy=config["strategy"],
        size=config["size"],
        seed=config["seed"],
        cap=config["max_episodes"],
        solved_at=summary["solved_at"],
        solved_at_strict=summary["solved_at_strict"],
    )


def cells(results: list[Result]) -> list[Cell]:
    """Group results by size and strategy.

    Raises:
        ValueError: Runs of one cell have different caps; their means must not be taken together.
    """
    groups: dict[tuple[int, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.size, result.strategy), []).append(result)
    for (size, strategy), group in groups.items():
        caps = sorted({result.cap for result in group})
        if len(caps) > 1:
            raise ValueError(f"runs of {strategy} at N = {size} have different caps {caps}; analyse them apart")
    ordered = sorted(groups, key=lambda key: (key[0], algorithm_order(key[1])))
    return [
        Cell(strategy, size, tuple(sorted(groups[size, strategy], key=lambda result: result.seed)))
        for size, strategy in ordered
    ]


THIN = "solved with < 10 good"
COLUMNS = ("N", "algorithm", "solved", "mean episodes", "95 % interval", THIN, "each seed")


def table_rows(results: list[Result]) -> list[tuple[str, ...]]:
    """Return the table's rows as text, in the order of `COLUMNS`."""
    return [
        (
            str(cell.size),
            algorithm(cell.strategy).label,
            f"{cell.solved}/{len(cell.results)}",
            f"{'≥ ' if cell.censored else ''}{cell.mean:,.0f}",
            "" if cell.interval is None else f"{cell.interval[0]:,.0f} to {cell.interval[1]:,.0f}",
            str(sum(result.thin for result in cell.results)),
            ", ".join(f"{'> ' if r.solved_at_strict is None else ''}{r.episodes:,}" for r in cell.results),
        )
        for cell in cells(results)
    ]


def summary_table(results: list[Result]) -> Table:
    """Return the columns of the table that fit a terminal."""
    table = Table(title="Episodes to solve DeepSea")
    shown = [number for number, column in enumerate(COLUMNS) if column not in ("95 % interval", THIN)]
    for number in shown:
        left = COLUMNS[number] in ("algorithm", "each seed")
        table.add_column(COLUMNS[number], justify="left" if left else "right", no_wrap=COLUMNS[number] == "algorithm")
    for row in table_rows(results):
        table.add_row(*(row[number] for number in shown))
    if any(cell.censored for cell in cells(results)):
        table.caption = "≥: a lower bound, since a run reached the cap unsolved"
    return table
