"""Running regret in the report: a line for each run, finished or not, among those of its cap and size."""

import re

import pytest

from bootdqn.config.variants import Variant
from bootdqn.reports import deep_sea_figures
from bootdqn.reports.report import write_report
from bootdqn.reports.style import UNFINISHED_CAPTION, variant_styles
from reference.run_directories import write_deep_sea


@pytest.fixture
def plotted(monkeypatch):
    """The curves of each figure that a report plots."""
    figures, plot = [], deep_sea_figures.running_regret
    monkeypatch.setattr(deep_sea_figures, "running_regret", lambda *given: figures.append(given[0]) or plot(*given))
    return figures


def curves_of(table):
    """Return the values of each curve in a figure."""
    return [tuple(curve.regret) for _, curve in table.groupby("run", sort=False)]


def report(root):
    write_report(root, root / "report.html")
    return (root / "report.html").read_text()


def names(root):
    return sorted(path.stem for path in (root / "report_files/figures").glob("deep-sea-regret*.png"))


def test_runs_of_one_cap_have_no_line_among_those_of_another(tmp_path, plotted):
    write_deep_sea(tmp_path / "a", cap=50, bad=[True, False, False, True])
    write_deep_sea(tmp_path / "b", cap=100, bad=[True, True])
    report(tmp_path)
    assert [curves_of(curves) for curves in plotted] == [[(1, 1)], [(1, 1 / 2, 1 / 3, 2 / 4)]]


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_an_unfinished_run_is_plotted_up_to_its_last_record(tmp_path, plotted, status):
    write_deep_sea(tmp_path / "run", bad=[True, False], status=status)
    page = report(tmp_path)
    (table,) = plotted
    assert (curves_of(table), set(table.finished)) == ([(1, 1 / 2)], {False})
    (caption,) = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert caption.endswith(UNFINISHED_CAPTION)
    assert "There is nothing to compare yet" in page
    figure = deep_sea_figures.running_regret(table, variant_styles(table.variant))
    _, end, _ = figure.axes[0].get_lines()
    assert (end.get_xdata().tolist(), end.get_marker(), end.get_markerfacecolor()) == ([2], "o", "white")


def test_a_run_killed_without_a_summary_is_plotted_too(tmp_path, plotted):
    write_deep_sea(tmp_path / "run", bad=[True, False])
    (tmp_path / "run/summary.json").unlink()
    report(tmp_path)
    (table,) = plotted
    assert (curves_of(table), set(table.finished)) == ([(1, 1 / 2)], {False})


def test_a_larger_size_that_is_not_finished_leaves_the_finished_their_figure(tmp_path, plotted):
    write_deep_sea(tmp_path / "small", size=5, bad=[True])
    write_deep_sea(tmp_path / "done", size=10, bad=[True])
    write_deep_sea(tmp_path / "under way", size=20, bad=[True, True], status="interrupted")
    report(tmp_path)
    assert [set(curves["size"]) for curves in plotted] == [{20}, {10}]
    assert names(tmp_path) == ["deep-sea-regret", "deep-sea-regret-n-10"]


def test_a_run_of_other_settings_that_is_not_finished_has_a_name_of_its_own(tmp_path, plotted):
    write_deep_sea(tmp_path / "a", seed=0, bad=[True, False, True], batch_size=64)
    write_deep_sea(tmp_path / "b", seed=1, bad=[True, True, False], batch_size=64)
    write_deep_sea(tmp_path / "c", seed=2, bad=[False] * 3, batch_size=32, status="interrupted")
    page = report(tmp_path)
    (table,) = plotted
    assert table.variant.iloc[-1] == Variant("gain", (("batch_size", 32),))
    assert set(table.variant) - {table.variant.iloc[-1]} == {Variant("gain", (("batch_size", 64),))}
    assert "All of these runs" not in page


def test_an_algorithm_without_a_line_is_named(tmp_path):
    write_deep_sea(tmp_path / "a", bad=[True, False])
    write_deep_sea(tmp_path / "b", "evoi:reduce=sum")
    captions = re.findall("<figcaption>(.*?)</figcaption>", report(tmp_path))
    assert captions[-1].endswith("Without a line, for lack of metrics: BootDQN-EVOI.")
