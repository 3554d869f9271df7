"""Read the committed results, one function for each kind of study."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bootdqn.config.train import default_settings
from bootdqn.config.variants import Variant
from bootdqn.report import atari, deep_sea
from bootdqn.report.acting import Course
from bootdqn.report.atari import Played
from bootdqn.report.deep_sea import Result
from bootdqn.report.ensembles import Measured
from bootdqn.report.runs import Run, read_runs
from bootdqn.runs.directory import RunDirectory

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reproduction/results"


@cache
def read_study(study: str) -> list[Run]:
    """Return every run of a study."""
    return read_runs(RESULTS / study, default_settings())[0]


@cache
def deep_sea_results(study: str) -> list[Result]:
    """Return the finished DeepSea runs of a study."""
    return deep_sea.read_results(run for run in read_study(study) if run.kind == "deep-sea")[0]


@cache
def atari_runs(study: str) -> list[Played]:
    """Return the evaluated Atari runs of a study."""
    return atari.read_played(run for run in read_study(study) if run.kind == "atari")[0]


def returns_before_and_after_learning(run_dir: Path) -> tuple[list[float], list[float]]:
    """Return the returns of the episodes that ended before the first update, and of those that ended after it."""
    run = RunDirectory(run_dir)
    first_update = run.read_config()["learning_starts"]
    episodes = list(run.read_metrics("episode"))
    before = [episode["return"] for episode in episodes if episode["step"] <= first_update]
    after = [episode["return"] for episode in episodes if episode["step"] > first_update]
    return before, after


def random_play_returns(game: str) -> list[float]:
    """Return the returns of random play."""
    return returns_before_and_after_learning(RESULTS / "atari-random" / game)[0]


def measured_ensembles(study: str) -> list[Measured]:
    """Return the measurements of `ensembles.py`."""
    return [Measured(**row) for row in _read_json(f"{study}/deep-sea.json")]


def acting_of_runs(study: str) -> list[dict[str, Any]]:
    """Return the metrics that `acting.py` extracted, one dictionary for each run."""
    runs: list[dict[str, Any]] = _read_json(f"{study}/deep-sea.json")
    return runs


def acting_courses(study: str) -> list[Course]:
    """Return the metrics that `acting.py` extracted, as the figure takes them."""
    return [
        Course(
            kind="deep-sea",
            task="DeepSea, N = 30",
            size=30,
            variant=Variant(run["strategy"]),
            steps=np.array(run["steps"], float),
            means={name: np.array(values) for name, values in run["means"].items()},
        )
        for run in acting_of_runs(study)
    ]


def measured_speed(study: str) -> dict[str, Any]:
    """Return the frames per second that `benchmarks/atari.py --json` wrote."""
    measured: dict[str, Any] = _read_json(f"{study}/atari.json")
    return measured


def _read_json(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))
