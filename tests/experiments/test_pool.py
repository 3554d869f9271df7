"""Many runs on one machine: the same numbers as alone, and one that fails does not stop the others."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import PurePosixPath

import pytest

from bootdqn.experiments.plan import PlannedRun, deep_sea_race
from bootdqn.experiments.pool import Started, Underway, run_all
from bootdqn.training.config import from_flat
from bootdqn.training.run import run

SMALL = {"environment": "deep-sea", "size": 4, "num_heads": 4, "hidden_sizes": [8, 8], "max_episodes": 40}


def planned(name, **settings):
    return PlannedRun(PurePosixPath(name), from_flat(SMALL | settings))


def test_the_race_has_every_cell_with_the_seed_outermost():
    runs = deep_sea_race(["greedy", "evoi:reduce=sum"], [5, 10], num_seeds=2, max_episodes=7)
    assert [str(run.name) for run in runs] == [
        f"size-{size}/{strategy}/seed-{seed}"
        for seed in (0, 1)
        for size in (5, 10)
        for strategy in ("greedy", "evoi-reduce-sum")
    ]
    assert {run.config.env.max_episodes for run in runs} == {7}
    assert [run.config.run.seed for run in runs] == [0] * 4 + [1] * 4


def test_the_pool_gives_the_numbers_of_a_run_alone(tmp_path):
    runs = [planned(f"seed-{seed}", seed=seed) for seed in range(3)]
    events = []
    ended = run_all(runs, tmp_path / "pool", workers=2, on_event=events.append).ended
    assert sorted(str(end.run.name) for end in ended) == ["seed-0", "seed-1", "seed-2"]
    assert [event.run for event in events if isinstance(event, Started)] == runs
    for one in runs:
        run(one.config, tmp_path / "alone" / one.name)
        assert (tmp_path / "pool" / one.name / "metrics.jsonl").read_bytes() == (
            tmp_path / "alone" / one.name / "metrics.jsonl"
        ).read_bytes()


def test_a_run_that_fails_is_told_and_the_others_finish(tmp_path):
    (tmp_path / "taken").write_text("a file where a folder should be")
    runs = [planned("taken"), planned("good", seed=1)]
    ended = {str(end.run.name): end for end in run_all(runs, tmp_path, workers=1).ended}
    assert "is not a run folder" in ended["taken"].error
    assert ended["taken"].summary is None
    assert ended["good"].summary["status"] == "finished"


def test_a_worker_that_dies_costs_one_run_only(tmp_path):
    runs = [planned("long", size=30, max_episodes=100_000), planned("short")]
    victims = []

    def kill_the_first(event):
        if isinstance(event, Underway) and not victims:
            victims.append(event.run)
            for worker in multiprocessing.active_children():
                worker.kill()

    ended = {str(end.run.name): end for end in run_all(runs, tmp_path, workers=1, on_event=kill_the_first).ended}
    assert "died (exit code -9)" in ended["long"].error
    assert ended["short"].summary["status"] == "finished"


def test_no_runs_are_no_work(tmp_path):
    assert run_all([], tmp_path, workers=4).ended == []


@pytest.mark.parametrize(
    ("number", "to_everybody"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGINT, True)]
)
def test_a_signal_stops_every_run_in_good_order(tmp_path, number, to_everybody):
    """To the parent alone, as a scheduler does, or to all processes at once, as Ctrl-C in a terminal does."""
    arguments = ["demo", "--out", str(tmp_path), "--sizes", "30", "--max-episodes", "100000", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bootdqn", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 90
    while len(list(tmp_path.rglob("timing.jsonl"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    if to_everybody:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert "did not finish; the same command goes on" in errors
    assert "Traceback" not in errors
    summaries = list(tmp_path.rglob("summary.json"))
    assert len(summaries) == 2
    assert all('"interrupted"' in path.read_text() for path in summaries)
