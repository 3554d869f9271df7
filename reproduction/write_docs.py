"""Writes what the pages of docs say about our runs, and draws their figures, from the runs in `results/`.

A page is prose with blocks in it, each between `<!-- NAME -->` and `<!-- end -->`, whose content is replaced.
NAME is a folder there and what is wanted of it: `deep-sea table`, `deep-sea count`, `deep-sea figure`, ...

    python -m reproduction.write_docs           writes the pages and the figures
    python -m reproduction.write_docs --check   says whether the pages are what the runs say
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure

from bootdqn.config.train import default_settings
from bootdqn.config.variants import Variant, label, on_atari
from bootdqn.report import atari, deep_sea, ensembles, two_paths
from bootdqn.report.acting import Course, courses_by_task
from bootdqn.report.acting_figures import ACTING_CAPTION, acting
from bootdqn.report.answers import deep_sea_answer
from bootdqn.report.atari import Played, with_paper_heads
from bootdqn.report.atari_figures import Episode, heads, learning, scores
from bootdqn.report.bsuite_score import score_table
from bootdqn.report.claims import judged
from bootdqn.report.deep_sea import BSUITES_RULE, THIN, Result
from bootdqn.report.deep_sea_claims import LEVEL, compared, episodes_said
from bootdqn.report.deep_sea_figures import BY_SIZE_CAPTION, episodes_to_solve
from bootdqn.report.ensembles import Measured
from bootdqn.report.evidence import Evidence
from bootdqn.report.figures import to_png
from bootdqn.report.paper import RUNTIME_GROWTH, RUNTIME_MINUTES
from bootdqn.report.report import said_once
from bootdqn.report.runs import Run, read_runs
from bootdqn.report.statistics import said_chance
from bootdqn.report.tables import Table
from bootdqn.report.variant_figures import ABLATION_CAPTION, FRONTIERS_CAPTION, ablation, frontiers
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.display import duration

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reproduction/results"
RANDOM_PLAY = RESULTS / "atari-random"
DOCS = ROOT / "docs"
PAGES = (
    DOCS / "reproduction.md",
    DOCS / "what-helps.md",
    DOCS / "two-paths.md",
    DOCS / "speed.md",
    ROOT / "README.md",
)
BLOCK = re.compile(r"<!-- (?P<folder>[a-z0-9-]+) (?P<what>[a-z-]+) -->\n(?P<content>.*?)<!-- end -->", re.DOTALL)
LAST_EPISODES = 10
SIZES_TOLD = (10, 20, 30)
"""Grids whose runs are told how long they took."""
QUICK = ("gain", "evoi:reduce=sum")
"""The strategies that solve most of them."""
FIRST_PLANNED_SEED = 5
"""Of the paper's study: from here on the seeds of these two were decided on together."""


@cache
def runs_in(folder: str) -> list[Run]:
    """Return the runs of a folder."""
    return read_runs(RESULTS / folder, default_settings())[0]


@cache
def deep_sea_results(folder: str) -> list[Result]:
    """Return the finished DeepSea runs of a folder."""
    return deep_sea.read_results(run for run in runs_in(folder) if run.kind == "deep-sea")[0]


@cache
def atari_runs(folder: str) -> list[Played]:
    """Return the evaluated Atari runs of a folder."""
    return atari.read_played(run for run in runs_in(folder) if run.kind == "atari")[0]


def measured_ensembles(folder: str) -> list[Measured]:
    """Return what `ensembles.py` measured."""
    rows = json.loads((RESULTS / folder / "deep-sea.json").read_text(encoding="utf-8"))
    return [Measured(**row) for row in rows]


def kept_acting(folder: str) -> list[dict[str, Any]]:
    """Return what `acting.py` kept of each run."""
    found: list[dict[str, Any]] = json.loads((RESULTS / folder / "deep-sea.json").read_text(encoding="utf-8"))
    return found


def courses(folder: str) -> list[Course]:
    """Return how the agents that `acting.py` kept have acted."""
    rows = kept_acting(folder)
    return [
        Course(
            kind="deep-sea",
            task="DeepSea, N = 30",
            size=30,
            variant=Variant(row["strategy"]),
            steps=np.array(row["steps"], float),
            means={name: np.array(values) for name, values in row["means"].items()},
        )
        for row in rows
    ]


class ReplaySampling(NamedTuple):
    """A figure of a page."""

    draw: Callable[[str], Figure]
    """Draws it from the runs of a folder."""
    alt: str
    """What it shows, for those who do not see it."""
    caption: str

    @classmethod
    def of_episodes(cls, alt: str) -> Self:
        """Return the figure of episodes to solve DeepSea by the size of the grid."""
        return cls(lambda name: episodes_to_solve(deep_sea_results(name))[0], alt, BY_SIZE_CAPTION)

    @classmethod
    def of_rows(cls, alt: str) -> Self:
        """Return the figure of episodes to solve DeepSea with a row for each variant."""
        return cls(lambda name: ablation(deep_sea_results(name)), alt, ABLATION_CAPTION)


FIGURES = {
    ("deep-sea", "figure"): ReplaySampling.of_episodes(
        "Episodes to solve DeepSea against the size of the grid, the paper's study"
    ),
    ("deep-sea-small", "figure"): ReplaySampling.of_episodes(
        "Episodes to solve DeepSea against the size of the grid, five seeds of six strategies"
    ),
    ("deep-sea-ablation", "figure"): ReplaySampling.of_rows(
        "Episodes to solve DeepSea with priors, prioritised replay and votes, a row each"
    ),
    ("deep-sea-sensitivity", "figure"): ReplaySampling.of_rows(
        "Episodes to solve DeepSea under other choices than ours or the paper's, a row each"
    ),
    ("deep-sea-frontier", "figure"): ReplaySampling(
        lambda name: frontiers(deep_sea_results(name)),
        "Episodes to solve DeepSea up to N = 50, a panel for each strategy",
        FRONTIERS_CAPTION,
    ),
    ("acting", "figure"): ReplaySampling(
        lambda name: acting(courses(name)),
        "Gain and EVOI at N = 30 against steps: heads overruled, the EVOI of actions, and the disagreement of heads",
        ACTING_CAPTION,
    ),
    ("atari", "figure"): ReplaySampling(
        lambda name: learning_figure(name, "Freeway"),
        "Scores on Freeway against frames",
        "Freeway, EVOI, K = 10, one seed: each episode of training, each evaluation by vote, and random play.",
    ),
    ("atari-alien", "figure"): ReplaySampling(
        lambda name: scores(said_once(with_paper_heads(atari_runs(name)))[0]),
        "Scores of BootDQN and EVOI on Alien against frames",
        "Alien, K = 10, one seed: evaluations by vote. Random play is as the paper has it, and its own maximal "
        "scores, after two thousand times as many frames, are told at the top.",
    ),
    ("atari-alien-longer", "figure"): ReplaySampling(
        lambda name: scores(said_once(with_paper_heads(atari_runs(name)))[0]),
        "Scores of BootDQN and EVOI on Alien against frames, in longer runs",
        "Alien, K = 10, one seed, in bf16: evaluations by vote, ten episodes each. Random play is as the paper has it, "
        "and its own maximal scores, after hundreds of times as many frames, are told at the top.",
    ),
    ("atari-alien-longer", "acting-figure"): ReplaySampling(
        lambda name: acting(said_once(courses_by_task(runs_in(name))["Alien"])[0]),
        "BootDQN and EVOI on Alien against steps: heads overruled, the EVOI of actions, and the disagreement of heads",
        ACTING_CAPTION,
    ),
    ("atari-alien", "heads-figure"): ReplaySampling(
        lambda name: heads(said_once(atari_runs(name))[0]),
        "Scores of EVOI on Alien against frames, for each number of heads",
        "Alien, EVOI: evaluations by vote for each number of heads, one seed of each, and random play as the paper "
        "has it.",
    ),
}
"""The figures by the block that they stand in: a folder, and what is wanted of it."""


def rewritten(page: str) -> str:
    """Return the page with the content of every block replaced by what the runs say."""
    return BLOCK.sub(lambda found: f"<!-- {found['folder']} {found['what']} -->\n{block(found)}\n<!-- end -->", page)


def block(found: re.Match[str]) -> str:
    """Return what belongs into one block."""
    folder, what = found["folder"], found["what"]
    if drawing := FIGURES.get((folder, what)):
        return f"![{drawing.alt}](images/{image_of(found)})\n\n*{drawing.caption}*"
    if (folder, what) == ("all", "claims"):
        return claims().to_markdown()
    writers: dict[str, Callable[[str], str]] = {
        "answer": lambda name: deep_sea_answer(deep_sea_results(name)),
        "count": count,
        "table": lambda name: solved_table(name).to_markdown(),
        "disagreement": lambda name: disagreement_table(name).to_markdown(),
        "later-seeds": lambda name: later_seeds(name).to_markdown(),
        "score": score,
        "evaluations": lambda name: evaluations(atari_runs(name)).to_markdown(),
        "learned": lambda name: learned(name).to_markdown(),
        "speed": speed,
        "durations": lambda name: durations(name).to_markdown(),
        "measured": lambda name: ensembles.table(measured_ensembles(name)).to_markdown(),
        "found": lambda name: two_paths.table(searches(name)).to_markdown(),
    }
    return writers[what](folder)


def count(folder: str) -> str:
    """Say how much was run."""
    results = deep_sea_results(folder)
    sizes = sorted({result.size for result in results})
    caps = sorted({result.cap for result in results})
    seeds = [len(cell.results) for cell in deep_sea.cells(results)]
    limits = " or ".join(f"{cap:,}" for cap in caps)
    how_many = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
    solved = [result for result in results if result.solved_at_strict is not None]
    thin = sum(result.thin for result in solved)
    earlier = f", {thin} of them earlier by bsuite's own rule, which does not ask for ten good episodes" if thin else ""
    return (
        f"{len(results)} runs: {len({result.variant for result in results})} algorithms, N = "
        f"{', '.join(map(str, sizes))}, {how_many} seeds a cell, at most {limits} episodes. {len(solved)} were "
        f"solved{earlier}."
    )


def solved_table(folder: str) -> Table:
    """Return episodes to solve, without the columns by bsuite's own rule, which say nearly the same."""
    return replace(deep_sea.table(deep_sea_results(folder)).without(BSUITES_RULE, THIN), note="")


def later_seeds(folder: str) -> Table:
    """Compare Gain with EVOI by the seeds that were decided on before any of them was run."""
    rows = []
    results = [one for one in deep_sea_results(folder) if one.seed >= FIRST_PLANNED_SEED]
    found = {(cell.size, cell.variant.strategy): cell for cell in deep_sea.cells(results)}
    for size in sorted({one.size for one in results}):
        gain, evoi = (found[size, strategy] for strategy in QUICK)
        fewer, chance = compared(evoi, gain)
        ahead = "EVOI" if fewer else "Gain"
        told = [f"{episodes_said(cell)} ({cell.solved}/{len(cell.results)})" for cell in (gain, evoi)]
        rows.append((str(size), *told, ahead if chance < LEVEL else "neither", said_chance(chance)))
    columns = ("N", "Gain: episodes (solved)", "EVOI: episodes (solved)", "quicker by the test", "rank test")
    return Table("later-seeds", "Seeds decided on together", columns, rows, text_columns=("quicker by the test",))


def disagreement_table(folder: str) -> Table:
    """Return how far heads were apart at first, at their closest and in the end, on average over runs."""
    groups: dict[tuple[str, str], list[dict[str, list[float]]]] = {}
    for row in kept_acting(folder):
        solved = "no" if row["solved_at_strict"] is None else "yes"
        groups.setdefault((label(Variant(row["strategy"])), solved), []).append(row["means"])
    rows = []
    for (name, solved), runs in groups.items():
        apart = [run["disagreement"] for run in runs]
        closest = [values.index(min(values)) for values in apart]
        overruled = [run["overruled"][at] for run, at in zip(runs, closest, strict=True)]
        told = [mean(values[0] for values in apart), mean(map(min, apart)), mean(values[-1] for values in apart)]
        rows.append(
            (name, solved, str(len(runs)), *(f"{value:.4f}" for value in told), f"{100 * mean(overruled):.0f} %")
        )
    columns = ("algorithm", "solved", "runs", "at first", "at their closest", "in the end", "overruled at the closest")
    return Table("disagreement", "Disagreement", columns, rows, text_columns=("algorithm",))


def score(folder: str) -> str:
    """Return bsuite's score of each algorithm, or what is known of it."""
    table = score_table(deep_sea_results(folder), "score")
    return "Too few of bsuite's sizes were run for its score." if table is None else table.to_markdown()


def evaluations(played: list[Played]) -> Table:
    """Return every evaluation of Atari runs, one row a run, named without the settings that all have in common."""
    played, _ = said_once(played)
    rows = [
        (
            run.game,
            atari.name_of(run.variant),
            str(run.seed),
            f"{run.frames[-1]:,}",
            ", ".join(f"{value:g}" for value in run.scores),
            ", ".join(f"{value:.2f}" for value in run.diversity["vote_entropy"]),
        )
        for run in sorted(played, key=lambda run: (run.game, run.variant.strategy, run.num_heads, run.seed))
    ]
    columns = ("game", "algorithm", "seed", "frames", "score of each evaluation", "vote entropy (nats)")
    return Table("evaluations", "Evaluations", columns, rows, text_columns=("game", "algorithm"))


def learned(folder: str) -> Table:
    """Return what each Atari run scored before and after it learned, beside random play of the same game."""
    rows = []
    for run in sorted(atari_runs(folder), key=lambda run: (run.game, run.variant.strategy, run.num_heads)):
        before, after = _returns_before_and_after_learning(RESULTS / folder / run.name)
        random, _ = _returns_before_and_after_learning(RANDOM_PLAY / run.game)
        rows.append(
            (
                run.game,
                on_atari(run.variant.strategy).label,
                str(run.num_heads),
                f"{mean(random):.1f} ({len(random)})",
                f"{mean(before):.1f} ({len(before)})",
                f"{mean(after[-LAST_EPISODES:]):.1f}",
                f"{run.scores[-1]:.1f}",
            )
        )
    columns = (
        "game",
        "algorithm",
        "K",
        "random play (episodes)",
        "before the first update (episodes)",
        f"last {LAST_EPISODES} episodes",
        "last vote",
    )
    return Table("learned", "What was learned", columns, rows, text_columns=("game", "algorithm"))


def _returns_before_and_after_learning(path: Path) -> tuple[list[float], list[float]]:
    run = RunDirectory(path)
    starts = run.read_config()["learning_starts"]
    episodes = list(run.read_metrics("episode"))
    before = [record["return"] for record in episodes if record["step"] <= starts]
    return before, [record["return"] for record in episodes if record["step"] > starts]


def learning_figure(folder: str, name: str) -> Figure:
    """Draw the run `name` from its first frame to its last."""
    played = next(run for run in atari_runs(folder) if run.name == name)
    run = RunDirectory(RESULTS / folder / name)
    config = run.read_config()
    skip = config["frame_skip"]
    episodes = [Episode(skip * record["step"], record["return"]) for record in run.read_metrics("episode")]
    random, _ = _returns_before_and_after_learning(RANDOM_PLAY / played.game)
    return learning(played, episodes, skip * config["learning_starts"], mean(random))


def searches(folder: str) -> list[two_paths.Search]:
    """Return the runs on the two paths."""
    return two_paths.read_searches(runs_in(folder))


def speed(folder: str) -> str:
    """Return frames a second by number of heads and strategy, as `benchmarks/atari.py --json` wrote them."""
    measured = json.loads((RESULTS / folder / "atari.json").read_text(encoding="utf-8"))
    rows, before = [], None
    for k, frames in measured["by_heads"].items():
        growth = "" if before is None else f"{100 * (before / frames - 1):+.0f} %"
        papers = f"{RUNTIME_GROWTH[int(k)]:+d} %" if int(k) in RUNTIME_GROWTH else ""
        rows.append((k, f"{frames:.0f}", growth, papers))
        before = frames
    table = Table("speed", "Speed by K", ("K", "frames/s", "more time than the K before", "the paper"), rows)
    return f"{table.to_markdown()}\n\n{_growth(measured['by_heads'])} {_by_strategy(measured)} {_versus(measured)}"


def _growth(by_heads: dict[str, float]) -> str:
    """Say how much longer the most heads take than the fewest."""
    few, *_, many = by_heads
    papers = RUNTIME_MINUTES[int(many)] / RUNTIME_MINUTES[int(few)]
    ours = by_heads[few] / by_heads[many]
    return f"From K = {few} to {many} the time grows {ours:.2f} times; in the paper, on a GPU, {papers:.2f} times."


def _by_strategy(measured: dict[str, Any]) -> str:
    """Say how fast each strategy is, and how far equal measurements are apart."""
    by_strategy = measured["by_strategy"]
    told = ", ".join(f"{name} {frames:.0f}" for name, frames in by_strategy.items())
    equal = (measured["by_heads"]["10"], by_strategy["evoi"], measured["versus"]["fp32"])
    times = by_strategy["greedy"] / by_strategy["evoi"]
    return (
        f"Frames/s by strategy at K = 10: {told}. BootDQN is {times:.2f} times as fast as EVOI (in the paper about 1.1 "
        f"times), where three measurements of EVOI in fp32, minutes apart, are up to "
        f"{100 * (max(equal) / min(equal) - 1):.0f} % apart."
    )


def _versus(measured: dict[str, Any]) -> str:
    """Say how fast EVOI is in each precision, beside a plain implementation."""
    plain = measured["versus"]["plain"]
    told = " and ".join(
        f"{frames:.0f} in {precision} ({frames / plain:.2f} times)"
        for precision, frames in measured["versus"].items()
        if precision != "plain"
    )
    return (
        f"EVOI at K = 10, beside {plain:.0f} frames/s of a plain implementation: {told}. The processor had "
        f"{measured['instructions']} instructions."
    )


def durations(folder: str) -> Table:
    """Return how long runs took: their speed, the time until they solved it, and until they were given up."""
    runs = [run for run in runs_in(folder) if run.kind == "deep-sea"]
    of_size = {size: [run for run in runs if run.config["size"] == size] for size in SIZES_TOLD}
    speeds, to_solve, to_the_cap = (
        ["steps a second"],
        ["until Gain or EVOI (sum) has solved it"],
        ["until it is given up"],
    )
    for found in of_size.values():
        solved = [run for run in found if run.summary["solved_at_strict"] and run.config["strategy"] in QUICK]
        unsolved = [run for run in found if not run.summary["solved_at_strict"]]
        speeds.append(_spread([run.summary["steps"] / run.summary["seconds"] for run in found], "{:,.0f}".format))
        to_solve.append(_spread([run.summary["seconds"] for run in solved], duration))
        to_the_cap.append(_spread([run.summary["seconds"] for run in unsolved], duration))
    columns = ("", *(f"N = {size}" for size in SIZES_TOLD))
    rows = [tuple(row) for row in (speeds, to_solve, to_the_cap)]
    return Table("durations", "How long a run takes", columns, rows, text_columns=("",))


def _spread(values: list[float], shown: Callable[[float], str]) -> str:
    return f"{shown(median(values))} ({shown(min(values))} to {shown(max(values))}, {len(values)} runs)"


def claims() -> Table:
    """Return the paper's claims, judged by all the runs."""
    folders = ("deep-sea", "deep-sea-small", "deep-sea-ablation", "deep-sea-frontier")
    found = {
        (one.variant, one.size, one.cap, one.seed): one for folder in folders for one in deep_sea_results(folder)
    }  # a seed counts once, in whichever folders it is
    evidence = Evidence.among(list(found.values()), atari_runs("atari"), measured_ensembles("ensembles"))
    return judged(evidence).without("rests on")


def figures(page: str) -> Iterator[tuple[Path, bytes]]:
    """Draw the figures that the page shows."""
    for found in BLOCK.finditer(page):
        if drawing := FIGURES.get((found["folder"], found["what"])):
            yield DOCS / "images" / image_of(found), to_png(drawing.draw(found["folder"]))


def image_of(found: re.Match[str]) -> str:
    """Return the name of the image in a block: a folder's own figure is named by the folder alone."""
    which = found["what"].removesuffix("figure").removesuffix("-")
    return f"reproduction-{found['folder']}{'-' if which else ''}{which}.png"


def main() -> int:
    """Write, or with `--check` compare."""
    exit_code = 0
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        written = rewritten(page)
        if "--check" in sys.argv[1:]:
            print(f"{path.name} is {'what' if written == page else 'NOT what'} the runs say")
            exit_code |= written != page
            continue
        path.write_text(written, encoding="utf-8")
        for image, content in figures(page):
            image.write_bytes(content)
            print(image.relative_to(ROOT))
        print(path.relative_to(ROOT))
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
