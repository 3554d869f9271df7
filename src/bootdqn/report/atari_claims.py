"""Judges of the paper's claims about Atari: supported or contradicted only on its own number of seeds and frames."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bootdqn.common.text import format_count
from bootdqn.config.variants import Variant, atari_algorithm
from bootdqn.report import paper
from bootdqn.report.atari import (
    SPEED_DEPENDS_ON,
    Played,
    curve,
    frames_of,
    games_of,
    in_common,
    leader,
    mean_diversity,
    normalised_strata,
    of,
)
from bootdqn.report.atari_heads import by_heads, speeds_of
from bootdqn.report.evidence import CONTRADICTED, OPEN, SUPPORTED, Evidence, Verdict
from bootdqn.report.statistics import interval_of_mean

_AS_IN_THE_PAPER = "with the paper's settings"


def _atari_budget(runs: list[Played]) -> str:
    """Say on how much less than the paper's budget a statement rests."""
    seeds = min(len(of(runs, run.game, run.variant)) for run in runs)
    if seeds >= paper.SEEDS and min(run.frames[-1] for run in runs) >= paper.FRAMES:
        return ""
    ours = f"{format_count(seeds, 'seed')} of {frames_of(runs)} frames"
    return f"; {ours}, the paper {paper.SEEDS} of {paper.FRAMES / 1e6:.0f}M"


def _is_the_papers_size(runs: list[Played]) -> bool:
    return not _atari_budget(runs)


def _comparable(evidence: Evidence, strategies: Iterable[str]) -> list[Played]:
    """Return the runs of strategies on the paper's games, each cut to the frames that all of its game have.

    None counts beyond the paper's frames: who trained for longer has had more chances of a high score.
    """
    variants = [Variant(strategy) for strategy in strategies]
    runs = [run for run in evidence.atari if run.game in paper.GAMES and run.variant in variants]
    return in_common(runs, paper.FRAMES)


def normalised_lead(rival: str, points: float) -> Callable[[Evidence], Verdict]:
    """Judge by how many points of human-normalised score EVOI leads a rival, on the games that both played.

    On the paper's size, half the claimed points support the claim: the means alone decide, without an interval, since
    the paper gives none.
    """

    def judge(evidence: Evidence) -> Verdict:
        played = _comparable(evidence, ("evoi", rival))
        games = [
            game for game in games_of(played) if of(played, game, Variant("evoi")) and of(played, game, Variant(rival))
        ]
        if not games:
            return Verdict(
                OPEN, f"{_AS_IN_THE_PAPER} no game of it was played by both EVOI and {atari_algorithm(rival).label}"
            )
        ours, theirs = (
            float(np.mean([np.mean(stratum) for stratum in normalised_strata(played, games, Variant(name))]))
            for name in ("evoi", rival)
        )
        runs = [run for game in games for name in ("evoi", rival) for run in of(played, game, Variant(name))]
        says = f"{ours - theirs:+.2f} points on {len(games)} of {len(paper.GAMES)} games{_atari_budget(runs)}"
        if len(games) < len(paper.GAMES) or not _is_the_papers_size(runs):
            return Verdict(OPEN, says, "human-normalised score")
        return Verdict(SUPPORTED if ours - theirs >= points / 2 else CONTRADICTED, says, "human-normalised score")

    return judge


def best_in_four_games(evidence: Evidence) -> Verdict:
    """Judge in how many games EVOI is above all the paper's algorithms; a tie is not above."""
    algorithms = [Variant(strategy) for strategy in paper.MEAN_NORMALISED]
    played = _comparable(evidence, paper.MEAN_NORMALISED)
    compared = [
        game
        for game in games_of(played)
        if of(played, game, Variant("evoi")) and len({run.variant for run in played if run.game == game}) > 1
    ]
    if not compared:
        return Verdict(OPEN, f"{_AS_IN_THE_PAPER} no game of it was played by EVOI and another of its algorithms")
    count = sum(leader(played, game, algorithms) == Variant("evoi") for game in compared)
    runs = [run for run in played if run.game in compared]
    lacking = _lacking(played, compared, paper.MEAN_NORMALISED)
    says = f"EVOI is best in {count} of {format_count(len(compared), 'game')}{lacking}{_atari_budget(runs)}"
    if lacking or len(compared) < len(paper.GAMES) or not _is_the_papers_size(runs):
        return Verdict(OPEN, says, "maximal scores")
    return Verdict(SUPPORTED if count >= 4 else CONTRADICTED, says, "maximal scores")


def evoi_ends(*, ahead_in: tuple[str, ...] = paper.GAMES, or_level: bool) -> Callable[[Evidence], Verdict]:
    """Judge by the end of the curves of Fig. 2a, an average of evaluations, whether EVOI is ahead of the other three.

    Args:
        ahead_in: The games that are asked.
        or_level: Whether it is enough that no rival's interval over seeds is above EVOI's.
    """
    rivals = ("greedy", "ucb", "gain")

    def judge(evidence: Evidence) -> Verdict:
        played = [run for run in _comparable(evidence, ("evoi", *rivals)) if run.game in ahead_in]
        games = [g for g in games_of(played) if len({run.variant for run in played if run.game == g}) > len(rivals)]
        if not games:
            return Verdict(OPEN, f"{_AS_IN_THE_PAPER} no game of it was played by all four")
        runs, held = [run for run in played if run.game in games], []
        for game in games:
            ends = {name: curve(of(played, game, Variant(name)))[1][:, -1] for name in ("evoi", *rivals)}
            low, high = _range_of_mean(ends["evoi"])
            theirs = [_range_of_mean(ends[name]) for name in rivals]
            held.append(all(high >= below if or_level else low > above for below, above in theirs))
        says = f"holds in {sum(held)} of {format_count(len(held), 'game')}{_atari_budget(runs)}"
        if len(held) < len(ahead_in) or not _is_the_papers_size(runs):
            return Verdict(OPEN, says, "score against frames")
        return Verdict(SUPPORTED if all(held) else CONTRADICTED, says, "score against frames")

    return judge


def _range_of_mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the interval of the mean; of equal values, or too few, the mean itself."""
    mean = float(np.mean(values))
    return interval_of_mean(values.tolist()) or (mean, mean)


def diversity_rises(evidence: Evidence) -> Verdict:
    """Judge by entropy whether BootDQN's votes become more diverse than they were in the first tenth of training.

    All that comes after it is averaged, and intervals over seeds must be apart: a peak is found wherever one is looked
    for.
    """
    played = _comparable(evidence, ("greedy",))
    if not played:
        return Verdict(OPEN, f"{_AS_IN_THE_PAPER} BootDQN was run on no game of it")
    held = []
    for game in games_of(played):
        runs = of(played, game, Variant("greedy"))
        length = min(len(run.frames) for run in runs)
        values = np.array([run.diversity["vote_entropy"][:length] for run in runs])
        first, later = np.split(values, [max(1, length // 10)], axis=1)
        held.append(bool(later.size) and _range_of_mean(first.mean(1))[1] < _range_of_mean(later.mean(1))[0])
    says = f"holds in {sum(held)} of {format_count(len(held), 'game')}{_atari_budget(played)}"
    if len(held) < len(paper.GAMES) or not _is_the_papers_size(played):
        return Verdict(OPEN, says, "vote diversity")
    return Verdict(SUPPORTED if sum(held) > len(held) / 2 else CONTRADICTED, says, "vote diversity")


def _lacking(played: list[Played], games: Iterable[str], strategies: Iterable[str]) -> str:
    """Say which strategies a comparison lacks in some of its games."""
    missing = [name for name in strategies if not all(of(played, game, Variant(name)) for game in games)]
    return f", not all with {' and '.join(atari_algorithm(name).label for name in missing)}" if missing else ""


def above_the_original(evidence: Evidence) -> Verdict:
    """Judge whether BootDQN's mean is above the original's in every game that the original was scored on."""
    told, above, compared = [], [], []
    played = _comparable(evidence, ("greedy",))
    for game in games_of(played):
        original, runs = paper.MAXIMAL_SCORE[game][paper.ORIGINAL], of(played, game, Variant("greedy"))
        if original is not None:
            ours = float(np.mean([run.best for run in runs]))
            above.append(ours > original)
            compared += runs
            told.append(f"{paper.title_of(game)} {ours:,.1f} against {original:,.1f}")
    if not told:
        return Verdict(OPEN, f"{_AS_IN_THE_PAPER} BootDQN was run on no game of it")
    says = ", ".join(told) + _atari_budget(compared)
    if len(above) < 5 or not _is_the_papers_size(compared):
        return Verdict(OPEN, says, "maximal scores")
    return Verdict(SUPPORTED if all(above) else CONTRADICTED, says, "maximal scores")


def more_heads_are_better(evidence: Evidence) -> Verdict:
    """Judge whether the means of EVOI on Hero rise with K, where it was run with every K of the paper.

    All are cut to the frames that every K has, and to the paper's: that of its tables was run for twice as many.
    """
    played = [run for run in evidence.any_heads if run.game == "Hero" and run.variant.strategy == "evoi"]
    groups = by_heads(in_common(played, paper.HEADS_FRAMES))
    if not groups:
        return Verdict(OPEN, f"{_AS_IN_THE_PAPER} K was not varied")
    means = {k: float(np.mean([run.best for run in runs])) for k, runs in groups.items()}
    runs = [run for group in groups.values() for run in group]
    frames, seeds = min(run.frames[-1] for run in runs), min(map(len, groups.values()))
    told = ", ".join(f"K = {k}: {mean:,.1f}" for k, mean in means.items())
    says = (
        f"{told}; {format_count(seeds, 'seed')} of {frames_of(runs)} frames, the paper {paper.HEADS_FRAMES / 1e6:.0f}M"
    )
    if frames < paper.HEADS_FRAMES or seeds < paper.SEEDS or not set(paper.RUNTIME_MINUTES) <= set(groups):
        return Verdict(OPEN, says, "runtime and score by K")
    rising = all(fewer < more for fewer, more in pairwise(means.values()))
    return Verdict(SUPPORTED if rising else CONTRADICTED, says, "runtime and score by K")


def votes_are_diverse(
    measure: str, subject: tuple[str, ...], *, highest: bool, except_in: tuple[str, ...] = ()
) -> Callable[[Evidence], Verdict]:
    """Judge whether the subjects' votes are at least as diverse as the others' (`highest`) or as BootDQN's.

    Games in `except_in` are not asked.
    """
    asked = [game for game in paper.GAMES if game not in except_in]
    rivals = [name for name in ("greedy", "ucb", "gain", "evoi") if name not in subject] if highest else ["greedy"]

    def judge(evidence: Evidence) -> Verdict:
        games, compared, told, held = [], [], [], []
        played = _comparable(evidence, (*rivals, *subject))
        for game in (game for game in games_of(played) if game in asked):
            cells_of = {name: of(played, game, Variant(name)) for name in (*rivals, *subject)}
            found = {name: mean_diversity(runs, measure) for name, runs in cells_of.items() if runs}
            mine, others = ([name for name in names if name in found] for names in (subject, rivals))
            if mine and others:
                compared += [run for runs in cells_of.values() for run in runs]
                games.append(game)
                held.append(all(found[one] >= found[other] for one in mine for other in others))
                if not held[-1]:
                    listed = ", ".join(f"{atari_algorithm(name).label} {value:.2f}" for name, value in found.items())
                    told.append(f"{paper.title_of(game)} ({listed})")
        if not held:
            return Verdict(OPEN, f"{_AS_IN_THE_PAPER} the algorithms to compare were not run on one game")
        unlike = f", not in {'; '.join(told)}" if told else ""
        lacking = _lacking(compared, games, (*rivals, *subject))
        says = f"holds in {sum(held)} of {format_count(len(held), 'game')}{unlike}{lacking}{_atari_budget(compared)}"
        if len(held) < len(asked) or lacking or not _is_the_papers_size(compared):
            return Verdict(OPEN, says, "vote diversity")
        return Verdict(SUPPORTED if all(held) else CONTRADICTED, says, "vote diversity")

    return judge


def evoi_is_slower_than(rival: str) -> Callable[[Evidence], Verdict]:
    """Say how much longer EVOI takes than a rival for the same frames on the same game, computed in the same way.

    Wall time says something about one machine and one moment: it decides nothing.
    """
    name = atari_algorithm(rival).label

    def judge(evidence: Evidence) -> Verdict:
        for game in games_of(evidence.atari):
            theirs, ours = (speeds_of(of(evidence.atari, game, Variant(strategy))) for strategy in (rival, "evoi"))
            for computed in sorted(theirs.keys() & ours.keys()):
                extra = 100 * (np.mean(theirs[computed]) / np.mean(ours[computed]) - 1)
                interval = interval_of_mean(ours[computed])
                spread = "" if interval is None else f" (EVOI {interval[0]:,.0f} to {interval[1]:,.0f} frames/s)"
                says = f"{paper.title_of(game)}: {name} is {extra:+.0f} % faster{spread}; wall time of these machines"
                return Verdict(OPEN, says + "; benchmarks/atari.py compares them side by side", "summary.json")
        alike = f"the same {', '.join(SPEED_DEPENDS_ON[:-1])} and {SPEED_DEPENDS_ON[-1]}"
        return Verdict(OPEN, f"{_AS_IN_THE_PAPER} {name} and EVOI were not both finished on one game, with {alike}")

    return judge
