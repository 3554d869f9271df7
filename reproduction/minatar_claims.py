"""Judges of the analogues on MinAtar of the paper's claims about Atari: they say nothing about Atari itself.

The paper gives no intervals; an analogue is decided by them alone. The rules were written before the runs.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from bootdqn.common.text import format_count
from bootdqn.config.variants import Variant, algorithm
from bootdqn.reports.atari import best_scores, by_game_and_variant, format_frames, normalised_strata
from bootdqn.reports.statistics import (
    LEVEL,
    MIN_FOR_INTERVAL,
    Values,
    interval_of_mean,
    stratified_difference,
    stratified_interval,
)
from reproduction.evidence import CONTRADICTED, OPEN, SUPPORTED, Evidence, Verdict
from reproduction.game_claims import first_tenth_and_later

Strata = dict[Variant, dict[str, list[float]]]
"""Numbers of the runs by variant and game."""
FEW_SEEDS = f"not judged: an interval needs {MIN_FOR_INTERVAL} seeds that differ"


def when_complete(strategies: Sequence[str], judge: Callable[[Evidence], Verdict]) -> Callable[[Evidence], Verdict]:
    """Judge only by all planned runs of the strategies: until then count those that are finished."""
    variants = [Variant(strategy) for strategy in strategies]

    def judge_complete(evidence: Evidence) -> Verdict:
        plan, runs = evidence.plan, evidence.games
        found = runs[runs.variant.isin(variants)].run.nunique()
        return _not_judged(found, len(plan.games) * len(strategies) * plan.seeds) or judge(evidence)

    return judge_complete


def _not_judged(found: int, planned: int) -> Verdict | None:
    return Verdict(OPEN, f"not judged: {found} of {planned} runs") if found < planned else None


def normalised_scores(evidence: Evidence) -> Strata:
    """Return the best evaluation of each run, normalised: 0 is random play, 100 the best evaluation of the study."""
    return normalised_strata(evidence.games, evidence.plan.suite)


def diversity(measure: str) -> Callable[[Evidence], Strata]:
    """Return a function of the evidence that returns a measure of vote diversity, averaged over each run."""

    def of_runs(evidence: Evidence) -> Strata:
        return _strata(evidence.games, lambda runs: list(runs.groupby("run", sort=False)[measure].mean()))

    return of_runs


def _strata(evaluations: pd.DataFrame, values: Callable[[pd.DataFrame], list[float]]) -> Strata:
    strata: Strata = {}
    for (game, variant), runs in by_game_and_variant(evaluations).items():
        strata.setdefault(variant, {})[game] = values(runs)
    return strata


def ahead(
    measure: Callable[[Evidence], Strata],
    subjects: tuple[str, ...],
    rivals: tuple[str, ...],
    statistic: Callable[..., Values] = np.mean,
) -> Callable[[Evidence], Verdict]:
    """Judge over all games together whether each subject has more of a measure than each rival.

    Supported where the 95 % interval of every difference, by a bootstrap stratified by game, is above zero;
    contradicted where that of one is below zero. Any may contradict, so there each has its share of the level.
    """

    def difference(ours: Values, theirs: Values, *, axis: int = -1) -> Values:
        return np.asarray(statistic(ours, axis=axis) - statistic(theirs, axis=axis))

    def judge(evidence: Evidence) -> Verdict:
        strata = measure(evidence)
        pairs = [(one, other) for one in subjects for other in rivals]
        found, lowest, highest = [], [], []
        for one, other in pairs:
            ours, theirs = (list(strata[Variant(name)].values()) for name in (one, other))
            shown = stratified_difference(ours, theirs, difference)
            strict = stratified_difference(ours, theirs, difference, LEVEL / len(pairs))
            if shown is None or strict is None:
                return Verdict(OPEN, FEW_SEEDS)
            lowest.append(shown[0])
            highest.append(strict[1])
            lead = float(difference(*map(np.concatenate, (ours, theirs))))
            versus = f"{_label(one)} against {_label(other)}"
            found.append(f"{versus} {lead:+.2f} ({shown[0]:+.2f} to {shown[1]:+.2f})")
        size = _size(evidence, len(strata[Variant(subjects[0])]))
        return Verdict(_status(min(lowest), min(highest)), f"{', '.join(found)}; {size}")

    return judge


def _label(strategy: str) -> str:
    return algorithm(strategy, "atari").label.removeprefix("BootDQN-")


def _size(evidence: Evidence, games: int) -> str:
    plan = evidence.plan
    seeds = f"{format_count(plan.seeds, 'seed')} of {format_frames(evidence.games)} {plan.suite.unit}"
    return f"{games} of {format_count(len(plan.games), 'game')}, {seeds}"


def diversity_grows(strategy: str) -> Callable[[Evidence], Verdict]:
    """Judge over all games together whether the entropy of a strategy's votes is higher after the first tenth.

    Supported where the 95 % interval of the difference, by a bootstrap stratified by game, is above zero, contradicted
    where it is below.
    """

    def rise(runs: pd.DataFrame) -> list[float]:
        first, later = first_tenth_and_later(runs, "vote_entropy")
        return list(later.mean(axis=1) - first.mean(axis=1))

    def judge(evidence: Evidence) -> Verdict:
        rises = list(_strata(evidence.games, rise)[Variant(strategy)].values())
        interval = stratified_interval(rises, np.mean)
        if interval is None:
            return Verdict(OPEN, FEW_SEEDS)
        reason = f"{np.mean(np.concatenate(rises)):+.2f} ({interval[0]:+.2f} to {interval[1]:+.2f})"
        return Verdict(_status(*interval), f"{reason}; {_size(evidence, len(rises))}")

    return judge


def _status(low: float, high: float) -> str:
    """Return the verdict by the interval of a difference."""
    return SUPPORTED if low > 0 else CONTRADICTED if high < 0 else OPEN


def more_heads_are_better(evidence: Evidence) -> Verdict:
    """Judge whether the best scores of EVOI rise with K, by the rank correlation over all runs of the study of K.

    Supported where its 95 % interval, by a bootstrap stratified by K, is above zero, contradicted where it is below.
    """
    plan = evidence.plan
    runs = evidence.any_heads[evidence.any_heads.num_heads.isin(plan.heads)]
    if verdict := _not_judged(runs.run.nunique(), len(plan.heads) * plan.seeds):
        return verdict
    scores = {int(k): best_scores(group) for k, group in runs.groupby("num_heads")}
    ranks = stats.rankdata([k for k, values in scores.items() for _ in values])

    def correlation(values: Values, axis: int = -1) -> Values:
        return np.asarray(stats.pearsonr(stats.rankdata(values, axis=axis), ranks, axis=axis).statistic)

    interval = stratified_interval(list(scores.values()), correlation)
    if interval is None:
        return Verdict(OPEN, FEW_SEEDS)
    low, high = interval
    listed = ", ".join(f"K = {k}: {np.mean(values):.2f}{_interval(values)}" for k, values in scores.items())
    found = float(correlation(np.concatenate(list(scores.values()))))
    seeds = f"{format_count(plan.seeds, 'seed')} of {format_frames(runs)} {plan.suite.unit}"
    reason = f"{listed}; rank correlation {found:+.2f} ({low:+.2f} to {high:+.2f}); {seeds}"
    return Verdict(_status(low, high), reason)


def _interval(values: Sequence[float]) -> str:
    interval = interval_of_mean(values)
    return "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"


def time_against(rival: str) -> Callable[[Evidence], Verdict]:
    """Describe how many times as long as a rival EVOI takes for a step, with its interval.

    Wall time says something about one machine and one moment: it decides nothing.
    """

    def ratio(ours: Values, theirs: Values, *, axis: int = -1) -> Values:
        return np.asarray(np.exp(ours.mean(axis=axis) - theirs.mean(axis=axis)))

    def judge(evidence: Evidence) -> Verdict:
        runs = evidence.games.dropna(subset="speed")
        strata = _strata(runs, lambda cell: list(-np.log(cell.groupby("run", sort=False).speed.first())))
        ours, theirs = (list(strata.get(Variant(name), {}).values()) for name in ("evoi", rival))
        interval = stratified_difference(ours, theirs, ratio) if ours and theirs else None
        if runs.computed.nunique() > 1 or interval is None:
            return Verdict(OPEN, "not judged: the runs were not timed alike")
        found = float(ratio(*map(np.concatenate, (ours, theirs))))
        times = f"EVOI takes {found:.2f} times as long ({interval[0]:.2f} to {interval[1]:.2f})"
        return Verdict(OPEN, f"{times}; wall time of these machines, which decides nothing")

    return judge
