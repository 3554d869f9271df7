"""Judges of the paper's claims about DeepSea."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bootdqn.analysis.deep_sea import Cell, by_cap, cells
from bootdqn.analysis.evidence import CONTRADICTED, ENOUGH_SEEDS, MIXED, OPEN, SUPPORTED, Evidence, Verdict
from bootdqn.common.variants import Variant, label
from bootdqn.common.written import counted


def beats(strategy: str, rivals: tuple[str, ...] = ("greedy", "ucb")) -> Callable[[Evidence], Verdict]:
    """Judge if a strategy needs fewer episodes than its rivals, at the largest size with enough seeds.

    Where no size has enough, it is left open at the largest. Runs with different caps are never taken together; those
    with the largest cap are asked first. One rival that is better contradicts it. How it is at the smaller sizes that
    have enough seeds is said, and does not count.
    """
    names = (strategy, *rivals)

    def judge(evidence: Evidence) -> Verdict:
        races = [
            (cap, race) for cap, results in by_cap(evidence.deep_sea).items() for race in _races(cells(results), names)
        ]
        if not races:
            return Verdict(OPEN, "no DeepSea runs of all of them at one size")
        enough = [(cap, race) for cap, race in races if _seeds_of(race) >= ENOUGH_SEEDS]
        (cap, race), *others = enough or races[:1]
        verdict = _judge_race(cap, race)
        return verdict._replace(says=verdict.says + _at_smaller_sizes(race[0].size, others))

    return judge


def helps(setting: str, value: Any, strategies: tuple[str, ...]) -> Callable[[Evidence], Verdict]:
    """Judge if strategies need fewer episodes with a setting than without, wherever both were run with enough seeds."""

    def judge(evidence: Evidence) -> Verdict:
        pairs: dict[tuple[int, str], tuple[Cell, Cell]] = {}
        for results in by_cap(evidence.deep_sea_of_any_settings).values():
            found = {(cell.size, cell.variant): cell for cell in cells(results) if len(cell.results) >= ENOUGH_SEEDS}
            for (size, variant), cell in found.items():
                changed = found.get((size, Variant(variant.strategy, ((setting, value),))))
                if variant.strategy in strategies and not variant.settings and changed is not None:
                    pairs.setdefault((size, variant.strategy), (cell, changed))
        if not pairs:
            return Verdict(OPEN, "no DeepSea runs with and without it")
        return _judge_pairs(list(pairs.values()))

    return judge


def _judge_pairs(pairs: list[tuple[Cell, Cell]]) -> Verdict:
    """Judge by cells without and with a change: supported or contradicted where all intervals are apart, one way."""
    told = "; ".join(
        f"N = {plain.size}, {label(plain.variant)}: {_episodes(changed)} instead of {_episodes(plain)} episodes"
        for plain, changed in pairs
    )
    better = sum(_below(changed, plain) and not changed.censored for plain, changed in pairs)
    worse = sum(_below(plain, changed) and not plain.censored for plain, changed in pairs)
    says = f"{told}; intervals apart in {better + worse or 'none'} of {len(pairs)}"
    if better and worse:
        return Verdict(MIXED, says, "episodes to solve")
    status = SUPPORTED if better == len(pairs) else CONTRADICTED if worse == len(pairs) else OPEN
    return Verdict(status, says, "episodes to solve")


def _at_smaller_sizes(size: int, races: list[tuple[int, tuple[Cell, ...]]]) -> str:
    """Say how each smaller size was judged, by the race with the largest cap."""
    judged: dict[int, str] = {}
    for cap, race in races:
        if race[0].size < size:
            judged.setdefault(race[0].size, _judge_race(cap, race).status)
    held = {status: [n for n in sorted(judged) if judged[n] == status] for status in (SUPPORTED, CONTRADICTED, OPEN)}
    words = {SUPPORTED: "it holds", CONTRADICTED: "it does not hold", OPEN: "it is open"}
    told = [f"{words[status]} at N = {', '.join(map(str, sizes))}" for status, sizes in held.items() if sizes]
    return f". On smaller grids {', '.join(told)}" if told else ""


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
    return f"{label(cell.variant)} {_episodes(cell)} episodes ({cell.solved}/{len(cell.results)} solved)"


def _episodes(cell: Cell) -> str:
    return f"{'≥ ' if cell.censored else ''}{cell.mean:,.0f}"


def _fewer(ours: int, theirs: int) -> str:
    return f"; {counted(ours, 'seed')}, the paper {theirs}" if ours < theirs else ""
