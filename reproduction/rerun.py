"""Repeat the shortest committed DeepSea runs, and compare their summaries.

    python -m reproduction.rerun                        the 15 shortest of reproduction/results/deep-sea
    python -m reproduction.rerun deep-sea-frontier 10   the 10 shortest of another study

This checks whether today's code gives the same numbers on your machine. Runs of other studies than `deep-sea` are from
before the kernel had products of its own: they differ in their last bits, so that longer ones end at another episode.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bootdqn.config.train import from_flat
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.run import run

RESULTS = Path(__file__).parent / "results"
COMPARED_KEYS = ("episodes", "steps", "solved_at", "solved_at_strict")


def shortest_runs(study: Path, number: int) -> list[RunDirectory]:
    """Return the finished runs of a study that took the fewest steps."""
    runs = [RunDirectory(path.parent) for path in sorted(study.rglob("summary.json"))]
    return sorted(runs, key=lambda one: _summary(one)["steps"])[:number]


def _summary(run_dir: RunDirectory) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(run_dir.summary.read_text(encoding="utf-8"))
    return summary


def main(study: str = "deep-sea", number: str = "15") -> int:
    """Repeat the runs one after the other; return 1 if any summary differs."""
    runs = shortest_runs(RESULTS / study, int(number))
    equal = 0
    for committed in runs:
        before = _summary(committed)
        with tempfile.TemporaryDirectory() as scratch:
            now = run(from_flat(committed.read_config()), Path(scratch) / "run").summary
        differences = [f"{key} was {before[key]}, now {now[key]}" for key in COMPARED_KEYS if before[key] != now[key]]
        equal += not differences
        print(f"{committed.path.relative_to(RESULTS)}: {', '.join(differences) or 'equal'}", flush=True)
    print(f"{equal} of {len(runs)} runs are equal")
    return 0 if equal == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
