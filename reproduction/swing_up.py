"""The runs on bsuite's CartPole swing-up: their returns in the course of training, as a table and a figure."""

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from bootdqn.reports import load_metrics
from bootdqn.reports.bsuite import GOOD_RETURN, bsuite_runs
from bootdqn.reports.style import RC_PARAMS, legend_below
from bootdqn.reports.tables import Table
from reproduction import studies

BLOCK = 100
"""Episodes that are averaged."""
COLOURS = ("#0072B2", "#D55E00", "#009E73")


def returns_by_seed(study: str) -> dict[int, pd.Series]:
    """Return the return of every episode, by seed."""
    runs = bsuite_runs(studies.read_study(study))
    episodes = load_metrics(runs, kind="episode")
    return {int(seed): group["return"].reset_index(drop=True) for seed, group in episodes.groupby("seed")}


def swing_up_table(study: str) -> str:
    """Return the mean return of every hundred episodes, the best episode and bsuite's score, a row for each seed."""
    runs, returns = bsuite_runs(studies.read_study(study)).set_index("seed"), returns_by_seed(study)
    means = {seed: values.groupby(values.index // BLOCK).mean() for seed, values in returns.items()}
    last = max(len(values) for values in means.values())
    columns = ("seed", *(f"{block * BLOCK + 1} to {(block + 1) * BLOCK}" for block in range(last)), "best", "score")
    rows = [
        (
            str(seed),
            *(f"{values.get(block, float('nan')):.0f}" for block in range(last)),
            f"{runs.best_episode[seed]:.0f}",
            f"{runs.score[seed]:.2f}",
        )
        for seed, values in means.items()
    ]
    return Table("", "", columns, rows).to_markdown()


def swing_up_figure(study: str) -> Figure:
    """Plot the return of every episode, and its average over a hundred, for each seed."""
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.axhline(GOOD_RETURN, linestyle="--", color="#888888", linewidth=1)
        lines = {}
        for (seed, values), colour in zip(returns_by_seed(study).items(), COLOURS, strict=False):
            number = values.index + 1
            axes.plot(number, values, ".", color=colour, markersize=2, alpha=0.35)
            (lines[f"seed {seed}"],) = axes.plot(number, values.rolling(BLOCK).mean(), color=colour)
        axes.set_xlim(left=0)
        axes.set_xlabel("episode")
        axes.set_ylabel("return")
        legend_below(figure, lines)
    return figure
