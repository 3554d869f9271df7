"""Load run directories into one table with a row for each run, and their metrics into long tables."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import is_present
from bootdqn.common.text import printable
from bootdqn.config.train import default_settings
from bootdqn.config.variants import Variant, algorithm, atari_algorithm, label, unnamed_settings, variant_of
from bootdqn.runs.directory import RunDirectory, find_runs
from bootdqn.runs.status import RunState, budget_use, run_status

DIVERSITY = ("vote_count_variance", "vote_entropy", "distinct_actions", "action_index_variance")
"""The measures of vote diversity in the metrics of an evaluation."""
ACTING = ("overruled", "evoi", "disagreement")
"""The measures of how the agent acted in the metrics of kind `update`."""

_BUDGETS = {"deep-sea": "max_episodes", "atari": "total_frames", "gym": "total_steps"}
"""By environment, the setting that is the budget of a run."""
_DEFAULTS = default_settings()
_DESCRIPTION = (
    "run", "path", "environment", "task", "strategy", "variant", "algorithm", "seed", "budget", "status", "problem",
)  # fmt: skip
_SETTINGS = tuple(
    name for name in dict.fromkeys(name for known in _DEFAULTS.values() for name in known) if name not in _DESCRIPTION
)
_SUMMARY = (
    "error", "seconds", "steps", "episodes", "updates", "frames", "evaluations", "solved_at", "solved_at_strict",
    "recent_return", "last_evaluation", "max_evaluation",
)  # fmt: skip
_COUNTS = ("seed", "budget", "size", "max_episodes", "total_frames", "total_steps", "solved_at", "solved_at_strict")
"""Columns of whole numbers that may be missing."""
_UNREADABLE = (DamagedFileError, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that reading a damaged run may raise."""
_Record = Mapping[str, Any]


def load_runs(path: str | Path | Sequence[Path]) -> pd.DataFrame:
    """Return a table with a row for each run at or below a directory, finished or not.

    Args:
        path: A directory, or several.

    Returns:
        The columns describe the run: `run` (its name: the path below the directory), `path`, `environment`, `task` (the
        size of DeepSea, the game, or the environment's id with its options), `strategy`, `variant` (the strategy and
        the settings that differ from the defaults), `algorithm` (the variant's name), `seed`, `budget` (episodes,
        frames or steps), `status` (`finished`, `interrupted`, `failed`; `under way` or `stopped` where there is no
        summary; `unreadable`) and `problem` (why it is unreadable, else empty). All settings follow by the names of
        their flags, then the values of the summary; they are missing where the environment has no such setting, or the
        run is unreadable.

    Example:
        >>> runs = load_runs("runs/deepsea")  # doctest: +SKIP
        >>> runs[runs.status == "finished"].groupby(["size", "algorithm"]).solved_at.median()  # doctest: +SKIP
    """
    roots = [Path(path)] if isinstance(path, str | Path) else list(path)
    rows = [_load_run(name, run) for name, run in _named_runs(roots)]
    table = pd.DataFrame(rows, columns=[*_DESCRIPTION, *_SETTINGS, *_SUMMARY])
    counts = {name: [row.get(name) for row in rows] for name in _COUNTS}
    return table.assign(**{name: pd.array(values, dtype="Int64") for name, values in counts.items()})


def load_metrics(runs: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    """Return the metrics of runs as a long table: a row for each line of `metrics.jsonl`, with the name of the run.

    Args:
        runs: Rows of `load_runs`.
        kinds: `episode`, `evaluation` or `update`; all where none is given.

    Raises:
        DamagedFileError: A line is not a JSON object.

    Example:
        >>> episodes = load_metrics(load_runs("runs/deepsea"), "episode")  # doctest: +SKIP
        >>> episodes.groupby("run")["return"].max()  # doctest: +SKIP
    """
    tables = []
    for run in runs.itertuples():
        records = RunDirectory(run.path).read_metrics()
        table = pd.DataFrame([record for record in records if not kinds or record.get("kind") in kinds])
        table.insert(0, "run", run.run)
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["run", "kind"])


class Study(NamedTuple):
    """Runs and the metrics that a report shows; each file is read once."""

    runs: pd.DataFrame
    """The table of `load_runs`, with `counted` and `finished`, and in `problem` why a run counts not or only partly."""
    regret: pd.DataFrame
    """`run`, `episode` and `regret` (the fraction of bad episodes so far): DeepSea at the largest size of each cap."""
    evaluations: pd.DataFrame
    """`run`, `frames`, `score` and the measures of vote diversity of each evaluation: Atari."""
    returns: pd.DataFrame
    """`run`, `kind` (`episode` or `evaluation`), `step` and `value`: Gymnasium."""
    acting: pd.DataFrame
    """`run`, `step` and the measures of how the agent acted; NaN where one was too large."""

    def counted(self, environment: str) -> pd.DataFrame:
        """Return the runs of an environment that count."""
        return self.runs[self.runs.counted & (self.runs.environment == environment)]


def load_study(path: str | Path | Sequence[Path]) -> Study:
    """Load all that a report shows of the runs at and below a directory, or several.

    Of runs of one variant, task and seed the first counts; on Atari the one evaluated for longest, since its budget
    only says when to stop. Runs that are not finished count on Atari only.
    """
    runs = load_runs(path)
    rows: dict[str, list[pd.DataFrame]] = {"regret": [], "evaluations": [], "returns": [], "acting": []}
    damaged = {}
    largest = _largest_sizes(runs)
    for run in runs[runs.environment.isin(list(_BUDGETS))].itertuples():
        try:
            for name, table in _read_metrics(run, with_regret=(run.budget, run.size) in largest).items():
                table.insert(0, "run", run.run)
                rows[name].append(table)
        except _UNREADABLE as error:
            damaged[run.run] = _reason(error)
    tables = {name: _concatenated(found, _COLUMNS[name]) for name, found in rows.items()}
    last_frames = tables["evaluations"].groupby("run").frames.max().to_dict()
    return Study(_mark_counted(runs, last_frames, damaged), **tables)


def shared_settings(variants: Iterable[Variant]) -> dict[str, Any]:
    """Return the settings that all variants share and no label has a word for."""
    settings = [set(variant.settings) for variant in set(variants)]
    common = set.intersection(*settings) if settings else set()
    unnamed = unnamed_settings(Variant("", tuple(common)))
    return {name: value for name, value in sorted(common) if name in unnamed}


def without_settings(runs: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return runs whose variants lack some settings."""
    return runs.assign(variant=[variant.without(*settings) for variant in runs.variant])


def whole_number(record: _Record, name: str, least: int = 1) -> int:
    """Return a whole number of a record; raise a `DamagedFileError` where it is something else."""
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise DamagedFileError(f"{name} is {value!r}, not a whole number from {least} on")
    return value


def finite_number(record: _Record, name: str) -> float:
    """Return a number of a record; raise a `DamagedFileError` where it is something else."""
    value = record.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise DamagedFileError(f"{name} is {value!r}, not a number")
    return float(value)


def _named_runs(roots: Sequence[Path]) -> Iterator[tuple[str, RunDirectory]]:
    """Yield each run once, named by its path below the directory that was given, or by all of it of several."""
    known = set()
    for root in roots:
        for run in find_runs(root):
            below = str(run.path.relative_to(root)) if run.path != root else run.path.name
            if (place := run.path.resolve()) not in known:
                known.add(place)
                yield printable(below if len(roots) == 1 else str(run.path)), run


def _load_run(name: str, run: RunDirectory) -> dict[str, Any]:
    row: dict[str, Any] = {"run": name, "path": run.path, "status": "unreadable", "problem": ""}
    status = run_status(run)
    if status.state is RunState.DAMAGED:
        return row | {"problem": f"unreadable: {printable(status.problem)}"}
    if not status.config:
        return row | {"problem": "unreadable: it has no config.json"}
    environment = str(status.config.get("environment"))
    row |= {"environment": environment, "status": status.label, "error": status.summary.get("error")}
    if environment not in _BUDGETS:
        return row | {"problem": f"the environment {environment!r}: this report is about DeepSea, Atari and Gymnasium"}
    try:
        return row | _describe(environment, status.config) | _read_summary(environment, status.summary)
    except _UNREADABLE as error:
        shown = "unreadable" if row["status"] == "finished" else row["status"]
        return row | {"status": shown, "problem": f"unreadable: {_reason(error)}"}


def _describe(environment: str, config: _Record) -> dict[str, Any]:
    """Return the settings, and what follows from them."""
    defaults = _DEFAULTS[environment]
    settings = {name: config.get(name, defaults[name]) for name in _SETTINGS if name in defaults}
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    if environment == "deep-sea":
        task = f"DeepSea, N = {whole_number(config, 'size')}"
    elif environment == "atari":
        task = str(config["game"])
        whole_number(config, "num_heads")
    else:
        task = " ".join([str(config["env_id"]), *map(str, config.get("env_options", []))])
    variant = variant_of(config, defaults)
    return found | {
        "task": task,
        "strategy": variant.strategy,
        "variant": variant,
        "algorithm": label(variant, atari_algorithm if environment == "atari" else algorithm),
        "seed": whole_number(config, "seed", least=0),
        "budget": whole_number(config, _BUDGETS[environment]),
    }


def _read_summary(environment: str, summary: _Record) -> dict[str, Any]:
    """Return the values of a summary, or nothing where the run has not ended."""
    if environment == "deep-sea" and summary.get("status") == "finished":
        for name in ("solved_at", "solved_at_strict"):
            if summary[name] is not None:
                whole_number(summary, name)
    for name in ("seconds", "recent_return", "last_evaluation", "max_evaluation"):
        if summary.get(name) is not None:
            finite_number(summary, name)
    return {name: summary.get(name) for name in _SUMMARY}


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
    directory = RunDirectory(run.path)
    if not is_present(directory.metrics):
        return {}
    keep: dict[str, Callable[[_Record], Any]] = {"update": lambda record: record}
    if run.environment == "deep-sea" and with_regret:
        keep["episode"] = lambda record: bool(record["bad"])
    elif run.environment == "atari":
        keep["evaluation"] = _evaluation
    elif run.environment == "gym":
        keep["episode"] = keep["evaluation"] = _return
    rows: dict[str, list[Any]] = {kind: [] for kind in keep}
    last: _Record | None = None
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
    elif run.environment == "atari":
        tables["evaluations"] = pd.DataFrame(rows["evaluation"], columns=_COLUMNS["evaluations"][1:])
    elif run.environment == "gym":
        tables["returns"] = pd.DataFrame([*rows["evaluation"], *rows["episode"]], columns=_COLUMNS["returns"][1:])
    return {name: table for name, table in tables.items() if len(table)}


def _evaluation(record: _Record) -> tuple[float, ...]:
    measures = (finite_number(record, name) for name in DIVERSITY)
    return (whole_number(record, "frames"), finite_number(record, "mean_return"), *measures)


def _return(record: _Record) -> tuple[str, int, float]:
    kind = record["kind"]
    return kind, whole_number(record, "step"), finite_number(record, _RETURN_NAMES[kind])


def _acting(records: Sequence[_Record]) -> pd.DataFrame:
    """Return how the agent acted, without windows in which no step was taken; nothing where a record is damaged."""
    rows = []
    try:
        for record in records:
            if all(name in record for name in ACTING) and any(record[name] is not None for name in ACTING):
                values = (np.nan if record[name] is None else finite_number(record, name) for name in ACTING)
                rows.append((float(whole_number(record, "step")), *values))
    except _UNREADABLE:
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
        last_frames: The frames at the last evaluation, of the Atari runs that have any.
        damaged: The reason for each run whose metrics cannot be read.
    """
    counted: dict[Any, Any] = {}
    for run in runs[runs.variant.notna()].itertuples():
        usable = run.run in last_frames if run.environment == "atari" else run.status == "finished"
        same = counted.setdefault(_identity(run), run) if usable else None
        if same is not None and last_frames.get(run.run, 0) > last_frames.get(same.run, 0):
            counted[_identity(run)] = run
    kept = {run.run for run in counted.values()}
    problems = []
    for run in runs.itertuples():
        same = counted.get(_identity(run)) if isinstance(run.variant, Variant) else None
        explain = _problem_on_atari if run.environment == "atari" else _problem
        problems.append(explain(run, same, last_frames, damaged))
    return runs.assign(counted=runs.run.isin(kept), finished=runs.status == "finished", problem=problems)


def _identity(run: Any) -> tuple[Any, ...]:
    """Return what runs have in common of which only one counts."""
    return run.environment, run.task, run.variant, run.seed, None if run.environment == "atari" else run.budget


def _problem_on_atari(run: Any, same: Any, last_frames: Mapping[str, int], damaged: Mapping[str, str]) -> str:
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
    return f"{run.status}: its evaluations so far are counted, up to {last_frames[run.run]:,} frames"


def _problem(run: Any, same: Any, _: Mapping[str, int], damaged: Mapping[str, str]) -> str:
    if run.status == "unreadable" or run.environment not in _BUDGETS:
        return str(run.problem)
    if run.status != "finished":
        return f"{run.error if isinstance(run.error, str) else run.status}{_progress(run.path)}"
    if run.run != same.run:
        return f"the same algorithm and seed as {same.run}, which is counted"
    partly = "what summary.json says is counted, and no curve of it is plotted"
    return f"unreadable: {damaged[run.run]}; {partly}" if run.run in damaged else ""


def _progress(path: Path) -> str:
    """Return in brackets how much of its budget a run has used; nothing where its files do not tell, or it is none."""
    status = run_status(RunDirectory(path))
    try:
        use = budget_use(status.directory, status.config, status.summary)
    except DamagedFileError:
        return ""
    return f" ({use} so far)" if use.used else ""


def _reason(error: Exception) -> str:
    return printable(str(error) if isinstance(error, DamagedFileError) else f"{type(error).__name__}: {error}")
