"""Follow runs while they are trained: of each file only what was added since the last time is read."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import RECORD, open_regular, parse_json_object
from bootdqn.config.variants import Variant
from bootdqn.reports.run_table import BUDGETS, UNREADABLE, Record, load_run, named_runs, reason_unreadable
from bootdqn.reports.style import variant_styles
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.summary import BUDGET_UNITS, RECENT_EPISODES, BudgetUse, describe_result, seconds_left

MAX_POINTS = 150
"""Of a curve; where there are more, every second is dropped."""
MAX_BYTES = 2**23
"""Of one file that are read at a time; the rest follows the next time."""
MAX_CURVES = 8
"""Algorithms that are plotted on one task."""
SILENT_AFTER_SECONDS = 300.0
"""A run that is under way and has written nothing for so long has a warning; it writes every ten seconds."""
_Signature = tuple[int, int, int]


class Tail:
    """Reads the records that are appended to a file of JSON lines, each once; all again where it was replaced."""

    def __init__(self, path: Path) -> None:
        self._path, self._position = path, 0
        self._signature: _Signature | None = None
        self.restarted = False
        """Whether the last call found another file, or a shorter one, and returned its records from the start."""

    def read(self) -> list[dict[str, Any]]:
        """Return the complete lines since the last call; none where the file is missing.

        Raises:
            DamagedFileError: It is no regular file, or a line is not a JSON object.
        """
        self.restarted = False
        signature = _signature(self._path)
        if signature is None or (signature == self._signature and self._position >= signature[2]):
            return []
        if self._signature is not None and (signature[0] != self._signature[0] or signature[2] < self._position):
            self._position, self.restarted = 0, True
        self._signature = signature
        with os.fdopen(open_regular(self._path), "rb") as file:
            file.seek(self._position)
            content = file.read(MAX_BYTES)
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and len(content) == MAX_BYTES:
            raise DamagedFileError(f"{self._path}: a line has more than {MAX_BYTES:,} bytes")
        self._position += len(whole)
        return [parse_json_object(line, str(self._path), RECORD) for line in whole.splitlines()]


def _signature(path: Path) -> _Signature | None:
    """Return what changes when a file does: inode, time and size; None where there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


class Curve:
    """Points of a line, thinned out as they become many; the last is always there."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, float]] = []
        self._every, self._number = 1, 0
        self._last: tuple[float, float] | None = None

    def add(self, x: float, y: float) -> None:
        """Add the next point."""
        self._last = (x, y)
        if self._number % self._every == 0:
            self._kept.append(self._last)
        self._number += 1
        if len(self._kept) > MAX_POINTS:
            self._kept, self._every = self._kept[::2], 2 * self._every

    def points(self) -> list[tuple[float, float]]:
        """Return the points that are kept, and the last."""
        ends = [self._last] if self._last is not None and self._last != self._kept[-1] else []
        return [(float(f"{x:.6g}"), float(f"{y:.4g}")) for x, y in [*self._kept, *ends]]


class FollowedRun:
    """One run: its row of the table of runs, its curve and its speed, as of the last update."""

    def __init__(self, name: str, directory: RunDirectory) -> None:
        self.name, self._directory = name, directory
        self._metrics, self._timing = Tail(directory.metrics), Tail(directory.timing)
        self._signatures: list[_Signature | None] = []
        self.row: dict[str, Any] = {}
        self._warnings: list[str] = []
        self._result = ""
        self._speed = self._seconds = 0.0
        self._timed_step = 0
        self._read_error = ""
        """Of the last update: a file that cannot be read now may be readable the next time."""
        self._clear()

    def _clear(self) -> None:
        """Forget the metrics."""
        self._evaluations, self._training = Curve(), Curve()
        self._recent: list[float] = []
        self._bad = self._episodes = self._step = 0
        self._with_regret, self._damage = False, ""

    def update(self) -> None:
        """Read what has changed."""
        files = (self._directory.config, self._directory.summary, self._directory.provenance)
        signatures = [_signature(file) for file in files]
        if signatures != self._signatures or self.row.get("status") not in ("finished", "unreadable"):
            self.row = load_run(self.name, self._directory)  # the status of the others depends on the lock
        if signatures != self._signatures:
            self._warnings = list(_resumption_warnings(self._directory))
            self._result = _result(self._directory)
        self._signatures, self._read_error = signatures, ""
        try:
            records = self._metrics.read()
            if self._metrics.restarted:
                self._clear()
            for record in records:
                self._add(record)
            for record in self._timing.read():
                self._speed = float(record.get("steps_per_second", self._speed))
                self._seconds, self._timed_step = float(record["seconds"]), int(record["step"])
        except OSError as error:
            self._read_error = f"unreadable metrics: {reason_unreadable(error)}"
        except UNREADABLE as error:
            self._damage = f"unreadable metrics: {reason_unreadable(error)}"

    def _add(self, record: Record) -> None:
        kind, self._step = record.get("kind"), max(self._step, int(record.get("step", 0)))
        if kind == "evaluation":
            self._evaluations.add(float(record.get("frames", record["step"])), float(record["mean_return"]))
        elif kind == "episode":
            self._episodes = int(record["episode"])
            if "bad" in record:
                self._with_regret = True
                self._bad += bool(record["bad"])
                self._training.add(self._episodes, self._bad / self._episodes)
            else:
                self._recent = [*self._recent[1 - RECENT_EPISODES :], float(record["return"])]
                self._training.add(self._step * self._frames_a_step, sum(self._recent) / len(self._recent))

    @property
    def _frames_a_step(self) -> int:
        return int(self.row["frame_skip"]) if self.row.get("environment") == "atari" else 1

    @property
    def _unit(self) -> str:
        return BUDGET_UNITS.get(BUDGETS.get(self.row.get("environment", ""), ""), "step")

    def curve(self) -> tuple[str, list[tuple[float, float]]]:
        """Return the meaning of the curve, and its points."""
        evaluated = self._evaluations.points()
        if evaluated and not self._with_regret:
            return f"evaluation return by {self._unit}s", evaluated
        what = (
            "fraction of bad episodes, solved below 0.9"
            if self._with_regret
            else f"return of the last {RECENT_EPISODES} episodes"
        )
        by = "episodes" if self._with_regret else f"{self._unit}s"
        return f"{what} by {by}", self._training.points()

    def state(self) -> dict[str, Any]:
        """Return what the page shows of the run, ready for JSON."""
        row, status = self.row, self.row.get("status")
        step = max(self._step, self._timed_step)
        used = self._episodes if self._unit == "episode" else step * self._frames_a_step
        use = BudgetUse(used, row["budget"], self._unit) if row.get("budget") else None
        completed = 1.0 if status == "finished" else use.completed if use else 0.0
        active = status == "under way"
        left = seconds_left(self._seconds, completed) if active and self._seconds else None
        return {
            "run": self.name,
            "task": row.get("task") or "",
            "algorithm": row.get("algorithm") or "",
            "seed": row.get("seed"),
            "status": status,
            "completed": round(completed, 4),
            "position": str(use or ""),
            "speed": self._speed if active and self._seconds else None,
            "left": None if left is None else round(left),
            "result": self._result,
            "problem": row.get("error") or row.get("problem") or self._damage or self._read_error,
            "warnings": [*self._warnings, *self._silence()],
        }

    def _silence(self) -> Iterator[str]:
        if self.row.get("status") == "under way":
            signatures = map(_signature, (self._directory.timing, self._directory.config))
            times = [time_ns for _, time_ns, _ in filter(None, signatures)]
            silent = time.time() - max(times, default=time.time_ns()) / 1e9
            if silent > SILENT_AFTER_SECONDS:
                yield f"nothing written for {silent / 60:,.0f} minutes"


def _resumption_warnings(directory: RunDirectory) -> Iterator[str]:
    """Yield why resuming was not exact, as the provenance records it."""
    try:
        resumed = directory.read_provenance().get("resumed", [])
        for entry in resumed if isinstance(resumed, list) else []:
            yield from (f"resumed at step {entry['step']:,}: {text}" for text in entry["not_exact"])
    except (OSError, *UNREADABLE):
        return


def _result(directory: RunDirectory) -> str:
    """Return the result in the summary of a run; nothing where there is none, or it cannot be read."""
    try:
        summary = directory.read_summary()
        return describe_result(summary) if summary else ""
    except (OSError, *UNREADABLE):
        return ""


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key by which N = 8 comes before N = 12."""
    return [(int(word), "") if word.isdecimal() else (0, word) for word in re.split(r"([0-9]+)", text)]


class LiveRuns:
    """All runs below some directories, with those that are started later."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = list(roots)
        self._runs: dict[str, FollowedRun] = {}

    def update(self) -> dict[str, Any]:
        """Read what has changed, and return what the page shows, ready for JSON."""
        directories = dict(named_runs(self._roots))
        self._runs = {
            name: self._runs.get(name) or FollowedRun(name, directory) for name, directory in directories.items()
        }
        for run in self._runs.values():
            run.update()
        states = [run.state() for run in self._runs.values()]
        left = [state["left"] for state in states if state["left"] is not None]
        return {
            "where": ", ".join(map(str, self._roots)),
            "runs": states,
            "left": max(left, default=None),
            "speed": sum(state["speed"] or 0.0 for state in states),
            "charts": list(self._charts()),
        }

    def _charts(self) -> Iterator[dict[str, Any]]:
        """Yield the curves of each task, and how many algorithms are left out."""
        charts: dict[tuple[str, str], list[FollowedRun]] = {}
        for run in self._runs.values():
            what, points = run.curve()
            if isinstance(run.row.get("variant"), Variant) and len(points) > 1:
                charts.setdefault((run.row["task"], what), []).append(run)
        for (task, what), runs in sorted(charts.items(), key=lambda item: _natural(item[0][0])):
            styles = variant_styles(run.row["variant"] for run in runs)
            plotted = dict(list(styles.items())[:MAX_CURVES])
            yield {
                "task": task,
                "what": what,
                "left_out": len(styles) - len(plotted),
                "curves": [
                    {
                        "label": style.label,
                        "colour": style.colour,
                        "dash": "" if style.line == "-" else " ".join(f"{2 * part:g}" for part in style.line[1]),
                        "lines": [
                            {"points": run.curve()[1], "finished": run.row["status"] == "finished"}
                            for run in runs
                            if run.row["variant"] == variant
                        ],
                    }
                    for variant, style in plotted.items()
                ],
            }
