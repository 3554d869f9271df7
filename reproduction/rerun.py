"""Repeat committed runs, and compare their summaries.

    python -m reproduction.rerun deep-sea size-10/gain/seed-0   one run; any number of names
    python -m reproduction.rerun deep-sea size-10/gain          all runs below a name
    python -m reproduction.rerun deep-sea --shortest 15         the runs with the fewest steps

This checks whether today's code gives the same numbers on your machine. Runs that do not name the commit that made
them may be from before the kernel had products of its own: they differ in their last bits, so that longer ones end at
another episode.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from bootdqn.config.settings import from_flat
from bootdqn.training.callbacks import RunCallbacks
from bootdqn.training.display import progress_line
from bootdqn.training.run import train_run
from reproduction.archive import Row, is_finished, read_rows, studies_with_runs


def shortest(rows: list[Row], number: int) -> list[Row]:
    """Return the runs that took the fewest steps."""
    return sorted(rows, key=lambda row: row["summary"]["steps"])[:number]


def _is_named(run: str, name: str) -> bool:
    """Return whether `name` is that of a run, or of a directory above it."""
    return run == name or run.startswith(f"{name.rstrip('/')}/")


def differences(row: Row) -> list[str]:
    """Repeat a run, and return in words which entries of its summary are not what they were."""
    with tempfile.TemporaryDirectory() as scratch, progress_line(row["run"]) as shown:
        callbacks = RunCallbacks(shown.show, warn=shown.warn)
        now = train_run(from_flat(row["config"]), Path(scratch) / "run", callbacks).summary
    before = {key: value for key, value in row["summary"].items() if key != "seconds"}
    return [f"{key} was {value}, now {now.get(key)}" for key, value in before.items() if now.get(key) != value]


def main(arguments: list[str]) -> int:
    """Repeat the runs one after the other; return 1 if any summary differs."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.rerun", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("study", choices=studies_with_runs(), metavar="STUDY", help=", ".join(studies_with_runs()))
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="names of runs, or of directories above them, as size-10 (none: all)"
    )
    parser.add_argument("--shortest", type=int, metavar="N", help="only the N runs with the fewest steps")
    args = parser.parse_args(arguments)
    finished = [row for row in read_rows(args.study) if is_finished(row)]
    if not finished:
        parser.error(f"no run of {args.study} is finished")
    chosen = [row for row in finished if not args.runs or any(_is_named(row["run"], name) for name in args.runs)]
    if not chosen:
        parser.error(f"no run of {args.study} is named {' or '.join(args.runs)}; for example {finished[0]['run']}")
    chosen = chosen if args.shortest is None else shortest(chosen, args.shortest)
    equal = 0
    for row in chosen:
        found = differences(row)
        equal += not found
        print(f"{args.study}/{row['run']}: {', '.join(found) or 'equal'}", flush=True)
    print(f"{equal} of {len(chosen)} runs are equal")
    return 0 if equal == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
