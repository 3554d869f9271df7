"""How far agents get on DeepSea: the preset `explorer` beside the paper's strategies and published limits."""

import pandas as pd
from matplotlib.figure import Figure

from bootdqn.reports.ablation_figures import frontiers
from bootdqn.reports.report_data import without_settings
from reproduction import studies

PAPER = "deep-sea-frontier"
NO_PRIOR = "deep-sea-no-prior"
SCORED = ("deep-sea-explorer", NO_PRIOR, "deep-sea-score")
"""On bsuite's sizes and its map of the actions."""
EXPLORER = ("deep-sea-explorer", "deep-sea-large")
COMPARED = {("greedy", ()), ("greedy", ("prior_scale",)), ("gain", ()), ("evoi:reduce=sum", ())}
"""Strategies of `PAPER` that are shown, each with the names of the settings that differ from the paper's."""
LITERATURE = {20: "BootDQN", 30: "with priors"}
"""Largest N that is published as solved: Osband et al. 2016 and 2018."""


def frontier_runs() -> pd.DataFrame:
    """Return the runs of `explorer` and of Gain without a prior, whatever their map, and the paper's beside them."""
    paper = studies.deep_sea_runs(PAPER)
    names = [(variant.strategy, tuple(name for name, _ in variant.settings)) for variant in paper.variant]
    ours = [studies.deep_sea_runs(study) for study in (*EXPLORER, NO_PRIOR) if studies.has_runs(study)]
    return pd.concat([paper[[name in COMPARED for name in names]], *map(without_map, ours)])


def scored_runs() -> pd.DataFrame:
    """Return the runs on bsuite's sizes and map, of the seeds that all agents have."""
    runs = pd.concat([without_map(studies.deep_sea_runs(study)) for study in SCORED if studies.has_runs(study)])
    seeds = runs.groupby("variant", sort=False).seed.unique()
    return runs[runs.seed.isin(set.intersection(*map(set, seeds)))]


def without_map(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs whose variants do not name their map of actions: bsuite's is one of many."""
    return without_settings(runs, {"mapping_seed": None})


def frontier_figure(_: str) -> Figure:
    """Plot episodes to solve DeepSea against N, with the limits of the literature as vertical lines."""
    figure = frontiers(frontier_runs())
    axes = figure.axes[0]
    axes.set_title("")
    for size, who in LITERATURE.items():
        axes.axvline(size, color="#888888", linewidth=0.9, linestyle="--", zorder=0)
        axes.annotate(f"{who},\npublished", (size, 1), (0, 3), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="center", va="bottom", fontsize=7, color="#666666")  # fmt: skip
    return figure
