"""The paper's study of K on Atari, and its analogue on MinAtar: runtime and score by the number of heads."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bootdqn.config.variants import Variant, label
from bootdqn.reports import paper
from bootdqn.reports.atari import SPEED_DEPENDS_ON, best_scores, format_frames, studies_of, within_common_budget
from bootdqn.reports.suites import ATARI, Suite
from bootdqn.reports.tables import Table


def studies_of_heads(evaluations: pd.DataFrame) -> dict[tuple[str, Variant], dict[int, pd.DataFrame]]:
    """Return the evaluations of each game and algorithm that was played with several K, by K."""
    ordered = evaluations.sort_values(["num_heads", "seed"], kind="stable")
    found = {}
    for study, runs in ordered.groupby(studies_of(ordered), sort=False):
        if runs.num_heads.nunique() > 1:
            found[study] = dict(iter(runs.groupby("num_heads")))
    return {study: found[study] for study in sorted(found, key=lambda s: (s[0], s[1].strategy, str(s[1].settings)))}


def by_heads(evaluations: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Return the evaluations of the game and algorithm that were played with most different K, by K; {} where none."""
    return max(studies_of_heads(evaluations).values(), key=len, default={})


def runtime_table(evaluations: pd.DataFrame, suite: Suite = ATARI) -> Table | None:
    """Return the runtime table for K, of every game and algorithm that it was varied for; None where there is none.

    The maximal scores are those within the frames that all K were evaluated for.
    """
    rows = [
        (paper.title_of(game), label(variant), *row)
        for (game, variant), groups in studies_of_heads(evaluations).items()
        for row in _runtime_rows(groups)
    ]
    if not rows:
        return None
    papers = "The paper: EVOI on Hero, 100M frames, on a GPU. Ours: on the machine of these runs. "
    table = Table(
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
        f"{papers if suite.in_paper else ''}A maximal score is that within the {suite.unit} that the runs of every K "
        "were evaluated for. Runs that differ in "
        f"{', '.join(SPEED_DEPENDS_ON[:-1])} or {SPEED_DEPENDS_ON[-1]} are neither averaged nor compared in speed: "
        "those cells are empty, as are those of runs that are not finished.",
        text_columns=("game", "algorithm"),
    )
    return suite.adapt_table(table)


def speeds_of(evaluations: pd.DataFrame) -> dict[tuple[str, ...], list[float]]:
    """Return frames a second of the finished runs, by the settings that they depend on."""
    runs = evaluations.drop_duplicates("run").dropna(subset="speed")
    return {computed: list(group.speed) for computed, group in runs.groupby("computed", sort=False)}


def _runtime_rows(groups: Mapping[int, pd.DataFrame]) -> Iterator[tuple[str, ...]]:
    compared = within_common_budget(pd.concat(groups.values()))
    before: dict[Any, float] = {}
    for k, runs in groups.items():
        cut = compared[compared.num_heads == k]
        speeds = speeds_of(runs)
        speed = {computed: float(np.mean(found)) for computed, found in speeds.items() if len(speeds) == 1}
        growth = [before[computed] / mean - 1 for computed, mean in speed.items() if computed in before]
        minutes = paper.RUNTIME_MINUTES.get(k)
        yield (
            str(k),
            "".join(f"{mean:,.0f}" for mean in speed.values()),
            "".join(f"{100 * value:+.0f} %" for value in growth),
            "" if minutes is None else f"{paper.HEADS_FRAMES / 60 / minutes:,.0f}",
            f"{paper.RUNTIME_GROWTH[k]:+d} %" if k in paper.RUNTIME_GROWTH else "",
            f"{np.mean(best_scores(cut)):,.1f}" if len(cut) else "",
            format_frames(cut) if len(cut) else "",
            str(runs.run.nunique()),
        )
        before = speed
