"""Write the numbers and figures of the docs from the runs in `reproduction/results`.

    python -m reproduction.write_docs           write the pages and the figures
    python -m reproduction.write_docs --check   exit with 1 if a page is out of date

A generated block stands between `<!-- STUDY NAME -->` and `<!-- end -->`. `BLOCKS` lists all of them.
"""

import re
import sys
from collections.abc import Callable
from os.path import relpath
from pathlib import Path

from bootdqn.reports import atari
from bootdqn.reports.atari_heads import runtime_table
from bootdqn.reports.style import to_png
from reproduction import figures, readings, tables
from reproduction.clusters import clusters_table
from reproduction.figures import DocsFigure
from reproduction.frontier import scored_runs
from reproduction.minatar_learning_rate import learning_rates
from reproduction.minigrid import doorkey_table, tasks_table
from reproduction.preset_comparison import preset_table
from reproduction.studies import ROOT, has_runs
from reproduction.swing_up import swing_up_table

VERDICT = "docs/reproduction.md"
DEEP_SEA = "docs/reproduction/deep-sea.md"
EVERY_STEP = "docs/reproduction/deep-sea-every-step.md"
CHOICES = "docs/reproduction/deep-sea-choices.md"
ENSEMBLES = "docs/reproduction/ensembles.md"
ATARI = "docs/reproduction/atari.md"
MINATAR = "docs/minatar.md"
BSUITE, MINIGRID = "docs/bsuite.md", "docs/minigrid.md"
PRESETS = "docs/presets.md"
ANALOGUES = "docs/reproduction/minatar.md"
SPEED, SPEED_ATARI = "docs/speed.md", "docs/speed-atari.md"
WHAT_HELPS = "docs/what-helps.md"
SEARCH = "docs/reproduction/deep-sea-search.md"
FRONTIER = "docs/reproduction/deep-sea-frontier.md"

BLOCKS: list[tuple[str, str, Callable[[str], str] | DocsFigure]] = [
    ("README.md", "deep-sea answer", tables.answer),
    (VERDICT, "all claims", tables.claims),
    (VERDICT, "all plans", tables.every_plan),
    (DEEP_SEA, "deep-sea answer", tables.answer),
    (DEEP_SEA, "deep-sea figure", readings.FIGURE),
    (DEEP_SEA, "deep-sea verdicts", readings.verdicts_table),
    (DEEP_SEA, "deep-sea by-size", tables.by_size),
    (DEEP_SEA, "deep-sea count", tables.count),
    (DEEP_SEA, "deep-sea recently", readings.recently_table),
    (DEEP_SEA, "deep-sea each-seed", tables.each_seed),
    (EVERY_STEP, "deep-sea-every-step count", tables.count),
    (EVERY_STEP, "deep-sea-every-step answer", tables.answer),
    (EVERY_STEP, "deep-sea-every-step figure", figures.DEEP_SEA_EVERY_STEP),
    (EVERY_STEP, "deep-sea-every-step by-size", tables.by_size),
    (EVERY_STEP, "deep-sea-every-step planned-seeds", tables.planned_seeds),
    (EVERY_STEP, "deep-sea-every-step each-seed", tables.each_seed),
    (EVERY_STEP, "deep-sea-small count", tables.count),
    (EVERY_STEP, "deep-sea-small answer", tables.answer),
    (EVERY_STEP, "deep-sea-small figure", figures.DEEP_SEA_SMALL),
    (EVERY_STEP, "deep-sea-small by-size", tables.by_size),
    (CHOICES, "deep-sea-sensitivity count", tables.count),
    (CHOICES, "deep-sea-sensitivity figure", figures.CHOICES),
    (CHOICES, "deep-sea-sensitivity each-seed", tables.each_seed),
    (ENSEMBLES, "ensembles rarity", tables.rarity),
    (ENSEMBLES, "acting figure", figures.ACTING),
    (ENSEMBLES, "acting disagreement", tables.disagreement),
    (ATARI, "atari learned", tables.learned),
    (ATARI, "atari evaluations", tables.evaluations),
    (ATARI, "atari figure", figures.FREEWAY),
    (ATARI, "atari-alien learned", tables.learned),
    (ATARI, "atari-alien evaluations", tables.evaluations),
    (ATARI, "atari-alien figure", figures.ALIEN),
    (ATARI, "atari-alien heads-figure", figures.ALIEN_HEADS),
    (ATARI, "atari-alien-longer evaluations", tables.evaluations),
    (ATARI, "atari-alien-longer figure", figures.ALIEN_LONGER),
    (ATARI, "atari-alien-longer acting-figure", figures.ALIEN_ACTING),
    (MINATAR, "minatar-learning-rate choice", learning_rates),
    (ANALOGUES, "paper-minatar claims", tables.minatar_claims),
    (ANALOGUES, "paper-minatar count", tables.finished_of_plan),
    (ANALOGUES, "paper-minatar figure", figures.MINATAR_SCORES),
    (ANALOGUES, "paper-minatar maximal", tables.of_minatar(atari.maximal_scores)),
    (ANALOGUES, "paper-minatar normalised", tables.of_minatar(atari.normalised_scores)),
    (ANALOGUES, "paper-minatar profiles-figure", figures.MINATAR_PROFILES),
    (ANALOGUES, "paper-minatar improvement", tables.of_minatar(atari.improvements)),
    (ANALOGUES, "paper-minatar entropy-figure", figures.MINATAR_ENTROPY),
    (ANALOGUES, "paper-minatar diversity", tables.of_minatar(atari.vote_diversity)),
    (ANALOGUES, "minatar-heads count", tables.finished_of_plan),
    (ANALOGUES, "minatar-heads figure", figures.MINATAR_HEADS),
    (ANALOGUES, "minatar-heads runtime", tables.of_minatar(runtime_table)),
    (BSUITE, "bsuite-swingup figure", figures.SWING_UP),
    (BSUITE, "bsuite-swingup returns", swing_up_table),
    (MINIGRID, "minigrid-doorkey figure", figures.DOORKEY),
    (MINIGRID, "minigrid-doorkey scores", doorkey_table),
    (MINIGRID, "minigrid-others scores", tasks_table),
    (MINIGRID, "minigrid-epsilon scores", doorkey_table),
    (MINIGRID, "minigrid-search scores", doorkey_table),
    (SPEED, "speed deepsea", tables.speed_rows("deepsea")),
    (SPEED, "speed minatar", tables.speed_rows("minatar")),
    (SPEED_ATARI, "speed atari", tables.speed_rows("atari")),
    (SPEED, "speed replay", tables.speed_rows("replay")),
    (SPEED_ATARI, "speed by-heads", tables.speed_by_heads),
    (SPEED_ATARI, "speed by-strategy", tables.speed_by_strategy),
    (SPEED, "deep-sea-every-step durations", tables.durations),
    (SEARCH, "deep-sea-search count", tables.count),
    (SEARCH, "deep-sea-search each-seed", tables.each_seed),
    (WHAT_HELPS, "deep-sea-explorer figure", figures.EXPLORER),
    (SEARCH, "deep-sea-explorer count", tables.count),
    (WHAT_HELPS, "deep-sea-explorer score", tables.bsuite_score),
    (WHAT_HELPS, "deep-sea-no-prior score", tables.bsuite_score),
    (SEARCH, "deep-sea-explorer each-seed", tables.each_seed),
    (SEARCH, "deep-sea-no-prior count", tables.count),
    (SEARCH, "deep-sea-no-prior each-seed", tables.each_seed),
    (WHAT_HELPS, "deep-sea-score score", lambda _: tables.score_of(scored_runs())),
    (WHAT_HELPS, "deep-sea-score by-size", lambda _: tables.by_size_of(scored_runs())),
    (SEARCH, "deep-sea-large count", tables.count),
    (SEARCH, "deep-sea-large each-seed", tables.each_seed),
    (PRESETS, "explorer-harm scores", preset_table),
    (PRESETS, "explorer-harm-minatar scores", preset_table),
    (FRONTIER, "deep-sea-ablation count", tables.count),
    (FRONTIER, "deep-sea-ablation figure", figures.ABLATION),
    (FRONTIER, "deep-sea-ablation each-seed", tables.each_seed),
    (FRONTIER, "deep-sea-frontier count", tables.count),
    (FRONTIER, "deep-sea-frontier figure", figures.FRONTIER),
    (FRONTIER, "deep-sea-frontier each-seed", tables.each_seed),
    (FRONTIER, "deep-sea-frontier score", tables.bsuite_score),
    (FRONTIER, "deep-sea-frontier laws", tables.scaling_laws),
    ("docs/two-paths.md", "two-paths found", tables.two_paths_found),
    ("docs/cluster.md", "paper-atari clusters", clusters_table),
]
"""Page, block, and its content: a figure, or a function that takes the study (the block's first word).

The figures of a study without runs are left out.
"""
PAGES = list(dict.fromkeys(page for page, _, _ in BLOCKS))
BLOCK = re.compile(r"<!-- (?P<name>[a-z0-9-]+ [a-z-]+) -->\n(?P<content>.*?)<!-- end -->", re.DOTALL)


def rewrite(page: str, text: str) -> str:
    """Return the text of a page with the content of every block replaced."""
    contents = {name: content for listed, name, content in BLOCKS if listed == page}

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        content = contents[name]
        if isinstance(content, DocsFigure) and not has_runs(study_of(name)):
            written = ""
        elif isinstance(content, DocsFigure):
            image = relpath(image_of(name), (ROOT / page).parent)
            written = f"![{content.alt}]({image})\n\n*{content.caption}*"
        else:
            written = content(study_of(name))
        return f"<!-- {name} -->\n{written}\n<!-- end -->" if written else f"<!-- {name} -->\n<!-- end -->"

    return BLOCK.sub(block, text)


def study_of(name: str) -> str:
    """Return the study of a block."""
    return name.split()[0]


def image_of(name: str) -> Path:
    """Return the image file of a figure's block: `deep-sea figure` is in `reproduction-deep-sea.png`."""
    stem = name.replace(" ", "-").removesuffix("figure").removesuffix("-")
    return ROOT / f"docs/images/reproduction-{stem}.png"


def plot_figures() -> dict[Path, bytes]:
    """Return the content of every image file."""
    return {
        image_of(name): to_png(content.plot(study_of(name)))
        for _, name, content in BLOCKS
        if isinstance(content, DocsFigure) and has_runs(study_of(name))
    }


def main() -> int:
    """Write the docs, or with `--check` compare."""
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    rewritten = {page: rewrite(page, text) for page, text in texts.items()}
    stale = [page for page in PAGES if rewritten[page] != texts[page]]
    if "--check" in sys.argv[1:]:
        print(
            "\n".join(f"{page} is out of date; run make reproduction" for page in stale) or "every page is up to date"
        )
        return 1 if stale else 0
    for page in stale:
        (ROOT / page).write_text(rewritten[page], encoding="utf-8")
    for image, content in plot_figures().items():
        image.write_bytes(content)
    print(f"{len(PAGES)} pages, {len(stale)} of them changed; figures in docs/images")
    return 0


if __name__ == "__main__":
    sys.exit(main())
