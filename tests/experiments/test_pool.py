"""Many runs on one machine: the same numbers as alone, and one that fails does not stop the others."""

import itertools
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.cli import run_command_line
from bootdqn.common.errors import UsageError
from bootdqn.common.run_folder import RunFolder
from bootdqn.experiments.conduct import _finishing_time, cost_table, runs_at_a_time
from bootdqn.experiments.cost import Cost, longest_evaluations
from bootdqn.experiments.events import Ended, Started, Underway, split_done
from bootdqn.experiments.plan import PlannedRun, deep_sea_race, load_sweep
from bootdqn.experiments.pool import run_all
from bootdqn.training.config import SavingConfig, from_flat, resolve
from bootdqn.training.estimate import Estimate
from bootdqn.training.run import run
from reference.environments import OUT_OF_MEMORY
from reference.own_code import FULL_DISK_ELSEWHERE

SMALL = {"environment": "deep-sea", "size": 4, "num_heads": 4, "hidden_sizes": [8, 8], "max_episodes": 40}


def planned(name, **settings):
    return PlannedRun(PurePosixPath(name), from_flat(SMALL | settings))


def test_the_race_has_every_cell_with_the_seed_outermost():
    runs = deep_sea_race(["greedy", "evoi:reduce=sum"], [5, 10], num_seeds=2, max_episodes=7).runs()
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


def test_a_run_whose_worker_dies_goes_on_in_another_and_ends_as_it_would_have(tmp_path):
    one = planned("one", size=8, max_episodes=200, stop_when_solved=False)
    run(one.config, tmp_path / "alone")
    events = []

    def kill_once(event):
        events.append(event)
        if isinstance(event, Underway) and not any(isinstance(seen, Ended) for seen in events):
            for worker in multiprocessing.active_children():
                worker.kill()

    saving = SavingConfig(checkpoint_every_steps=100)
    (end,) = run_all([one], tmp_path, workers=1, on_event=kill_once, retries=1, saving=saving).ended
    assert [event.retrying for event in events if isinstance(event, Ended)] == [True, False]
    assert end.summary["state_sha256"] == RunFolder(tmp_path / "alone").read_summary()["state_sha256"]
    assert len(json.loads((tmp_path / "one/provenance.json").read_text())["resumed"]) == 1


def test_a_run_that_always_runs_out_of_memory_is_given_up_and_spoils_no_other(tmp_path, own_code):
    own_code.import_environments("reference.environments")
    bad = PlannedRun(PurePosixPath("bad"), from_flat(OUT_OF_MEMORY))
    events = []
    outcome = run_all([bad, planned("good")], tmp_path, workers=1, on_event=events.append, retries=1)
    ended = {str(end.run.name): end for end in outcome.ended}
    assert sum(isinstance(event, Started) and event.run == bad for event in events) == 2
    assert "MemoryError" in ended["bad"].error
    assert ended["good"].finished


def test_a_configuration_with_its_summary_counts_as_done_and_nothing_else(tmp_path):
    config = resolve(planned("one").config)
    runs = [PlannedRun(PurePosixPath(name), config) for name in ("kept", "new", "other", "nameless")]
    run(config, tmp_path / "kept")
    for file in (tmp_path / "kept").iterdir():
        if file.name not in ("config.json", "summary.json"):
            file.unlink()
    run(planned("another", seed=4).config, tmp_path / "other")
    (tmp_path / "nameless").mkdir()
    (tmp_path / "nameless/summary.json").write_text('{"status": "finished", "of": "something else"}')
    todo, ended = split_done(runs, tmp_path)
    assert [str(one.name) for one in todo] == ["new"]
    assert {str(end.run.name): end.finished for end in ended} == {"kept": True, "other": False, "nameless": False}
    assert "holds another configuration" in ended[1].error
    assert "is not a run folder" in ended[2].error


def test_a_sweep_from_the_command_line_finishes_skips_and_tells_what_failed(tmp_path, capsys):
    (tmp_path / "own.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\nsize = 3\nmax_episodes = 5\nnum_heads = 2\n[axes]\nseed = [0, 1]\n"
    )
    command = ["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out"), "--workers", "1", "--retries", "0"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out/seed-1").write_text("a file where a folder should be")
    assert run_command_line(command) == 1
    told = capsys.readouterr()
    assert "1 of 2 runs finished" in told.out
    assert "seed-1" in told.err
    assert "is not a run folder" in told.err
    (tmp_path / "out/seed-1").unlink()
    assert run_command_line(command) == 0
    assert "2 of 2 runs finished" in capsys.readouterr().out
    assert run_command_line([*command, "--dry-run"]) == 0
    assert capsys.readouterr().out.count("done") == 2


def test_a_run_whose_end_could_not_be_written_is_not_finished(tmp_path, capsys, own_code):
    own_code.write("full_disk", FULL_DISK_ELSEWHERE)
    (tmp_path / "own.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\nsize = 3\nmax_episodes = 5\nnum_heads = 2\n[axes]\nseed = [0]\n"
    )
    command = ["sweep", "own.toml", "--out", "out", "--retries", "0", "--import", "full_disk"]
    assert run_command_line(command) == 1
    told = capsys.readouterr()
    assert "0 of 1 run finished" in told.out
    assert "could not be written at step 15: [Errno 28] No space left on device" in told.err
    assert not (tmp_path / "out/seed-0/summary.json").exists()


def test_a_dry_run_estimates_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.experiments.cost.PROBE_SECONDS", 0.05)
    arguments = ["paper-deepsea", "--out", str(tmp_path / "out"), "seed=[0]", "size=[4]", "--dry-run"]
    assert run_command_line(["sweep", *arguments]) == 0
    told = capsys.readouterr().out
    description, changed, count = told.splitlines()[:3]
    assert description.startswith("The paper's DeepSea study")
    assert changed == "changed: seed=[0] size=[4]"
    assert count.startswith("6 runs in ")
    assert "at most" in told
    assert "40,000" in told
    assert not (tmp_path / "out").exists()


def test_a_dry_run_into_a_file_is_not_cut(tmp_path, capsys, monkeypatch):
    cost = Cost(5, 10.0, Estimate(0, 0, 123 * 2**20, 456 * 2**20))
    monkeypatch.setattr("bootdqn.experiments.conduct.costs", lambda runs: [cost] * len(runs))
    (tmp_path / "own.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\n[axes]\nunscaled_move_cost = [0.0123456789]\ntarget_rate = [0.123456789]\n"
        "learning_rate = [0.00123456789]\nmask_probability = [0.987654321]\n"
    )
    assert run_command_line(["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out"), "--dry-run"]) == 0
    told = capsys.readouterr().out
    name = str(load_sweep(str(tmp_path / "own.toml")).runs()[0].name)
    assert len(name) > 80
    assert all(cell in told for cell in (name, "123 MiB", "456 MiB"))
    assert max(map(len, told.splitlines())) < 400


def test_a_dry_run_adds_up_what_is_needed_at_a_time(tmp_path, monkeypatch):
    runs = deep_sea_race(["greedy"], [3, 4, 5, 6], num_seeds=1, max_episodes=5).runs()
    needed = [(2, 700, 10.0), (8, 100, 30.0), (4, 300, 10.0), (1, 500, 25.0)]  # MiB of memory and of disk, seconds
    found = [Cost(5, seconds, Estimate(0, 0, memory * 2**20, disk * 2**20)) for memory, disk, seconds in needed]
    monkeypatch.setattr("bootdqn.experiments.conduct.costs", lambda _: found)
    assert cost_table(runs, tmp_path, workers=2).caption == (
        "at most 45s with 2 at a time, 12 MiB of memory and 1.2 GiB of disk for those under way"
    )
    assert cost_table(runs, tmp_path, workers=9).caption.startswith(
        "at most 30s with 4 at a time, 15 MiB of memory and 1.6 GiB of disk"
    )


def test_a_dry_run_makes_as_many_at_a_time_as_the_sweep_will(tmp_path, monkeypatch):
    runs = deep_sea_race(["greedy"], [3, 4, 5], num_seeds=1, max_episodes=5).runs()
    monkeypatch.setattr("bootdqn.experiments.conduct.costs", lambda _: [Cost(5, 10.0, Estimate(0, 0, 6, 0))] * 3)
    monkeypatch.setattr("bootdqn.experiments.conduct.memory_needed", lambda _: [6] * 3)
    monkeypatch.setattr("bootdqn.experiments.conduct.available_memory", lambda: 8)
    monkeypatch.setattr("bootdqn.experiments.conduct.available_cores", lambda: 2)
    assert cost_table(runs, tmp_path, workers=None).caption.startswith("at most 30s with 1 at a time")
    too_many = cost_table(runs, tmp_path, workers=2)
    assert too_many.row_count == 3, "what each needs is told all the same"
    assert too_many.caption.endswith("choose --workers 1")


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.integers(1, 4))
def test_runs_are_over_when_a_slow_count_of_workers_says(seconds, workers):
    """Second by second would be too slow: from one end of a run to the next."""
    waiting, left, now = list(seconds), [], 0.0
    while waiting or left:
        while waiting and len(left) < workers:
            left.append(waiting.pop(0))
        shortest = min(left)
        now += shortest
        left = [one - shortest for one in left]
        left.remove(0.0)
    assert _finishing_time(seconds, workers) == pytest.approx(now)


DIVE = {"environment": "deep-sea", "size": 10, "max_episodes": 100}
PONG = {"environment": "atari", "game": "Pong", "total_frames": 5_000_000, "eval_every_frames": 1_000_000}
CART = {"environment": "gym", "env_id": "CartPole-v1", "total_steps": 90}


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        (DIVE, 0),
        (DIVE | {"eval_every_frames": 300, "eval_episodes": 4}, 3 * 40),
        (PONG, 5 * 270_000),
        (PONG | {"eval_max_steps": 7}, 5 * 7),
        (CART | {"eval_every_frames": 40, "eval_max_steps": 9}, 2 * 9),
    ],
)
def test_evaluations_cost_their_steps_too(settings, steps):
    assert longest_evaluations(resolve(from_flat(settings))) == steps


def at_a_time(available, sizes, workers, cores=4):
    """Return how many runs of these sizes are made at a time, given so many MiB."""
    runs = [planned(f"seed-{seed}", seed=seed) for seed in range(len(sizes))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bootdqn.experiments.conduct.available_memory", lambda: available and available * 2**20)
        patch.setattr("bootdqn.experiments.conduct.memory_needed", lambda _: [size * 2**20 for size in sizes])
        patch.setattr("bootdqn.experiments.conduct.available_cores", lambda: cores)
        return runs_at_a_time(runs, workers)


def fitting(available, sizes, workers):
    """Return how many workers a sweep of runs of these sizes is told to choose, or None if it is not refused."""
    try:
        at_a_time(available, sizes, workers)
    except UsageError as refusal:
        return int(str(refusal).rpartition("choose --workers ")[2])
    return None


@given(st.integers(1, 60), st.lists(st.integers(0, 30), min_size=1, max_size=7), st.integers(1, 9))
def test_a_sweep_is_refused_where_some_runs_at_a_time_do_not_fit_and_told_how_many_do(available, sizes, workers):
    fit_alone = [size for size in sizes if size <= available]

    def always_fit(count):
        return all(sum(some) <= available for some in itertools.combinations(fit_alone, min(count, len(fit_alone))))

    told = fitting(available, sizes, workers)
    assert (told is None) == always_fit(workers)
    assert told is None or (always_fit(told) and not always_fit(told + 1))


@pytest.mark.parametrize(
    ("available", "sizes", "expected"),
    [(100, [10] * 6, 4), (25, [10] * 6, 2), (10, [10] * 6, 1), (None, [10] * 6, 4), (100, [10] * 2, 2), (5, [10], 1)],
)
def test_unless_told_otherwise_a_sweep_makes_as_many_runs_at_a_time_as_cores_and_memory_hold(
    available, sizes, expected
):
    assert at_a_time(available, sizes, workers=None, cores=4) == expected


def test_a_sweep_is_not_refused_where_the_memory_is_not_known():
    assert fitting(None, [10**6, 10**6], workers=2) is None


def test_a_sweep_too_large_for_the_memory_is_refused_in_a_line_and_leaves_no_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.experiments.conduct.available_memory", lambda: 2**30)
    arguments = ["paper-deepsea", "--out", str(tmp_path / "out"), "seed=[0]", "size=[4]", "--workers", "2"]
    assert run_command_line(["sweep", *arguments]) == 2
    assert re.search(
        r"2 runs at a time need 1\.\d GiB of memory, and 1\.0 GiB are available; choose --workers 1\n",
        capsys.readouterr().err,
    )
    assert not (tmp_path / "out").exists()


def test_no_runs_are_no_work(tmp_path):
    assert run_all([], tmp_path, workers=4).ended == []


@pytest.mark.parametrize(
    ("number", "to_everybody"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, True)],
)
def test_a_signal_stops_every_run_in_good_order(tmp_path, number, to_everybody):
    """To the parent alone, or to all processes at once, as Ctrl-C in a terminal and some schedulers do."""
    arguments = ["demo", "--out", str(tmp_path), "--sizes", "30", "--max-episodes", "100000", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bootdqn", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 - whatever the tests run under
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


INTERRUPTED_AT_THE_START = """
import os, signal, sys
from pathlib import Path, PurePosixPath
from bootdqn.experiments.events import Started
from bootdqn.experiments.plan import PlannedRun
from bootdqn.experiments.pool import run_all
from bootdqn.training.config import from_flat

settings = {"environment": "deep-sea", "size": 10, "max_episodes": 400, "stop_when_solved": False}
runs = [PlannedRun(PurePosixPath(f"seed-{seed}"), from_flat(settings | {"seed": seed})) for seed in range(3)]
started = []

def interrupt(event):
    if isinstance(event, Started):
        started.append(event.run)
        if len(started) == 2:
            os.killpg(0, signal.SIGINT) if sys.argv[2] == "to everybody" else signal.raise_signal(signal.SIGINT)

outcome = run_all(runs, Path(sys.argv[1]), workers=2, on_event=interrupt)
ends = sorted(f"{end.run.name} {end.error or end.summary['status']}" for end in outcome.ended)
print(outcome.stop_exit_code, ", ".join(ends))
"""


@pytest.mark.parametrize("whom", ["to everybody", "to the parent"])
def test_an_interrupt_while_the_processes_start_stops_every_run_in_good_order(tmp_path, whom):
    """The parent is a new process, whose first worker is the first that Python's multiprocessing starts there."""
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_THE_START, str(tmp_path), whom],
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=120,
        check=False,
    )
    assert process.stdout == "130 seed-0 interrupted, seed-1 interrupted\n", process.stderr
    assert "Traceback" not in process.stderr


def test_a_signal_between_the_order_and_the_run_stops_this_run_and_no_other(tmp_path, own_code):
    own_code.write(
        "asks_to_stop",
        f"""
        import os, signal

        if os.getpid() != {os.getpid()}:
            signal.raise_signal(signal.SIGTERM)
        """,
    )
    own_code.import_environments("asks_to_stop")
    ended = run_all([planned("first"), planned("second")], tmp_path, workers=1).ended
    assert [(end.summary["status"], end.error) for end in ended] == [("interrupted", None), ("finished", None)]


def test_a_hangup_that_the_parent_ignores_the_runs_ignore(tmp_path, own_code):
    own_code.write(
        "hangs_up",
        f"""
        import os, signal

        if os.getpid() != {os.getpid()}:
            signal.raise_signal(signal.SIGHUP)
        """,
    )
    own_code.import_environments("hangs_up")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        (end,) = run_all([planned("one")], tmp_path, workers=1).ended
    finally:
        signal.signal(signal.SIGHUP, before)
    assert end.finished
