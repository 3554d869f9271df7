"""Judges of the paper's claims about DeepSea."""

from collections.abc import Callable, Iterator, Sequence

from bootdqn.analysis.deep_sea import Cell, by_cap, cells
from bootdqn.analysis.evidence import CONTRADICTED, ENOUGH_SEEDS, OPEN, SUPPORTED, Evidence, Verdict
from bootdqn.common.variants import label
from bootdqn.common.written import counted


def beats(strategy: str, rivals: tuple[str, ...] = ("greedy", "ucb")) -> Callable[[Evidence], Verdict]:
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
