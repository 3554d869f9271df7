"""The paper's opening example, `bootdqn/TwoPaths-v0`: when each run first came to the end of the long, silent path."""

import pandas as pd

from bootdqn.config.variants import algorithm, algorithm_order
from bootdqn.reports import load_metrics
from bootdqn.reports.tables import Table

SHORT_END = 1.0
"""Return of the path that looks better at first."""


def first_finds(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs on the two paths by prior and agent, in the paper's order, a single head first.

    Args:
        runs: Rows of `load_results`.

    Returns:
        The runs with the columns `agent` (a single head explores nothing) and `found_at`: the step at which an episode
        first ended with more than the short path gives; NaN where none did.
    """
    runs = runs[runs.env_id == "bootdqn/TwoPaths-v0"]
    episodes = load_metrics(runs, kind="episode")
    found = episodes[episodes["return"] > SHORT_END].groupby("run").step.first()
    order = {strategy: place for place, strategy in enumerate(sorted(set(runs.strategy), key=algorithm_order))}
    several = runs.num_heads > 1
    agents = runs.strategy.map(lambda strategy: algorithm(strategy).label).where(several, "one head")
    runs = runs.assign(agent=agents, found_at=runs.run.map(found), several=several, order=runs.strategy.map(order))
    return runs.sort_values(["prior_scale", "several", "order", "seed"])


def two_paths_table(runs: pd.DataFrame) -> Table:
    """Return the step at which each run first came to the long end, a row an agent."""
    seeds = sorted(set(runs.seed))
    rows = []
    for (prior, agent), group in runs.groupby(["prior_scale", "agent"], sort=False):
        steps = {run.seed: "-" if pd.isna(run.found_at) else f"{run.found_at:,.0f}" for run in group.itertuples()}
        finds = f"{group.found_at.notna().sum()} of {len(group)}"
        rows.append((agent, f"{prior:g}", *(steps.get(seed, "") for seed in seeds), finds))
    columns = ("agent", "`--prior-scale`", *(f"seed {seed}" for seed in seeds), "runs that found it")
    return Table("two-paths", "Two paths", columns, rows, text_columns=("agent",))
