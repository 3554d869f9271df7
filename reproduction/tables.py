"""The generated tables and sentences of the docs: each function takes a study and returns Markdown."""

from collections.abc import Callable, Sequence
from statistics import mean, median

from bootdqn.config.variants import Variant, atari_algorithm, label
from bootdqn.report import atari, deep_sea, ensembles, two_paths
from bootdqn.report.answers import deep_sea_answer
from bootdqn.report.bsuite_score import score_table
from bootdqn.report.claims import judged
from bootdqn.report.deep_sea import BSUITES_RULE, THIN, Cell
from bootdqn.report.deep_sea_claims import LEVEL, compared, episodes_said
from bootdqn.report.evidence import Evidence
from bootdqn.report.paper import RUNTIME_GROWTH, RUNTIME_MINUTES
from bootdqn.report.report import said_once
from bootdqn.report.statistics import said_chance
from bootdqn.report.tables import Table
from bootdqn.training.display import duration
from reproduction import studies

JUDGED_STUDIES = ("deep-sea", "deep-sea-small", "deep-sea-ablation", "deep-sea-frontier")
FASTEST_STRATEGIES = ("gain", "evoi:reduce=sum")
FIRST_PLANNED_SEED = 5
"""Of the paper's study: the seeds from this one on of `FASTEST_STRATEGIES` were chosen together, before any was run."""
DURATION_SIZES = (10, 20, 30)
LAST_EPISODES = 10


def markdown(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], text_columns: tuple[str, ...] = ()) -> str:
    """Return a Markdown table; numbers are aligned to the right."""
    return Table("", "", columns, rows, text_columns=text_columns).to_markdown()


def claims(_: str) -> str:
    """Judge the paper's claims by the runs of all studies; a run that several studies share counts once."""
    results = {
        (one.variant, one.size, one.cap, one.seed): one
        for study in JUDGED_STUDIES
        for one in studies.deep_sea_results(study)
    }
    evidence = Evidence.among(
        list(results.values()), studies.atari_runs("atari"), studies.measured_ensembles("ensembles")
    )
    return judged(evidence).without("rests on").to_markdown()


def answer(study: str) -> str:
    """Name the algorithm with the fewest episodes at the largest size."""
    return deep_sea_answer(studies.deep_sea_results(study))


def count(study: str) -> str:
    """Count the runs of a DeepSea study."""
    results = studies.deep_sea_results(study)
    sizes = ", ".join(str(size) for size in sorted({one.size for one in results}))
    caps = " or ".join(f"{cap:,}" for cap in sorted({one.cap for one in results}))
    per_cell = [len(cell.results) for cell in deep_sea.cells(results)]
    seeds = " to ".join(str(number) for number in sorted({min(per_cell), max(per_cell)}))
    solved = [one for one in results if one.solved_at_strict is not None]
    thin = sum(one.thin for one in solved)
    earlier = f", {thin} of them earlier by bsuite's own rule, which does not ask for ten good episodes" if thin else ""
    return (
        f"{len(results)} runs: {len({one.variant for one in results})} algorithms, N = {sizes}, {seeds} seeds a cell, "
        f"at most {caps} episodes. {len(solved)} were solved{earlier}."
    )


def by_size(study: str) -> str:
    """Return mean episodes and solved runs, one row for each size and one column for each algorithm."""
    cells = deep_sea.cells(studies.deep_sea_results(study))
    found = {(cell.size, label(cell.variant)): _episodes_and_solved(cell) for cell in cells}
    sizes, names = (list(dict.fromkeys(keys)) for keys in zip(*found, strict=True))
    return markdown(("N", *names), [(str(size), *(found[size, name] for name in names)) for size in sizes])


def each_seed(study: str) -> str:
    """Return the episodes of every seed, without the columns by bsuite's own rule, which are nearly the same."""
    return deep_sea.table(studies.deep_sea_results(study)).without(BSUITES_RULE, THIN).to_markdown()


def planned_seeds(study: str) -> str:
    """Compare Gain with EVOI on the seeds that were chosen before any of them was run."""
    results = [one for one in studies.deep_sea_results(study) if one.seed >= FIRST_PLANNED_SEED]
    cells = {(cell.size, cell.variant.strategy): cell for cell in deep_sea.cells(results)}
    rows = []
    for size in sorted({one.size for one in results}):
        gain, evoi = (cells[size, strategy] for strategy in FASTEST_STRATEGIES)
        evoi_first, p = compared(evoi, gain)
        fewer = ("EVOI" if evoi_first else "Gain") if p < LEVEL else "neither"
        rows.append((str(size), _episodes_and_solved(gain), _episodes_and_solved(evoi), fewer, said_chance(p)))
    columns = ("N", "Gain: episodes (solved)", "EVOI: episodes (solved)", "fewer by the test", "rank test")
    return markdown(columns, rows, text_columns=("fewer by the test",))


def _episodes_and_solved(cell: Cell) -> str:
    return f"{episodes_said(cell)} ({cell.solved}/{len(cell.results)})"


def bsuite_score(study: str) -> str:
    """Return bsuite's score of each algorithm, or its bounds."""
    table = score_table(studies.deep_sea_results(study), "score")
    return "Too few of bsuite's sizes were run for its score." if table is None else table.to_markdown()


def durations(study: str) -> str:
    """Return the speed of runs, the time to solve DeepSea, and the time to the cap, one column for each size."""
    rows = [["steps a second"], ["until Gain or EVOI (sum) has solved it"], ["until it is given up"]]
    for size in DURATION_SIZES:
        runs = [run for run in studies.read_study(study) if run.config["size"] == size]
        speeds = [run.summary["steps"] / run.summary["seconds"] for run in runs]
        fastest = [run for run in runs if run.config["strategy"] in FASTEST_STRATEGIES]
        solved = [run.summary["seconds"] for run in fastest if run.summary["solved_at_strict"]]
        unsolved = [run.summary["seconds"] for run in runs if not run.summary["solved_at_strict"]]
        cells = (_spread(speeds, "{:,.0f}".format), _spread(solved, duration), _spread(unsolved, duration))
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    columns = ("", *(f"N = {size}" for size in DURATION_SIZES))
    return markdown(columns, [tuple(row) for row in rows], text_columns=("",))


def _spread(values: list[float], text: Callable[[float], str]) -> str:
    return f"{text(median(values))} ({text(min(values))} to {text(max(values))}, {len(values)} runs)"


def rarity(study: str) -> str:
    """Return the rank correlations of visits and disagreement."""
    return ensembles.table(studies.measured_ensembles(study)).to_markdown()


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
    played, _ = said_once(studies.atari_runs(study))
    rows = [
        (
            run.game,
            atari.name_of(run.variant),
            str(run.seed),
            f"{run.frames[-1]:,}",
            ", ".join(f"{score:g}" for score in run.scores),
            ", ".join(f"{entropy:.2f}" for entropy in run.diversity["vote_entropy"]),
        )
        for run in sorted(played, key=lambda run: (run.game, run.variant.strategy, run.num_heads, run.seed))
    ]
    columns = ("game", "algorithm", "seed", "frames", "score of each evaluation", "vote entropy (nats)")
    return markdown(columns, rows, text_columns=("game", "algorithm"))


def learned(study: str) -> str:
    """Return the scores of each Atari run before and after learning, beside random play of the same game."""
    rows = []
    for run in sorted(studies.atari_runs(study), key=lambda run: (run.game, run.variant.strategy, run.num_heads)):
        random = studies.random_play_returns(run.game)
        before, after = studies.returns_before_and_after_learning(studies.RESULTS / study / run.name)
        scores = (
            f"{mean(random):.1f} ({len(random)})",
            f"{mean(before):.1f} ({len(before)})",
            f"{mean(after[-LAST_EPISODES:]):.1f}",
            f"{run.scores[-1]:.1f}",
        )
        rows.append((run.game, atari_algorithm(run.variant.strategy).label, str(run.num_heads), *scores))
    stages = ("random play (episodes)", "before the first update (episodes)", f"last {LAST_EPISODES} episodes")
    return markdown(("game", "algorithm", "K", *stages, "last vote"), rows, text_columns=("game", "algorithm"))


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
    return two_paths.table(two_paths.read_searches(studies.read_study(study))).to_markdown()
