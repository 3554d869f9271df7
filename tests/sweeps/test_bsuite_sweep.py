"""The small form of bsuite's sweep, trained and reported on."""

import pandas as pd
import pytest

from bootdqn.reports.report import write_report
from bootdqn.sweeps.sweep_file import load_sweep
from bootdqn.training.run import train_run


@pytest.mark.usefixtures("one_thread")
def test_the_smoke_form_of_bsuites_sweep_is_trained_and_scored(tmp_path):
    sweep = load_sweep("bsuite-exploration-smoke").with_overrides(['strategy=["greedy", "evoi:reduce=sum"]'])
    for planned in sweep.runs():
        summary = train_run(planned.config, tmp_path / planned.name).summary
        assert (summary["status"], summary["episodes"]) == ("finished", 2)
    assert (tmp_path / "cartpole-swingup-0/evoi-reduce-sum/seed-0/summary.json").exists()
    write_report(tmp_path, tmp_path / "report.html")
    table = pd.read_csv(tmp_path / "report_files/tables/bsuite.csv")
    assert list(table.algorithm) == ["BootDQN, K = 4, update every 4", "BootDQN-EVOI, K = 4, update every 4"]
    assert all(cell.endswith(" (1 of 20, 1 short)") for cell in table["CartPole swing-up"])
