"""The runs on MiniGrid, scored by the rule in `sweeps/minigrid-search.toml`."""

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from bootdqn.config.variants import label
from bootdqn.reports import load_metrics
from bootdqn.reports.report_data import without_settings
from bootdqn.reports.style import RC_PARAMS
from bootdqn.reports.tables import Table
from reproduction import studies

LAST_EVALUATIONS = 4
SOLVED = 0.8
"""Mean return of the last evaluations from which a run counts as solved."""


def scores_of_runs(study: str) -> pd.DataFrame:
    """Return `task`, `variant`, `seed` and `score`, the mean return of the last evaluations, of every run.

    Settings that all runs have are left out of the variants.
    """
    runs = studies.read_study(study).counted("gym")
    shared = set.intersection(*(set(variant.settings) for variant in runs.variant))
    runs = without_settings(runs, dict(shared))
    evaluations = load_metrics(runs, kind="evaluation")
    score = evaluations.groupby("run").mean_return.apply(lambda values: values.iloc[-LAST_EVALUATIONS:].mean())
    return runs[["task", "variant", "seed"]].assign(score=runs.run.map(score))


def doorkey_table(study: str) -> str:
    """Return the score of every run, a row for each setting, those with the most seeds solved first."""
    scores = scores_of_runs(study)
    return _scores_table("settings", {label(one): group for one, group in scores.groupby("variant", sort=False)})


def tasks_table(study: str) -> str:
    """Return the score of every run, a row for each environment; nothing where the study has no runs."""
    if not studies.has_runs(study):
        return ""
    return _scores_table("environment", dict(iter(scores_of_runs(study).groupby("task"))))


def _scores_table(name: str, groups: dict[str, pd.DataFrame]) -> str:
    """Return a row for each group of runs, those with the most seeds solved first."""
    seeds = sorted(set().union(*(group.seed for group in groups.values())))
    rows = []
    for key, group in groups.items():
        by_seed = dict(zip(group.seed, group.score, strict=True))
        solved = sum(score >= SOLVED for score in by_seed.values())
        each = [f"{by_seed[seed]:.2f}" if seed in by_seed else "" for seed in seeds]
        mean = sum(by_seed.values()) / len(by_seed)
        rows.append((solved, mean, (key, *each, f"{solved} of {len(by_seed)}", f"{mean:.2f}")))
    rows.sort(key=lambda row: row[:2], reverse=True)
    columns = (name, *(f"seed {seed}" for seed in seeds), "solved", "mean")
    return Table("", "", columns, [cells for *_, cells in rows], text_columns=(name,)).to_markdown()


def doorkey_figure(study: str) -> Figure:
    """Plot the evaluations of every run against steps, and their mean over seeds."""
    evaluations = load_metrics(studies.read_study(study).counted("gym"), kind="evaluation")
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 3.4), layout="constrained")
        axes = figure.subplots()
        for _, of_run in evaluations.groupby("seed"):
            (line,) = axes.plot(of_run.step, of_run.mean_return, color="C0", linewidth=0.9, alpha=0.4)
        line.set_label("a seed")
        mean = evaluations.groupby("step").mean_return.mean()
        axes.plot(mean.index, mean, color="C0", marker=".", linewidth=2.2, label="mean")
        axes.axhline(SOLVED, linestyle="--", color="#888888", linewidth=1)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xlabel("steps")
        axes.set_ylabel("evaluation return")
        axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure
