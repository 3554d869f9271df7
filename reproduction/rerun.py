"""Makes the shortest of the DeepSea runs in `results/` again, and says whether they end as they did.

    python -m reproduction.rerun                 the 30 shortest of reproduction/results/deep-sea
    python -m reproduction.rerun deep-sea-frontier 10

Which version of the code made a run is not kept here. This tells whether today's gives the same numbers where you are.
They were made with AVX2 instructions, and with others sums are rounded differently (docs/reliability.md), so OpenBLAS
is asked for these unless OPENBLAS_CORETYPE says otherwise.
"""

import json
import os
import platform
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__" and platform.machine() == "x86_64":
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")  # it is read once, when NumPy and SciPy are first imported

from bootdqn.config.train import from_flat
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.run import run

RESULTS = Path(__file__).parent / "results"
COMPARED = ("episodes", "steps", "solved_at", "solved_at_strict")


def shortest(folder: Path, number: int) -> list[RunDirectory]:
    """Return the finished runs below `folder` that took the fewest steps."""
    runs = [RunDirectory(path.parent) for path in sorted(folder.rglob("summary.json"))]
    return sorted(runs, key=lambda one: json.loads(one.summary.read_text(encoding="utf-8"))["steps"])[:number]


def main(folder: str = "deep-sea", number: str = "30") -> int:
    """Make them again, one after the other."""
    runs = shortest(RESULTS / folder, int(number))
    same = 0
    for one in runs:
        then = json.loads(one.summary.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as scratch:
            now = run(from_flat(one.read_config()), Path(scratch) / "run").summary
        different = {key: (then[key], now[key]) for key in COMPARED if then[key] != now[key]}
        same += not different
        told = ", ".join(f"{key} {before} then, {after} now" for key, (before, after) in different.items())
        print(f"{one.path.relative_to(RESULTS)}: {told or 'the same'}", flush=True)
    print(f"{same} of {len(runs)} ended as they did")
    return 0 if same == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
