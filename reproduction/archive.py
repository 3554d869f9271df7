"""The committed runs: a compressed table for each study, with a row for each run.

    python -m reproduction.archive unpack deep-sea runs/deep-sea   write the finished ones as run directories
    python -m reproduction.archive pack deep-sea runs/deep-sea     add the finished runs that are there to the table

A row is a JSON object on a line of `results/STUDY/runs.jsonl.gz`: the name of the run, its configuration and summary,
the metrics that the docs need, and the commit and versions that made it, where they are known.
"""

import argparse
import atexit
import gzip
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bootdqn.runs.directory import RunDirectory, find_runs

RESULTS = Path(__file__).parent / "results"
_SCORED, _WHOLE = ("evaluation",), ("episode", "update", "evaluation")
KEPT_METRICS = {
    "atari": _WHOLE,
    "atari-alien": _WHOLE,
    "atari-alien-longer": _WHOLE,
    "atari-random": ("episode",),
    "bsuite-swingup": ("episode", "update"),
    "explorer-harm-minatar": _SCORED,
    "minatar-100k": _SCORED,
    "minatar-heads": _SCORED,
    "minatar-learning-rate": _WHOLE,
    "minigrid-doorkey": _SCORED,
    "minigrid-epsilon": _SCORED,
    "minigrid-others": _SCORED,
    "minigrid-search": _SCORED,
    "paper-minatar": _SCORED,
    "two-paths": _WHOLE,
}
"""Kinds of metrics that `pack` keeps, by study; of others none. The last episode shows that a file is complete."""
Row = dict[str, Any]


def table_of(study: str) -> Path:
    """Return the file with the runs of a study."""
    return RESULTS / study / "runs.jsonl.gz"


def studies_with_runs() -> list[str]:
    """Return the names of the studies that have a table."""
    return sorted(path.parent.name for path in RESULTS.glob("*/runs.jsonl.gz"))


def read_rows(study: str) -> list[Row]:
    """Return the rows of a study, ordered by the names of the runs; none where it has no table."""
    if not table_of(study).exists():
        return []
    return [json.loads(line) for line in gzip.decompress(table_of(study).read_bytes()).splitlines()]


def write_rows(study: str, rows: Iterable[Row]) -> None:
    """Write the table of a study; the same rows give the same bytes, in whatever order."""
    lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in sorted(rows, key=lambda row: str(row["run"])))
    table_of(study).parent.mkdir(parents=True, exist_ok=True)
    table_of(study).write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def is_finished(row: Row) -> bool:
    """Return whether a run was trained to its end."""
    return bool(row["summary"]) and row["summary"]["status"] == "finished"


def unpack(study: str, directory: Path, *, unfinished: bool = True) -> int:
    """Write the runs of a study below a directory, and return how many; run directories that exist stay as they are.

    Args:
        study: Its name.
        directory: Where to write.
        unfinished: Also write runs that were stopped. They have no checkpoint, so no sweep can resume them.
    """
    written = 0
    for row in read_rows(study):
        run_dir = RunDirectory(directory / row["run"])
        if run_dir.config.exists() or not (unfinished or is_finished(row)):
            continue
        run_dir.path.mkdir(parents=True, exist_ok=True)
        run_dir.config.write_text(json.dumps(row["config"], indent=2) + "\n", encoding="utf-8")
        if row["summary"]:
            run_dir.summary.write_text(json.dumps(row["summary"], indent=2) + "\n", encoding="utf-8")
        if row["metrics"]:
            lines = (json.dumps(record) + "\n" for record in row["metrics"])
            run_dir.metrics.write_text("".join(lines), encoding="utf-8")
        written += 1
    return written


@cache
def unpacked(study: str) -> Path:
    """Return a temporary directory with the runs of a study, which is removed when the process ends."""
    root = tempfile.TemporaryDirectory(prefix="bootdqn-")
    atexit.register(root.cleanup)
    unpack(study, Path(root.name) / study)
    return Path(root.name) / study


def pack(study: str, directory: Path) -> tuple[int, int]:
    """Add the finished runs below a directory to the table of a study, and return how many are new and how many in all.

    A run that is finished in the table stays as it is there.
    """
    rows = {row["run"]: row for row in read_rows(study)}
    finished = {name for name, row in rows.items() if is_finished(row)}
    new = 0
    for run_dir in find_runs(directory):
        summary = run_dir.read_summary()
        if summary and summary["status"] == "finished":
            name = run_dir.path.relative_to(directory).as_posix()
            if name not in finished:
                rows[name] = _row(name, run_dir, summary, KEPT_METRICS.get(study, ()))
                new += 1
    write_rows(study, rows.values())
    return new, len(rows)


def _row(name: str, run_dir: RunDirectory, summary: dict[str, Any], kinds: tuple[str, ...]) -> Row:
    row = {"run": name, "config": run_dir.read_config(), "summary": summary, "metrics": list(_kept(run_dir, kinds))}
    provenance = run_dir.read_provenance()
    if provenance:
        row["made_by"] = {"commit": provenance["source"]["commit"], "packages": provenance["packages"]}
    return row


def _kept(run_dir: RunDirectory, kinds: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    last = run_dir.last_metrics("episode") if kinds else None
    for record in run_dir.read_metrics() if kinds else ():
        if record["kind"] in kinds or record == last:
            yield record


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.archive", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    known = studies_with_runs()
    for name, meaning, studies in (
        ("unpack", "write the finished runs of a study as run directories", f"all, or one of {', '.join(known)}"),
        ("pack", "add the finished runs of a directory to the table of a study", f"as in {', '.join(known[:3])}"),
    ):
        command = commands.add_parser(name, help=meaning, description=f"{meaning.capitalize()}.")
        command.add_argument("study", help=studies)
        command.add_argument("directory", type=Path, help="for example runs/STUDY")
    args = parser.parse_args(arguments)
    if args.command == "pack":
        if args.study == "all":
            parser.error("pack one study at a time")
        if not find_runs(args.directory):
            parser.error(f"no runs in {args.directory}")
        of_new_study = "" if args.study in known else ", a new study"
        new, total = pack(args.study, args.directory)
        print(f"{new} of {total} runs are new in {table_of(args.study)}{of_new_study}")
        return 0
    if args.study not in (*known, "all"):
        parser.error(f"unknown study {args.study}: all, or one of {', '.join(known)}")
    chosen = {study: args.directory / study for study in known} if args.study == "all" else {args.study: args.directory}
    for study, directory in chosen.items():
        unfinished = sum(not is_finished(row) for row in read_rows(study))
        left_out = f"; left out: {unfinished} that were stopped and cannot be resumed" if unfinished else ""
        print(f"{unpack(study, directory, unfinished=False)} runs of {study} written to {directory}{left_out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
