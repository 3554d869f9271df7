"""The table of runs, and the long table of their metrics."""

import subprocess
import sys

import pandas as pd
import pytest

import bootdqn
from bootdqn.common.errors import DamagedFileError
from bootdqn.config.variants import Variant
from bootdqn.reports import load_metrics, load_runs
from reference.run_directories import write_atari, write_deep_sea, write_gym


@pytest.fixture
def runs(tmp_path):
    write_deep_sea(tmp_path / "a", "gain", size=5, seed=3, solved=None, bad=[True, False], prior_scale=3.0)
    write_atari(tmp_path / "b", "Hero", "evoi", seed=1, scores=(2.0, 1.0))
    write_gym(tmp_path / "c", "greedy", found=(1.0, None, 2.5), status="interrupted")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/config.json").write_text("{")
    return load_runs(tmp_path)


def test_a_row_describes_a_run(runs):
    columns = ["run", "environment", "task", "strategy", "algorithm", "status"]
    assert [tuple(row) for row in runs[columns][:3].itertuples(index=False)] == [
        ("a", "deep-sea", "DeepSea, N = 5", "gain", "BootDQN-Gain + prior 3", "finished"),
        ("b", "atari", "Hero", "evoi", "BootDQN-EVOI", "finished"),
        ("c", "gym", "CartPole-v1", "greedy", "BootDQN", "interrupted"),
    ]
    assert runs.variant[0] == Variant("gain", (("prior_scale", 3.0),))
    assert list(runs.seed[:3]) == [3, 1, 0]
    assert list(runs.budget[:3]) == [50, 2_000_000, 1000]


def test_settings_have_their_defaults_where_a_run_lacks_them(runs):
    assert list(runs.prior_scale[:3]) == [3.0, 0.0, 0.0]
    assert runs.num_heads[0] == 20
    assert runs.game[1] == "Hero"
    assert pd.isna(runs["size"][1])


def test_values_of_the_summary_are_missing_where_there_are_none(runs):
    assert runs.solved_at.isna().all()
    assert runs.max_evaluation[2] == 2.5
    assert pd.isna(runs.last_evaluation[2])


def test_an_unreadable_run_is_a_row_with_the_reason(runs):
    assert runs.status[3] == "unreadable"
    assert runs.problem[3].startswith("unreadable: ")
    assert (runs.problem[:3] == "").all()


def test_metrics_are_a_long_table(runs):
    found = load_metrics(runs[:3], "episode", "evaluation")
    assert list(zip(found.run, found.kind, strict=True)) == [("a", "episode")] * 2 + [("b", "evaluation")] * 2
    assert list(found.mean_return[2:]) == [2.0, 1.0]
    assert list(bootdqn.load_metrics(runs[:1], "episode").bad) == [True, False]
    assert load_metrics(runs[:0]).empty


def test_damaged_metrics_are_an_error(runs, tmp_path):
    (tmp_path / "a/metrics.jsonl").write_text("[]\n")
    with pytest.raises(DamagedFileError, match="line 1"):
        load_metrics(runs[:1])


def test_a_directory_without_runs_is_an_empty_table(tmp_path):
    assert bootdqn.load_runs(tmp_path).empty


def test_the_package_is_imported_without_pandas():
    code = "import sys, bootdqn; assert 'pandas' not in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys, bootdqn.reports.report; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
