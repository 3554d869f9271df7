"""What a report says first: which strategy did best in these runs, and on how much evidence."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bootdqn.common.text import format_count, format_number
from bootdqn.config.variants import label
from bootdqn.report import atari, deep_sea, gym_runs, paper
from bootdqn.report.atari import Played
from bootdqn.report.deep_sea import Cell, Result
from bootdqn.report.deep_sea_claims import LEVEL
from bootdqn.report.gym_runs import GymRun
from bootdqn.report.statistics import can_differ, rank_test, said_chance

MOST_TASKS = 3
"""Of Gymnasium that are told one by one."""
MOST_GAMES = 3
"""That are told one by one."""
ALONE = "there is nothing to compare it with"


def answer(results: list[Result], played: list[Played], in_gym: list[GymRun]) -> str:
    """Say first what a reader wants to know: which strategy explored best here, and how sure we are."""
    answers = [deep_sea_answer(group) for group in list(deep_sea.by_cap(results).values())[:1]]
    answers += [atari_answer(atari.with_paper_heads(played))] if played else []
    answers += [gym_answer(in_gym)] if in_gym else []
    return " ".join(answers) or "There is nothing to compare yet."


def atari_answer(played: list[Played]) -> str:
    """Say which algorithm did best on Atari, and on how much evidence."""
    variants, compared = atari.variants_of(played), atari.in_common(played)
    games = [g for g in atari.games_of(compared) if all(atari.of(compared, g, variant) for variant in variants)]
    if len(variants) == 1:
        return _alone_on_atari(played)
    if not games:
        there = f"{format_count(len(played), 'run')}, {format_count(len(variants), 'algorithm')}"
        return f"On Atari there is nothing to compare yet: {there}."
    best = Counter(filter(None, (atari.leader(played, game, variants) for game in games)))
    seeds = min(len(atari.of(played, game, variant)) for game in games for variant in variants)
    frames = atari.frames_of([run for run in compared if run.game in games])
    rests_on = f"of {len(variants)} algorithms on {format_count(seeds, 'seed')} and {frames} frames."
    first = [variant for variant in variants if best[variant] == max(best.values(), default=0) > 0]
    if not first:
        of = format_count(len(games), "game")
        return f"On Atari, none has the highest maximal score alone in any of {of}, {rests_on}"
    names, has = " and ".join(map(atari.name_of, first)), "has" if len(first) == 1 else "each have"
    games_said = f"{best[first[0]]} of {format_count(len(games), 'game')}"
    return f"On Atari, {names} {has} the highest maximal score in {games_said}, {rests_on}"


def _alone_on_atari(played: list[Played]) -> str:
    """Say what the only algorithm scored."""
    games = atari.games_of(played)
    told = ", ".join(f"{_mean_best(played, game):,.1f} on {paper.title_of(game)}" for game in games[:MOST_GAMES])
    more = f" and {format_count(len(games) - MOST_GAMES, 'further game')}" if len(games) > MOST_GAMES else ""
    seeds = min(sum(run.game == game for run in played) for game in games)
    rests_on = f"{format_count(seeds, 'seed')}, {atari.frames_of(played)} frames"
    return f"On Atari, {atari.name_of(played[0].variant)} has a maximal score of {told}{more} ({rests_on}); {ALONE}."


def _mean_best(played: list[Played], game: str) -> float:
    return float(np.mean([run.best for run in played if run.game == game]))


def deep_sea_answer(results: list[Result]) -> str:
    """Say which algorithm did best at the largest size, and on how much evidence; of a single one, what it needed.

    Best is who solved it in the largest fraction of runs, and of those who needed the fewest episodes. That these are
    the fewest of all is said where no run of it reached the cap and no other's mean, or lower bound, is as low.
    """
    largest = max(result.size for result in results)
    ranked = sorted(
        (cell for cell in deep_sea.cells(results) if cell.size == largest),
        key=lambda cell: (-cell.solved_fraction, cell.mean),
    )
    best, *others = ranked
    if not others:
        return f"At N = {largest}, {_alone_on_deep_sea(best)}; {ALONE}."
    if not best.solved:
        return f"At N = {largest} no algorithm solved DeepSea before the cap ({_seeds_each(ranked)})."
    if not best.censored and all(best.mean < other.mean for other in others):
        first = [best]
        text = (
            f"At N = {largest}, {label(best.variant)} needed the fewest episodes: {best.mean:,.0f} on average, "
            f"{best.solved} of {format_count(len(best.results), 'run')} solved."
        )
    else:
        first = [cell for cell in ranked if cell.solved_fraction == best.solved_fraction]
        text = f"At N = {largest}, DeepSea was solved most often by {' and '.join(map(_how_often, first))}."
    named = ranked[: len(first) + 1]
    for cell in named[len(first) :]:
        text += f" Next: {label(cell.variant)}, {_mean_of(cell)} ({cell.solved} of {len(cell.results)} solved)."
    seeds = min(len(cell.results) for cell in named)
    few = f" {format_count(seeds, 'seed')} {'is' if seeds == 1 else 'are'} few: this is a picture, not a proof."
    return text + (few if seeds <= 3 else "")


def _alone_on_deep_sea(cell: Cell) -> str:
    """Say what the only algorithm needed."""
    runs = format_count(len(cell.results), "run")
    if not cell.solved:
        return f"{label(cell.variant)} did not solve DeepSea before the cap in {runs}"
    return f"{label(cell.variant)} needed {_mean_of(cell)} episodes on average, {cell.solved} of {runs} solved"


def _how_often(cell: Cell) -> str:
    runs = f"{cell.solved} of {format_count(len(cell.results), 'run')}"
    return f"{label(cell.variant)} ({runs}, {_mean_of(cell)} episodes on average)"


def _mean_of(cell: Cell) -> str:
    return f"{'at least ' if cell.censored else ''}{cell.mean:,.0f}"


def _seeds_each(cells: list[Cell]) -> str:
    fewest, most = (end(len(cell.results) for cell in cells) for end in (min, max))
    return f"{format_count(most, 'seed')} each" if fewest == most else f"{fewest} to {format_count(most, 'seed')} each"


def gym_answer(found: Sequence[GymRun]) -> str:
    """Say of each environment which algorithm came out highest, and of many environments how many more there are."""
    tasks = gym_runs.by_task(found)
    told = [_answer_of_task(cells) for cells in list(tasks.values())[:MOST_TASKS]]
    left = len(tasks) - len(told)
    told += [f"The table has {format_count(left, 'further environment')}."] if left else []
    return " ".join(told)


def _answer_of_task(cells: Sequence[gym_runs.Cell]) -> str:
    """Say which algorithm is highest in one environment, and whether a rank test tells it from the next."""
    where = f"On {cells[0].environment} ({format_count(cells[0].total_steps, 'step')})"
    measure = gym_runs.measure_of([run for cell in cells for run in cell.runs])
    if measure is None:
        return f"{where} there is nothing to compare: not every run has a return."
    what, ranked = gym_runs.FINAL[measure], gym_runs.ranked(cells, measure)
    best, *others = ranked
    came_to = (
        f"{format_number(best.mean(measure))} {'on average over' if len(best.runs) > 1 else 'with'} {_seeds(best)}"
    )
    if not others:
        return f"{where} {label(best.variant)} has a {what} of {came_to}; {ALONE}."
    level = [cell for cell in ranked if cell.mean(measure) == best.mean(measure)]
    if len(level) > 1:
        names = ", ".join(label(cell.variant) for cell in level)
        return f"{where} {len(level)} of {len(ranked)} algorithms share the highest {what}, {came_to}: {names}."
    following = others[0]
    return (
        f"{where} {label(best.variant)} has the highest {what}: {came_to}. Next: {label(following.variant)}, "
        f"{format_number(following.mean(measure))} with {_seeds(following)}; "
        f"{_told_apart(best.values(measure), following.values(measure))}."
    )


def _seeds(cell: gym_runs.Cell) -> str:
    return format_count(len(cell.runs), "seed")


def _told_apart(best: Sequence[float], following: Sequence[float]) -> str:
    """Say whether a rank test tells the highest mean's runs from those of the next."""
    if not can_differ(len(best), len(following), LEVEL):
        return (
            f"{len(best)} against {format_count(len(following), 'seed')} are too few for a rank test to tell them apart"
        )
    lower, chance = rank_test(following, best)
    said = said_chance(chance)
    if chance >= LEVEL:
        return f"a rank test does not tell them apart ({said})"
    return f"a rank test tells them apart ({said})" if lower else f"by a rank test that one is ahead ({said})"
