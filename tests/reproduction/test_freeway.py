"""The figure of one Atari run."""

import pandas as pd

from bootdqn.reports.atari import evaluations_of
from bootdqn.reports.report_data import load_report_data
from bootdqn.reports.suites import ATARI
from reference.run_directories import write_atari
from reproduction.freeway import training_figure


def test_one_run_is_plotted_with_its_raw_values(tmp_path):
    write_atari(tmp_path / "run", scores=(0.0, 20.0), every=100_000)
    evaluations = evaluations_of(load_report_data([tmp_path]), ATARI)
    episodes = pd.DataFrame({"frames": [50_000, 150_000], "return": [3.0, 7.0]})
    (axes,) = training_figure(evaluations, episodes, first_update=120_000, random=-1.5).axes
    assert axes.collections[0].get_offsets().tolist() == [[0.05, 3.0], [0.15, 7.0]]
    votes, random, first_update = axes.get_lines()
    assert votes.get_xydata().tolist() == [[0.1, 0.0], [0.2, 20.0]]
    assert set(random.get_ydata()) == {-1.5}
    assert set(first_update.get_xdata()) == {0.12}
