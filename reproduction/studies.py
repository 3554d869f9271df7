"""Read the committed results, one function for each kind of study."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from bootdqn.config.variants import Variant
from bootdqn.reports import load_metrics
from bootdqn.reports.atari import RUN_COLUMNS, evaluations_of
from bootdqn.reports.report_data import DIVERSITY, ReportData, load_report_data, shared_settings, without_settings
from bootdqn.reports.suites import MINATAR
from reproduction.archive import RESULTS, unpacked

ROOT = Path(__file__).parents[1]
EVALUATION_COLUMNS = [*RUN_COLUMNS, "frames", "score", *DIVERSITY]


@cache
def read_study(study: str) -> ReportData:
    """Return every run of a study."""
    return load_report_data(unpacked(study))


@cache
def deep_sea_runs(study: str) -> pd.DataFrame:
    """Return the finished DeepSea runs of a study; where all update every step, their variants do not say so."""
    runs = read_study(study).counted("deep-sea")
    every_step = all(variant["update_every"] == 1 for variant in runs.variant)
    return without_settings(runs, {"update_every": 1}) if every_step else runs


@cache
def atari_evaluations(study: str) -> pd.DataFrame:
    """Return the evaluations of the Atari runs of a study."""
    return evaluations_of(read_study(study))


@cache
def minatar_evaluations(study: str) -> pd.DataFrame:
    """Return the evaluations of the MinAtar runs of a study; none where it has no runs yet."""
    return evaluations_of(read_study(study), MINATAR) if has_runs(study) else pd.DataFrame(columns=EVALUATION_COLUMNS)


def has_runs(study: str) -> bool:
    """Return whether results of a study are committed."""
    return (RESULTS / study).is_dir()


def without_shared_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs or evaluations whose variants lack the settings that all share and that have no label."""
    return without_settings(runs, shared_settings(runs.variant))


def training_episodes(study: str, run: str) -> pd.DataFrame:
    """Return the training episodes of an Atari run, with its settings `learning_starts` and `frame_skip`."""
    runs = read_study(study).runs
    settings = runs.loc[runs.run == run, ["run", "learning_starts", "frame_skip"]]
    return load_metrics(runs[runs.run == run], kind="episode").merge(settings, on="run")


def returns_before_and_after_learning(study: str, run: str) -> tuple[list[float], list[float]]:
    """Return the returns of the episodes that ended before the first update, and of those that ended after it."""
    episodes = training_episodes(study, run)
    before = episodes.step <= episodes.learning_starts
    return list(episodes["return"][before]), list(episodes["return"][~before])


def random_play_returns(game: str) -> list[float]:
    """Return the returns of random play."""
    return returns_before_and_after_learning("atari-random", game)[0]


def measured_ensembles(study: str) -> pd.DataFrame:
    """Return the measurements of `ensembles.py`."""
    return pd.DataFrame(_read_json(f"{study}/deep-sea.json"))


def acting_of_runs(study: str) -> list[dict[str, Any]]:
    """Return the metrics that `acting.py` extracted, one dictionary for each run."""
    runs: list[dict[str, Any]] = _read_json(f"{study}/deep-sea.json")
    return runs


def acting_tables(study: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the runs and the metrics that `acting.py` extracted, as the figure takes them."""
    found = acting_of_runs(study)
    variants = [Variant(run["strategy"]) for run in found]
    shared = {"environment": "deep-sea", "task": "DeepSea, N = 30", "finished": True}
    runs = pd.DataFrame(shared | {"run": range(len(found)), "variant": variants})
    metrics = [pd.DataFrame({"run": number, "step": run["steps"], **run["means"]}) for number, run in enumerate(found)]
    return runs, pd.concat(metrics)


def measured_speed(study: str) -> dict[str, Any]:
    """Return the frames per second on Atari of runs with two threads on a quiet machine, by heads and by strategy."""
    measured: dict[str, Any] = _read_json(f"{study}/atari-two-cores.json")
    return measured


def benchmark(study: str, name: str) -> dict[str, Any]:
    """Return the rows and the machine that `python -m benchmarks.NAME --json` wrote."""
    measured: dict[str, Any] = _read_json(f"{study}/{name}.json")
    return measured


def _read_json(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))
