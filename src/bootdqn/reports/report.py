"""Write a report on directories of runs: one self-contained page, with its figures and tables beside it as files."""

import importlib.util
import io
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from bootdqn import __version__
from bootdqn.common.errors import UsageError, WriteError, os_error_reason
from bootdqn.common.files import make_directory, write_bytes_atomically, write_text_atomically
from bootdqn.common.text import escape_unprintable, format_count
from bootdqn.config.variants import Variant, label
from bootdqn.reports import (
    ablation_figures,
    action_statistics,
    atari,
    atari_figures,
    atari_heads,
    bsuite,
    bsuite_figures,
    deep_sea,
    deep_sea_figures,
    gymnasium,
    scaling,
)
from bootdqn.reports.comparisons import baseline_table, comparisons_table
from bootdqn.reports.conclusions import headline
from bootdqn.reports.page import Heading, figure_html, page
from bootdqn.reports.report_data import ReportData, load_report_data, shared_settings, without_settings
from bootdqn.reports.style import UNFINISHED_CAPTION, missing_lines, to_png, to_svg, variant_styles
from bootdqn.reports.suites import SUITES, Suite
from bootdqn.reports.tables import Table
from bootdqn.runs.source import source_of

MAX_CURVES = 8
"""Variants in a figure that has no other way to show them."""
MAX_NAMES = 3
"""Directories, or tasks, that the title names one by one."""
MAX_ROWS = 40
"""Rows of the comparisons with the baseline that need no click."""
MAX_NAME_LENGTH = 80
"""Letters of an environment and its options in the name of a file."""


class SavedFigure(NamedTuple):
    """A figure in both its formats."""

    svg: str
    png: bytes


@dataclass
class Content:
    """The sections of the page, and the figures and tables to write beside it."""

    sections: list[tuple[str, str]] = field(default_factory=list)
    """Titles, and what stands below them as HTML."""
    figures: dict[str, SavedFigure] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row for each run, as `load_results` returns them, and which of them count."""

    def figure(self, name: str, figure: Figure, caption: str) -> str:
        """Keep a figure and return it for the page."""
        self.figures[name] = SavedFigure(to_svg(figure), to_png(figure))
        return figure_html(self.figures[name].svg, caption)

    def table(self, table: Table | None, *, stacked: bool = False, max_rows: int | None = None) -> str:
        """Keep a table and return it for the page; `stacked` and `max_rows` as for `Table.to_html`."""
        if table is None:
            return ""
        self.tables[table.name] = table
        return table.to_html(stacked=stacked, max_rows=max_rows)


def default_page(roots: Sequence[Path]) -> Path:
    """Return where the page goes: report.html in the directory, or for several in the working directory."""
    return (roots[0] if len(roots) == 1 else Path()) / "report.html"


def write_report(root: Path | Sequence[Path], out: Path, baseline: str | None = None) -> Path:
    """Write the report on the runs below `root` to the page `out`, and its figures and tables to a directory beside it.

    Args:
        root: Where the runs are: a directory, or several.
        out: The page.
        baseline: Label of the algorithm that every other is compared with (None: BootDQN).

    Raises:
        UsageError: There is no such directory, or no run in it, or no algorithm with the label.
        WriteError: The page, or a file beside it, cannot be written.
    """
    roots = root if isinstance(root, Sequence) else [root]
    data = load_report_data(roots)
    where = escape_unprintable(", ".join(map(str, roots)))
    if data.runs.empty:
        raise UsageError(f"there is no run in {where}: a run is a directory with a config.json")
    content = Content(runs=data.runs.drop(columns="variant"))
    deep_sea_runs = _add_deep_sea(content, data)
    bsuite_scores = _add_bsuite(content, data)
    evaluations = {suite: _add_games(content, data, suite) for suite in SUITES}
    gym_runs = _add_gym(content, data)
    _add_acting(content, data)
    _add_not_counted(content, data.runs)
    against = baseline_table(deep_sea_runs, evaluations, gym_runs, baseline)
    if against is not None:
        content.sections.insert(0, ("Comparisons", content.table(against, stacked=True, max_rows=MAX_ROWS)))
    heading = Heading(
        _title(roots, data.runs),
        headline(deep_sea_runs, bsuite_scores, evaluations, gym_runs),
        _facts(data.runs, roots, out, baseline),
    )
    comparison = content.table(comparisons_table(deep_sea_runs, evaluations, gym_runs), stacked=True)
    _write(out, page(heading, comparison, content.sections), content)
    return out


def _title(roots: Sequence[Path], runs: pd.DataFrame) -> str:
    """Return the name of the experiment: its directories, and the tasks or how many they are."""
    names = " and ".join(escape_unprintable(root.resolve().name) for root in roots[:MAX_NAMES])
    names += f" and {format_count(len(roots) - MAX_NAMES, 'further directory')}" if len(roots) > MAX_NAMES else ""
    tasks = list(dict.fromkeys(runs.task.dropna()))
    sizes = sorted(map(int, runs["size"].dropna().unique()))
    if sizes and set(runs.environment.dropna()) == {"deep-sea"}:
        listed = f"DeepSea, N = {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else "")
    else:
        listed = ", ".join(tasks) if len(tasks) <= MAX_NAMES else format_count(len(tasks), "task")
    return f"{names}: {listed}" if listed else names


def _facts(runs: pd.DataFrame, roots: Sequence[Path], out: Path, baseline: str | None) -> str:
    """Return the number of runs and seeds, the date, the version and commit, and the command of this report."""
    where = escape_unprintable(", ".join(map(str, roots)))
    counted = runs[runs.counted]
    facts = [f"{len(counted)} of {format_count(len(runs), 'run')} in {where}"]
    if len(counted):
        facts[0] += f", {format_count(counted.seed.nunique(), 'seed')}"
    commit = source_of(Path(__file__).parents[1])
    at = f" at commit {commit['commit'][:10]}{' with changes' if commit['dirty'] else ''}" if commit["commit"] else ""
    facts.append(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, bootdqn {__version__}{at}")
    against = [] if baseline is None else ["--baseline", baseline]
    facts.append(escape_unprintable(shlex.join(["bootdqn", "report", *map(str, roots), *against, "--out", str(out)])))
    return "; ".join(facts) + "."


def _add_deep_sea(content: Content, data: ReportData) -> pd.DataFrame:
    """Add a section for each cap of the runs on DeepSea, and return those that count."""
    with_curve = data.runs.run.isin(data.regret.run)
    runs = data.runs[(data.runs.environment == "deep-sea") & (data.runs.counted | with_curve)]
    shared = shared_settings(runs.variant)
    runs = without_settings(runs, shared)
    regret = data.regret.merge(runs[["run", "variant", "size", "budget", "finished"]], on="run")
    by_cap = deep_sea.by_cap(runs)
    for cap in by_cap:
        suffix = "" if len(by_cap) == 1 else f"-cap-{cap}"
        group = runs[runs.counted & (runs.budget == cap)]
        parts = [
            "<p>One treasure, N steps to the right of the start; every step to the right costs a little, and one wrong "
            "step loses it. An agent that follows the rewards it sees never finds it.</p>",
            _shared_note(shared),
        ]
        if len(group):
            parts += [*_figures_of_variants(content, group, suffix), *_figures_by_size(content, group, suffix)]
        parts += _figures_of_regret(content, group, regret[regret.budget == cap], suffix)
        if len(group):
            parts.append(content.table(scaling.scaling_table(group, f"scaling{suffix}")))
            parts.append(content.table(bsuite.deep_sea_table(group, f"bsuite-score{suffix}")))
            parts.append(content.table(deep_sea.solve_table(group, f"deep-sea{suffix}")))
        content.sections.append((f"DeepSea, at most {cap:,} episodes", "".join(parts)))
    return runs[runs.counted]


def _figures_of_regret(content: Content, runs: pd.DataFrame, regret: pd.DataFrame, suffix: str) -> Iterator[str]:
    """Plot the running regret of runs with one cap, a figure for each size."""
    styles = variant_styles([*runs.variant, *set(regret.variant)])
    for number, size in enumerate(sorted(set(regret["size"]), reverse=True)):
        curves = regret[regret["size"] == size]
        variants = set(curves.variant)
        if len(variants) <= MAX_CURVES:
            caption = "The fraction of bad episodes so far, a line for each run whose metrics are here."
            caption += missing_lines(runs.variant[runs["size"] == size], variants)
            caption += "" if curves.finished.all() else f" {UNFINISHED_CAPTION}"
            name = f"deep-sea-regret{f'-n-{size}' if number else ''}{suffix}"
            yield content.figure(name, deep_sea_figures.running_regret(curves, styles), caption)


def _figures_by_size(content: Content, runs: pd.DataFrame, suffix: str) -> Iterator[str]:
    """Plot what a few algorithms did at each size."""
    if runs.variant.nunique() > MAX_CURVES:
        return
    yield content.figure(f"deep-sea{suffix}", *deep_sea_figures.episodes_figure(runs))
    if runs["size"].nunique() > 1 and deep_sea.cells(runs).fraction.nunique() > 1:
        figure = deep_sea_figures.solved_fraction(runs)
        yield content.figure(f"deep-sea-solved{suffix}", figure, "Runs that solved it, of all seeds.")


def _figures_of_variants(content: Content, runs: pd.DataFrame, suffix: str) -> Iterator[str]:
    """Plot how far each of many algorithms gets, and what each change of settings is worth."""
    many = runs.variant.nunique() > MAX_CURVES and runs["size"].nunique() > ablation_figures.MAX_SIZES
    if many or len(bsuite.deep_sea_scores(runs)):
        figure = ablation_figures.frontiers(runs)
        yield content.figure(f"deep-sea-frontier{suffix}", figure, ablation_figures.FRONTIERS_CAPTION)
    if ablation_figures.ablation_sizes(runs):
        figure = ablation_figures.ablation(runs)
        yield content.figure(f"deep-sea-ablation{suffix}", figure, ablation_figures.ABLATION_CAPTION)


def _shared_note(shared: Mapping[str, Any]) -> str:
    """Return the settings that all runs of a section share."""
    text = label(Variant("", tuple(shared.items()))).removeprefix(", ")
    return f"<p class='note'>All of these runs: {escape(text)}.</p>" if shared else ""


def _add_bsuite(content: Content, data: ReportData) -> pd.DataFrame:
    """Add the section about bsuite's experiments, and return the scores of each algorithm."""
    runs = bsuite.bsuite_runs(data)
    shared = shared_settings(runs.variant)
    runs = without_settings(runs, shared)
    scores = bsuite.experiment_scores(runs)
    if len(runs):
        parts = [_shared_note(shared), content.table(bsuite.scores_table(scores))]
        if runs.variant.nunique() <= MAX_CURVES:
            parts[1:1] = [content.figure("bsuite-radar", bsuite_figures.radar(scores), bsuite_figures.RADAR_CAPTION)]
            figure = bsuite_figures.settings(runs)
            parts.append(content.figure("bsuite-settings", figure, bsuite_figures.SETTINGS_CAPTION))
        content.sections.append(("bsuite's exploration experiments", "".join(parts)))
    return scores


ANALOGUES = "The paper has no runs on MinAtar: these are the analogues of its tables and figures on Atari."


def _add_games(content: Content, data: ReportData, suite: Suite) -> pd.DataFrame:
    """Add the section about Atari or MinAtar, and return the evaluations of the runs that count."""
    evaluations = atari.evaluations_of(data, suite)
    if evaluations.empty:
        return evaluations
    shared = shared_settings(evaluations.variant)
    evaluations = without_settings(evaluations, shared)
    runs = atari.with_paper_heads(evaluations)
    caption = (
        "Moving average over ten evaluations, or a tenth of them if they are fewer than a hundred; mean over seeds, "
        "shaded 95 % bootstrap intervals from three on."
    )
    of_paper = atari_figures.PAPER_SCORES_CAPTION if suite.in_paper else ""
    variants = atari.variants_of(runs)
    plotted = runs[runs.variant.isin(variants[:MAX_CURVES])]
    if len(variants) > MAX_CURVES:
        caption += f" Plotted are {MAX_CURVES} of {len(variants)} algorithms, in the paper's order."
    parts = [
        _shared_note(shared),
        "" if suite.in_paper else f"<p class='note'>{ANALOGUES}</p>",
        content.figure(
            f"{suite.kind}-scores",
            atari_figures.scores(plotted, suite),
            f"Evaluation score against {suite.unit}. {caption} {of_paper}",
        ),
        content.table(atari.maximal_scores(runs, suite)),
        content.table(normalised := atari.normalised_scores(runs, suite)),
    ]
    several_seeds = runs.groupby(["game", "variant"], sort=False).run.nunique().max() > 1
    if several_seeds and (improvements := atari.improvements(runs, suite)):
        parts.append(content.table(improvements))
        if normalised is not None:
            figure = atari_figures.profiles(plotted, suite)
            parts.append(
                content.figure(f"{suite.kind}-profiles", figure, f"Runs above each maximal {suite.normalised}.")
            )
    for measure, axis in (("vote_count_variance", "variance of vote counts"), ("vote_entropy", "vote entropy (nats)")):
        figure = atari_figures.diversity(plotted, measure, axis, suite)
        parts.append(content.figure(f"{suite.kind}-{measure.replace('_', '-')}", figure, f"Vote diversity. {caption}"))
    parts.append(content.table(atari.vote_diversity(runs, suite)))
    if atari_heads.by_heads(evaluations):
        figure = atari_figures.heads(evaluations, suite)
        parts.append(content.figure(f"{suite.kind}-heads", figure, f"Several numbers of heads. {caption}"))
        parts.append(content.table(atari_heads.runtime_table(evaluations, suite)))
    content.sections.append((suite.title, "".join(parts)))
    return evaluations


def _add_gym(content: Content, data: ReportData) -> pd.DataFrame:
    """Add the section about Gymnasium, and return the runs that count."""
    runs = gymnasium.gym_runs(data)
    shared = shared_settings(runs.variant)
    runs = without_settings(runs, shared)
    counted = runs[runs.counted]
    parts = [_shared_note(shared)]
    for (task, _), of_task in gymnasium.by_task(runs).items():
        if curves := gymnasium.learning_curves(of_task, data.returns, MAX_CURVES):
            parts.append(content.figure(_unused_name(content, "gym", task), *curves))
    parts.append(content.table(gymnasium.returns_table(counted) if len(counted) else None))
    if len(runs):
        content.sections.append(("Gymnasium", "".join(parts)))
    return counted


def _add_acting(content: Content, data: ReportData) -> None:
    """Plot how the agents acted, where their metrics tell it."""
    figures = []
    for task, of_task in action_statistics.runs_by_task(data).items():
        runs = without_settings(of_task, shared_settings(of_task.variant))
        plotted = runs[runs.has_line]
        if plotted.variant.nunique() <= MAX_CURVES:
            caption = action_statistics.ACTING_CAPTION + missing_lines(runs.variant, plotted.variant)
            caption += "" if plotted.finished.all() else f" {UNFINISHED_CAPTION}"
            figure = action_statistics.acting_figure(plotted, data.acting)
            figures.append(content.figure(_unused_name(content, "acting", task), figure, caption))
    if figures:
        content.sections.append(("How they acted", "".join(figures)))


def _unused_name(content: Content, what: str, task: str) -> str:
    """Return a name for a figure of a task that no other has: letters, digits and dashes."""
    name = f"{what}-" + re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:MAX_NAME_LENGTH]
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(name for name in names if name not in content.figures)


def _add_not_counted(content: Content, runs: pd.DataFrame) -> None:
    """Add the runs that do not count, or only in part, with the reason."""
    problems = runs[runs.problem != ""]
    if len(problems):
        title = "Runs that are not finished, unreadable, or do not count"
        rows = list(zip(problems.run, problems.problem, strict=True))
        table = Table("not-counted", title, ("run", "why"), rows, text_columns=("run", "why"))
        content.sections.append(("Not counted", content.table(table)))


def _write(out: Path, text: str, content: Content) -> None:
    """Write the page, and its figures and tables beside it."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(out, text)
        _write_files(content, out.with_name(f"{out.stem}_files"))
    except OSError as error:
        raise WriteError(f"the report cannot be written to {out.parent}: {os_error_reason(error)}") from error


def _write_files(content: Content, directory: Path) -> None:
    for path in (directory, directory / "figures", directory / "tables"):
        make_directory(path)  # below a run directory, perhaps, and there no link is followed
    for name, figure in content.figures.items():
        write_bytes_atomically(directory / "figures" / f"{name}.png", figure.png)
        write_text_atomically(directory / "figures" / f"{name}.svg", figure.svg)
    _write_runs(content.runs.assign(path=content.runs.path.map(escape_unprintable)), directory)
    writers: dict[str, Callable[[Table], str]] = {"csv": Table.to_csv, "tex": Table.to_latex}
    for name, table in content.tables.items():
        for suffix, write in writers.items():
            write_text_atomically(directory / "tables" / f"{name}.{suffix}", write(table))


def _write_runs(runs: pd.DataFrame, directory: Path) -> None:
    """Write a row for each run, numbers as numbers: as CSV, and where pyarrow is installed as Parquet."""
    write_text_atomically(directory / "runs.csv", runs.to_csv(index=False))
    if importlib.util.find_spec("pyarrow") is not None:
        buffer = io.BytesIO()
        runs.to_parquet(buffer, index=False, engine="pyarrow")
        write_bytes_atomically(directory / "runs.parquet", buffer.getvalue())
