"""Judges of the paper's claims about DeepSea."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bootdqn.config.variants import Variant
from bootdqn.reports.deep_sea import by_cap, cells, format_mean
from bootdqn.reports.paper import DEEP_SEA_SEEDS, LARGEST_DEEP_SEA
from bootdqn.reports.statistics import LEVEL, can_differ, format_p_value, rank_test
from reproduction.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence, Verdict, plain_runs


def beats(
    strategy: str, rivals: tuple[str, ...] = ("greedy", "ucb"), *, options: bool = False
) -> Callable[[Evidence], Verdict]:
    """Judge if a strategy needs fewer episodes than its rivals, at the largest of the paper's sizes that can decide it.

    It does where a rank test tells it from each of them. One rival that is better contradicts it, at any size that
    is not smaller than the largest at which all were run, whichever of the others were run there. Runs with different
    caps are never taken together; at each size those with the largest cap are asked first. How it is at the smaller
    sizes is said, and does not count; nor does what is said of sizes that the paper claims nothing of.

    Args:
        strategy: The strategy that is judged.
        rivals: Those that it is compared with.
        options: Judge by the runs that compare options beyond the paper, not by those with the paper's settings.
    """

    def judge(evidence: Evidence) -> Verdict:
        runs = plain_runs(evidence.deep_sea_options) if options else evidence.deep_sea
        races = _races(runs, strategy, rivals)
        beyond = _beyond_the_paper([race for race in races if race.size > LARGEST_DEEP_SEA])
        races = [race for race in races if race.size <= LARGEST_DEEP_SEA]
        decisive = [race for race in races if race.can_decide and (race.complete or race.status == CONTRADICTED)]
        shown = decisive or [race for race in races if race.complete][:1]
        if not shown:
            none = f"no DeepSea runs of all of them at one size up to N = {LARGEST_DEEP_SEA}"
            return Verdict(OPEN, none + beyond)
        largest, *smaller = shown
        reason = largest.reason + _at_smaller_sizes(largest.size, smaller) + beyond
        return Verdict(largest.status, reason)

    return judge


def helps(setting: str, value: Any, strategies: tuple[str, ...]) -> Callable[[Evidence], Verdict]:
    """Judge if strategies need fewer episodes with a setting than without, wherever both were run with enough seeds."""

    def judge(evidence: Evidence) -> Verdict:
        pairs: dict[tuple[int, str], tuple[Any, Any]] = {}
        for results in by_cap(evidence.deep_sea_options).values():
            found = {(cell.size, cell.variant): cell for cell in cells(results).itertuples()}
            for (size, variant), cell in found.items():
                changed = found.get((size, Variant(variant.strategy, ((setting, value),))))
                compared = changed is not None and can_differ(cell.seeds, changed.seeds)
                if changed is not None and compared and variant.strategy in strategies and not variant.settings:
                    pairs.setdefault((size, variant.strategy), (cell, changed))
        if not pairs:
            return Verdict(OPEN, "no DeepSea runs with and without it")
        return _judge_pairs(list(pairs.values()))

    return judge


@dataclass(frozen=True)
class _Race:
    """The runs of a strategy and of those of its rivals that were run at the same size, with the same cap."""

    ours: Any
    """A row of `cells`, as are the rivals."""
    theirs: tuple[Any, ...]
    cap: int
    asked: int
    """How many rivals the claim is about."""

    @property
    def size(self) -> int:
        return int(self.ours.size)

    @property
    def complete(self) -> bool:
        return len(self.theirs) == self.asked

    @property
    def can_decide(self) -> bool:
        """Whether there are seeds enough for the test to tell ours from any of theirs."""
        return all(can_differ(self.ours.seeds, rival.seeds) for rival in self.theirs)

    @property
    def status(self) -> str:
        """The verdict. Any of those compared may contradict, so each comparison has its share of the level."""
        tests = [compared(self.ours, rival) for rival in self.theirs]
        if any(not fewer and chance < LEVEL / len(tests) for fewer, chance in tests):
            return CONTRADICTED
        return SUPPORTED if self.complete and all(fewer and chance < LEVEL for fewer, chance in tests) else OPEN

    @property
    def reason(self) -> str:
        """The episodes of each, and how likely so large a difference from each rival is by chance."""
        chances = ", ".join(format_p_value(compared(self.ours, rival)[1]) for rival in self.theirs)
        few = "" if self.can_decide else ", seeds are too few to decide"
        numbers = [cell.seeds for cell in (self.ours, *self.theirs)]
        seeds = f"; seeds: {', '.join(map(str, numbers))}, the paper {DEEP_SEA_SEEDS}"
        return f"{self.found}; {chances}{few}{seeds if min(numbers) < DEEP_SEA_SEEDS else ''}"

    @property
    def found(self) -> str:
        """The episodes of each."""
        return f"N = {self.size}, cap {self.cap:,}: {', '.join(map(_format_cell, (self.ours, *self.theirs)))}"


def _races(runs: pd.DataFrame, strategy: str, rivals: Sequence[str]) -> list[_Race]:
    """Return the races that at least one rival takes part in, the largest size first, then the largest cap."""
    races = []
    for cap, results in by_cap(runs).items():
        by_place = {(cell.size, cell.variant.strategy): cell for cell in cells(results).itertuples()}
        for size in {size for size, name in by_place if name == strategy}:
            theirs = tuple(by_place[size, rival] for rival in rivals if (size, rival) in by_place)
            if theirs:
                races.append(_Race(by_place[size, strategy], theirs, cap, len(rivals)))
    return sorted(races, key=lambda race: (race.size, race.cap), reverse=True)


def _at_smaller_sizes(size: int, races: list[_Race]) -> str:
    """Describe how each smaller size was judged, by the race with the largest cap."""
    judged: dict[int, str] = {}
    for race in races:
        if race.size < size:
            judged.setdefault(race.size, race.status)
    held = {status: [n for n in sorted(judged) if judged[n] == status] for status in (SUPPORTED, CONTRADICTED, OPEN)}
    words = {SUPPORTED: "it holds", CONTRADICTED: "it does not hold", OPEN: "it is open"}
    found = [f"{words[status]} at N = {', '.join(map(str, sizes))}" for status, sizes in held.items() if sizes]
    return f". On smaller grids {', '.join(found)}" if found else ""


def _beyond_the_paper(races: list[_Race]) -> str:
    """Describe what was found at larger sizes than the paper's, the smallest of them first."""
    found = "; ".join(race.found for race in reversed(races))
    return f". Beyond the paper's sizes, and not judged: {found}" if found else ""


def _judge_pairs(pairs: list[tuple[Any, Any]]) -> Verdict:
    """Judge by cells without and with a change: supported or contradicted where the test decides all, one way."""
    found = "; ".join(
        f"N = {plain.size}, {plain.label}: {format_mean(changed)} instead of {format_mean(plain)} episodes"
        for plain, changed in pairs
    )
    decided = [fewer for fewer, chance in (compared(changed, plain) for plain, changed in pairs) if chance < LEVEL]
    reason = f"{found}; p < {LEVEL:g} in {len(decided) or 'none'} of {len(pairs)}"
    if len(set(decided)) > 1:
        return Verdict(MIXED, reason)
    status = OPEN if len(decided) < len(pairs) else SUPPORTED if decided[0] else CONTRADICTED
    return Verdict(status, reason)


def compared(one: Any, other: Any) -> tuple[bool, float]:
    """Return whether one cell needs fewer episodes than another, and the p-value of the rank test.

    A run that was not solved before the cap is level with others that were not, and slower than all that were.
    """
    return rank_test(*map(_ranked_episodes, (one, other)))


def _ranked_episodes(cell: Any) -> list[int]:
    each = zip(cell.episodes, cell.is_solved, strict=True)
    return [episodes if solved else cell.cap + 1 for episodes, solved in each]


def _format_cell(cell: Any) -> str:
    return f"{cell.label} {format_mean(cell)} episodes ({cell.solved}/{cell.seeds} solved)"
