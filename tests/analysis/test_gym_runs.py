"""Runs of `train gym` in a report: a table of their own, and none of the paper's claims."""

import csv
import json

import pytest

from bootdqn.analysis.gym_runs import read_gym_runs, table
from bootdqn.analysis.report import write_report
from bootdqn.analysis.runs import read_runs
from bootdqn.training.config import from_flat
from bootdqn.training.run import run
from reference.run_folders import DEFAULTS, write_deep_sea, write_gym

LAKE = {"env_id": "FrozenLake-v1", "env_options": ["map_name=8x8"]}


def read(root):
    runs, unreadable = read_runs(root, DEFAULTS)
    assert not unreadable
    return read_gym_runs(runs)


def rows(root):
    found = table(read(root)[0])
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_each_environment_budget_and_algorithm_has_a_row_with_the_means_over_its_seeds(tmp_path):
    write_gym(tmp_path / "a0", seed=0, found=(10.0, 100.0, 200.0))
    write_gym(tmp_path / "a1", seed=1, found=(20.0, 300.0, 500.0))
    write_gym(tmp_path / "prior", found=(7.0, 8.0, 9.0), prior_scale=3.0)
    write_gym(tmp_path / "longer", found=(1.0, 2.0, 3.0), total_steps=20_000)
    write_gym(tmp_path / "greedy", "greedy", found=(-0.005, None, None), **LAKE)
    returns = ("last evaluation", "best evaluation", "training")
    found = {tuple(row[name] for name in ("environment", "steps", "algorithm", "seeds")): row for row in rows(tmp_path)}
    assert {key: tuple(row[name] for name in returns) for key, row in found.items()} == {
        ("CartPole-v1", "1,000", "BootDQN-Gain", "2"): ("200", "350", "15"),
        ("CartPole-v1", "1,000", "BootDQN-Gain + prior 3", "1"): ("8", "9", "7"),
        ("CartPole-v1", "20,000", "BootDQN-Gain", "1"): ("2", "3", "1"),
        ("FrozenLake-v1 map_name=8x8", "1,000", "BootDQN", "1"): ("", "", "-0.005"),
    }


def test_a_mean_that_lacks_a_seed_is_none(tmp_path):
    write_gym(tmp_path / "a0", seed=0, found=(10.0, None, None))
    write_gym(tmp_path / "a1", seed=1, found=(20.0, 300.0, 500.0))
    (row,) = rows(tmp_path)
    assert (row["last evaluation"], row["best evaluation"], row["training"]) == ("", "", "15")


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("config", {"total_steps": "many"}),
        ("config", {"seed": None}),
        ("config", {"env_options": 3}),
        ("summary", {"recent_return": "high"}),
        ("summary", {"max_evaluation": float("nan")}),
    ],
)
def test_a_damaged_run_is_listed(tmp_path, file, values):
    write_gym(tmp_path / "whole", seed=1)
    write_gym(tmp_path / "run", seed=0)
    path = tmp_path / f"run/{file}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    found, troubles = read(tmp_path)
    assert [one.name for one in found] == ["whole"]
    assert [(trouble.name, trouble.problem.partition(":")[0]) for trouble in troubles] == [("run", "damaged")]


def test_what_does_not_count_is_listed(tmp_path):
    write_gym(tmp_path / "first")
    write_gym(tmp_path / "second")
    write_gym(tmp_path / "stopped", seed=1, status="interrupted")
    found, troubles = read(tmp_path)
    assert [one.name for one in found] == ["first"]
    assert {trouble.name: trouble.problem for trouble in troubles} == {
        "second": "the same algorithm and seed as first, which is counted",
        "stopped": "interrupted",
    }


def test_a_report_on_gymnasium_alone_has_its_table_and_no_claims(tmp_path):
    small = {"environment": "gym", "env_id": "FrozenLake-v1", "total_steps": 300, "num_heads": 2, "hidden_sizes": [8]}
    summary = run(from_flat(small | {"eval_every_frames": 100, "eval_episodes": 2}), tmp_path / "runs/one").summary
    page = write_report(tmp_path / "runs", tmp_path / "out.html", DEFAULTS).read_text()
    assert "1 of 1 run in" in page
    assert "1 run of Gymnasium: 1 environment, 1 algorithm; the table has their returns." in page
    assert "Claims" not in page
    assert "Not counted" not in page
    tables = tmp_path / "out_files/tables"
    assert {path.name for path in tables.iterdir()} == {"gym.csv", "gym.tex"}
    with (tables / "gym.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["environment"], row["steps"], row["seeds"]) == ("FrozenLake-v1", "300", "1")
    assert float(row["training"]) == pytest.approx(summary["recent_return"], rel=1e-3)
    assert float(row["best evaluation"]) == pytest.approx(summary["max_evaluation"], rel=1e-3)


def test_claims_stand_where_one_run_is_about_them_finished_or_not(tmp_path):
    write_gym(tmp_path / "gym")
    write_deep_sea(tmp_path / "sea", status="failed")
    page = write_report(tmp_path, tmp_path / "out.html", DEFAULTS).read_text()
    assert '<h2 id="claims">' in page
    assert '<h2 id="gymnasium">' in page
