"""Cluster files, and the cost of a sweep on the cluster that one describes."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import UsageError
from bootdqn.config.train import SavingConfig
from bootdqn.runs.resources import ResourceEstimate
from bootdqn.sweeps.cluster_cost import jobs_of, median_and_percentiles, simulate_sweep
from bootdqn.sweeps.cluster_file import ClusterConfig, load_cluster
from bootdqn.sweeps.cost import Cost
from bootdqn.sweeps.sweep_file import load_sweep
from reference.documents import ROOT
from reference.planned import planned

SMALL = "cores = 2\nmemory_gib = 4\n"


def cluster_file(tmp_path, text):
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    return path


def test_a_cluster_file_gives_the_settings_and_leaves_the_defaults(tmp_path):
    found = load_cluster(cluster_file(tmp_path, SMALL + "nodes = 3\nframes_per_second = 100\n"))
    assert found == ClusterConfig(cores=2, memory_gib=4.0, nodes=3, frames_per_second=100.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SMALL + "node = 3", "unknown setting 'node'; did you mean 'nodes'?"),
        (SMALL + "nodes = 0", "nodes must be at least 1, got 0"),
        (SMALL + "gpus = 0.5", "gpus must be a whole number, got 0.5"),
        (SMALL + "node_failures_per_hour = -1", "node_failures_per_hour must be at least 0, got -1"),
        ("cores = 2", "memory_gib is missing"),
        (SMALL + "shared_frames_per_second = 4", "shared_frames_per_second needs frames_per_second"),
        (
            SMALL + "frames_per_second = 3\nshared_frames_per_second = 4",
            "shared_frames_per_second must be at most frames_per_second, 3, got 4",
        ),
        ("cores = ", "Invalid value"),
    ],
)
def test_what_is_wrong_in_a_cluster_file_is_an_error_in_a_line(tmp_path, capsys, text, message):
    path = cluster_file(tmp_path, text)
    assert run_command_line(["sweep", "paper-deepsea", "--dry-run", "--cluster", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}: " in line
    assert message in line


@pytest.mark.parametrize(
    ("flags", "message"),
    [([], "--cluster is a simulation, and needs --dry-run"), (["--dry-run", "--workers", "2"], "leave out --workers")],
)
def test_a_simulated_cluster_trains_nothing_and_has_no_workers_here(capsys, flags, message):
    assert run_command_line(["sweep", "paper-deepsea", "--cluster", "x.toml", *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_run_at_an_assumed_speed_takes_its_training_and_evaluation_frames():
    """160 steps, and 3 evaluations of 2 episodes of at most 4 steps, or of 3 where that is assumed."""
    run = planned("a", eval_every_steps=50, eval_episodes=2, threads=3)
    for episode, frames in ((None, 160 + 24), (3, 160 + 18), (100, 160 + 24)):
        cluster = ClusterConfig(4, 4.0, frames_per_second=2.0, evaluation_episode_frames=episode)
        (job,) = jobs_of([run], cluster, SavingConfig())
        assert job.seconds == frames / 2
    assert (job.cores, job.checkpoint_interval) == (3, 60.0)


def test_a_run_at_a_measured_speed_takes_the_time_that_a_dry_run_here_estimates(monkeypatch):
    needed = ResourceEstimate(replay=1000, networks=600, memory=2000, disk=3000, weights=125)
    cost = Cost(160, 96.0, needed, evaluation_seconds=16.0)
    monkeypatch.setattr("bootdqn.sweeps.cluster_cost.estimate_costs", lambda runs, _: [cost] * len(runs))
    run = planned("a", eval_every_steps=50, eval_episodes=2, replay_capacity=100)
    (job,) = jobs_of([run], ClusterConfig(4, 4.0), SavingConfig(checkpoint_every_minutes=0.5))
    assert (job.seconds, job.memory, job.state, job.replay, job.disk) == (96.0, 2000, 500, 1000, 3000)
    assert job.replay_per_second == 160 * 10 / 96, "a step is a hundredth of the replay"
    assert job.checkpoint_interval == 30
    (shorter,) = jobs_of([run], ClusterConfig(4, 4.0, evaluation_episode_frames=1), SavingConfig())
    assert shorter.seconds == 80 + 16 / 4


def test_a_run_that_cannot_be_trained_is_an_error(monkeypatch):
    runs = [planned("a"), planned("b")]
    monkeypatch.setattr("bootdqn.sweeps.cluster_cost.estimate_costs", lambda *_: [UsageError("no"), UsageError("no")])
    with pytest.raises(UsageError, match="no"):
        jobs_of(runs, ClusterConfig(4, 4.0), SavingConfig())


def rows_of(table):
    names, *columns = [list(column.cells) for column in table.columns]
    return dict(zip(names, zip(*columns, strict=True), strict=True))


def test_the_table_has_the_totals_without_and_with_failures(tmp_path):
    """Four runs of 160 frames, two at a time at 0.01 frames a second: 2 x 16,000 s on 4 GPUs, half of them in use."""
    runs = [planned(f"seed-{seed}", seed=seed) for seed in range(4)]
    settings = {"frames_per_second": 0.01, "gpus": 2, "startup_seconds": 0.0}
    table, problems = simulate_sweep(runs, tmp_path, ClusterConfig(1, 4.0, 2, **settings), SavingConfig())
    without_failures = rows_of(table)
    assert problems == []
    assert without_failures["runs at a time, at most"] == ("2",)
    assert without_failures["wall time"] == ("8h 53m",)
    assert without_failures["GPU hours, all nodes until the end"] == ("35.56",)
    assert without_failures["GPU hours with a run"] == ("17.78",)
    cluster = ClusterConfig(1, 4.0, 2, **settings, node_failures_per_hour=0.1)
    failing = rows_of(simulate_sweep(runs, tmp_path, cluster, SavingConfig()).table)
    assert {name: cells[0] for name, cells in failing.items()}.items() >= {
        n: c[0] for n, c in without_failures.items()
    }.items()
    assert re.fullmatch(r"\d+h \d\dm \(\d+h \d\dm to \d+h \d\dm\)", failing["wall time"][1])


def test_a_spread_is_the_median_and_the_fifth_and_ninety_fifth_of_a_hundred():
    assert median_and_percentiles(list(range(101)), "{:g}".format) == "50 (5 to 95)"
    assert median_and_percentiles([3.0] * 9, "{:g}".format) == "3"


def test_finished_runs_are_left_out(tmp_path, monkeypatch):
    runs = [planned(f"seed-{seed}", seed=seed) for seed in range(2)]
    monkeypatch.setattr("bootdqn.sweeps.cluster_cost.split_remaining", lambda *_: ([], []))
    with pytest.raises(UsageError, match=r"no run in .* is left to simulate"):
        simulate_sweep(runs, tmp_path, ClusterConfig(1, 4.0), SavingConfig())


def test_the_page_lists_every_setting_of_a_cluster_file():
    page = (ROOT / "docs/cluster.md").read_text()
    assert [field.name for field in fields(ClusterConfig) if f"`{field.name}`" not in page] == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples/cluster").glob("*.toml")), ids=lambda path: path.name)
def test_the_example_clusters_hold_the_paper_s_runs(path):
    runs = load_sweep("paper-atari").runs()[:1]
    assert simulate_sweep(runs, Path("nowhere"), load_cluster(path), SavingConfig()).table.row_count > 5
