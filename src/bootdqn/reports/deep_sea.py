"""Episodes to solve DeepSea, aggregated without losing the runs that did not solve it."""

from typing import Any

import numpy as np
import pandas as pd
import rich.table

from bootdqn.common.text import format_number
from bootdqn.config.variants import label, variant_order
from bootdqn.reports.statistics import interval_of_mean
from bootdqn.reports.tables import Table

BSUITES_RULE, SOLVED_EARLY = "solved, bsuite's rule", "solved with < 10 good"
COLUMNS = ("N", "algorithm", "solved", "mean episodes", "95 % interval", BSUITES_RULE, SOLVED_EARLY, "each seed")


def episodes_to_solve(runs: pd.DataFrame) -> pd.Series:
    """Return the episodes until each run was solved by the strict rule; the cap where it was not (censored)."""
    return runs.solved_at_strict.fillna(runs.budget)


def cells(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each size and variant of runs with one cap, in the paper's order of strategies.

    Returns:
        The columns are `size`, `variant`, `label`, `cap`, `seeds` (how many), `solved` (how many, by the strict rule),
        `fraction` (solved), `solved_by_bsuite` (how many, by bsuite's own rule), `solved_early` (how many of these
        before there were ten good episodes), `censored` (a run reached the cap unsolved, so that the mean is a lower
        bound), `mean_episodes`, `low` and `high` (its 95 % bootstrap interval, whose upper end says nothing where it is
        censored; NaN where the runs are too few or all equal), and of each seed `episodes` and `is_solved` (tuples).

    Raises:
        ValueError: Runs of one cell have different caps; their means must not be taken together.
    """
    rows = []
    for (size, variant), group in runs.sort_values("seed").groupby(["size", "variant"], sort=False):
        caps = sorted(map(int, set(group.budget)))
        if len(caps) > 1:
            raise ValueError(f"runs of {label(variant)} at N = {size} have different caps {caps}; analyse them apart")
        episodes = tuple(map(int, episodes_to_solve(group)))
        solved = group.solved_at_strict.notna()
        low, high = interval_of_mean(episodes) or (np.nan, np.nan)
        rows.append(
            {
                "size": int(size),
                "variant": variant,
                "label": label(variant),
                "cap": caps[0],
                "seeds": len(group),
                "solved": int(solved.sum()),
                "fraction": solved.mean(),
                "solved_by_bsuite": int(group.solved_at.count()),
                "solved_early": int((group.solved_at != group.solved_at_strict.fillna(0)).sum()),
                "censored": not solved.all(),
                "mean_episodes": float(np.mean(episodes)),
                "low": low,
                "high": high,
                "episodes": episodes,
                "is_solved": tuple(solved),
            }
        )
    return pd.DataFrame(sorted(rows, key=lambda row: (row["size"], variant_order(row["variant"]))))


def ranked_cells(runs: pd.DataFrame) -> list[Any]:
    """Return the cells of runs of one size, best first: by the fraction that solved it, then by the mean episodes."""
    found = cells(runs).sort_values(["fraction", "mean_episodes"], ascending=[False, True], kind="stable")
    return list(found.itertuples())


def by_cap(runs: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Return the runs by their cap, the largest first: runs with different caps are never averaged together."""
    return {cap: runs[runs.budget == cap] for cap in sorted(set(runs.budget), reverse=True)}


def format_mean(cell: Any) -> str:
    """Return the mean episodes of a cell, marked where it is a lower bound."""
    return f"{'≥ ' if cell.censored else ''}{format_number(cell.mean_episodes)}"


def shaded(cell: Any) -> tuple[float, float]:
    """Return the part of a cell's interval to shade: up to the mean where a run is censored, as the rest is unknown."""
    low, high = (cell.mean_episodes,) * 2 if np.isnan(cell.low) else (cell.low, cell.high)
    return low, cell.mean_episodes if cell.censored else high


def solve_table(runs: pd.DataFrame, name: str = "deep-sea") -> Table:
    """Return episodes to solve for each size and algorithm, by both readings of "solved"."""
    rows = []
    for cell in cells(runs).itertuples():
        each = zip(cell.episodes, cell.is_solved, strict=True)
        rows.append(
            (
                str(cell.size),
                cell.label,
                f"{cell.solved}/{cell.seeds}",
                format_mean(cell),
                _format_interval(cell),
                f"{cell.solved_by_bsuite}/{cell.seeds}",
                str(cell.solved_early),
                ", ".join(f"{'' if solved else '> '}{episodes:,}" for episodes, solved in each),
            )
        )
    note = (
        "A run is solved at the first episode at which fewer than 90 % of its episodes so far were bad and at least 10 "
        "were good: bsuite's rule with a minimum. bsuite's own has none. A run that did not solve it counts with its "
        "cap, so a mean marked ≥ is a lower bound, and so is the lower end of its interval; an upper one is not known. "
        "The interval is a percentile bootstrap over seeds, from three on; that of three is their range."
    )
    return Table(
        name,
        "Episodes to solve DeepSea",
        COLUMNS,
        rows,
        note,
        text_columns=("algorithm", "each seed"),
        detail_columns=(SOLVED_EARLY, "each seed"),
    )


def _format_interval(cell: Any) -> str:
    if np.isnan(cell.low):
        return ""
    low, high = map(format_number, (cell.low, cell.high))
    return f"≥ {low}" if cell.censored else f"{low} to {high}"


def terminal_table(runs: pd.DataFrame) -> rich.table.Table:
    """Return the columns of the table that fit a terminal."""
    table = solve_table(runs).without("95 % interval", BSUITES_RULE, SOLVED_EARLY)
    shown = rich.table.Table(title=table.title)
    for column in table.columns:
        left = column in table.text_columns
        shown.add_column(column, justify="left" if left else "right", no_wrap=column == "algorithm")
    for row in table.rows:
        shown.add_row(*row)
    if runs.solved_at_strict.isna().any():
        shown.caption = "≥: a lower bound, since a run reached the cap unsolved"
    return shown


def largest_solved(cells: pd.DataFrame) -> int | None:
    """Return the largest N that at least half of the seeds solved, by the strict rule; None where none."""
    solved = cells[cells.fraction >= 0.5]["size"]
    return None if solved.empty else int(solved.max())
