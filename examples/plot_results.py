"""Two figures from tables of runs, with pandas and Matplotlib alone: one from `load_results`, one from `load_metrics`.

    python examples/plot_results.py DEEP_SEA_RUNS OTHER_RUNS OUT     # writes OUT/data-results.png, OUT/data-metrics.png

See docs/data.md, whose figures it plots.
"""

import sys
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import bootdqn

SIZE, DPI = (6, 3.4), 100


def plot_results(axes: Axes, path: Path) -> None:
    """Plot the median episodes to solve DeepSea against N; an unsolved run counts with its budget."""
    runs = bootdqn.load_results(path)
    runs = runs[runs.status == "finished"]
    runs["to_solve"] = runs.solved_at_strict.fillna(runs.budget)
    median = runs.groupby(["size", "algorithm"]).to_solve.median().unstack()
    median.astype(float).plot(ax=axes, logy=True, marker="o", xlabel="N", ylabel="episodes to solve, median")


def plot_metrics(axes: Axes, path: Path) -> None:
    """Plot how much the heads disagreed in the course of training, a line for each strategy."""
    updates = bootdqn.load_metrics(path, kind="update")
    mean = updates.groupby(["step", "strategy"]).disagreement.mean().unstack()
    mean.plot(ax=axes, logy=True, xlabel="step", ylabel="disagreement of the heads")


def main(deep_sea: Path, others: Path, out: Path) -> None:
    """Write both figures to the directory `out`."""
    for name, plot, runs in (("results", plot_results, deep_sea), ("metrics", plot_metrics, others)):
        figure = Figure(figsize=SIZE, layout="constrained")
        plot(figure.subplots(), runs)
        figure.axes[0].legend(fontsize=8, frameon=False)
        figure.savefig(out / f"data-{name}.png", dpi=DPI)
        print(out / f"data-{name}.png")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
