"""The headline of a report: which strategy did best in these runs, and on how much evidence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bootdqn.common.text import format_count, format_number
from bootdqn.config.variants import label
from bootdqn.reports import atari, bsuite, deep_sea, gymnasium, paper
from bootdqn.reports.statistics import LEVEL, can_differ, format_p_value, rank_test
from bootdqn.reports.suites import ATARI, Suite

MAX_TASKS = 3
"""Environments of Gymnasium that are named one by one."""
MAX_GAMES = 3
"""Games that are named one by one."""
NOTHING_TO_COMPARE = "there is nothing to compare it with"


def headline(
    deep_sea_runs: pd.DataFrame,
    bsuite_scores: pd.DataFrame,
    evaluations: Mapping[Suite, pd.DataFrame],
    gym_runs: pd.DataFrame,
) -> str:
    """Return what a reader wants to know first: which strategy explored best here, and how sure we are.

    Args:
        deep_sea_runs: Runs on DeepSea that count.
        bsuite_scores: Scores in bsuite's experiments.
        evaluations: Those of the runs of each suite that count.
        gym_runs: Finished runs of `train gym` that count.
    """
    conclusions = [deep_sea_conclusion(group) for group in list(deep_sea.by_cap(deep_sea_runs).values())[:1]]
    conclusions += [bsuite.bsuite_conclusion(bsuite_scores)] if len(bsuite_scores) else []
    conclusions += [
        games_conclusion(atari.with_paper_heads(runs), suite) for suite, runs in evaluations.items() if len(runs)
    ]
    conclusions += [gym_conclusion(gym_runs)] if len(gym_runs) else []
    return " ".join(conclusions) or "There is nothing to compare yet."


def games_conclusion(evaluations: pd.DataFrame, suite: Suite = ATARI) -> str:
    """Return which algorithm did best on Atari or MinAtar, and on how much evidence."""
    variants, cells = atari.variants_of(evaluations), atari.by_game_and_variant(evaluations)
    compared = atari.within_common_budget(evaluations)
    games = [game for game in atari.games_of(compared) if all((game, variant) in cells for variant in variants)]
    if len(variants) == 1:
        return _alone_on_games(evaluations, suite)
    if not games:
        there = f"{format_count(evaluations.run.nunique(), 'run')}, {format_count(len(variants), 'algorithm')}"
        return f"On {suite.title} there is nothing to compare yet: {there}."
    best = Counter(filter(None, (atari.leader(evaluations, game, variants) for game in games)))
    seeds = min(cells[game, variant].run.nunique() for game in games for variant in variants)
    frames = atari.format_frames(compared[compared.game.isin(games)])
    sample_text = f"of {len(variants)} algorithms on {format_count(seeds, 'seed')} and {frames} {suite.unit}."
    first = [variant for variant in variants if best[variant] == max(best.values(), default=0) > 0]
    if not first:
        of = format_count(len(games), "game")
        return f"On {suite.title}, none has the highest maximal score alone in any of {of}, {sample_text}"
    names, has = " and ".join(map(label, first)), "has" if len(first) == 1 else "each have"
    in_games = f"{best[first[0]]} of {format_count(len(games), 'game')}"
    return f"On {suite.title}, {names} {has} the highest maximal score in {in_games}, {sample_text}"


def _alone_on_games(evaluations: pd.DataFrame, suite: Suite) -> str:
    """Return what the only algorithm scored."""
    cells = {game: runs for (game, _), runs in atari.by_game_and_variant(evaluations).items()}
    scores = {game: float(np.mean(atari.best_scores(runs))) for game, runs in cells.items()}
    listed = ", ".join(f"{score:,.1f} on {paper.title_of(game)}" for game, score in list(scores.items())[:MAX_GAMES])
    more = f" and {format_count(len(scores) - MAX_GAMES, 'further game')}" if len(scores) > MAX_GAMES else ""
    seeds = min(runs.run.nunique() for runs in cells.values())
    sample_text = f"{format_count(seeds, 'seed')}, {atari.format_frames(evaluations)} {suite.unit}"
    name = label(evaluations.variant.iloc[0])
    return f"On {suite.title}, {name} has a maximal score of {listed}{more} ({sample_text}); {NOTHING_TO_COMPARE}."


def deep_sea_conclusion(runs: pd.DataFrame) -> str:
    """Return which algorithm did best at the largest size, and on how much evidence; of a single one, what it needed.

    Rank by fraction solved, then by mean episodes. Claim "the fewest episodes" only if no run of the best is
    censored and every other mean is larger.
    """
    largest = runs["size"].max()
    ranked = deep_sea.ranked_cells(runs[runs["size"] == largest])
    best, *others = ranked
    if not others:
        return f"At N = {largest}, {_alone_on_deep_sea(best)}; {NOTHING_TO_COMPARE}."
    if not best.solved:
        return f"At N = {largest} no algorithm solved DeepSea before the cap ({_seeds_each(ranked)})."
    if not best.censored and all(best.mean_episodes < other.mean_episodes for other in others):
        first = [best]
        text = (
            f"At N = {largest}, {best.label} needed the fewest episodes: {_mean_of(best)} on average, "
            f"{best.solved} of {format_count(best.seeds, 'run')} solved."
        )
    else:
        first = [cell for cell in ranked if cell.fraction == best.fraction]
        text = f"At N = {largest}, DeepSea was solved most often by {' and '.join(map(_how_often, first))}."
    named = ranked[: len(first) + 1]
    for cell in named[len(first) :]:
        text += f" Next: {cell.label}, {_mean_of(cell)} ({cell.solved} of {cell.seeds} solved)"
        text += (
            f"; {_describe_rank_test(best.episodes, cell.episodes, lower_is_better=True)}." if len(first) == 1 else "."
        )
    seeds = min(cell.seeds for cell in named)
    few = f" {format_count(seeds, 'seed')} {'is' if seeds == 1 else 'are'} too few for a conclusion."
    return text + (few if seeds <= 3 and len(first) > 1 else "")


def _alone_on_deep_sea(cell: Any) -> str:
    """Return what the only algorithm needed."""
    runs = format_count(cell.seeds, "run")
    if not cell.solved:
        return f"{cell.label} did not solve DeepSea before the cap in {runs}"
    return f"{cell.label} needed {_mean_of(cell)} episodes on average, {cell.solved} of {runs} solved"


def _how_often(cell: Any) -> str:
    runs = f"{cell.solved} of {format_count(cell.seeds, 'run')}"
    return f"{cell.label} ({runs}, {_mean_of(cell)} episodes on average)"


def _mean_of(cell: Any) -> str:
    return f"{'at least ' if cell.censored else ''}{format_number(cell.mean_episodes)}"


def _seeds_each(cells: Sequence[Any]) -> str:
    fewest, most = (end(cell.seeds for cell in cells) for end in (min, max))
    return f"{format_count(most, 'seed')} each" if fewest == most else f"{fewest} to {format_count(most, 'seed')} each"


def gym_conclusion(runs: pd.DataFrame) -> str:
    """Return which algorithm came out highest in each environment, and of many environments how many more there are."""
    tasks = list(gymnasium.by_task(runs).values())
    conclusions = [_task_conclusion(of_task) for of_task in tasks[:MAX_TASKS]]
    left = len(tasks) - len(conclusions)
    conclusions += [f"The table has {format_count(left, 'further environment')}."] if left else []
    return " ".join(conclusions)


def _task_conclusion(runs: pd.DataFrame) -> str:
    """Return which algorithm is highest in one environment, and whether a rank test finds a difference to the next."""
    where = f"On {runs.task.iloc[0]} ({format_count(runs.budget.iloc[0], 'step')})"
    measure = gymnasium.measure_of(runs)
    if measure is None:
        return f"{where} there is nothing to compare: not every run has a return."
    what = gymnasium.FINAL[measure]
    values = {variant: list(group[measure]) for variant, group in gymnasium.ranked(runs, measure).items()}
    means = {variant: float(np.mean(returns)) for variant, returns in values.items()}
    best, *others = values
    over = f"{'on average over' if len(values[best]) > 1 else 'with'} {format_count(len(values[best]), 'seed')}"
    mean_text = f"{format_number(means[best])} {over}"
    if not others:
        return f"{where} {label(best)} has a {what} of {mean_text}; {NOTHING_TO_COMPARE}."
    level = [variant for variant in values if means[variant] == means[best]]
    if len(level) > 1:
        names = ", ".join(map(label, level))
        return f"{where} {len(level)} of {len(values)} algorithms share the highest {what}, {mean_text}: {names}."
    following = others[0]
    return (
        f"{where} {label(best)} has the highest {what}: {mean_text}. Next: {label(following)}, "
        f"{format_number(means[following])} with {format_count(len(values[following]), 'seed')}; "
        f"{_describe_rank_test(values[best], values[following])}."
    )


def _describe_rank_test(best: Sequence[float], following: Sequence[float], *, lower_is_better: bool = False) -> str:
    """Return whether a rank test finds a difference between the runs of the best mean and those of the next."""
    if not can_differ(len(best), len(following)):
        seeds = f"{len(best)} against {format_count(len(following), 'seed')}"
        return f"{seeds} are too few for a rank test"
    ahead, p = rank_test(*((best, following) if lower_is_better else (following, best)))
    if p >= LEVEL:
        return f"a rank test finds no difference ({format_p_value(p)})"
    verdict = "a rank test finds a difference" if ahead else "the rank test favours the latter"
    return f"{verdict} ({format_p_value(p)})"
