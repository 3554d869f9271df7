"""Load run directories into one table with a row for each run, and their metrics into long tables."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import pandas as pd

from bootdqn.common.errors import DamagedFileError, UsageError
from bootdqn.common.fields import types_in
from bootdqn.common.text import did_you_mean, escape_unprintable
from bootdqn.config.defaults import DEFAULTS
from bootdqn.config.settings import default_settings, setting_types
from bootdqn.config.variants import GAME_ENVIRONMENTS, label, variant_of
from bootdqn.runs.directory import RunDirectory, find_runs
from bootdqn.runs.status import RunState, run_status

BUDGETS = {kind: config.env.budget for kind, config in DEFAULTS.items()}
"""By environment, the setting that is the budget of a run."""
UNREADABLE = (DamagedFileError, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that reading a damaged run may raise."""
KINDS = ("episode", "update", "evaluation")
"""Kinds of records in `metrics.jsonl`."""
Record = Mapping[str, Any]
Paths = str | Path | Sequence[str | Path]

_TEXT: Any = pd.StringDtype("python", na_value=math.nan)  # Arrow has no text for names of files that are not UTF-8
_COUNT, _NUMBER, _SWITCH = "Int64", "float64", "boolean"
"""Types of columns; all of them have missing values."""
_DEFAULTS = default_settings()
_DESCRIPTION = {
    **dict.fromkeys(("run", "path", "environment", "task", "strategy", "algorithm"), _TEXT),
    **dict.fromkeys(("seed", "budget"), _COUNT),
    **dict.fromkeys(("status", "problem"), _TEXT),
}
_SUMMARY = {
    "error": _TEXT,
    "seconds": _NUMBER,
    **dict.fromkeys(("steps", "episodes", "updates", "frames", "evaluations"), _COUNT),
    "solved": _SWITCH,
    **dict.fromkeys(("solved_at", "solved_at_strict"), _COUNT),
    **dict.fromkeys(("recent_return", "last_evaluation", "max_evaluation", "total_return", "best_episode"), _NUMBER),
}
_IDENTITY = ("run", "environment", "task", "strategy", "algorithm", "seed")
"""Columns that identify the run of a metric."""


def _column_type(kinds: Iterable[Any]) -> Any:
    """Return the type of the column of a setting, from its types in each environment."""
    found = {one for kind in kinds for one in types_in(kind)} - {NoneType}
    types: dict[frozenset[Any], Any] = {frozenset([bool]): _SWITCH, frozenset([int]): _COUNT}
    return types.get(frozenset(found), _NUMBER if found and found <= {int, float} else _TEXT)


def _setting_columns() -> dict[str, Any]:
    kinds: dict[str, list[Any]] = {}
    for environment in _DEFAULTS:
        for name, kind in setting_types(environment).items():
            kinds.setdefault(name, []).append(kind)
    return {name: _column_type(found) for name, found in kinds.items() if name not in _DESCRIPTION}


_SETTINGS = _setting_columns()


def load_results(path: Paths) -> pd.DataFrame:
    """Return a table with a row for each run at or below a directory; `bootdqn.load_results` describes its columns.

    Raises:
        UsageError: There is no such directory.
    """
    return load_runs(path).drop(columns="variant")


def load_runs(path: Paths) -> pd.DataFrame:
    """Return the table of `load_results` with `variant` (a `Variant`, or None), by which reports group the runs."""
    roots = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    for root in roots:
        if not root.is_dir():
            raise UsageError(f"{root} is not a directory; name one that holds runs")
    rows = [load_run(name, run) for name, run in named_runs(roots)]
    types = _DESCRIPTION | _SETTINGS | _SUMMARY
    columns = {name: pd.array([row.get(name) for row in rows], dtype=kind) for name, kind in types.items()}
    table = pd.DataFrame(columns)
    table.insert(
        table.columns.get_loc("algorithm"), "variant", pd.Series([row.get("variant") for row in rows], dtype=object)
    )
    return table


def load_metrics(runs: Paths | pd.DataFrame, kind: str | None = None) -> pd.DataFrame:
    """Return the metrics of runs as a long table; `bootdqn.load_metrics` describes its columns.

    Raises:
        UsageError: There is no such directory, or no such kind.
        DamagedFileError: A line is not a JSON object.
    """
    if kind not in (None, *KINDS):
        hint = did_you_mean(str(kind), KINDS, f"choose from {', '.join(KINDS)}")
        raise UsageError(f"there is no kind {kind!r} of metrics{hint}")
    table = runs if isinstance(runs, pd.DataFrame) else load_results(runs)
    identity = [name for name in _IDENTITY if name in table]
    found, lengths = list[dict[str, Any]](), list[int]()
    for path in table.path:
        before = len(found)
        found += RunDirectory(Path(path)).read_metrics(kind)
        lengths.append(len(found) - before)
    metrics = pd.DataFrame(found, columns=None if found else ["kind"])
    described = table[identity].loc[table.index.repeat(lengths)].reset_index(drop=True)
    return pd.concat([described, metrics.drop(columns=identity, errors="ignore")], axis=1)


def whole_number(record: Record, name: str, least: int = 1) -> int:
    """Return a whole number of a record; raise a `DamagedFileError` where it is something else."""
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise DamagedFileError(f"{name} is {value!r}, not a whole number from {least} on")
    return value


def finite_number(record: Record, name: str) -> float:
    """Return a number of a record; raise a `DamagedFileError` where it is something else."""
    value = record.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise DamagedFileError(f"{name} is {value!r}, not a number")
    return float(value)


def named_runs(roots: Sequence[Path]) -> Iterator[tuple[str, RunDirectory]]:
    """Yield each run once, named by its path below the directory that was given, or by all of it of several."""
    known = set()
    for root in roots:
        for run in find_runs(root):
            below = str(run.path.relative_to(root)) if run.path != root else run.path.name
            if (place := run.path.resolve()) not in known:
                known.add(place)
                yield escape_unprintable(below if len(roots) == 1 else str(run.path)), run


def load_run(name: str, run: RunDirectory) -> dict[str, Any]:
    """Return the row of a run, with its `variant`; columns that it has no value for are left out."""
    row: dict[str, Any] = {"run": name, "path": str(run.path), "status": "unreadable", "problem": ""}
    status = run_status(run)
    if status.state is RunState.DAMAGED:
        return row | {"problem": f"unreadable: {escape_unprintable(status.problem)}"}
    if not status.config:
        return row | {"problem": "unreadable: it has no config.json"}
    environment = str(status.config.get("environment"))
    row |= {"environment": environment, "status": status.label, "error": status.summary.get("error")}
    if environment not in BUDGETS:
        return row | {"problem": f"the environment {environment!r}: this report is about {', '.join(BUDGETS)}"}
    try:
        return row | _describe(environment, status.config) | _read_summary(environment, status.summary)
    except UNREADABLE as error:
        shown = "unreadable" if row["status"] == "finished" else row["status"]
        return row | {"status": shown, "problem": f"unreadable: {reason_unreadable(error)}"}


def _describe(environment: str, config: Record) -> dict[str, Any]:
    """Return the settings, and what follows from them."""
    defaults = _DEFAULTS[environment]
    given = defaults | dict(config)
    found = {name: _typed(name, given[name], kind) for name, kind in _SETTINGS.items() if name in defaults}
    if environment == "deep-sea":
        task = f"DeepSea, N = {whole_number(config, 'size')}"
    elif environment in GAME_ENVIRONMENTS:
        task = str(config["game"])
        whole_number(config, "num_heads")
    elif environment == "bsuite":
        task = str(config["bsuite_id"])
    else:
        task = " ".join([str(config["env_id"]), *map(str, config.get("env_options", []))])
    variant = variant_of(config, defaults)
    return found | {
        "task": task,
        "strategy": variant.strategy,
        "variant": variant,
        "algorithm": label(variant),
        "seed": whole_number(config, "seed", least=0),
        "budget": whole_number(config, BUDGETS[environment]),
    }


def _typed(name: str, value: Any, kind: Any) -> Any:
    """Return the value of a setting for a column of this type; raise a `DamagedFileError` where it is no such value."""
    if value is None:
        return None
    if kind == _TEXT:
        return " ".join(map(str, value)) if isinstance(value, list) else str(value)
    fits = (
        isinstance(value, bool) if kind == _SWITCH else isinstance(value, int | float) and not isinstance(value, bool)
    )
    if not fits or (kind == _COUNT and not isinstance(value, int)):
        expected = {_SWITCH: "true or false", _COUNT: "a whole number"}.get(kind, "a number")
        raise DamagedFileError(f"{name} must be {expected}, got {value!r}")
    return value


def _read_summary(environment: str, summary: Record) -> dict[str, Any]:
    """Return the values of a summary, or nothing where the run has not ended."""
    if environment == "deep-sea" and summary.get("status") == "finished":
        for name in ("solved_at", "solved_at_strict"):
            if summary[name] is not None:
                whole_number(summary, name)
    for name, kind in _SUMMARY.items():
        if kind == _NUMBER and summary.get(name) is not None:
            finite_number(summary, name)
    found = {name: summary.get(name) for name in _SUMMARY}
    return found | {"solved": found["solved_at_strict"] is not None if "solved_at_strict" in summary else None}


def reason_unreadable(error: Exception) -> str:
    """Return why a run cannot be read, on one line."""
    return escape_unprintable(str(error) if isinstance(error, DamagedFileError) else f"{type(error).__name__}: {error}")
