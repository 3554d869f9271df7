"""The table of runs, and the long table of their metrics."""

import subprocess
import sys

import pandas as pd
import pytest

import bootdqn
from bootdqn.common.errors import DamagedFileError, UsageError
from bootdqn.config.settings import default_settings
from bootdqn.reports import load_metrics, load_results
from reference.run_directories import write_atari, write_deep_sea, write_gym


@pytest.fixture
def runs(tmp_path):
    write_deep_sea(tmp_path / "a", "gain", size=5, seed=3, solved=None, bad=[True, False], prior_scale=3.0)
    write_atari(tmp_path / "b", "Hero", "evoi", seed=1, scores=(2.0, 1.0))
    write_gym(tmp_path / "c", "greedy", found=(1.0, None, 2.5), status="interrupted")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/config.json").write_text("{")
    return load_results(tmp_path)


def test_a_row_describes_a_run(runs):
    columns = ["run", "environment", "task", "strategy", "algorithm", "status"]
    assert [tuple(row) for row in runs[columns][:3].itertuples(index=False)] == [
        ("a", "deep-sea", "DeepSea, N = 5", "gain", "BootDQN-Gain + prior 3", "finished"),
        ("b", "atari", "Hero", "evoi", "BootDQN-EVOI", "finished"),
        ("c", "gym", "CartPole-v1", "greedy", "BootDQN", "interrupted"),
    ]
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


def test_columns_have_types_whatever_the_runs_hold(runs, tmp_path):
    (tmp_path / "empty").mkdir()
    types = {
        "Int64": ("seed", "budget", "size", "batch_size", "steps", "solved_at", "solved_at_strict", "max_episodes"),
        "float64": ("discount", "prior_scale", "seconds", "recent_return"),
        "boolean": ("double_q", "solved", "stop_when_solved"),
        "str": ("run", "path", "strategy", "game", "vote", "error", "snapshot_every", "hidden_sizes"),
    }
    for table in (runs, runs[:1], load_results(tmp_path / "empty")):
        found = table.dtypes.astype(str)
        for kind, names in types.items():
            assert {found[name] for name in names} == {kind}
    assert runs.hidden_sizes[0] == "50 50"
    assert not runs.solved[0]
    assert pd.isna(runs.solved[1])


def test_every_setting_is_a_column_and_nothing_else_of_a_configuration_is(runs):
    settings = {name for flat in default_settings().values() for name in flat}
    assert settings <= set(runs.columns)
    after = list(runs.columns)[list(runs.columns).index("problem") + 1 : list(runs.columns).index("error")]
    assert set(after) <= settings


def test_a_setting_of_another_type_makes_a_run_unreadable_and_harms_no_other(runs, tmp_path):
    write_deep_sea(tmp_path / "e", "gain", size=5, seed=3, solved=None, bad=[True], batch_size="many")
    found = load_results(tmp_path)
    assert found.problem[4] == "unreadable: batch_size must be a whole number, got 'many'"
    pd.testing.assert_frame_equal(found[:4], runs)


def test_a_directory_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="nowhere is not a directory"):
        load_results(tmp_path / "nowhere")


def test_an_unreadable_run_is_a_row_with_the_reason(runs):
    assert runs.status[3] == "unreadable"
    assert runs.problem[3].startswith("unreadable: ")
    assert (runs.problem[:3] == "").all()


def test_metrics_are_a_long_table(runs):
    found = load_metrics(runs[:3])
    assert list(zip(found.run, found.kind, strict=True)) == [("a", "episode")] * 2 + [("b", "evaluation")] * 2
    assert list(found.mean_return[2:]) == [2.0, 1.0]
    assert list(found.algorithm) == ["BootDQN-Gain + prior 3"] * 2 + ["BootDQN-EVOI"] * 2
    assert list(found.seed) == [3, 3, 1, 1]
    assert load_metrics(runs[:0]).empty


def test_metrics_of_a_kind_are_loaded_by_the_directory(runs, tmp_path):
    (tmp_path / "d/config.json").unlink()
    assert list(bootdqn.load_metrics(tmp_path, kind="episode").bad) == [True, False]
    assert list(bootdqn.load_metrics([tmp_path / "b"], kind="evaluation").mean_return) == [2.0, 1.0]
    with pytest.raises(UsageError, match="did you mean 'episode'"):
        load_metrics(runs, kind="episodes")
    with pytest.raises(UsageError, match=r"there is no kind 'eval' of metrics; did you mean 'evaluation'\?$"):
        load_metrics(runs, kind="eval")
    with pytest.raises(UsageError, match=r"'xyz' of metrics; choose from episode, update, evaluation$"):
        load_metrics(runs, kind="xyz")


def test_damaged_metrics_are_an_error(runs, tmp_path):
    (tmp_path / "a/metrics.jsonl").write_text("[]\n")
    with pytest.raises(DamagedFileError, match="line 1"):
        load_metrics(runs[:1])


def test_a_directory_without_runs_is_an_empty_table(tmp_path):
    assert bootdqn.load_results(tmp_path).empty


def test_the_package_is_imported_without_pandas():
    code = "import sys, bootdqn; assert 'pandas' not in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys, bootdqn.reports.report; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
