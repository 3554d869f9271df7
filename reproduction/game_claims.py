"""Judges of the paper's claims about Atari, and of their analogues on MinAtar, by the runs of a plan (`evidence.Plan`).

Claims about Atari are supported or contradicted only on the paper's own number of seeds and frames; analogues, which
`when_complete` guards, only on all runs of the sweeps.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from bootdqn.common.text import format_count
from bootdqn.config.variants import Variant, algorithm
from bootdqn.reports import paper
from bootdqn.reports.atari import (
    SPEED_DEPENDS_ON,
    best_scores,
    by_game_and_variant,
    curve,
    format_frames,
    games_of,
    last_frames,
    leader,
    mean_diversity,
    normalised_strata,
    within_common_budget,
)
from bootdqn.reports.atari_heads import by_heads, speeds_of
from bootdqn.reports.statistics import Values, interval_of_mean
from reproduction.evidence import CONTRADICTED, OPEN, SUPPORTED, Evidence, Plan, Verdict

_PAPERS_SETTINGS = "with the paper's settings"
_Cells = dict[tuple[str, str], pd.DataFrame]
"""Evaluations by game and strategy."""


def _smaller_budget(evaluations: pd.DataFrame, plan: Plan) -> str:
    """Return on how much less than the plan's budget a statement rests; nothing where it is the plan's."""
    seeds = evaluations.groupby(["game", "variant"], sort=False).run.nunique().min()
    if seeds >= plan.seeds and last_frames(evaluations).min() >= plan.budget:
        return ""
    ours = f"{format_count(seeds, 'seed')} of {format_frames(evaluations)} {plan.suite.unit}"
    return f"; {ours}, the paper {plan.seeds} of {plan.budget / 1e6:.0f}M"


def _comparable(evidence: Evidence, strategies: Iterable[str], games: Collection[str] | None = None) -> _Cells:
    """Return the runs of strategies on games (None: all of the plan), each cut to the frames that all of its game have.

    None counts beyond the plan's frames: who trained for longer has had more chances of a high score.
    """
    variants = [Variant(strategy) for strategy in strategies]
    asked = evidence.plan.games if games is None else games
    runs = evidence.games[evidence.games.game.isin(asked) & evidence.games.variant.isin(variants)]
    common = by_game_and_variant(within_common_budget(runs, evidence.plan.budget))
    return {(game, variant.strategy): cell for (game, variant), cell in common.items()}


def _games_with(cells: _Cells, strategies: Iterable[str]) -> list[str]:
    """Return the games that all of the strategies were run on."""
    games = dict.fromkeys(game for game, _ in cells)
    return [game for game in games if all((game, strategy) in cells for strategy in strategies)]


def _joined(cells: _Cells, games: Sequence[str]) -> pd.DataFrame:
    return pd.concat([cell for (game, _), cell in cells.items() if game in games])


def _verdict(plan: Plan, reason: str, cells: _Cells, games: Sequence[str], *, complete: bool, holds: bool) -> Verdict:
    """Return the verdict on a claim: open where games are missing or the budget is smaller than the plan's."""
    smaller = _smaller_budget(_joined(cells, games), plan)
    status = SUPPORTED if holds else CONTRADICTED
    return Verdict(status if complete and not smaller else OPEN, reason + smaller)


def normalised_lead(rival: str, points: float) -> Callable[[Evidence], Verdict]:
    """Judge by how many points of human-normalised score EVOI leads a rival, on the games that both played.

    On the paper's size, half the claimed points support the claim: the means alone decide, without an interval, since
    the paper gives none.
    """

    def judge(evidence: Evidence) -> Verdict:
        cells = _comparable(evidence, ("evoi", rival))
        games = _games_with(cells, ("evoi", rival))
        if not games:
            return Verdict(
                OPEN, f"{_PAPERS_SETTINGS} no game of it was played by both EVOI and {algorithm(rival, 'atari').label}"
            )
        strata = normalised_strata(_joined(cells, games))
        ours, theirs = (
            float(np.mean([np.mean(stratum) for stratum in strata[Variant(name)].values()])) for name in ("evoi", rival)
        )
        reason = f"{ours - theirs:+.2f} points on {len(games)} of {len(paper.GAMES)} games"
        complete = len(games) == len(paper.GAMES)
        return _verdict(evidence.plan, reason, cells, games, complete=complete, holds=ours - theirs >= points / 2)

    return judge


def best_in_two_thirds(rivals: tuple[str, ...]) -> Callable[[Evidence], Verdict]:
    """Judge in how many games EVOI is above all its rivals, in the paper four of six; a tie is not above."""
    names = ("evoi", *rivals)
    algorithms = [Variant(strategy) for strategy in names]

    def judge(evidence: Evidence) -> Verdict:
        cells, asked = _comparable(evidence, names), evidence.plan.games
        games = [game for game in _games_with(cells, ("evoi",)) if sum(one == game for one, _ in cells) > 1]
        if not games:
            return Verdict(OPEN, f"{_PAPERS_SETTINGS} no game of it was played by EVOI and another of its algorithms")
        count = sum(leader(_joined(cells, games), game, algorithms) == Variant("evoi") for game in games)
        lacking = _lacking(cells, games, names)
        reason = f"EVOI is best in {count} of {format_count(len(games), 'game')}{lacking}"
        complete = not lacking and len(games) == len(asked)
        return _verdict(evidence.plan, reason, cells, games, complete=complete, holds=3 * count >= 2 * len(asked))

    return judge


def evoi_ends(*, ahead_in: tuple[str, ...] | None = None, or_level: bool) -> Callable[[Evidence], Verdict]:
    """Judge by the end of the curves of Fig. 2a, an average of evaluations, whether EVOI is ahead of the other three.

    Args:
        ahead_in: The games that the claim is about (None: all of the plan).
        or_level: Whether it is enough that no rival's interval over seeds is above EVOI's.
    """
    rivals = ("greedy", "ucb", "gain")

    def judge(evidence: Evidence) -> Verdict:
        cells = _comparable(evidence, ("evoi", *rivals), ahead_in)
        games = _games_with(cells, ("evoi", *rivals))
        if not games:
            return Verdict(OPEN, f"{_PAPERS_SETTINGS} no game of it was played by all four")
        held = []
        for game in games:
            ends = {name: curve(cells[game, name])[1][:, -1] for name in ("evoi", *rivals)}
            low, high = _range_of_mean(ends["evoi"])
            theirs = [_range_of_mean(ends[name]) for name in rivals]
            held.append(all(high >= below if or_level else low > above for below, above in theirs))
        reason = f"holds in {sum(held)} of {format_count(len(held), 'game')}"
        complete = len(held) == len(evidence.plan.games if ahead_in is None else ahead_in)
        return _verdict(evidence.plan, reason, cells, games, complete=complete, holds=all(held))

    return judge


def _range_of_mean(values: Values) -> tuple[float, float]:
    """Return the interval of the mean; of equal values, or too few, the mean itself."""
    mean = float(np.mean(values))
    return interval_of_mean(values.tolist()) or (mean, mean)


def diversity_rises(evidence: Evidence) -> Verdict:
    """Judge by entropy whether BootDQN's votes become more diverse than they were in the first tenth of training.

    All that comes after it is averaged, and intervals over seeds must be apart: a peak is found wherever one is looked
    for.
    """
    cells = _comparable(evidence, ("greedy",))
    if not cells:
        return Verdict(OPEN, f"{_PAPERS_SETTINGS} BootDQN was run on no game of it")
    held = []
    for runs in cells.values():
        first, later = first_tenth_and_later(runs, "vote_entropy")
        held.append(bool(later.size) and _range_of_mean(first.mean(1))[1] < _range_of_mean(later.mean(1))[0])
    reason = f"holds in {sum(held)} of {format_count(len(held), 'game')}"
    games = [game for game, _ in cells]
    complete = len(held) == len(evidence.plan.games)
    return _verdict(evidence.plan, reason, cells, games, complete=complete, holds=sum(held) > len(held) / 2)


def first_tenth_and_later(runs: pd.DataFrame, measure: str) -> tuple[Values, Values]:
    """Return a measure (runs, evaluations) in the first tenth of training and after it, cut to the shortest run."""
    series = [run.to_numpy() for _, run in runs.groupby("run", sort=False)[measure]]
    length = min(map(len, series))
    first, later = np.split(np.array([one[:length] for one in series]), [max(1, length // 10)], axis=1)
    return first, later


def _lacking(cells: _Cells, games: Iterable[str], strategies: Iterable[str]) -> str:
    """Return which strategies a comparison lacks in some of its games."""
    missing = [name for name in strategies if not all((game, name) in cells for game in games)]
    return f", not all with {' and '.join(algorithm(name, 'atari').label for name in missing)}" if missing else ""


def above_the_original(evidence: Evidence) -> Verdict:
    """Judge whether BootDQN's mean is above the original's in every game that the original was scored on."""
    scored = [game for game in paper.GAMES if paper.MAXIMAL_SCORE[game][paper.ORIGINAL] is not None]
    cells = _comparable(evidence, ("greedy",), scored)
    if not cells:
        return Verdict(OPEN, f"{_PAPERS_SETTINGS} BootDQN was run on no game of it")
    found, above = [], []
    for (game, _), runs in cells.items():
        original, ours = paper.MAXIMAL_SCORE[game][paper.ORIGINAL] or 0.0, float(np.mean(best_scores(runs)))
        above.append(ours > original)
        found.append(f"{paper.title_of(game)} {ours:,.1f} against {original:,.1f}")
    games = [game for game, _ in cells]
    return _verdict(evidence.plan, ", ".join(found), cells, games, complete=len(games) == len(scored), holds=all(above))


def more_heads_are_better(evidence: Evidence) -> Verdict:
    """Judge whether the means of EVOI on Hero rise with K, where it was run with every K of the paper.

    All are cut to the frames that every K has, and to the paper's: that of its tables was run for twice as many.
    """
    runs = evidence.any_heads
    is_evoi = pd.Series([variant.strategy == "evoi" for variant in runs.variant], index=runs.index, dtype=bool)
    groups = by_heads(within_common_budget(runs[(runs.game == "Hero") & is_evoi], paper.HEADS_FRAMES))
    if not groups:
        return Verdict(OPEN, f"{_PAPERS_SETTINGS} K was not varied")
    means = {k: float(np.mean(best_scores(group))) for k, group in groups.items()}
    joined = pd.concat(groups.values())
    seeds = min(group.run.nunique() for group in groups.values())
    listed = ", ".join(f"K = {k}: {mean:,.1f}" for k, mean in means.items())
    budget = f"{format_count(seeds, 'seed')} of {format_frames(joined)} frames"
    reason = f"{listed}; {budget}, the paper {paper.HEADS_FRAMES / 1e6:.0f}M"
    shorter = last_frames(joined).min() < paper.HEADS_FRAMES
    if shorter or seeds < paper.SEEDS or not set(paper.RUNTIME_MINUTES) <= set(groups):
        return Verdict(OPEN, reason)
    rising = all(fewer < more for fewer, more in pairwise(means.values()))
    return Verdict(SUPPORTED if rising else CONTRADICTED, reason)


def votes_are_diverse(
    measure: str, subject: tuple[str, ...], *, highest: bool, except_in: tuple[str, ...] = ()
) -> Callable[[Evidence], Verdict]:
    """Judge whether the subjects' votes are at least as diverse as the others' (`highest`) or as BootDQN's.

    Games in `except_in` are left out.
    """
    asked = [game for game in paper.GAMES if game not in except_in]
    rivals = [name for name in ("greedy", "ucb", "gain", "evoi") if name not in subject] if highest else ["greedy"]

    def judge(evidence: Evidence) -> Verdict:
        games, unlike, held = [], [], []
        cells = _comparable(evidence, (*rivals, *subject), asked)
        for game in _games_with(cells, ()):
            found = {name: mean_diversity(cells[game, name], measure) for name in (*rivals, *subject)
                     if (game, name) in cells}  # fmt: skip
            mine, others = ([name for name in names if name in found] for names in (subject, rivals))
            if mine and others:
                games.append(game)
                held.append(all(found[one] >= found[other] for one in mine for other in others))
                if not held[-1]:
                    listed = ", ".join(f"{algorithm(name, 'atari').label} {value:.2f}" for name, value in found.items())
                    unlike.append(f"{paper.title_of(game)} ({listed})")
        if not held:
            return Verdict(OPEN, f"{_PAPERS_SETTINGS} the algorithms to compare were not run on one game")
        exceptions = f", not in {'; '.join(unlike)}" if unlike else ""
        lacking = _lacking(cells, games, (*rivals, *subject))
        reason = f"holds in {sum(held)} of {format_count(len(held), 'game')}{exceptions}{lacking}"
        complete = len(held) == len(asked) and not lacking
        return _verdict(evidence.plan, reason, cells, games, complete=complete, holds=all(held))

    return judge


def evoi_is_slower_than(rival: str) -> Callable[[Evidence], Verdict]:
    """Describe how much longer EVOI takes than a rival for the same frames on the same game, computed in the same way.

    Wall time says something about one machine and one moment: it decides nothing.
    """
    name = algorithm(rival, "atari").label

    def judge(evidence: Evidence) -> Verdict:
        cells, none = by_game_and_variant(evidence.games), evidence.games[:0]
        for game in games_of(evidence.games):
            theirs, ours = (speeds_of(cells.get((game, Variant(one)), none)) for one in (rival, "evoi"))
            for computed in sorted(theirs.keys() & ours.keys()):
                extra = 100 * (np.mean(theirs[computed]) / np.mean(ours[computed]) - 1)
                interval = interval_of_mean(ours[computed])
                spread = "" if interval is None else f" (EVOI {interval[0]:,.0f} to {interval[1]:,.0f} frames/s)"
                reason = f"{paper.title_of(game)}: {name} is {extra:+.0f} % faster{spread}; wall time of these machines"
                return Verdict(OPEN, reason + "; benchmarks/atari.py compares them side by side")
        alike = f"the same {', '.join(SPEED_DEPENDS_ON[:-1])} and {SPEED_DEPENDS_ON[-1]}"
        return Verdict(OPEN, f"{_PAPERS_SETTINGS} {name} and EVOI were not both finished on one game, with {alike}")

    return judge
