"""The generated tables and sentences of the docs: each function takes a study and returns Markdown."""

from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any

import pandas as pd

from benchmarks.results import Row
from bootdqn.common.text import format_count, format_duration
from bootdqn.config.variants import Variant, algorithm, label
from bootdqn.reports import bsuite, deep_sea, scaling, suites
from bootdqn.reports.conclusions import deep_sea_conclusion
from bootdqn.reports.paper import RUNTIME_GROWTH, RUNTIME_MINUTES
from bootdqn.reports.statistics import LEVEL, format_p_value
from bootdqn.reports.suites import Suite
from bootdqn.reports.tables import Table
from reproduction import plans, studies
from reproduction.claims import analogues_table, claims_table
from reproduction.deep_sea_claims import compared
from reproduction.ensemble_claims import ensembles_table
from reproduction.evidence import MINATAR, Evidence
from reproduction.two_paths import first_finds, two_paths_table

PAPERS_STUDY = "deep-sea"
OPTION_STUDIES = ("deep-sea-every-step", "deep-sea-small", "deep-sea-ablation", "deep-sea-frontier")
"""By which options are compared: all with an update every step."""
FASTEST_STRATEGIES = ("gain", "evoi:reduce=sum")
FIRST_PLANNED_SEED = 5
"""Of the paper's study: the seeds from this one on of `FASTEST_STRATEGIES` were chosen together, before any was run."""
DURATION_SIZES = (10, 20, 30)
LAST_EPISODES = 10
MINATAR_HEADS = "minatar-heads"


def markdown(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], text_columns: tuple[str, ...] = ()) -> str:
    """Return a Markdown table; numbers are aligned to the right."""
    return Table("", "", columns, rows, text_columns=text_columns).to_markdown()


def claims(_: str) -> str:
    """Judge the paper's claims by the runs of all studies; a run that several studies share counts once."""
    options = pd.concat([studies.deep_sea_runs(study) for study in OPTION_STUDIES])
    options = options.drop_duplicates(["variant", "size", "budget", "seed"])
    evaluations, ensembles = studies.atari_evaluations("atari"), studies.measured_ensembles("ensembles")
    runs = studies.deep_sea_runs(PAPERS_STUDY)
    return claims_table(Evidence.among(runs, evaluations, ensembles, options)).to_markdown()


def minatar_claims(study: str) -> str:
    """Judge the analogues of the paper's Atari claims by the runs on MinAtar, or count them while some are missing."""
    games, heads = (studies.minatar_evaluations(name) for name in (study, MINATAR_HEADS))
    return analogues_table(Evidence.of_plan(MINATAR, games, heads)).to_markdown()


def finished_of_plan(study: str) -> str:
    """Count the runs of a study that are finished, of those that are planned."""
    finished, planned = plans.progress(study)
    return f"{finished} of {planned} runs are finished." if finished else f"No run of the {planned} is finished yet."


def every_plan(_: str) -> str:
    """Return how many runs of every plan are finished, and how many are missing."""
    rows = []
    for study, sweep in plans.SWEEPS.items():
        finished, planned = plans.progress(study)
        rows.append((f"`{study}`", f"`{sweep}`", str(finished), str(planned - finished)))
    return markdown(("study", "sweep", "finished", "missing"), rows, text_columns=("study", "sweep"))


def of_minatar(table: Callable[[pd.DataFrame, Suite], Table | None]) -> Callable[[str], str]:
    """Return a function of the study that returns a table of the reports; nothing where it has no runs."""

    def written(study: str) -> str:
        found = studies.minatar_evaluations(study)
        made = None if found.empty else table(studies.without_shared_settings(found), suites.MINATAR)
        if made is None:
            return ""
        return f"**{made.title}.** {made.note}".rstrip() + f"\n\n{made.to_markdown()}"

    return written


def answer(study: str) -> str:
    """Name the algorithm with the fewest episodes at the largest size."""
    return deep_sea_conclusion(studies.deep_sea_runs(study))


def count(study: str) -> str:
    """Count the runs of a DeepSea study."""
    runs = studies.deep_sea_runs(study)
    cells = deep_sea.cells(runs)
    sizes = ", ".join(str(size) for size in sorted(set(cells["size"])))
    caps = " or ".join(f"{cap:,}" for cap in sorted(set(cells.cap)))
    fewest, most = cells.seeds.min(), cells.seeds.max()
    seeds = format_count(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    solved = runs[runs.solved_at_strict.notna()]
    thin = sum(solved.solved_at != solved.solved_at_strict)
    earlier = f", {thin} of them earlier by bsuite's own rule, which does not ask for ten good episodes" if thin else ""
    return (
        f"{format_count(len(runs), 'run')}: {format_count(runs.variant.nunique(), 'algorithm')}, N = {sizes}, "
        f"{seeds} a cell, at most {caps} episodes. Solved: {len(solved)}{earlier}."
    )


def by_size(study: str) -> str:
    """Return mean episodes and solved runs, one row for each size and one column for each algorithm."""
    return by_size_of(studies.deep_sea_runs(study))


def by_size_of(runs: pd.DataFrame) -> str:
    """Return the same of runs that may be of several studies."""
    cells = deep_sea.cells(runs)
    found = {(cell.size, cell.label): episodes_and_solved(cell) for cell in cells.itertuples()}
    sizes, names = (list(dict.fromkeys(keys)) for keys in zip(*found, strict=True))
    return markdown(("N", *names), [(str(size), *(found.get((size, name), "") for name in names)) for size in sizes])


def each_seed(study: str) -> str:
    """Return the episodes of every seed, without the columns by bsuite's own rule, which are nearly the same."""
    runs = studies.without_shared_settings(studies.deep_sea_runs(study))
    return deep_sea.solve_table(runs).without(deep_sea.BSUITES_RULE, deep_sea.SOLVED_EARLY).to_markdown()


def planned_seeds(study: str) -> str:
    """Compare Gain with EVOI on the seeds that were chosen before any of them was run."""
    runs = studies.deep_sea_runs(study)
    cells = deep_sea.cells(runs[runs.seed >= FIRST_PLANNED_SEED])
    found = {(cell.size, cell.variant.strategy): cell for cell in cells.itertuples()}
    rows = []
    for size in sorted(set(cells["size"])):
        gain, evoi = (found[size, strategy] for strategy in FASTEST_STRATEGIES)
        evoi_first, p = compared(evoi, gain)
        fewer = ("EVOI" if evoi_first else "Gain") if p < LEVEL else "neither"
        rows.append((str(size), episodes_and_solved(gain), episodes_and_solved(evoi), fewer, format_p_value(p)))
    columns = ("N", "Gain: episodes (solved)", "EVOI: episodes (solved)", "fewer by the test", "rank test")
    return markdown(columns, rows, text_columns=("fewer by the test",))


def episodes_and_solved(cell: Any) -> str:
    """Return the mean episodes of a cell, and how many of its runs solved it."""
    return f"{deep_sea.format_mean(cell)} ({cell.solved}/{cell.seeds})"


def bsuite_score(study: str) -> str:
    """Return bsuite's score of each algorithm, or its bounds."""
    return score_of(studies.deep_sea_runs(study))


def score_of(runs: pd.DataFrame) -> str:
    """Return the same of runs that may be of several studies."""
    table = bsuite.deep_sea_table(runs, "score")
    return "Too few of bsuite's sizes were run for its score." if table is None else table.to_markdown()


def scaling_laws(study: str) -> str:
    """Return the laws of how far each algorithm gets."""
    table = scaling.scaling_table(studies.deep_sea_runs(study))
    return "Too few sizes were run for a law." if table is None else table.to_markdown()


def durations(study: str) -> str:
    """Return the speed of runs, the time to solve DeepSea, and the time to the cap, one column for each size."""
    rows = [["steps a second"], ["until Gain or EVOI (sum) has solved it"], ["until it is given up"]]
    for size in DURATION_SIZES:
        runs = studies.read_study(study).runs
        runs = runs[runs["size"] == size]
        solved = runs.solved_at_strict.notna()
        fastest = solved & runs.strategy.isin(FASTEST_STRATEGIES)
        speeds = _spread(runs.steps / runs.seconds, "{:,.0f}".format)
        cells = (
            speeds,
            _spread(runs.seconds[fastest], format_duration),
            _spread(runs.seconds[~solved], format_duration),
        )
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    columns = ("", *(f"N = {size}" for size in DURATION_SIZES))
    return markdown(columns, [tuple(row) for row in rows], text_columns=("",))


def _spread(values: pd.Series, text: Callable[[float], str]) -> str:
    return f"{text(median(values))} ({text(min(values))} to {text(max(values))}, {len(values)} runs)"


def rarity(study: str) -> str:
    """Return the rank correlations of visits and disagreement."""
    return ensembles_table(studies.measured_ensembles(study)).to_markdown()


def disagreement(study: str) -> str:
    """Return the disagreement of the heads at the first, smallest and last measurement, averaged over runs."""
    groups: dict[tuple[str, str], list[dict[str, list[float]]]] = {}
    for run in studies.acting_of_runs(study):
        solved = "no" if run["solved_at_strict"] is None else "yes"
        groups.setdefault((label(Variant(run["strategy"])), solved), []).append(run["means"])
    rows = []
    for (name, solved), runs in groups.items():
        spreads = [run["disagreement"] for run in runs]
        stages = (mean(one[0] for one in spreads), mean(map(min, spreads)), mean(one[-1] for one in spreads))
        overruled = mean(run["overruled"][one.index(min(one))] for run, one in zip(runs, spreads, strict=True))
        rows.append((name, solved, str(len(runs)), *(f"{stage:.4f}" for stage in stages), f"{100 * overruled:.0f} %"))
    columns = ("algorithm", "solved", "runs", "first", "smallest", "last", "overruled at the smallest")
    return markdown(columns, rows, text_columns=("algorithm",))


def evaluations(study: str) -> str:
    """Return every evaluation of Atari runs, one row for each run, without the settings that all have in common."""
    rows = []
    for run in _by_run(studies.without_shared_settings(studies.atari_evaluations(study))):
        first = run.iloc[0]
        scores = ", ".join(f"{score:g}" for score in run.score)
        entropies = ", ".join(f"{entropy:.2f}" for entropy in run.vote_entropy)
        name = label(first.variant)
        rows.append((first.game, name, str(first.seed), f"{run.frames.max():,}", scores, entropies))
    columns = ("game", "algorithm", "seed", "frames", "score of each evaluation", "vote entropy (nats)")
    return markdown(columns, rows, text_columns=("game", "algorithm"))


def _by_run(evaluations: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the evaluations of each run, in the order of the tables."""
    ordered = evaluations.assign(strategy=[variant.strategy for variant in evaluations.variant])
    ordered = ordered.sort_values(["game", "strategy", "num_heads", "seed"], kind="stable")
    return [run for _, run in ordered.groupby("run", sort=False)]


def learned(study: str) -> str:
    """Return the scores of each Atari run before and after learning, beside random play of the same game."""
    rows = []
    for run in _by_run(studies.atari_evaluations(study)):
        first = run.iloc[0]
        random = studies.random_play_returns(first.game)
        before, after = studies.returns_before_and_after_learning(study, first.run)
        scores = (
            f"{mean(random):.1f} ({len(random)})",
            f"{mean(before):.1f} ({len(before)})",
            f"{mean(after[-LAST_EPISODES:]):.1f}",
            f"{run.score.iloc[-1]:.1f}",
        )
        rows.append((first.game, algorithm(first.variant.strategy, "atari").label, str(first.num_heads), *scores))
    stages = ("random play (episodes)", "before the first update (episodes)", f"last {LAST_EPISODES} episodes")
    return markdown(("game", "algorithm", "K", *stages, "last vote"), rows, text_columns=("game", "algorithm"))


def speed_rows(name: str) -> Callable[[str], str]:
    """Return a function of the study that returns the rows of one benchmark and the machine that it ran on."""

    def table(study: str) -> str:
        measured = studies.benchmark(study, name)
        met = {None: "", True: "yes", False: "no"}
        rows = [
            (
                row.what,
                f"{row.value:,.4g} {row.unit}".strip(),
                row.peer,
                "" if row.ratio is None else f"{row.ratio:.2f}",
                row.limit or "",
                met[row.met],
            )
            for row in (Row(**row) for row in measured["rows"])
        ]
        columns = ("what", "ours", "peer", "ratio", "limit", "met")
        machine = measured["machine"]
        versions = ", ".join(f"{package} {version}" for package, version in machine["packages"].items() if version)
        return (
            f"{markdown(columns, rows, text_columns=('what', 'peer', 'met'))}\n\n"
            f"On {machine['processor']} with {machine['instructions']} instructions{' and bf16' * machine['bf16']}; "
            f"Python {machine['python']}, {versions}."
        )

    return table


def speed_by_heads(study: str) -> str:
    """Return frames per second by number of heads, beside the growth of time that the paper reports."""
    by_heads = studies.measured_speed(study)["by_heads"]
    rows, previous = [], None
    for k, frames in by_heads.items():
        growth = "" if previous is None else f"{100 * (previous / frames - 1):+.0f} %"
        papers = f"{RUNTIME_GROWTH[int(k)]:+d} %" if int(k) in RUNTIME_GROWTH else ""
        rows.append((k, f"{frames:.0f}", growth, papers))
        previous = frames
    few, *_, many = by_heads
    our_growth, papers_growth = by_heads[few] / by_heads[many], RUNTIME_MINUTES[int(many)] / RUNTIME_MINUTES[int(few)]
    table = markdown(("K", "frames/s", "more time than the K before", "the paper"), rows)
    return (
        f"{table}\n\nFrom K = {few} to {many} the time grows {our_growth:.2f} times; in the paper, on a GPU, "
        f"{papers_growth:.2f} times."
    )


def speed_by_strategy(study: str) -> str:
    """Compare the speed of the strategies, and of EVOI with a plain implementation."""
    measured = studies.measured_speed(study)
    by_strategy, versus = measured["by_strategy"], dict(measured["versus"])
    equal = (measured["by_heads"]["10"], by_strategy["evoi"], versus["fp32"])
    plain = versus.pop("plain")
    strategies = ", ".join(f"{name} {frames:.0f}" for name, frames in by_strategy.items())
    precisions = " and ".join(f"{frames:.0f} in {name} ({frames / plain:.2f} times)" for name, frames in versus.items())
    return (
        f"Frames/s by strategy at K = 10: {strategies}. BootDQN is {by_strategy['greedy'] / by_strategy['evoi']:.2f} "
        "times as fast as EVOI (in the paper about 1.1 times), where three measurements of EVOI in fp32, minutes "
        f"apart, are up to {100 * (max(equal) / min(equal) - 1):.0f} % apart. EVOI at K = 10, beside {plain:.0f} "
        f"frames/s of a plain implementation: {precisions}. The processor had {measured['instructions']} instructions."
    )


def two_paths_found(study: str) -> str:
    """Return the step at which each run on the two paths first reached the long end."""
    return two_paths_table(first_finds(studies.read_study(study).runs)).to_markdown()
