"""bsuite's scores of its exploration experiments (Osband et al. 2020), computed as bsuite 0.3.6 does.

They are of runs on bsuite's environments, and, for DeepSea, also of runs of `train deep-sea`.
"""

from typing import Any

import numpy as np
import pandas as pd

from bootdqn.common.text import format_count
from bootdqn.config.bsuite import BSUITE_IDS, DEEP_SEA_SETTINGS, EXPERIMENTS, BsuiteConfig
from bootdqn.config.variants import label, variant_order
from bootdqn.reports.deep_sea import cells, largest_solved
from bootdqn.reports.report_data import ReportData
from bootdqn.reports.statistics import Values
from bootdqn.reports.tables import Table

DEEP_SEA_SIZES = tuple(int(settings["size"]) for settings in DEEP_SEA_SETTINGS)
DEEP_SEA_EPISODES = EXPERIMENTS["deep_sea"].episodes
RANDOM_PLAY_MARGIN = 100
"""Episodes that DeepSea may take longer than random play is expected to."""
HIGHEST_RETURN, GOOD_RETURN = 700.0, 100.0
"""Mean return on CartPole swing-up that scores 1, and the return of an episode that counts as a swing-up."""
MIN_DEEP_SEA_SIZES = 5
"""On fewer of the sizes a score of DeepSea says nothing."""
TITLES = {"deep_sea": "DeepSea", "deep_sea_stochastic": "DeepSea, stochastic", "cartpole_swingup": "CartPole swing-up"}


def beats_random_play(sizes: pd.Series, solved_at: pd.Series) -> pd.Series:
    """Return the score of runs on DeepSea: 1 if solved within bsuite's episodes and sooner than by random play.

    Args:
        sizes: N of each run.
        solved_at: The episode at which it was solved by bsuite's rule; missing where it was not.
    """
    in_time = (solved_at <= DEEP_SEA_EPISODES) & (solved_at < 2.0**sizes + RANDOM_PLAY_MARGIN)
    return in_time.fillna(False).astype(float)


def swing_up_scores(mean_return: Values, best_episode: Values) -> Values:
    """Return the score of runs on CartPole swing-up: half for their mean return, half for one episode that is good."""
    return (np.clip(mean_return / HIGHEST_RETURN, 0, 1) + (best_episode > GOOD_RETURN)) / 2


def bsuite_runs(data: ReportData) -> pd.DataFrame:
    """Return the runs that count, with `experiment`, `index` of the setting, `size` of DeepSea and `score` in [0, 1].

    `short` marks runs of fewer episodes than bsuite's that more episodes might change. bsuite scores them, too.
    """
    runs = data.counted("bsuite").copy()
    runs = runs[runs.task.isin(BSUITE_IDS)]
    configs = [BsuiteConfig(task) for task in runs.task]
    runs["experiment"] = pd.Series([config.experiment for config in configs], runs.index, dtype=object)
    runs["index"] = pd.Series([int(config.label.partition("/")[2]) for config in configs], runs.index, dtype=int)
    runs["size"] = pd.Series([config.size for config in configs], runs.index, dtype="Int64")
    episodes = pd.Series([config.default_max_episodes for config in configs], runs.index, dtype=int)
    runs["short"] = (runs.budget < episodes) & runs.solved_at.isna()
    swing_up = runs.experiment == "cartpole_swingup"
    mean_return = (runs.total_return / runs.episodes.astype(float)).to_numpy(float)
    runs["score"] = np.where(
        swing_up,
        swing_up_scores(mean_return, runs.best_episode.to_numpy(float)),
        beats_random_play(runs["size"].astype(float), runs.solved_at.astype(float)),
    )
    return runs


def experiment_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each variant and experiment that it was trained in.

    Args:
        runs: Those of `bsuite_runs`.

    Returns:
        The columns are `variant`, `experiment`, `score` (the mean over settings, of each the mean over seeds),
        `settings` (how many of the experiment's there are), `seeds` (the fewest of a setting) and `short` (how many
        runs have fewer episodes than bsuite's).
    """
    rows = []
    for variant in sorted(set(runs.variant), key=variant_order):
        for experiment in EXPERIMENTS:
            mine = runs[(runs.variant == variant) & (runs.experiment == experiment)]
            if len(mine):
                by_setting = mine.groupby("index").score
                score, seeds = by_setting.mean().mean(), int(by_setting.count().min())
                rows.append((variant, experiment, score, len(by_setting), seeds, int(mine.short.sum())))
    return pd.DataFrame(rows, columns=["variant", "experiment", "score", "settings", "seeds", "short"])


def tag_scores(scores: pd.DataFrame) -> dict[Any, float]:
    """Return the score of each variant for the tag `exploration`, the mean over the experiments if it has all three."""
    groups = {variant: mine.score for variant, mine in scores.groupby("variant", sort=False)}
    return {variant: float(mine.mean()) for variant, mine in groups.items() if len(mine) == len(EXPERIMENTS)}


def scores_table(scores: pd.DataFrame) -> Table:
    """Return bsuite's three scores, and their mean, of each algorithm.

    Args:
        scores: Those of `experiment_scores`.
    """
    tags, rows = tag_scores(scores), []
    for variant, mine in scores.groupby("variant", sort=False):
        found = {row.experiment: row for row in mine.itertuples()}
        scores_of = [_format_score(found.get(experiment), experiment) for experiment in EXPERIMENTS]
        in_part = " (in part)" if any("(" in score for score in scores_of) else ""
        mean = f"{tags[variant]:.3f}{in_part}" if variant in tags else ""
        rows.append((label(variant), *scores_of, mean, str(mine.seeds.min())))
    note = (
        "As bsuite 0.3.6 computes them, from 0 to 1. DeepSea: the fraction of N = 10, 12, ..., 50 solved within "
        f"{DEEP_SEA_EPISODES:,} episodes and before episode 2^N + {RANDOM_PLAY_MARGIN}, where solved means fewer than "
        "90 % bad episodes so far, in the stochastic version fewer than 80 % and at episode 100 at the earliest. "
        f"CartPole swing-up: over 20 heights, half for the mean return divided by {HIGHEST_RETURN:.0f}, half for an "
        f"episode with more than {GOOD_RETURN:.0f}. bsuite has one run of each setting; with several seeds a setting "
        "counts with their mean. In brackets: how many of the settings there are, and how many runs are shorter than "
        "bsuite's."
    )
    columns = ("algorithm", *TITLES.values(), "exploration (mean)", "seeds")
    return Table("bsuite", "bsuite's scores", columns, rows, note, text_columns=("algorithm",))


def _format_score(found: Any, experiment: str) -> str:
    """Return a score, and in brackets why it is not yet bsuite's."""
    if found is None:
        return ""
    number = len(EXPERIMENTS[experiment].settings)
    reasons = [f"{found.settings} of {number}"] if found.settings < number else []
    reasons += [f"{found.short} short"] if found.short else []
    in_brackets = f" ({', '.join(reasons)})" if reasons else ""
    return f"{found.score:.3f}{in_brackets}"


def bsuite_conclusion(scores: pd.DataFrame) -> str:
    """Return which algorithm has the highest mean score, and on how many settings it rests."""
    tags = tag_scores(scores)
    settings = int(scores.groupby("variant", sort=False).settings.sum().min())
    sample_text = (
        f"{settings} of {format_count(len(BSUITE_IDS), 'setting')}, {format_count(scores.seeds.min(), 'seed')}"
    )
    where = f"On bsuite's exploration experiments ({sample_text})"
    if not tags:
        return f"{where} no algorithm has runs in all three."
    best = max(tags.values())
    names = " and ".join(label(variant) for variant, score in tags.items() if score == best)
    if len(tags) == 1:
        return f"{where} {names} has a mean score of {best:.3f}; there is nothing to compare it with."
    return f"{where} the highest mean score is {best:.3f}: {names}."


def deep_sea_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the score that bsuite gives an agent on DeepSea, by its own reading of "solved".

    bsuite plays 21 sizes, one run each and 10,000 episodes long, and scores the fraction of them that the agent solved
    sooner than random play would have: before episode 2^N + 100. With several seeds a size counts with the fraction of
    its seeds. Two things differ: bsuite's runs all have one action map (seed 42), and it looks for the first solved
    episode among the ones that it logs, which become rarer, where these runs look at every one.

    Returns:
        A row for each variant that has enough of bsuite's sizes: `variant`, `score` (the mean over sizes of the
        fraction of seeds that beat random play), `sizes` (how many), `fewest_seeds`, `most_seeds` and `largest` (the
        largest N that half of the seeds solved, or None).
    """
    runs = runs[runs["size"].isin(DEEP_SEA_SIZES) & (runs.budget >= DEEP_SEA_EPISODES)]
    rows = []
    for variant in sorted(set(runs.variant), key=variant_order):
        mine = runs[runs.variant == variant]
        by_size = beats_random_play(mine["size"].astype(float), mine.solved_at.astype(float)).groupby(mine["size"])
        if len(by_size) >= MIN_DEEP_SEA_SIZES:
            seeds = by_size.count()
            largest = largest_solved(cells(mine))
            rows.append((variant, by_size.mean().mean(), len(seeds), seeds.min(), seeds.max(), largest))
    columns = ["variant", "score", "sizes", "fewest_seeds", "most_seeds", "largest"]
    return pd.DataFrame(rows, columns=columns).astype({"largest": object})


def deep_sea_table(runs: pd.DataFrame, name: str) -> Table | None:
    """Return the table of bsuite's scores; None where no variant has enough of the sizes."""
    rows = []
    for found in deep_sea_scores(runs).itertuples():
        missing = len(DEEP_SEA_SIZES) - found.sizes
        low = found.score * found.sizes / len(DEEP_SEA_SIZES)
        rows.append(
            (
                label(found.variant),
                f"{found.score:.3f}" if not missing else "",
                f"{found.score:.3f} on {found.sizes} sizes" if missing else "",
                f"{low:.3f} to {low + missing / len(DEEP_SEA_SIZES):.3f}" if missing else "",
                f"{found.sizes} of {len(DEEP_SEA_SIZES)}",
                " to ".join(dict.fromkeys(map(str, (found.fewest_seeds, found.most_seeds)))),
                "none" if pd.isna(found.largest) else str(found.largest),
            )
        )
    if not rows:
        return None
    columns = (
        "algorithm", "score", "score on a part", "so the score is within", "sizes", "seeds", "largest N solved by half",
    )  # fmt: skip
    return Table(
        name,
        "bsuite's score",
        columns,
        rows,
        f"The fraction of N = {DEEP_SEA_SIZES[0]}, {DEEP_SEA_SIZES[1]}, ..., {DEEP_SEA_SIZES[-1]} solved within "
        f"{DEEP_SEA_EPISODES:,} episodes and before episode 2^N + {RANDOM_PLAY_MARGIN}, by bsuite's rule, averaged "
        "over seeds. If sizes are missing, the table shows the score over the sizes present and the bounds of the "
        "full score. Here each seed has an action map of its own and every episode is looked at; in "
        "bsuite all runs have one map, and it looks at fewer and fewer episodes. The largest N is by the stricter "
        "reading of the other tables.",
        text_columns=("algorithm",),
    )
