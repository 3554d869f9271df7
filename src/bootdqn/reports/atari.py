"""Runs on Atari and MinAtar into the paper's tables: maximal and normalised scores, vote variance.

The functions take evaluations, a table with a row for each evaluation of each run, as `evaluations_of` returns it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from bootdqn.config.variants import Variant, algorithm, label, variant_order
from bootdqn.reports import paper
from bootdqn.reports.report_data import DIVERSITY, ReportData
from bootdqn.reports.statistics import (
    Values,
    interquartile_mean,
    interval_of_mean,
    probability_of_improvement,
    smoothed,
    stratified_interval,
)
from bootdqn.reports.suites import ATARI, Suite
from bootdqn.reports.tables import Table

PAPER_HEADS = 10
SPEED_DEPENDS_ON = ("device", "threads", "engine", "precision")
RUN_COLUMNS = ("run", "game", "variant", "num_heads", "seed", "status", "speed", "computed")
"""Columns of the evaluations that describe their run."""


def evaluations_of(data: ReportData, suite: Suite = ATARI) -> pd.DataFrame:
    """Return the evaluations of the runs of a suite that count, with what describes their run.

    Returns:
        A row for each evaluation: `run`, `game`, `variant`, `num_heads`, `seed`, `status`, `speed` (frames a second;
        NaN where the run is not finished), `computed` (the settings that its speed depends on), `frames`, `score` and
        the measures of vote diversity.
    """
    runs = data.counted(suite.kind)
    seconds = runs.seconds.astype(float).where(runs.status == "finished").replace(0, np.nan)
    described = runs.assign(
        game=runs.task,
        num_heads=runs.num_heads.astype(int),
        seed=runs.seed.astype(int),
        speed=runs.budget.astype(float) / seconds,
        computed=list(zip(*(runs[name].map(str) for name in SPEED_DEPENDS_ON), strict=True)),
    )
    return data.evaluations.merge(described[list(RUN_COLUMNS)], on="run")


def with_paper_heads(evaluations: pd.DataFrame) -> pd.DataFrame:
    """Return the runs without those that only vary K, of what was also run with as many heads as the paper's.

    A game and algorithm that was run with other numbers of heads only keeps them; `atari_heads` has the others.
    """
    study = studies_of(evaluations)
    is_paper = evaluations.num_heads == PAPER_HEADS
    return evaluations[is_paper | ~study.isin(set(study[is_paper]))]


def studies_of(evaluations: pd.DataFrame) -> pd.Series:
    """Return the game and algorithm of each row, whatever K is."""
    found = [(game, variant.without("num_heads")) for game, variant in _pairs(evaluations)]
    return pd.Series(found, index=evaluations.index, dtype=object)


def _pairs(evaluations: pd.DataFrame) -> Iterator[tuple[str, Variant]]:
    return zip(evaluations.game, evaluations.variant, strict=True)


def games_of(evaluations: pd.DataFrame) -> list[str]:
    """Return the games that were played, the paper's first and in its order."""
    order = {game: number for number, game in enumerate(paper.GAMES)}
    return sorted(set(evaluations.game), key=lambda game: (order.get(game, len(order)), game))


def variants_of(evaluations: pd.DataFrame) -> list[Variant]:
    """Return the variants that played, in the paper's order."""
    return sorted(set(evaluations.variant), key=variant_order)


def by_game_and_variant(evaluations: pd.DataFrame) -> dict[tuple[str, Variant], pd.DataFrame]:
    """Return the evaluations of each game and variant, in the paper's order, by seed."""
    groups = dict(iter(evaluations.sort_values("seed", kind="stable").groupby(["game", "variant"], sort=False)))
    variants = variants_of(evaluations)
    order = [(game, variant) for game in games_of(evaluations) for variant in variants]
    return {cell: groups[cell] for cell in order if cell in groups}


def best_scores(evaluations: pd.DataFrame) -> list[float]:
    """Return the best evaluation of each run."""
    return list(map(float, evaluations.groupby("run", sort=False).score.max()))


def last_frames(evaluations: pd.DataFrame) -> pd.Series:
    """Return the frames at each run's last evaluation."""
    return evaluations.groupby("run", sort=False).frames.max()


def common_budgets(evaluations: pd.DataFrame, most: int | None = None) -> dict[str, int]:
    """Return by game the most frames that each of its runs was evaluated for, no more than `most`.

    A game is missing where within them one run was not evaluated at all, as the others are evaluated more often and
    have just begun.
    """
    ends = evaluations.groupby(["game", "run"]).frames.agg(["min", "max"]).groupby("game")
    budget = ends["max"].min() if most is None else ends["max"].min().clip(upper=most)
    return dict(budget[ends["min"].max() <= budget])


def within_common_budget(evaluations: pd.DataFrame, most: int | None = None) -> pd.DataFrame:
    """Return the evaluations of each game within the frames that all its runs have: a longer run wins nothing.

    A game in which there are no such frames is left out.

    Args:
        evaluations: Those of the runs to compare.
        most: Frames beyond which no evaluation counts.
    """
    budgets = common_budgets(evaluations, most)
    return evaluations[evaluations.frames <= evaluations.game.map(budgets).astype(float).fillna(0)]


def format_frames(evaluations: pd.DataFrame) -> str:
    """Return for how many frames runs were evaluated: "3M", or "50k to 4M" where some were for longer."""
    shortest, longest = last_frames(evaluations).min(), last_frames(evaluations).max()
    return _rounded(shortest) if shortest == longest else f"{_rounded(shortest)} to {_rounded(longest)}"


def leader(evaluations: pd.DataFrame, game: str, variants: Sequence[Variant]) -> Variant | None:
    """Return the variant with the highest mean of maximal scores on `game`, within the frames that all were played for.

    None where the first two tie, or no frames are common to all.
    """
    compared = within_common_budget(evaluations[(evaluations.game == game) & evaluations.variant.isin(variants)])
    means = {variant: np.mean(best_scores(runs)) for (_, variant), runs in by_game_and_variant(compared).items()}
    best = [variant for variant, mean in means.items() if mean == max(means.values())]
    return best[0] if len(best) == 1 else None


def curve(evaluations: pd.DataFrame, measure: str = "score") -> tuple[Values, Values]:
    """Return frames (T,) and moving averages (runs, T) of the score or a measure of diversity.

    They are over ten evaluations, as in the paper; of a run that has fewer than a hundred over a tenth of them, so that
    a short one stays as it was. Runs are cut to the shortest; they are evaluated at the same frames.
    """
    runs = [run for _, run in evaluations.groupby("run", sort=False)]
    length = min(map(len, runs))
    frames = runs[0].frames.to_numpy(float)[:length]
    return frames, np.stack([smoothed(run[measure].to_numpy()[:length]) for run in runs])


def maximal_scores(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Table:
    """Return Table 1 of the paper, or its analogue: for each seed the best evaluation; the mean over seeds."""
    budgets = common_budgets(evaluations)
    rows = []
    for (game, variant), runs in by_game_and_variant(evaluations).items():
        best = best_scores(runs)
        known = _printed(paper.MAXIMAL_SCORE.get(game, {}), variant)
        within, budget = "", ""
        if game in budgets:
            last_ten = runs[runs.frames <= budgets[game]].groupby("run").tail(10)
            within, budget = f"{last_ten.groupby('run').score.mean().mean():,.1f}", _rounded(budgets[game])
        rows.append(
            (
                paper.title_of(game),
                label(variant),
                f"{np.mean(best):,.1f}",
                _interval(interval_of_mean(best)),
                "" if known is None else f"{known:,.1f}",
                within,
                budget,
                str(len(best)),
                format_frames(runs),
            )
        )
    whose = "Ours and the paper's: for" if suite.in_paper else "For"
    papers = f" The paper's numbers come from {paper.SEEDS} seeds of {paper.FRAMES / 1e6:.0f}M frames."
    table = Table(
        "maximal-scores",
        "Maximal evaluation score",
        ("game", "algorithm", "ours", "95 % interval", "paper", "ours at equal budget", "budget", "seeds", "frames"),
        rows,
        f"{whose} each seed the best evaluation, averaged over seeds. The maximum grows with the "
        "number of evaluations. The column 'ours at equal budget' averages the last ten evaluations within the "
        f"{suite.unit} common to all runs of the game; empty if there are none. "
        f"Where {suite.unit} are a range, runs of different lengths are averaged, and only the scores at equal budget "
        "are comparable."
        f"{papers if suite.in_paper else ''}",
        text_columns=("game", "algorithm"),
    )
    return suite.adapt_table(table)


def normalised_scores(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Table | None:
    """Return Table 2 of the paper, or its analogue, with what good practice adds; None without normalised scores."""
    rows = []
    for variant, strata in normalised_strata(evaluations, suite).items():
        values = [value for stratum in strata.values() for value in stratum]
        has_paper = suite.in_paper and not variant.settings
        same = paper.mean_normalised(variant.strategy, tuple(strata)) if has_paper else None
        published = _printed(paper.MEAN_NORMALISED, variant)
        rows.append(
            (
                label(variant),
                f"{np.mean([np.mean(stratum) for stratum in strata.values()]):.2f}",
                f"{interquartile_mean(values):.2f}",
                _interval(stratified_interval(list(strata.values()), interquartile_mean), ".2f"),
                "" if same is None else f"{same:.2f}",
                "" if published is None else f"{published:.2f}",
                f"{len(strata)} of {len(suite.games)}",
                str(min(map(len, strata.values()))),
            )
        )
    if not rows:
        return None
    table = Table(
        "normalised-scores",
        f"{suite.normalised.capitalize()}, per cent",
        (
            "algorithm", "mean", "interquartile mean", "95 % interval", "paper, same games", "paper, all games",
            "games", "seeds",
        ),
        rows,
        f"From the maximal scores. {_normalisation_note(suite)} Intervals: bootstrap stratified by game, where each "
        "has three seeds.",
        text_columns=("algorithm",),
    )  # fmt: skip
    return suite.adapt_table(table)


def _normalisation_note(suite: Suite) -> str:
    if suite.in_paper:
        cut_off = " and ".join(algorithm(strategy, "atari").label for strategy in paper.TRUNCATED)
        return f"Of the paper's own means, those of {cut_off} are cut off and not rounded (50.675 and 40.898)."
    return "0 is random play, 100 the best evaluation of any of these runs on the game."


def normalised_strata(evaluations: pd.DataFrame, suite: Suite = ATARI) -> dict[Variant, dict[str, list[float]]]:
    """Return by variant and game the normalised best scores of the runs, in per cent."""
    strata: dict[Variant, dict[str, list[float]]] = {}
    references = suite.references(evaluations)
    for (game, variant), runs in by_game_and_variant(evaluations[evaluations.game.isin(list(references))]).items():
        worst = suite.random[game]
        normalised = [100 * (score - worst) / (references[game] - worst) for score in best_scores(runs)]
        strata.setdefault(variant, {})[game] = normalised
    return {variant: strata[variant] for variant in variants_of(evaluations) if variant in strata}


def vote_diversity(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Table:
    """Return Table 3 of the paper: the variance of the votes, averaged over all evaluations, and the entropy."""
    rows = []
    for (game, variant), runs in by_game_and_variant(evaluations).items():
        known = _printed(paper.VOTE_VARIANCE.get(game, {}), variant)
        count_variance, *others = (f"{mean_diversity(runs, measure):.2f}" for measure in DIVERSITY)
        printed = "" if known is None else f"{known:.2f}"
        number = str(runs.run.nunique())
        rows.append((paper.title_of(game), label(variant), count_variance, printed, *others, number))
    table = Table(
        "vote-diversity",
        "Vote diversity, mean over all evaluations",
        (
            "game",
            "algorithm",
            "count variance",
            "paper",
            "entropy (nats)",
            "distinct actions",
            "index variance",
            "seeds",
        ),
        rows,
        "The paper gives no formula for its variance of action-votes; the variance over actions of the vote counts is "
        "the literal reading, and is high when heads agree. Entropy is high when they differ.",
        text_columns=("game", "algorithm"),
    )
    return suite.adapt_table(table)


def mean_diversity(evaluations: pd.DataFrame, measure: str) -> float:
    """Return a measure averaged over all evaluations of each run, then over runs."""
    return float(evaluations.groupby("run", sort=False)[measure].mean().mean())


def improvements(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Table | None:
    """Return how likely a run of each algorithm beats one of each other; None where fewer than two can be compared."""
    rows = []
    for one, other in permutations(variants_of(evaluations), 2):
        compared = by_game_and_variant(within_common_budget(evaluations[evaluations.variant.isin([one, other])]))
        games = [game for game, variant in compared if variant == one and (game, other) in compared]
        if games:
            ours, theirs = ([best_scores(compared[game, variant]) for game in games] for variant in (one, other))
            chance = probability_of_improvement(ours, theirs)
            rows.append((label(one), label(other), f"{chance:.2f}", str(len(games))))
    if not rows:
        return None
    table = Table(
        "improvement",
        "Probability that a run of the first beats one of the second, by maximal score",
        ("algorithm", "against", "probability", "games"),
        rows,
        text_columns=("algorithm", "against"),
    )
    return suite.adapt_table(table)


def _printed(numbers: Mapping[str, float | None], variant: Variant) -> float | None:
    """Return what the paper prints for a variant: it has numbers for its own settings only."""
    return None if variant.settings else numbers.get(variant.strategy)


def _rounded(number: float) -> str:
    return f"{number / 1e6:g}M" if number >= 1e5 else f"{number / 1e3:g}k"


def _interval(interval: tuple[float, float] | None, form: str = ",.1f") -> str:
    return "" if interval is None else f"{interval[0]:{form}} to {interval[1]:{form}}"
