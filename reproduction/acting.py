"""Keeps how agents acted on DeepSea, from the records of their runs, which are too large to be kept here.

    bootdqn sweep paper-deepsea-every-step --out runs/deep-sea 'strategy=["gain","evoi:reduce=sum"]' 'size=[30]' \
        'seed=[5,6,7,8,9,10,11,12,13,14]'
    python -m reproduction.acting runs/deep-sea

It takes the runs of `STRATEGIES` at the size and with the seeds above, and writes `results/acting/deep-sea.json`.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from bootdqn.reports.report_data import ACTING
from bootdqn.runs.directory import RunDirectory, find_runs

KEPT = Path(__file__).parent / "results/acting/deep-sea.json"
STRATEGIES, SIZE, SEEDS = ("gain", "evoi:reduce=sum"), 30, range(5, 15)
DIGITS = 4


@dataclass(frozen=True)
class Kept:
    """The numbers of a run that are committed."""

    strategy: str
    seed: int
    solved_at_strict: int | None
    steps: list[int]
    means: dict[str, list[float]]
    """By measure, in the window of training that ends after each of these steps."""


def kept(folder: RunDirectory) -> Kept | None:
    """Return what is kept of a run; None of one that is not asked for, or not finished."""
    config, summary = folder.read_config(), folder.read_summary() or {}
    asked = config["strategy"] in STRATEGIES and config["size"] == SIZE and config["seed"] in SEEDS
    if not asked or summary.get("status") != "finished":
        return None
    records = list(folder.read_metrics("update"))
    means = {name: [float(f"{record[name]:.{DIGITS}g}") for record in records] for name in ACTING}
    steps = [record["step"] for record in records]
    return Kept(config["strategy"], config["seed"], summary["solved_at_strict"], steps, means)


def main(runs: str) -> None:
    """Write the file."""
    found = [one for folder in find_runs(Path(runs)) if (one := kept(folder)) is not None]
    found.sort(key=lambda one: (STRATEGIES.index(one.strategy), one.seed))
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text("[\n" + ",\n".join(json.dumps(asdict(one)) for one in found) + "\n]\n", encoding="utf-8")
    print(f"{len(found)} runs in {KEPT}")


if __name__ == "__main__":
    main(*sys.argv[1:])
