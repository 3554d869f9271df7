"""Load all that a report shows: the table of runs with which of them count, and the metrics that are plotted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import is_present
from bootdqn.config.variants import GAME_ENVIRONMENTS, Variant, unnamed_settings
from bootdqn.reports.run_table import (
    BUDGETS,
    UNREADABLE,
    Record,
    finite_number,
    load_runs,
    reason_unreadable,
    whole_number,
)
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.status import run_status
from bootdqn.runs.summary import budget_use

DIVERSITY = ("vote_count_variance", "vote_entropy", "distinct_actions", "action_index_variance")
"""The measures of vote diversity in the metrics of an evaluation."""
ACTING = ("overruled", "evoi", "disagreement")
"""The measures of how the agent acted in the metrics of kind `update`."""


class ReportData(NamedTuple):
    """Runs and the metrics that a report shows; each file is read once."""

    runs: pd.DataFrame
    """The table of `load_runs`, with `counted` and `finished`, and in `problem` why a run counts not or only partly."""
    regret: pd.DataFrame
    """`run`, `episode` and `regret` (the fraction of bad episodes so far): DeepSea at the largest size of each cap."""
    evaluations: pd.DataFrame
    """`run`, `frames`, `score` and the measures of vote diversity of each evaluation: Atari and MinAtar."""
    returns: pd.DataFrame
    """`run`, `kind` (`episode` or `evaluation`), `step` and `value`: Gymnasium."""
    acting: pd.DataFrame
    """`run`, `step` and the measures of how the agent acted; NaN where one was too large."""

    def counted(self, environment: str) -> pd.DataFrame:
        """Return the runs of an environment that count."""
        return self.runs[self.runs.counted & (self.runs.environment == environment)]


def load_report_data(path: str | Path | Sequence[Path]) -> ReportData:
    """Load all that a report shows of the runs at and below a directory, or several.

    Of runs of one variant, task and seed the first counts; on Atari and MinAtar the one evaluated for longest, since
    its budget only says when to stop. Runs that are not finished count there only.
    """
    runs = load_runs(path)
    rows: dict[str, list[pd.DataFrame]] = {"regret": [], "evaluations": [], "returns": [], "acting": []}
    damaged = {}
    largest = _largest_sizes(runs)
    for run in runs[runs.environment.isin(list(BUDGETS))].itertuples():
        try:
            for name, table in _read_metrics(run, with_regret=(run.budget, run.size) in largest).items():
                table.insert(0, "run", run.run)
                rows[name].append(table)
        except UNREADABLE as error:
            damaged[run.run] = reason_unreadable(error)
    tables = {name: _concatenated(found, _COLUMNS[name]) for name, found in rows.items()}
    last_frames = tables["evaluations"].groupby("run").frames.max().to_dict()
    return ReportData(_mark_counted(runs, last_frames, damaged), **tables)


def shared_settings(variants: Iterable[Variant]) -> dict[str, Any]:
    """Return the settings that all variants share and no label has a word for."""
    settings = [set(variant.settings) for variant in set(variants)]
    common = set.intersection(*settings) if settings else set()
    unnamed = unnamed_settings(Variant("", tuple(common)))
    return {name: value for name, value in sorted(common) if name in unnamed}


def without_settings(runs: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return runs whose variants lack some settings."""
    return runs.assign(variant=[variant.without(*settings) for variant in runs.variant])


_COLUMNS = {
    "regret": ("run", "episode", "regret"),
    "evaluations": ("run", "frames", "score", *DIVERSITY),
    "returns": ("run", "kind", "step", "value"),
    "acting": ("run", "step", *ACTING),
}
_RETURN_NAMES = {"episode": "return", "evaluation": "mean_return"}


def _read_metrics(run: Any, *, with_regret: bool) -> dict[str, pd.DataFrame]:
    """Return the tables of one run by their name, without the column `run`.

    Raises:
        DamagedFileError: The metrics are damaged, or end before the last episode that the summary counts.
    """
    directory = RunDirectory(Path(run.path))
    if not is_present(directory.metrics):
        return {}
    keep: dict[str, Callable[[Record], Any]] = {"update": lambda record: record}
    if run.environment == "deep-sea" and with_regret:
        keep["episode"] = lambda record: bool(record["bad"])
    elif run.environment in GAME_ENVIRONMENTS:
        keep["evaluation"] = _evaluation
    elif run.environment == "gym":
        keep["episode"] = keep["evaluation"] = _return
    rows: dict[str, list[Any]] = {kind: [] for kind in keep}
    last: Record | None = None
    for record in directory.read_metrics():
        kind = record.get("kind")
        last = record if kind == "episode" else last
        if kind in keep:
            rows[kind].append(keep[kind](record))
    if not pd.isna(run.episodes):
        reached = whole_number(last, "episode") if last else 0
        if reached < run.episodes:
            raise DamagedFileError(f"its metrics end at episode {reached:,} of {run.episodes:,.0f}")
    tables = {"acting": _acting(rows["update"])}
    if run.environment == "deep-sea" and with_regret:
        episodes = np.arange(1, len(rows["episode"]) + 1)
        tables["regret"] = pd.DataFrame({"episode": episodes, "regret": np.cumsum(rows["episode"]) / episodes})
    elif run.environment in GAME_ENVIRONMENTS:
        tables["evaluations"] = pd.DataFrame(rows["evaluation"], columns=_COLUMNS["evaluations"][1:])
    elif run.environment == "gym":
        tables["returns"] = pd.DataFrame([*rows["evaluation"], *rows["episode"]], columns=_COLUMNS["returns"][1:])
    return {name: table for name, table in tables.items() if len(table)}


def _evaluation(record: Record) -> tuple[float, ...]:
    measures = (finite_number(record, name) for name in DIVERSITY)
    return (whole_number(record, "frames"), finite_number(record, "mean_return"), *measures)


def _return(record: Record) -> tuple[str, int, float]:
    kind = record["kind"]
    return kind, whole_number(record, "step"), finite_number(record, _RETURN_NAMES[kind])


def _acting(records: Sequence[Record]) -> pd.DataFrame:
    """Return how the agent acted, without windows in which no step was taken; nothing where a record is damaged."""
    rows = []
    try:
        for record in records:
            if all(name in record for name in ACTING) and any(record[name] is not None for name in ACTING):
                values = (np.nan if record[name] is None else finite_number(record, name) for name in ACTING)
                rows.append((float(whole_number(record, "step")), *values))
    except UNREADABLE:
        rows = []
    return pd.DataFrame(rows, columns=_COLUMNS["acting"][1:])


def _concatenated(tables: list[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def _largest_sizes(runs: pd.DataFrame) -> set[tuple[int, int]]:
    """Return the caps and sizes of DeepSea whose regret is shown: the largest finished and the largest unfinished."""
    runs = runs[(runs.environment == "deep-sea") & runs.variant.notna()]
    largest = runs.groupby(["budget", runs.status == "finished"])["size"].max()
    return {(budget, size) for (budget, _), size in largest.items()}


def _mark_counted(runs: pd.DataFrame, last_frames: Mapping[str, int], damaged: Mapping[str, str]) -> pd.DataFrame:
    """Return the runs with the column `counted`, and in `problem` why one does not count, or only in part.

    Args:
        runs: The table of `load_runs`.
        last_frames: The frames at the last evaluation, of the runs on Atari and MinAtar that have any.
        damaged: The reason for each run whose metrics cannot be read.
    """
    counted: dict[Any, Any] = {}
    for run in runs[runs.variant.notna()].itertuples():
        usable = run.run in last_frames if run.environment in GAME_ENVIRONMENTS else run.status == "finished"
        same = counted.setdefault(_identity(run), run) if usable else None
        if same is not None and last_frames.get(run.run, 0) > last_frames.get(same.run, 0):
            counted[_identity(run)] = run
    kept = {run.run for run in counted.values()}
    problems = []
    for run in runs.itertuples():
        same = counted.get(_identity(run)) if isinstance(run.variant, Variant) else None
        explain = _problem_of_scored if run.environment in GAME_ENVIRONMENTS else _problem
        problems.append(explain(run, same, last_frames, damaged))
    return runs.assign(counted=runs.run.isin(kept), finished=runs.status == "finished", problem=problems)


def _identity(run: Any) -> tuple[Any, ...]:
    """Return what runs have in common of which only one counts."""
    budget = None if run.environment in GAME_ENVIRONMENTS else run.budget
    return run.environment, run.task, run.variant, run.seed, budget


def _problem_of_scored(run: Any, same: Any, last_frames: Mapping[str, int], damaged: Mapping[str, str]) -> str:
    if run.run in damaged:
        return f"unreadable: {damaged[run.run]}"
    if run.run not in last_frames:
        return f"{run.status}: not evaluated yet{_progress(run.path)}"
    if run.problem:
        return str(run.problem)
    if run.run != same.run:
        return f"the same algorithm, game and seed as {same.run}, which is counted"
    if run.status == "finished":
        return ""
    unit = "frames" if run.environment == "atari" else "steps"
    return f"{run.status}: its evaluations so far are counted, up to {last_frames[run.run]:,} {unit}"


def _problem(run: Any, same: Any, _: Mapping[str, int], damaged: Mapping[str, str]) -> str:
    if run.status == "unreadable" or run.environment not in BUDGETS:
        return str(run.problem)
    if run.status != "finished":
        return f"{run.error if isinstance(run.error, str) else run.status}{_progress(run.path)}"
    if run.run != same.run:
        return f"the same algorithm and seed as {same.run}, which is counted"
    partly = "what summary.json says is counted, and no curve of it is plotted"
    return f"unreadable: {damaged[run.run]}; {partly}" if run.run in damaged else ""


def _progress(path: str) -> str:
    """Return in brackets how much of its budget a run has used; nothing where its files do not show it."""
    status = run_status(RunDirectory(Path(path)))
    try:
        use = budget_use(status.directory, status.config, status.summary)
    except DamagedFileError:
        return ""
    return f" ({use} so far)" if use.used else ""
