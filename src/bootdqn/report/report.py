"""Any folder of runs into one self-contained page, with its figures and tables beside it as files."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from matplotlib.figure import Figure

from bootdqn.common.errors import UsageError, WriteError, reason_of
from bootdqn.common.files import make_directory, write_bytes_atomically, write_text_atomically
from bootdqn.common.text import format_count, printable
from bootdqn.config.variants import Variant, algorithm, atari_algorithm, label, unnamed_settings
from bootdqn.report import (
    acting_figures,
    atari,
    atari_figures,
    atari_heads,
    bsuite_score,
    deep_sea,
    deep_sea_figures,
    gym_figures,
    gym_runs,
    variant_figures,
)
from bootdqn.report.acting import Course, courses_by_task
from bootdqn.report.answers import answer
from bootdqn.report.atari import Played
from bootdqn.report.claims import CLAIMS, borne_on
from bootdqn.report.deep_sea import Curve, Result
from bootdqn.report.evidence import Evidence
from bootdqn.report.figures import SO_FAR, to_png, to_svg
from bootdqn.report.gym_runs import GymRun
from bootdqn.report.looks import looks, without_line
from bootdqn.report.page import page
from bootdqn.report.runs import Defaults, Run, Trouble, read_runs
from bootdqn.report.tables import Table

OfVariant = TypeVar("OfVariant", Result, Curve, Played, GymRun, Course)
MOST_CURVES = 8
"""Of a figure that has no other way to show them."""
LONGEST_NAME = 80
"""Letters of an environment and its options in the name of a file."""


class Drawn(NamedTuple):
    """A figure in both its forms."""

    svg: str
    png: bytes


@dataclass
class Content:
    """What goes on the page and into files."""

    sections: list[tuple[str, str]] = field(default_factory=list)
    """Titles, and what stands below them as HTML."""
    figures: dict[str, Drawn] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)

    def figure(self, name: str, figure: Figure, caption: str) -> str:
        """Keep a figure and return it for the page."""
        self.figures[name] = Drawn(to_svg(figure), to_png(figure))
        return f"<figure>{self.figures[name].svg}<figcaption>{escape(caption)}</figcaption></figure>"

    def table(self, table: Table | None) -> str:
        """Keep a table and return it for the page."""
        if table is None:
            return ""
        self.tables[table.name] = table
        return table.to_html()


def write_report(root: Path | Sequence[Path], out: Path, defaults: Defaults) -> Path:
    """Write the report on the runs below `root` to the page `out`, and its figures and tables to a folder beside it.

    Args:
        root: Where the runs are: a folder, or several.
        out: The page.
        defaults: The default settings of each environment: what differs from them has a name of its own.

    Raises:
        UsageError: There is no such folder, or no run in it.
        NotWrittenError: The page, or a file beside it, cannot be written.
    """
    roots = root if isinstance(root, Sequence) else [root]
    for one in roots:
        if not one.is_dir():
            raise UsageError(f"{one} is not a folder; name one that holds runs")
    runs, unreadable = read_runs(roots, defaults)
    where = printable(", ".join(map(str, roots)))
    if not runs and not unreadable:
        raise UsageError(f"there is no run in {where}: a run is a folder with a config.json")
    results, more = deep_sea.read_results(run for run in runs if run.kind == "deep-sea")
    played, yet_more = atari.read_played(run for run in runs if run.kind == "atari")
    in_gym, still_more = gym_runs.read_gym_runs(run for run in runs if run.kind == "gym")
    others = [Trouble(run.name, _not_drawn(run)) for run in runs if run.kind not in ("deep-sea", "atari", "gym")]
    troubles = unreadable + more + yet_more + still_more + others
    content = Content()
    evidence = Evidence.among(results, played)
    curves, in_part = deep_sea.regret_curves(run for run in runs if run.kind == "deep-sea")
    unfinished = gym_runs.read_unfinished(run for run in runs if run.kind == "gym")
    (results, aside), (curves, _) = said_once(results, curves), said_once(curves, results)
    _add_deep_sea(content, results, curves, aside)
    played, aside = said_once(played)
    _add_atari(content, played, aside)
    (in_gym, aside), (unfinished, _) = said_once(in_gym, unfinished), said_once(unfinished, in_gym)
    _add_gym(content, in_gym, unfinished, aside)
    _add_acting(content, runs)
    if any(run.kind in ("deep-sea", "atari") for run in runs):
        _add_claims(content, evidence)
    listed = {trouble.name for trouble in troubles}
    _add_troubles(content, troubles + [trouble for trouble in in_part if trouble.name not in listed])
    heading = (
        f"{len(results) + len(played) + len(in_gym)} of {format_count(len(runs) + len(unreadable), 'run')} in {where}"
    )
    _write(out, page(answer(results, played, in_gym), heading, content.sections), content)
    return out


def said_once(
    found: list[OfVariant], others: Sequence[Result | Curve | Played | GymRun | Course] = ()
) -> tuple[list[OfVariant], dict[str, Any]]:
    """Return results without the settings that all of them share and no label has a word for, and those settings.

    Args:
        found: The results.
        others: What is shown beside them, and has to share the settings, too.
    """
    settings = [set(one.variant.settings) for one in [*found, *others]]
    common = set.intersection(*settings) if settings else set()
    names = unnamed_settings(Variant("", tuple(common)))
    aside = {name: value for name, value in sorted(common) if name in names}
    return [replace(one, variant=one.variant.without(*aside)) for one in found], aside


def _not_drawn(run: Run) -> str:
    return f"the environment {run.kind!r}: this report is about DeepSea, Atari and Gymnasium"


def _add_deep_sea(content: Content, results: list[Result], curves: list[Curve], aside: dict[str, Any]) -> None:
    """Add what DeepSea has to show, a section for each cap."""
    caps = sorted({result.cap for result in results} | {curve.cap for curve in curves}, reverse=True)
    for cap in caps:
        suffix = "" if len(caps) == 1 else f"-cap-{cap}"
        group = [result for result in results if result.cap == cap]
        parts = [
            "<p>One treasure, N steps to the right of the start; every step to the right costs a little, and one wrong "
            "step loses it. An agent that follows the rewards it sees never finds it.</p>",
            _sentence(aside),
        ]
        if group:
            parts += [*_figures_of_variants(content, group, suffix), *_figures_by_size(content, group, suffix)]
        parts += _figures_of_regret(content, group, [curve for curve in curves if curve.cap == cap], suffix)
        if group:
            parts.append(content.table(bsuite_score.score_table(group, f"bsuite-score{suffix}")))
            parts.append(content.table(deep_sea.table(group, f"deep-sea{suffix}")))
        content.sections.append((f"DeepSea, at most {cap:,} episodes", "".join(parts)))


def _figures_of_regret(content: Content, group: list[Result], curves: list[Curve], suffix: str) -> Iterator[str]:
    """Draw the running regret of runs with one cap, a figure for each size."""
    shown = looks([*(result.variant for result in group), *(curve.variant for curve in curves)])
    for number, size in enumerate(sorted({curve.size for curve in curves}, reverse=True)):
        drawn = [curve for curve in curves if curve.size == size]
        variants = {curve.variant for curve in drawn}
        if len(variants) <= MOST_CURVES:
            caption = "The fraction of bad episodes so far, a line for each run whose records are here."
            caption += without_line((result.variant for result in group if result.size == size), variants)
            caption += "" if all(curve.finished for curve in drawn) else f" {SO_FAR}"
            name = f"deep-sea-regret{f'-n-{size}' if number else ''}{suffix}"
            yield content.figure(name, deep_sea_figures.running_regret(drawn, shown), caption)


def _figures_by_size(content: Content, group: list[Result], suffix: str) -> Iterator[str]:
    """Draw what a few algorithms did at each size."""
    if len({result.variant for result in group}) > MOST_CURVES:
        return
    yield content.figure(f"deep-sea{suffix}", *deep_sea_figures.episodes_to_solve(group))
    if len({result.size for result in group}) > 1:
        figure = deep_sea_figures.solved_fraction(group)
        yield content.figure(f"deep-sea-solved{suffix}", figure, "Runs that solved it, of all seeds.")


def _figures_of_variants(content: Content, group: list[Result], suffix: str) -> Iterator[str]:
    """Draw how far each of many algorithms gets, and what each change of settings is worth."""
    sizes = {result.size for result in group}
    many = len({result.variant for result in group}) > MOST_CURVES and len(sizes) > variant_figures.MOST_SIZES
    if many or bsuite_score.scored(group):
        figure = variant_figures.frontiers(group)
        yield content.figure(f"deep-sea-frontier{suffix}", figure, variant_figures.FRONTIERS_CAPTION)
    if variant_figures.ablation_sizes(group):
        figure = variant_figures.ablation(group)
        yield content.figure(f"deep-sea-ablation{suffix}", figure, variant_figures.ABLATION_CAPTION)


def _sentence(aside: dict[str, Any]) -> str:
    said = label(Variant("", tuple(aside.items()))).removeprefix(", ")
    return f"<p class='note'>All of these runs: {escape(said)}.</p>" if aside else ""


def _add_atari(content: Content, played: list[Played], aside: dict[str, Any]) -> None:
    if not played:
        return
    runs = atari.with_paper_heads(played)
    caption = (
        "Moving average over ten evaluations, or a tenth of them if they are fewer than a hundred; mean over seeds, "
        "shaded 95 % bootstrap intervals from three on."
    )
    parts = [
        _sentence(aside),
        content.figure(
            "atari-scores",
            atari_figures.scores(runs),
            f"Evaluation score against frames. {caption} {atari_figures.PAPERS_SCORES}",
        ),
        content.table(atari.maximal_scores(runs)),
        content.table(normalised := atari.normalised_scores(runs)),
    ]
    if improvements := atari.improvements(runs):
        parts.append(content.table(improvements))
        if normalised is not None:
            figure = atari_figures.profiles(runs)
            parts.append(content.figure("atari-profiles", figure, "Runs above each human-normalised maximal score."))
    for measure, axis in (("vote_count_variance", "variance of vote counts"), ("vote_entropy", "vote entropy (nats)")):
        figure = atari_figures.diversity(runs, measure, axis)
        parts.append(content.figure(f"atari-{measure.replace('_', '-')}", figure, f"Vote diversity. {caption}"))
    parts.append(content.table(atari.vote_diversity(runs)))
    if atari_heads.by_heads(played):
        parts.append(content.figure("atari-heads", atari_figures.heads(played), f"Several numbers of heads. {caption}"))
        parts.append(content.table(atari_heads.runtime(played)))
    content.sections.append(("Atari", "".join(parts)))


def _add_gym(content: Content, found: list[GymRun], unfinished: list[GymRun], aside: dict[str, Any]) -> None:
    tasks = gym_runs.by_task([*found, *unfinished])
    if tasks:
        parts = [_sentence(aside), *(_learning_curves(content, cells) for cells in tasks.values())]
        parts.append(content.table(gym_runs.table(found) if found else None))
        content.sections.append(("Gymnasium", "".join(parts)))


def _learning_curves(content: Content, cells: list[gym_runs.Cell]) -> str:
    curves = gym_figures.learning_curves(cells, MOST_CURVES)
    return content.figure(_name_of(content, "gym", cells[0].environment), *curves) if curves else ""


def _add_acting(content: Content, runs: list[Run]) -> None:
    """Draw how the agents acted, where their records tell it."""
    figures = []
    for task, found in courses_by_task(runs).items():
        courses, _ = said_once(found)
        drawn = [course for course in courses if course.has_line]
        variants = {course.variant for course in drawn}
        if len(variants) <= MOST_CURVES:
            named = atari_algorithm if drawn[0].kind == "atari" else algorithm
            caption = acting_figures.ACTING_CAPTION + without_line((one.variant for one in courses), variants, named)
            caption += "" if all(course.finished for course in drawn) else f" {SO_FAR}"
            figure = acting_figures.acting(courses)
            figures.append(content.figure(_name_of(content, "acting", task), figure, caption))
    if figures:
        content.sections.append(("How they acted", "".join(figures)))


def _name_of(content: Content, what: str, task: str) -> str:
    """Return a name for a figure of a task that no other has: letters, digits and dashes."""
    name = f"{what}-" + re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:LONGEST_NAME]
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(one for one in names if one not in content.figures)


def _add_claims(content: Content, evidence: Evidence) -> None:
    table, others = borne_on(evidence)
    note = (
        "<p>A claim counts as supported or contradicted only on as many seeds and frames as it takes: on Atari the "
        "paper's own, on DeepSea as many as an exact rank test needs to tell them apart. Everything else is said and "
        "left open. On Atari the means over seeds decide, without an interval, as in the paper, and within the frames "
        "that all compared runs of a game have; a lead in human-normalised score counts as supported from half the "
        "points that the paper claims.</p>"
    )
    silent = f"<p class='note'>These runs say nothing about {others} of the paper's {len(CLAIMS)} claims.</p>"
    parts = [note, content.table(table)] if table.rows else []
    content.sections.append(("Claims", "".join([*parts, silent] if others else parts)))


def _add_troubles(content: Content, troubles: list[Trouble]) -> None:
    if troubles:
        rows: list[tuple[str, ...]] = [(trouble.name, trouble.problem) for trouble in troubles]
        table = Table("not-counted", "Runs that are not finished, unreadable, or do not count", ("run", "why"), rows,
                      text_columns=("run", "why"))  # fmt: skip
        content.sections.append(("Not counted", content.table(table)))


def _write(out: Path, text: str, content: Content) -> None:
    """Write the page, and its figures and tables beside it."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(out, text)
        _write_files(content, out.with_name(f"{out.stem}_files"))
    except OSError as error:
        raise WriteError(f"the report cannot be written to {out.parent}: {reason_of(error)}") from error


def _write_files(content: Content, folder: Path) -> None:
    for directory in (folder, folder / "figures", folder / "tables"):
        make_directory(directory)  # below a run directory, perhaps, and there no link is followed
    for name, drawn in content.figures.items():
        write_bytes_atomically(folder / "figures" / f"{name}.png", drawn.png)
        write_text_atomically(folder / "figures" / f"{name}.svg", drawn.svg)
    writers: dict[str, Callable[[Table], str]] = {"csv": Table.to_csv, "tex": Table.to_latex}
    for name, table in content.tables.items():
        for suffix, write in writers.items():
            write_text_atomically(folder / "tables" / f"{name}.{suffix}", write(table))
