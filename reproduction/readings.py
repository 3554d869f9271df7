"""The two readings of how often the network is updated on DeepSea, compared: every step, or once an episode.

    bootdqn sweep paper-deepsea --out runs/deep-sea
    python -m reproduction.readings runs/deep-sea

extracts, from the metrics of the runs, which are too large to be kept here, when each was solved by the regret of its
last episodes: `results/deep-sea/recent.json`.
"""

import json
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from bootdqn.envs.deep_sea import BAD_FRACTION, MIN_GOOD_EPISODES
from bootdqn.reports import deep_sea
from bootdqn.reports.deep_sea_figures import BY_SIZE_CAPTION, plot_episodes
from bootdqn.reports.statistics import can_differ
from bootdqn.reports.style import RC_PARAMS, cap_ticks, labelled_lines, legend_below
from bootdqn.runs.directory import find_runs
from reproduction import archive, studies
from reproduction.claims import COLOURS, DEEP_SEA_CLAIMS, DEEP_SEA_EVOI
from reproduction.evidence import CONTRADICTED, SUPPORTED, Evidence, Verdict
from reproduction.figures import DocsFigure
from reproduction.tables import episodes_and_solved, markdown

PER_EPISODE, EVERY_STEP = "deep-sea", "deep-sea-every-step"
READINGS = {PER_EPISODE: "one update an episode", EVERY_STEP: "an update every step"}
"""Studies, by the reading that they are of."""
STRATEGIES = ("greedy", "ucb", "gain", DEEP_SEA_EVOI)
"""The algorithms of the paper's figure."""
RECENT = "recent.json"
WINDOW = 100
"""Episodes of the running average, where it is one of the last episodes."""


def reading_runs(study: str) -> pd.DataFrame:
    """Return the runs of the paper's algorithms in a reading; their variants do not name it."""
    runs = studies.deep_sea_runs(study)
    return runs[runs.strategy.isin(STRATEGIES)]


def readings_figure(_: str) -> Figure:
    """Plot episodes to solve against N, a panel for each reading."""
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(12, 5.4), layout="constrained")
        panels = list(figure.subplots(1, len(READINGS)))
        runs = [reading_runs(study) for study in READINGS]
        for axes, of_reading, title in zip(panels, runs, READINGS.values(), strict=True):
            plot_episodes(axes, of_reading)
            axes.set_title(title.capitalize())
        low, high = zip(*(axes.get_ylim() for axes in panels), strict=True)
        for axes, of_reading in zip(panels, runs, strict=True):
            axes.set_ylim(min(low), max(high))  # shared axes would share the ticks, too, which end at the cap
            axes.set_yticks(cap_ticks(min(low), of_reading.budget.max()))
        legend_below(figure, labelled_lines(panels[0]))
        return figure


FIGURE = DocsFigure(
    readings_figure,
    "Episodes to solve DeepSea against the size of the grid, with an update every step and with one an episode",
    BY_SIZE_CAPTION,
)


def judged(runs: pd.DataFrame) -> list[Verdict]:
    """Judge the paper's claims about DeepSea by runs whose variants have no setting but the strategy."""
    evidence = Evidence.among(runs, pd.DataFrame({"variant": []}))
    return [claim.judge(evidence) for claim in DEEP_SEA_CLAIMS]


def preferred(verdicts: dict[str, list[Verdict]]) -> str | None:
    """Return the study whose runs support more claims, at a tie contradict fewer; None where that does not decide.

    The rule was written when the first run was finished, in the sweep `paper-deepsea`.
    """
    statuses = {study: [verdict.status for verdict in found] for study, found in verdicts.items()}
    scores = {study: (found.count(SUPPORTED), -found.count(CONTRADICTED)) for study, found in statuses.items()}
    best = max(scores.values())
    first = [study for study, score in scores.items() if score == best]
    return first[0] if len(first) == 1 else None


def enough_seeds(runs: pd.DataFrame) -> bool:
    """Return whether there is a size at which the seeds of all the paper's algorithms can decide its claims."""
    seeds = runs.groupby(["size", "strategy"]).seed.nunique().unstack().reindex(columns=STRATEGIES).dropna()
    return any(can_differ(int(fewest), int(fewest)) for fewest in seeds.min(axis=1))


def verdicts_table(_: str) -> str:
    """Judge the claims in each reading, and name the one that the rule prefers."""
    readings = {study: reading_runs(study) for study in READINGS}
    verdicts = {study: judged(runs) for study, runs in readings.items()}
    rows = [
        (claim.text, *(f"{COLOURS[one.status]} {one.status}: {one.reason}" for one in of_claim))
        for claim, *of_claim in zip(DEEP_SEA_CLAIMS, *verdicts.values(), strict=True)
    ]
    columns = ("the paper says", *READINGS.values())
    found = preferred(verdicts) if all(map(enough_seeds, readings.values())) else None
    answer = (
        "Neither reading is preferred by the rule." if found is None else f"Preferred by the rule: {READINGS[found]}."
    )
    return f"{markdown(columns, rows, text_columns=columns)}\n\n{answer}"


def solved_recently(bad: Iterable[bool], window: int = WINDOW) -> int | None:
    """Return the first episode at which fewer than nine tenths of the last `window` were bad and at least ten good.

    Before there are so many, all episodes so far count. None if there is no such episode.
    """
    recent = deque[bool](maxlen=window)
    for episode, is_bad in enumerate(bad, start=1):
        recent.append(is_bad)
        if sum(recent) < BAD_FRACTION * len(recent) and len(recent) - sum(recent) >= MIN_GOOD_EPISODES:
            return episode
    return None


def recently_table(study: str) -> str:
    """Return mean episodes by the regret so far and by that of the last episodes, and the verdicts by the latter."""
    recent = json.loads((archive.RESULTS / study / RECENT).read_text(encoding="utf-8"))
    runs = reading_runs(study)
    runs = runs.assign(solved_at_strict=[recent[run] for run in runs.run])
    statuses = ", ".join(verdict.status for verdict in judged(runs))
    verdicts = f"By the last {WINDOW} episodes, the verdicts on the claims above are, in their order: {statuses}."
    return f"{by_two_rules(reading_runs(study), runs)}\n\n{verdicts}"


def by_two_rules(so_far: pd.DataFrame, recently: pd.DataFrame) -> str:
    """Return a table of the mean episodes of the same runs, solved by two rules."""
    columns = ("N", "algorithm", "all episodes so far", f"last {WINDOW} episodes")
    found = zip(deep_sea.cells(so_far).itertuples(), deep_sea.cells(recently).itertuples(), strict=True)
    rows = [(str(one.size), one.label, episodes_and_solved(one), episodes_and_solved(other)) for one, other in found]
    return markdown(columns, rows, text_columns=("algorithm",))


def main(runs: Sequence[str]) -> None:
    """Write when each run that still has its metrics was solved by the regret of its last episodes."""
    root, kept = Path(runs[0]), archive.RESULTS / PER_EPISODE / RECENT
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    finished = [
        run
        for run in find_runs(root)
        if run.metrics.exists() and (run.read_summary() or {}).get("status") == "finished"
    ]
    for run in finished:
        bad = (bool(record["bad"]) for record in run.read_metrics("episode"))
        found[run.path.relative_to(root).as_posix()] = solved_recently(bad)
    kept.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(finished)} runs read, {len(found)} in {kept}")


if __name__ == "__main__":
    main(sys.argv[1:])
