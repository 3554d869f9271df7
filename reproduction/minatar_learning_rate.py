"""Choose the learning rate of the MinAtar preset by the rule in `sweeps/minatar-learning-rate.toml`."""

import pandas as pd

from bootdqn.reports import load_metrics
from bootdqn.reports.paper import title_of
from bootdqn.reports.suites import MINATAR
from bootdqn.sweeps.sweep_file import load_sweep
from reproduction import studies
from reproduction.tables import markdown

SWEEP = studies.ROOT / "reproduction/sweeps/minatar-learning-rate.toml"
LAST_STEPS = 25_000
"""Steps at the end of a run whose episodes count."""


def scores_of_runs(episodes: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return `game`, `learning_rate`, `seed` and `score`, the mean return of the last episodes, of each finished run.

    Args:
        episodes: `run`, `step` and `return` of the training episodes.
        runs: `run`, `game`, `learning_rate`, `seed` and `budget`.
    """
    late = episodes.merge(runs, on="run")
    late = late[late.step > late.budget - LAST_STEPS]
    keys = ["game", "learning_rate", "seed"]
    return late.groupby(keys, as_index=False)["return"].mean().rename(columns={"return": "score"})


def choose(scores: pd.DataFrame) -> tuple[pd.Series, float]:
    """Return the score of each rate, 1 for the best on every game, and the chosen rate: the smaller in a tie."""
    means = scores.groupby(["learning_rate", "game"]).score.mean().unstack()
    relative = (means / means.max()).mean(axis=1)
    return relative, float(relative.idxmax())


def learning_rates(study: str) -> str:
    """Return the table of scores by learning rate, and the choice once all runs are there."""
    runs = studies.read_study(study).counted("minatar")
    runs = runs[runs.status == "finished"]
    columns = ["run", "game", "learning_rate", "seed", "budget"]
    scores = scores_of_runs(load_metrics(runs, kind="episode")[["run", "step", "return"]], runs[columns])
    planned = len(load_sweep(str(SWEEP)).runs())
    relative, chosen = choose(scores)
    complete = len(scores) == planned
    games, rows = sorted(set(scores.game)), []
    for rate, of_rate in scores.groupby("learning_rate"):
        by_game = [of_rate.score[of_rate.game == game] for game in games]
        cells = [f"{found.mean():.2f} ({len(found)})" if len(found) else "" for found in by_game]
        rows.append((f"{rate:g}", *cells, f"{relative[rate]:.2f}" if complete else ""))
    rows.append(("random play", *(f"{MINATAR.random[game]:.2f}" for game in games), ""))
    titles = [f"{title_of(game)} (seeds)" for game in games]
    table = markdown(("learning rate", *titles, "mean of score / best"), rows, text_columns=("learning rate",))
    verdict = (
        f"Chosen: {chosen:g}." if complete else f"{len(scores)} of {planned} runs are finished: nothing is chosen yet."
    )
    return f"{table}\n\n{verdict}"
