"""The paper's claims, one by one, and what the runs at hand say about them: never more than they allow."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bootdqn.analysis import paper
from bootdqn.analysis.atari import (
    SPEED_DEPENDS_ON,
    Played,
    frames_of,
    games_of,
    in_common,
    leader,
    mean_diversity,
    normalised_strata,
    of,
)
from bootdqn.analysis.atari_heads import by_heads, speeds_of
from bootdqn.analysis.deep_sea import Cell, Result, by_cap, cells
from bootdqn.analysis.ensembles import Measured, by_cell
from bootdqn.analysis.statistics import interval_of_mean
from bootdqn.analysis.tables import Table
from bootdqn.common.algorithms import on_atari
from bootdqn.common.variants import Variant, label
from bootdqn.common.written import counted

SUPPORTED, CONTRADICTED, OPEN = "supported", "contradicted", "not enough evidence"
DEEP_SEA_EVOI, ENOUGH_SEEDS = "evoi:reduce=sum", 3
_AS_IN_THE_PAPER = "with the paper's settings"
_NOT_LOOKED_INTO = "run folders do not hold it; results/ensembles.py of the repository measures it"


class Verdict(NamedTuple):
    """What the runs say about a claim."""

    status: str
    says: str
    rests_on: str = ""


@dataclass(frozen=True)
class Evidence:
    """The runs that claims are judged by: those with the paper's settings."""

    deep_sea: list[Result]
    atari: list[Played]
    """With as many heads as the paper's tables."""
    any_heads: list[Played]
    """With any number of heads."""
    ensembles: list[Measured] = field(default_factory=list)
    """Looked into while they learned."""

    @classmethod
    def among(cls, deep_sea: list[Result], atari: list[Played], ensembles: Iterable[Measured] = ()) -> "Evidence":
        """Return the runs that have the paper's settings, among others."""
        return cls(
            [result for result in deep_sea if not result.variant.settings],
            [run for run in atari if not run.variant.settings],
            [run for run in atari if not run.variant.without("num_heads").settings],
            list(ensembles),
        )


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how to judge it."""

    text: str
    remark: str
    """What the paper's own numbers have to say about it."""
    judge: Callable[[Evidence], Verdict]


def judged(evidence: Evidence) -> Table:
    """Return the table of claims."""
    rows = []
    for claim in CLAIMS:
        verdict = claim.judge(evidence)
        rows.append((claim.text, claim.remark, verdict.status, verdict.says, verdict.rests_on))
    columns = ("the paper says", "its own numbers", "here", "what these runs say", "rests on")
    return Table("claims", "The paper's claims", columns, rows, text_columns=columns)


def _deep_sea_beats(strategy: str, rivals: tuple[str, ...] = ("greedy", "ucb")) -> Callable[[Evidence], Verdict]:
    """Judge if a strategy needs fewer episodes than its rivals, at the largest size with enough seeds.

    Where no size has enough, it is left open at the largest. Runs with different caps are never taken together; those
    with the largest cap are asked first. One rival that is better contradicts it.
    """
    names = (strategy, *rivals)

    def judge(evidence: Evidence) -> Verdict:
        races = [
            (cap, race) for cap, results in by_cap(evidence.deep_sea).items() for race in _races(cells(results), names)
        ]
        if not races:
            return Verdict(OPEN, "no DeepSea runs of all of them at one size")
        cap, race = next((one for one in races if _seeds_of(one[1]) >= ENOUGH_SEEDS), races[0])
        return _judge_race(cap, race)

    return judge


def _races(groups: list[Cell], names: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of the named strategies at each size that all of them were run at, the largest first."""
    by_place = {(cell.size, cell.variant.strategy): cell for cell in groups}
    for size in sorted({cell.size for cell in groups}, reverse=True):
        if all((size, name) in by_place for name in names):
            yield tuple(by_place[size, name] for name in names)


def _seeds_of(race: tuple[Cell, ...]) -> int:
    return min(len(cell.results) for cell in race)


def _judge_race(cap: int, race: tuple[Cell, ...]) -> Verdict:
    ours, *theirs = race
    says, seeds = f"N = {ours.size}, cap {cap:,}: " + ", ".join(map(_said, race)), _seeds_of(race)
    if seeds < ENOUGH_SEEDS:
        return Verdict(OPEN, f"{says}; seeds are too few: {seeds}", "episodes to solve")
    if all(_below(ours, rival) for rival in theirs) and not ours.censored:
        return Verdict(SUPPORTED, says + _fewer(seeds, 15), "episodes to solve")
    if any(_below(rival, ours) and not rival.censored for rival in theirs):
        return Verdict(CONTRADICTED, says + _fewer(seeds, 15), "episodes to solve")
    overlap = any(not _below(ours, rival) and not _below(rival, ours) for rival in theirs)
    why = "the intervals overlap" if overlap else "runs that reached the cap leave it open"
    return Verdict(OPEN, f"{says}; {why}", "episodes to solve")


def _below(one: Cell, other: Cell) -> bool:
    """Whether one interval ends before the other begins; that of equal values is the value."""
    return (one.interval or (one.mean, one.mean))[1] < (other.interval or (other.mean, other.mean))[0]


def _said(cell: Cell) -> str:
    bound = "≥ " if cell.censored else ""
    return f"{label(cell.variant)} {bound}{cell.mean:,.0f} episodes ({cell.solved}/{len(cell.results)} solved)"


def _fewer(ours: int, theirs: int) -> str:
    return f"; {counted(ours, 'seed')}, the paper {theirs}" if ours < theirs else ""


def _atari_budget(runs: list[Played]) -> str:
    """Say on how much less than the paper's budget a statement rests."""
    seeds = min(len(of(runs, run.game, run.variant)) for run in runs)
    if seeds >= paper.SEEDS and min(run.frames[-1] for run in runs) >= paper.FRAMES:
        return ""
    return (
        f"; {counted(seeds, 'seed')} of {frames_of(runs)} frames, the paper {paper.SEEDS} of {paper.FRAMES / 1e6:.0f}M"
    )


def _is_the_papers_size(runs: list[Played]) -> bool:
    return not _atari_budget(runs)


def _comparable(evidence: Evidence, strategies: Iterable[str]) -> list[Played]:
    """Return the runs of strategies on the paper's games, each cut to the frames that all of its game have.

    None counts beyond the paper's frames: who trained for longer has had more chances of a high score.
    """
    variants = [Variant(strategy) for strategy in strategies]
    runs = [run for run in evidence.atari if run.game in paper.GAMES and run.variant in variants]
    return in_common(runs, paper.FRAMES)


def _normalised_lead(rival: str, points: float) -> Callable[[Evidence], Verdict]:
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
                OPEN, f"{_AS_IN_THE_PAPER} no game of it was played by both EVOI and {on_atari(rival).label}"
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


def _best_in_four_games(evidence: Evidence) -> Verdict:
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
    says = f"EVOI is best in {count} of {counted(len(compared), 'game')}{lacking}{_atari_budget(runs)}"
    if lacking or len(compared) < len(paper.GAMES) or not _is_the_papers_size(runs):
        return Verdict(OPEN, says, "maximal scores")
    return Verdict(SUPPORTED if count >= 4 else CONTRADICTED, says, "maximal scores")


def _lacking(played: list[Played], games: Iterable[str], strategies: Iterable[str]) -> str:
    """Say which strategies a comparison lacks in some of its games."""
    missing = [name for name in strategies if not all(of(played, game, Variant(name)) for game in games)]
    return f", not all with {' and '.join(on_atari(name).label for name in missing)}" if missing else ""


def _above_the_original(evidence: Evidence) -> Verdict:
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


def _more_heads_are_better(evidence: Evidence) -> Verdict:
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
    says = f"{told}; {counted(seeds, 'seed')} of {frames_of(runs)} frames, the paper {paper.HEADS_FRAMES / 1e6:.0f}M"
    if frames < paper.HEADS_FRAMES or seeds < ENOUGH_SEEDS or not set(paper.RUNTIME_MINUTES) <= set(groups):
        return Verdict(OPEN, says, "runtime and score by K")
    rising = all(fewer < more for fewer, more in pairwise(means.values()))
    return Verdict(SUPPORTED if rising else CONTRADICTED, says, "runtime and score by K")


def _diversity(
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
                    listed = ", ".join(f"{on_atari(name).label} {value:.2f}" for name, value in found.items())
                    told.append(f"{paper.title_of(game)} ({listed})")
        if not held:
            return Verdict(OPEN, f"{_AS_IN_THE_PAPER} the algorithms to compare were not run on one game")
        unlike = f", not in {'; '.join(told)}" if told else ""
        lacking = _lacking(compared, games, (*rivals, *subject))
        says = f"holds in {sum(held)} of {counted(len(held), 'game')}{unlike}{lacking}{_atari_budget(compared)}"
        if len(held) < len(asked) or lacking or not _is_the_papers_size(compared):
            return Verdict(OPEN, says, "vote diversity")
        return Verdict(SUPPORTED if all(held) else CONTRADICTED, says, "vote diversity")

    return judge


def _slower_than_greedy(evidence: Evidence) -> Verdict:
    """Judge how much longer EVOI takes than BootDQN for the same frames on the same game, computed in the same way."""
    for game in games_of(evidence.atari):
        greedy, evoi = (speeds_of(of(evidence.atari, game, Variant(name))) for name in ("greedy", "evoi"))
        for computed in sorted(greedy.keys() & evoi.keys()):
            extra = 100 * (np.mean(greedy[computed]) / np.mean(evoi[computed]) - 1)
            interval = interval_of_mean(evoi[computed])
            spread = "" if interval is None else f" (EVOI {interval[0]:,.0f} to {interval[1]:,.0f} frames/s)"
            says = f"{paper.title_of(game)}: BootDQN is {extra:+.0f} % faster{spread}; wall time of these machines"
            return Verdict(OPEN, says + "; benchmarks/atari.py compares them side by side", "summary.json")
    alike = f"the same {', '.join(SPEED_DEPENDS_ON[:-1])} and {SPEED_DEPENDS_ON[-1]}"
    return Verdict(OPEN, f"{_AS_IN_THE_PAPER} BootDQN and EVOI were not both finished on one game, with {alike}")


def _gain_is_sparser(evidence: Evidence) -> Verdict:
    """Say how much sparser and larger gain is; that it is follows from what the two are.

    A positive gain makes its EVOI positive, and the mean over heads spreads the same total over no fewer numbers: both
    hold for any ensemble, with "no less" for "more". By sum EVOI is never lower.
    """
    found = [one for one in evidence.ensembles if not one.prior_scale]
    if not found:
        return Verdict(OPEN, _NOT_LOOKED_INTO)
    shares = [float(np.mean([getattr(one, name) for one in found])) for name in ("gain_density", "evoi_density")]
    sizes = [float(np.mean([getattr(one, name) for one in found])) for name in ("gain_size", "evoi_size")]
    says = (
        f"{_looked_into(found)}: {100 * shares[0]:.0f} % of gains and {100 * shares[1]:.0f} % of EVOIs are positive; "
        f"these are {sizes[0]:.3f} and {sizes[1]:.3f} on average. It cannot be otherwise: it follows from the "
        "formulas (for EVOI by mean; by sum it is denser and higher)"
    )
    return Verdict(SUPPORTED, says, "ensembles")


def _rare_states_are_disputed(evidence: Evidence) -> Verdict:
    """Judge whether visits and disagreement are opposed in every kind of ensemble, and beyond the interval over seeds.

    One kind in which they go together contradicts it. Ensembles with a prior, which the paper has not, are not asked.
    """
    asked = [one for one in evidence.ensembles if not one.prior_scale]
    found = by_cell(asked)
    if not found:
        return Verdict(OPEN, _NOT_LOOKED_INTO)
    values = [[one.rarity for one in cell] for cell in found.values()]
    means = [float(np.mean(cell)) for cell in values]
    intervals = [interval_of_mean(cell) for cell in values]
    opposed = [interval is not None and interval[1] < 0 for interval in intervals]
    says = (
        f"{_looked_into(asked)}: visits and disagreement have a rank correlation of {min(means):+.2f} to "
        f"{max(means):+.2f}, the whole interval below 0 in {sum(opposed)} of {len(found)} cells (strategy, N, step)"
    )
    if any(interval is not None and interval[0] > 0 for interval in intervals):
        return Verdict(CONTRADICTED, says, "ensembles")
    return Verdict(SUPPORTED if all(opposed) else OPEN, says, "ensembles")


def _looked_into(found: list[Measured]) -> str:
    sizes, steps = sorted({one.size for one in found}), sorted({one.step for one in found})
    seeds = counted(len({one.seed for one in found}), "seed")
    return f"DeepSea, N = {' and '.join(map(str, sizes))}, after {' and '.join(f'{s:,}' for s in steps)} steps, {seeds}"


CLAIMS = (
    Claim("Gain beats the baselines on DeepSea.", "", _deep_sea_beats("gain")),
    Claim("EVOI (sum) beats the baselines on DeepSea.", "", _deep_sea_beats(DEEP_SEA_EVOI)),
    Claim(
        "EVOI (sum) scales best on DeepSea: it beats Gain, too.",
        "",
        _deep_sea_beats(DEEP_SEA_EVOI, rivals=("gain", "greedy", "ucb")),
    ),
    Claim(
        "EVOI has the best human-normalised mean: 9.38 points over BootDQN.",
        "60.05 against 50.67; Gain, at 48.30, is below BootDQN",
        _normalised_lead("greedy", 9.38),
    ),
    Claim("19.16 points over DQN-IDS.", "60.05 against 40.89", _normalised_lead("ids", 19.16)),
    Claim("16.45 points over BootDQN-UCB.", "60.05 against 43.60", _normalised_lead("ucb", 16.45)),
    Claim("EVOI has the best maximal score in four of six games.", "not in Alien and Private Eye", _best_in_four_games),
    Claim(
        "The paper's own BootDQN scores above the original's.",
        "not in Private Eye: 1,584.4 against 1,812.5",
        _above_the_original,
    ),
    Claim("More heads are better (K = 2, 6, 10, 12 on Hero).", "one figure, no table", _more_heads_are_better),
    Claim(
        "UCB's votes are the most diverse, except in Venture (by count variance, as printed).",
        "count variance is high when heads agree",
        _diversity("vote_count_variance", ("ucb",), highest=True, except_in=("Venture",)),
    ),
    Claim(
        "UCB's votes are the most diverse (by entropy, as meant).",
        "",
        _diversity("vote_entropy", ("ucb",), highest=True),
    ),
    Claim(
        "Gain's and EVOI's votes are at least as diverse as BootDQN's (by count variance, as printed).",
        "Gravitar's Gain, 1.96, is below BootDQN's 2",
        _diversity("vote_count_variance", ("gain", "evoi"), highest=False),
    ),
    Claim(
        "Gain's and EVOI's votes are at least as diverse as BootDQN's (by entropy, as meant).",
        "",
        _diversity("vote_entropy", ("gain", "evoi"), highest=False),
    ),
    Claim("EVOI is about 10 % slower than BootDQN at K = 10.", "", _slower_than_greedy),
    Claim("Gain is sparser than EVOI, which is denser but lower.", "shown at one state", _gain_is_sparser),
    Claim("Heads disagree more in rare states.", "said, not shown", _rare_states_are_disputed),
)
