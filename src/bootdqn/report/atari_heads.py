"""Atari runs by their number of heads K: how fast they were, and how well they scored."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from bootdqn.config.variants import Variant
from bootdqn.report import paper
from bootdqn.report.atari import SPEED_DEPENDS_ON, Played, frames_of, in_common, name_of, study_of
from bootdqn.report.tables import Table


def studies_of_heads(played: list[Played]) -> dict[tuple[str, Variant], dict[int, list[Played]]]:
    """Return the runs of each game and algorithm that was played with several K, by K."""
    studies: dict[tuple[str, Variant], dict[int, list[Played]]] = {}
    for run in sorted(played, key=lambda run: (run.num_heads, run.seed)):
        studies.setdefault(study_of(run), {}).setdefault(run.num_heads, []).append(run)
    return {study: studies[study] for study in sorted(studies, key=_study_order) if len(studies[study]) > 1}


def by_heads(played: list[Played]) -> dict[int, list[Played]]:
    """Return the runs of the game and algorithm that were played with most different K, by K; empty where none was."""
    return max(studies_of_heads(played).values(), key=len, default={})


def runtime(played: list[Played]) -> Table | None:
    """Return the runtime table for K, of every game and algorithm that it was varied for; None where there is none.

    The maximal scores are those within the frames that all K were evaluated for.
    """
    rows = [
        (paper.title_of(game), name_of(variant), *row)
        for (game, variant), groups in studies_of_heads(played).items()
        for row in _runtime_rows(groups)
    ]
    if not rows:
        return None
    return Table(
        "runtime",
        "Runtime and score by the number of heads K",
        (
            "game",
            "algorithm",
            "K",
            "frames/s, ours",
            "time against the K before",
            "frames/s, paper",
            "paper's growth",
            "maximal score",
            "within frames",
            "seeds",
        ),
        rows,
        "The paper: EVOI on Hero, 100M frames, on a GPU. Ours: on the machine of these runs. A maximal score is that "
        "within the frames that the runs of every K were evaluated for. Runs that differ in "
        f"{', '.join(SPEED_DEPENDS_ON[:-1])} or {SPEED_DEPENDS_ON[-1]} are neither averaged nor compared in speed: "
        "those cells are empty, as are those of runs that are not finished.",
        text_columns=("game", "algorithm"),
    )


def speeds_of(runs: Iterable[Played]) -> dict[tuple[str, ...], list[float]]:
    """Return frames a second of the finished runs, by the settings that they depend on."""
    speeds: dict[tuple[str, ...], list[float]] = {}
    for run in runs:
        if run.speed is not None:
            speeds.setdefault(run.computed, []).append(run.speed)
    return speeds


class _Speed(NamedTuple):
    computed: tuple[str, ...]
    mean: float


def _one_speed(runs: Iterable[Played]) -> _Speed | None:
    """Return the mean speed of runs that were all computed in the same way; None where they were not, or none ended."""
    speeds = speeds_of(runs)
    return next(
        (_Speed(computed, float(np.mean(found))) for computed, found in speeds.items() if len(speeds) == 1), None
    )


def _runtime_rows(groups: Mapping[int, list[Played]]) -> Iterator[tuple[str, ...]]:
    before: _Speed | None = None
    compared = in_common([run for runs in groups.values() for run in runs])
    for k, runs in groups.items():
        cut = [run for run in compared if run.num_heads == k]
        speed = _one_speed(runs)
        growth = ""
        if before is not None and speed is not None and before.computed == speed.computed:
            growth = f"{100 * (before.mean / speed.mean - 1):+.0f} %"
        paper_growth = f"{paper.RUNTIME_GROWTH[k]:+d} %" if k in paper.RUNTIME_GROWTH else ""
        minutes = paper.RUNTIME_MINUTES.get(k)
        yield (
            str(k),
            "" if speed is None else f"{speed.mean:,.0f}",
            growth,
            "" if minutes is None else f"{paper.HEADS_FRAMES / 60 / minutes:,.0f}",
            paper_growth,
            f"{np.mean([run.best for run in cut]):,.1f}" if cut else "",
            frames_of(cut) if cut else "",
            str(len(runs)),
        )
        before = speed


def _study_order(study: tuple[str, Variant]) -> tuple[str, str, str]:
    return study[0], study[1].strategy, str(study[1].settings)
