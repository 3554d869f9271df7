"""Running regret in the report: a figure for each cap, of its own runs."""

from bootdqn.analysis import deep_sea_figures
from bootdqn.analysis.report import write_report
from bootdqn.common.variants import Variant
from reference.run_folders import DEFAULTS, write_deep_sea


def test_runs_of_one_cap_have_no_line_among_those_of_another(tmp_path, monkeypatch):
    write_deep_sea(tmp_path / "a", cap=50, bad=[True, False, False, True])
    write_deep_sea(tmp_path / "b", cap=100, bad=[True, True])
    drawn, draw = [], deep_sea_figures.running_regret
    monkeypatch.setattr(deep_sea_figures, "running_regret", lambda *given: drawn.append(given[0]) or draw(*given))
    write_report(tmp_path, tmp_path / "report.html", DEFAULTS)
    assert sorted(curves[Variant("gain")] for curves in drawn) == [[[1, 1 / 2, 1 / 3, 2 / 4]], [[1, 1]]]
