"""The committed runs: a compressed table for each study, with a row for each run.

    python -m reproduction.archive unpack deep-sea runs/deep-sea   write them as run directories, for every command
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
KEPT_METRICS = {
    "bsuite-swingup": ("episode", "update"),
    "minatar-100k": ("evaluation",),
    "minatar-learning-rate": ("episode", "update", "evaluation"),
    "minigrid-doorkey": ("evaluation",),
    "minigrid-epsilon": ("evaluation",),
    "minigrid-others": ("evaluation",),
    "minigrid-search": ("evaluation",),
    "two-paths": ("episode", "update", "evaluation"),
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


def unpack(study: str, directory: Path) -> int:
    """Write the runs of a study below a directory, and return how many; run directories that exist stay as they are."""
    written = 0
    for row in read_rows(study):
        run_dir = RunDirectory(directory / row["run"])
        if run_dir.config.exists():
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

    A run that is in the table stays as it is there.
    """
    rows = {row["run"]: row for row in read_rows(study)}
    before = len(rows)
    for run_dir in find_runs(directory):
        summary = run_dir.read_summary()
        if summary and summary["status"] == "finished":
            name = run_dir.path.relative_to(directory).as_posix()
            rows.setdefault(name, _row(name, run_dir, summary, KEPT_METRICS.get(study, ())))
    write_rows(study, rows.values())
    return len(rows) - before, len(rows)


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
    for name, meaning in (
        ("unpack", "write the runs of a study as run directories"),
        ("pack", "add the finished runs of a directory to the table of a study"),
    ):
        command = commands.add_parser(name, help=meaning, description=f"{meaning.capitalize()}.")
        command.add_argument("study", help="all, or one of " + ", ".join(studies_with_runs()))
        command.add_argument("directory", type=Path, help="for example runs/STUDY")
    args = parser.parse_args(arguments)
    if args.command == "pack":
        if not find_runs(args.directory):
            parser.error(f"no runs in {args.directory}")
        new, total = pack(args.study, args.directory)
        print(f"{new} of {total} runs are new in {table_of(args.study)}")
        return 0
    known = studies_with_runs()
    if args.study not in (*known, "all"):
        parser.error(f"unknown study {args.study}: all, or one of {', '.join(known)}")
    chosen = {study: args.directory / study for study in known} if args.study == "all" else {args.study: args.directory}
    for study, directory in chosen.items():
        print(f"{unpack(study, directory)} runs of {study} written to {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
