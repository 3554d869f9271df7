"""Atari runs into the paper's tables: maximal scores, human-normalised means, vote variance."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bootdqn.common.errors import DamagedFileError
from bootdqn.config.variants import Variant, atari_algorithm, label, variant_order
from bootdqn.report import paper
from bootdqn.report.runs import UNREADABLE, Run, Trouble, finite_number, shortfall, so_far, unreadable, whole_number
from bootdqn.report.statistics import (
    Values,
    interquartile_mean,
    interquartile_means,
    interval_of_mean,
    moving_average,
    probability_of_improvement,
    smoothed,
    stratified_interval,
)
from bootdqn.report.tables import Table

PAPER_HEADS = 10
SPEED_DEPENDS_ON = ("device", "threads", "engine", "precision")
MEASURES = ("vote_count_variance", "vote_entropy", "distinct_actions", "action_index_variance")


@dataclass(frozen=True)
class Played:
    """The evaluations of one run, finished or not."""

    name: str
    game: str
    variant: Variant
    num_heads: int
    seed: int
    frames: tuple[int, ...]
    scores: tuple[float, ...]
    diversity: dict[str, tuple[float, ...]]
    status: str
    total_frames: int
    seconds: float | None
    computed: tuple[str, ...] = ()
    """The settings that its speed depends on, in the order of `SPEED_DEPENDS_ON`."""

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return self.status == "finished"

    @property
    def speed(self) -> float | None:
        """Frames a second, of a run that came to its end."""
        return self.total_frames / self.seconds if self.finished and self.seconds else None

    @property
    def best(self) -> float:
        """The best evaluation."""
        return max(self.scores)

    def up_to(self, frames: int) -> float:
        """Return the mean of the last ten evaluations at or before `frames`."""
        return float(moving_average(self.cut(frames).scores)[-1])

    def cut(self, frames: int) -> "Played":
        """Return the run with its evaluations at or before `frames` only."""
        kept = sum(at <= frames for at in self.frames)
        diversity = {measure: values[:kept] for measure, values in self.diversity.items()}
        return replace(self, frames=self.frames[:kept], scores=self.scores[:kept], diversity=diversity)


def read_played(runs: Iterable[Run]) -> tuple[list[Played], list[Trouble]]:
    """Return the Atari runs that were evaluated at least once, and those that cannot be used: a seed counts once.

    Of two runs of one algorithm, game and seed the one evaluated for longer counts: `total_frames` only says when to
    stop, so the other is its beginning.
    """
    places: dict[tuple[Variant, str, int], list[Played]] = {}
    troubles = []
    for run in runs:
        try:
            if problem := shortfall(run):
                raise DamagedFileError(problem)
            evaluations = list(run.folder.read_metrics("evaluation"))
            if not evaluations:
                troubles.append(Trouble(run.name, f"{run.status}: not evaluated yet{so_far(run)}"))
                continue
            found = _played(run, evaluations)
        except UNREADABLE as error:
            troubles.append(unreadable(run.name, error))
            continue
        places.setdefault((found.variant, found.game, found.seed), []).append(found)
    played = [max(same, key=lambda run: run.frames[-1]) for same in places.values()]
    for kept, same in zip(played, places.values(), strict=True):
        why = f"the same algorithm, game and seed as {kept.name}, which is counted"
        troubles += [Trouble(one.name, why) for one in same if one is not kept]
        if not kept.finished:
            troubles.append(
                Trouble(
                    kept.name, f"{kept.status}: its evaluations so far are counted, up to {kept.frames[-1]:,} frames"
                )
            )
    return played, troubles


def _played(run: Run, evaluations: list[dict[str, Any]]) -> Played:
    label(run.variant)  # settings that cannot be said are damaged
    return Played(
        name=run.name,
        game=str(run.config["game"]),
        variant=run.variant,
        num_heads=whole_number(run.config, "num_heads"),
        seed=whole_number(run.config, "seed", least=0),
        frames=tuple(whole_number(record, "frames") for record in evaluations),
        scores=tuple(finite_number(record, "mean_return") for record in evaluations),
        diversity={m: tuple(finite_number(record, m) for record in evaluations) for m in MEASURES},
        status=run.status,
        total_frames=whole_number(run.config, "total_frames"),
        seconds=finite_number(run.summary, "seconds") if run.summary.get("seconds") is not None else None,
        computed=tuple(str(run.config.get(name, run.defaults.get(name))) for name in SPEED_DEPENDS_ON),
    )


def with_paper_heads(played: list[Played]) -> list[Played]:
    """Return the runs without those that only vary K, of what was also run with as many heads as the paper's.

    A game and algorithm that was run with other numbers of heads only keeps them; what is left out is in `atari_heads`.
    """
    as_in_the_paper = {study_of(run) for run in played if run.num_heads == PAPER_HEADS}
    return [run for run in played if run.num_heads == PAPER_HEADS or study_of(run) not in as_in_the_paper]


def study_of(run: Played) -> tuple[str, Variant]:
    """Return the game and algorithm, whatever K is."""
    return run.game, run.variant.without("num_heads")


def name_of(variant: Variant) -> str:
    """Return a variant's name on Atari."""
    return label(variant, atari_algorithm)


def games_of(played: list[Played]) -> list[str]:
    """Return the games that were played, the paper's first and in its order."""
    order = {game: number for number, game in enumerate(paper.GAMES)}
    return sorted({run.game for run in played}, key=lambda game: (order.get(game, len(order)), game))


def variants_of(played: list[Played]) -> list[Variant]:
    """Return the variants that played, in the paper's order."""
    return sorted({run.variant for run in played}, key=lambda variant: variant_order(variant, atari_algorithm))


def of(played: list[Played], game: str, variant: Variant) -> list[Played]:
    """Return the runs of one cell, by seed."""
    return sorted((r for r in played if r.game == game and r.variant == variant), key=lambda run: run.seed)


def equal_budget(played: list[Played], game: str, most: int | None = None) -> int | None:
    """Return the most frames that every run of `game` was evaluated for, no more than `most`.

    None where within them one run was not evaluated at all, as the others are evaluated more often and have just begun.
    """
    runs = [run for run in played if run.game == game]
    shortest = min(run.frames[-1] for run in runs)
    budget = shortest if most is None else min(shortest, most)
    return budget if all(run.frames[0] <= budget for run in runs) else None


def in_common(played: list[Played], most: int | None = None) -> list[Played]:
    """Return the runs of each game cut to the frames that all of them were evaluated for: a longer one wins nothing.

    A game in which there are no such frames is left out.

    Args:
        played: The runs that are to be compared.
        most: Frames beyond which no evaluation counts.
    """
    found = []
    for game in games_of(played):
        if (budget := equal_budget(played, game, most)) is not None:
            found += [run.cut(budget) for run in played if run.game == game]
    return found


def frames_of(runs: list[Played]) -> str:
    """Say for how many frames runs were evaluated: "3M", or "3M to 4M" where some were for longer."""
    shortest, longest = (end(run.frames[-1] for run in runs) for end in (min, max))
    return f"{shortest / 1e6:g}M" if shortest == longest else f"{shortest / 1e6:g}M to {longest / 1e6:g}M"


def leader(played: list[Played], game: str, variants: Sequence[Variant]) -> Variant | None:
    """Return the variant with the highest mean of maximal scores on `game`, within the frames that all were played for.

    None where the first two tie, or no frames are common to all.
    """
    played = in_common([run for run in played if run.game == game and run.variant in variants])
    means = {v: float(np.mean([run.best for run in of(played, game, v)])) for v in variants if of(played, game, v)}
    best = [variant for variant, mean in means.items() if mean == max(means.values())]
    return best[0] if len(best) == 1 else None


def curve(runs: list[Played], measure: str | None = None) -> tuple[Values, Values]:
    """Return frames (T,) and moving averages (runs, T) of the score or a measure of diversity.

    They are over ten evaluations, as in the paper; of a run that has fewer than a hundred over a tenth of them, so that
    a short one is drawn as it was. Runs are cut to the shortest; they are evaluated at the same frames.
    """
    length = min(len(run.frames) for run in runs)
    values = [run.scores if measure is None else run.diversity[measure] for run in runs]
    return (
        np.asarray(runs[0].frames[:length], float),
        np.stack([smoothed(series[:length]) for series in values]),
    )


def maximal_scores(played: list[Played]) -> Table:
    """Table 1 of the paper: for each seed the best evaluation; the mean over seeds."""
    rows = []
    for game in games_of(played):
        budget = equal_budget(played, game)
        for variant in variants_of(played):
            runs = of(played, game, variant)
            if runs:
                best = [run.best for run in runs]
                known = _printed(paper.MAXIMAL_SCORE.get(game, {}), variant)
                rows.append(
                    (
                        paper.title_of(game),
                        name_of(variant),
                        f"{np.mean(best):,.1f}",
                        _interval(interval_of_mean(best)),
                        "" if known is None else f"{known:,.1f}",
                        "" if budget is None else f"{np.mean([run.up_to(budget) for run in runs]):,.1f}",
                        "" if budget is None else f"{budget / 1e6:g}M",
                        str(len(runs)),
                        frames_of(runs),
                    )
                )
    return Table(
        "maximal-scores",
        "Maximal evaluation score",
        ("game", "algorithm", "ours", "95 % interval", "paper", "ours at equal budget", "budget", "seeds", "frames"),
        rows,
        "Ours and the paper's: for each seed the best evaluation, averaged over seeds. A maximum over evaluations "
        "grows with their number and favours the erratic; at equal budget the last ten evaluations are averaged "
        "instead (nowhere, where a run has no evaluation yet within what another has). Where frames are a range, "
        "runs of different lengths are averaged, and only the score at equal budget compares like with like. "
        f"The paper's numbers come from {paper.SEEDS} seeds of {paper.FRAMES / 1e6:.0f}M frames.",
        text_columns=("game", "algorithm"),
    )


def normalised_scores(played: list[Played]) -> Table | None:
    """Table 2 of the paper, with what good practice adds; None where no game of the paper was played."""
    games = [game for game in games_of(played) if game in paper.GAMES]
    rows = []
    for variant in variants_of(played):
        mine = [game for game in games if of(played, game, variant)]
        if not mine:
            continue
        strata = normalised_strata(played, mine, variant)
        values = [value for stratum in strata for value in stratum]
        same = None if variant.settings else paper.mean_normalised(variant.strategy, tuple(mine))
        published = _printed(paper.MEAN_NORMALISED, variant)
        rows.append(
            (
                name_of(variant),
                f"{np.mean([np.mean(stratum) for stratum in strata]):.2f}",
                f"{interquartile_mean(values):.2f}",
                _interval(stratified_interval(strata, interquartile_means), ".2f"),
                "" if same is None else f"{same:.2f}",
                "" if published is None else f"{published:.2f}",
                f"{len(mine)} of {len(paper.GAMES)}",
                str(min(len(stratum) for stratum in strata)),
            )
        )
    if not rows:
        return None
    return Table(
        "normalised-scores",
        "Human-normalised score, per cent",
        (
            "algorithm", "mean", "interquartile mean", "95 % interval", "paper, same games", "paper, all games",
            "games", "seeds",
        ),
        rows,
        "From the maximal scores. Of the paper's own means, those of "
        + " and ".join(atari_algorithm(strategy).label for strategy in paper.TRUNCATED)
        + " are cut off and not rounded (50.675 and 40.898). Intervals: bootstrap stratified by game, "
        "where each has three seeds.",
        text_columns=("algorithm",),
    )  # fmt: skip


def normalised_strata(played: list[Played], games: list[str], variant: Variant) -> list[list[float]]:
    """Return for each game the human-normalised best scores of the variant's runs."""
    return [[paper.normalised(game, run.best) for run in of(played, game, variant)] for game in games]


def vote_diversity(played: list[Played]) -> Table:
    """Table 3 of the paper: the variance of the votes, averaged over all evaluations, and the entropy beside it."""
    rows = []
    for game in games_of(played):
        for variant in variants_of(played):
            runs = of(played, game, variant)
            if runs:
                known = _printed(paper.VOTE_VARIANCE.get(game, {}), variant)
                rows.append(
                    (
                        paper.title_of(game),
                        name_of(variant),
                        f"{mean_diversity(runs, 'vote_count_variance'):.2f}",
                        "" if known is None else f"{known:.2f}",
                        f"{mean_diversity(runs, 'vote_entropy'):.2f}",
                        f"{mean_diversity(runs, 'distinct_actions'):.2f}",
                        f"{mean_diversity(runs, 'action_index_variance'):.2f}",
                        str(len(runs)),
                    )
                )
    return Table(
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


def mean_diversity(runs: list[Played], measure: str) -> float:
    """Return a measure averaged over all evaluations of all runs."""
    return float(np.mean([np.mean(run.diversity[measure]) for run in runs]))


def improvements(played: list[Played]) -> Table | None:
    """Return how likely a run of each algorithm beats one of each other; None where fewer than two can be compared."""
    variants = variants_of(played)
    rows = []
    for one in variants:
        for other in variants:
            compared = in_common([run for run in played if run.variant in (one, other)])
            games = [game for game in games_of(compared) if of(compared, game, one) and of(compared, game, other)]
            if one == other or not games:
                continue
            ours, theirs = ([[run.best for run in of(compared, g, s)] for g in games] for s in (one, other))
            chance = probability_of_improvement(ours, theirs)
            rows.append((name_of(one), name_of(other), f"{chance:.2f}", str(len(games))))
    if not rows:
        return None
    return Table(
        "improvement",
        "Probability that a run of the first beats one of the second, by maximal score",
        ("algorithm", "against", "probability", "games"),
        rows,
        text_columns=("algorithm", "against"),
    )


def _printed(numbers: Mapping[str, float | None], variant: Variant) -> float | None:
    """Return what the paper prints for a variant: it has numbers for its own settings only."""
    return None if variant.settings else numbers.get(variant.strategy)


def _interval(interval: tuple[float, float] | None, form: str = ",.1f") -> str:
    return "" if interval is None else f"{interval[0]:{form}} to {interval[1]:{form}}"
