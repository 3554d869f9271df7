"""Run all benchmarks, and print one table at the end: what was measured, its peer, the ratio, and its limit.

make bench
python -m benchmarks.run_all --out reproduction/results/speed     write the numbers of docs/speed.md
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.results import read, show

BENCHMARKS: dict[str, tuple[str, ...]] = {
    "deepsea": ("--rounds", "5"),
    "minatar": (),
    "atari": (),
    "replay": ("--transitions", "5000", "--rounds", "5"),
    "precision": ("--seeds", "2"),
}
"""Name and arguments of each, so that all of them take less than ten minutes on two cores."""


def main() -> int:
    """Run them one after the other; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(BENCHMARKS), choices=list(BENCHMARKS), help="which to run")
    parser.add_argument("--out", type=Path, default=Path("runs/bench"), help="directory of the JSON files")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows, failed = [], []
    for name in arguments.only:
        path, start = arguments.out / f"{name}.json", time.perf_counter()
        command = [sys.executable, "-m", f"benchmarks.{name}", *BENCHMARKS[name], "--json", str(path)]
        print(f"\n$ python {' '.join(command[1:])}", flush=True)
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
        else:
            rows += read(path)
            print(f"{name}: {time.perf_counter() - start:.0f} seconds", flush=True)
    show("All benchmarks", rows)
    missed = [row.what for row in rows if row.met is False]
    print(f"{len(missed)} limits missed: {'; '.join(missed)}" if missed else "all limits met")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
