"""Many runs on one machine: the same numbers as alone, and one that fails does not stop the others."""

import errno
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

from bootdqn.cli.main import run_command_line
from bootdqn.config.settings import from_flat, to_flat
from bootdqn.config.train import SavingConfig
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.signals import STOP_SIGNALS
from bootdqn.sweeps.executor import Ended, Fault, Progressed, Started, SweepExit, split_remaining
from bootdqn.sweeps.local import run_locally
from bootdqn.sweeps.processes import end_process, start_process
from bootdqn.sweeps.sweep_file import PlannedRun, deep_sea_sweep, load_sweep
from bootdqn.training.run import train_run
from reference.environments import OUT_OF_MEMORY
from reference.planned import planned
from reference.user_code import FULL_DISK_ELSEWHERE, HELD_ELSEWHERE


def test_the_race_has_every_cell_with_the_seed_outermost():
    runs = deep_sea_sweep(["greedy", "evoi:reduce=sum"], [5, 10], num_seeds=2, max_episodes=7).runs()
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
    ended = run_locally(runs, tmp_path / "pool", workers=2, on_event=events.append).ended
    assert sorted(str(end.run.name) for end in ended) == ["seed-0", "seed-1", "seed-2"]
    assert [event.run for event in events if isinstance(event, Started)] == runs
    for one in runs:
        train_run(one.config, tmp_path / "alone" / one.name)
        assert (tmp_path / "pool" / one.name / "metrics.jsonl").read_bytes() == (
            tmp_path / "alone" / one.name / "metrics.jsonl"
        ).read_bytes()


def test_a_run_that_fails_is_reported_and_the_others_finish(tmp_path):
    (tmp_path / "taken").write_text("a file where a directory should be")
    runs = [planned("taken"), planned("good", seed=1)]
    ended = {str(end.run.name): end for end in run_locally(runs, tmp_path, workers=1).ended}
    assert "is not a run directory" in ended["taken"].error
    assert ended["taken"].summary is None
    assert ended["good"].summary["status"] == "finished"


def test_a_worker_that_dies_costs_one_run_only(tmp_path):
    runs = [planned("long", size=30, max_episodes=100_000), planned("short")]
    victims = []

    def kill_the_first(event):
        if isinstance(event, Progressed) and not victims:
            victims.append(event.run)
            for worker in multiprocessing.active_children():
                worker.kill()

    ended = {str(end.run.name): end for end in run_locally(runs, tmp_path, workers=1, on_event=kill_the_first).ended}
    assert "died (exit code -9)" in ended["long"].error
    assert ended["short"].summary["status"] == "finished"


def test_a_worker_that_dies_while_it_is_idle_costs_nothing(tmp_path, monkeypatch):
    """Its end of the pipe is closed a moment before the system calls it dead: here the moment lasts."""
    killed = []

    def kill_the_idle(event):
        if isinstance(event, Ended) and not killed:
            killed.extend(multiprocessing.active_children())
            for worker in killed:
                worker.kill()
                worker.join()
                monkeypatch.setattr(worker, "is_alive", lambda: True)

    ended = run_locally([planned("first"), planned("second")], tmp_path, workers=1, on_event=kill_the_idle).ended
    assert len(killed) == 1
    assert [(str(end.run.name), end.finished) for end in ended] == [("first", True), ("second", True)]


def test_a_sweep_whose_new_worker_is_not_reached_either_reports_it(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    (tmp_path / "own.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\nsize = 3\nmax_episodes = 5\n[axes]\nseed = [0]\n"
    )
    monkeypatch.setattr("multiprocessing.connection.Connection.send", fail)
    assert run_command_line(["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().err
    assert "a worker process died before it was sent this run, and so did the next" in printed
    assert multiprocessing.active_children() == []


def test_a_run_whose_worker_dies_resumes_in_another_and_ends_as_it_would_have(tmp_path, user_code):
    user_code.write("held", HELD_ELSEWHERE)
    user_code.load_strategy("held.Held")
    one = planned("one", size=4, max_episodes=100, stop_when_solved=False, strategy="held")
    train_run(one.config, tmp_path / "alone")
    events, checkpoints = [], tmp_path / "one/checkpoints"

    def kill_once(event):
        events.append(event)
        if len(events) == 1:
            assert isinstance(event, Started)
            while not (checkpoints / "step-000000000050").exists():
                time.sleep(0.05)
            for worker in multiprocessing.active_children():
                worker.kill()
            (tmp_path / "released").touch()

    saving = SavingConfig(checkpoint_every_steps=50)
    (end,) = run_locally([one], tmp_path, workers=1, on_event=kill_once, retries=1, saving=saving).ended
    assert [event.retrying for event in events if isinstance(event, Ended)] == [True, False]
    assert end.summary["state_sha256"] == RunDirectory(tmp_path / "alone").read_summary()["state_sha256"]
    assert len(json.loads((tmp_path / "one/provenance.json").read_text())["resumed"]) == 1


def test_a_run_that_always_runs_out_of_memory_is_given_up_and_spoils_no_other(tmp_path, user_code):
    user_code.import_environments("reference.environments")
    bad = PlannedRun(PurePosixPath("bad"), from_flat(OUT_OF_MEMORY))
    events = []
    outcome = run_locally([bad, planned("good")], tmp_path, workers=1, on_event=events.append, retries=1)
    ended = {str(end.run.name): end for end in outcome.ended}
    assert sum(isinstance(event, Started) and event.run == bad for event in events) == 2
    assert "MemoryError" in ended["bad"].error
    assert ended["good"].finished


def test_a_configuration_with_its_summary_counts_as_done_and_nothing_else(tmp_path):
    config = planned("one").config
    runs = [PlannedRun(PurePosixPath(name), config) for name in ("kept", "new", "other", "nameless")]
    train_run(config, tmp_path / "kept")
    for file in (tmp_path / "kept").iterdir():
        if file.name not in ("config.json", "summary.json"):
            file.unlink()
    train_run(planned("another", seed=4).config, tmp_path / "other")
    (tmp_path / "nameless").mkdir()
    (tmp_path / "nameless/summary.json").write_text('{"status": "finished", "of": "something else"}')
    todo, ended = split_remaining(runs, tmp_path)
    assert [str(one.name) for one in todo] == ["new"]
    assert {str(end.run.name): end.finished for end in ended} == {"kept": True, "other": False, "nameless": False}
    assert "holds another configuration" in ended[1].error
    assert "is not a run directory" in ended[2].error


def test_a_sweep_from_the_command_line_finishes_skips_and_reports_what_failed(tmp_path, capsys):
    (tmp_path / "own.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\nsize = 3\nmax_episodes = 5\nnum_heads = 2\n[axes]\nseed = [0, 1]\n"
    )
    command = ["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out"), "--workers", "1", "--retries", "0"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out/seed-1").write_text("a file where a directory should be")
    assert run_command_line(command) == 1
    printed = capsys.readouterr()
    assert "1 of 2 runs finished" in printed.out
    assert "seed-1" in printed.err
    assert "is not a run directory" in printed.err
    (tmp_path / "out/seed-1").unlink()
    assert run_command_line(command) == 0
    assert "2 of 2 runs finished" in capsys.readouterr().out
    assert run_command_line([*command, "--dry-run"]) == 0
    assert re.search(r"│ the base +│ +2 │ +│ +done │", capsys.readouterr().out)


def test_runs_that_failed_for_one_reason_are_one_line_that_the_same_command_does_not_cure(tmp_path, capsys):
    (tmp_path / "own.toml").write_text("[base]\nenvironment = 'deep-sea'\nsize = 3\n[axes]\nseed = [0, 1, 2]\n")
    for planned_run in load_sweep(str(tmp_path / "own.toml")).with_overrides(["max_episodes=5"]).runs():
        path = tmp_path / "out" / planned_run.name
        path.mkdir(parents=True)
        (path / "config.json").write_text(json.dumps(to_flat(planned_run.config)))
        (path / "summary.json").write_text('{"status": "finished", "steps": 9, "episodes": 5, "seconds": 1}')
    command = ["sweep", str(tmp_path / "own.toml"), "max_episodes=9", "--out", str(tmp_path / "out")]
    reason = (
        f"{tmp_path}/out/seed-0 is finished (max_episodes 5) and has no checkpoint to resume from to train to 9: "
        "only --keep-checkpoint keeps it; choose another --out, or remove this run directory (2 other runs likewise)\n"
    )
    assert run_command_line(command) == 1
    assert capsys.readouterr().err == f"failed: {reason}"
    assert run_command_line([*command, "--dry-run"]) == 2
    assert capsys.readouterr().err == reason


def test_a_device_that_is_not_there_starts_no_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    command = ["sweep", "paper-deepsea-smoke", "device=cuda", "--out", str(tmp_path / "out")]
    assert run_command_line(command) == 2
    assert re.fullmatch("bootdqn: --device cuda is not available: .*; use --device cpu\n", capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("finished", "which"), [(0, "them"), (1, "2 runs")])
def test_a_sweep_that_is_stopped_says_what_the_same_command_resumes(tmp_path, capsys, monkeypatch, finished, which):
    (tmp_path / "own.toml").write_text("[base]\nenvironment = 'deep-sea'\nsize = 3\n[axes]\nseed = [0, 1, 2]\n")
    runs = load_sweep(str(tmp_path / "own.toml")).runs()
    for planned_run in runs[:finished]:
        train_run(planned_run.config, tmp_path / "out" / planned_run.name)
    ended = [Ended(one, {"status": "finished" if i < finished else "interrupted"}) for i, one in enumerate(runs)]
    monkeypatch.setattr("bootdqn.sweeps.run_sweep.run_sweep", lambda *_, **__: SweepExit(ended, 130))
    assert run_command_line(["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == f"the same command resumes {which}\n"


def test_a_run_that_would_fail_again_is_not_promised_to_be_resumed(tmp_path, capsys, monkeypatch):
    (tmp_path / "own.toml").write_text("[base]\nenvironment = 'deep-sea'\nsize = 3\n[axes]\nseed = [0, 1]\n")
    mistaken, stopped = load_sweep(str(tmp_path / "own.toml")).runs()
    ended = [Ended(mistaken, None, "needs a package", Fault.USAGE), Ended(stopped, {"status": "interrupted"})]
    monkeypatch.setattr("bootdqn.sweeps.run_sweep.run_sweep", lambda *_, **__: SweepExit(ended, 130))
    assert run_command_line(["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err.endswith("the same command resumes 1 run\n")


def test_a_run_whose_end_could_not_be_written_is_not_finished(tmp_path, capsys, user_code):
    user_code.write("full_disk", FULL_DISK_ELSEWHERE)
    (tmp_path / "own.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\nsize = 3\nmax_episodes = 5\nnum_heads = 2\n[axes]\nseed = [0]\n"
    )
    command = ["sweep", "own.toml", "--out", "full", "--retries", "0", "--import", "full_disk"]
    assert run_command_line(command) == 1
    printed = capsys.readouterr()
    assert "0 of 1 run finished" in printed.out
    assert "could not be written at step 15: [Errno 28] No space left on device" in printed.err
    assert not (tmp_path / "full/seed-0/summary.json").exists()


def test_no_runs_are_no_work(tmp_path):
    assert run_locally([], tmp_path, workers=4).ended == []


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
    while len(list(tmp_path.rglob("timing.jsonl"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    if to_everybody:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 128 + number, errors
    assert "the same command resumes them" in errors
    assert "Traceback" not in errors
    summaries = list(tmp_path.rglob("summary.json"))
    assert len(summaries) == 2
    assert all('"interrupted"' in path.read_text() for path in summaries)


INTERRUPTED_AT_THE_START = """
import os, signal, sys
from pathlib import Path, PurePosixPath
from bootdqn.sweeps.executor import Started
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.sweeps.local import run_locally
from bootdqn.sweeps.processes import end_process, start_process
from bootdqn.config.settings import from_flat

settings = {"environment": "deep-sea", "update_every": 1, "size": 10, "max_episodes": 10**6, "stop_when_solved": False}
runs = [PlannedRun(PurePosixPath(f"seed-{seed}"), from_flat(settings | {"seed": seed})) for seed in range(3)]
started = []

def interrupt(event):
    if isinstance(event, Started):
        started.append(event.run)
        if len(started) == 2:
            os.killpg(0, signal.SIGINT) if sys.argv[2] == "to everybody" else signal.raise_signal(signal.SIGINT)

outcome = run_locally(runs, Path(sys.argv[1]), workers=2, on_event=interrupt)
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


def test_a_signal_between_the_order_and_the_run_stops_this_run_and_no_other(tmp_path, user_code):
    user_code.write(
        "asks_to_stop",
        f"""
        import os, signal

        if os.getpid() != {os.getpid()}:
            signal.raise_signal(signal.SIGTERM)
        """,
    )
    user_code.import_environments("asks_to_stop")
    ended = run_locally([planned("first"), planned("second")], tmp_path, workers=1).ended
    assert [(end.summary["status"], end.error) for end in ended] == [("interrupted", None), ("finished", None)]


def test_a_hangup_that_the_parent_ignores_the_runs_ignore(tmp_path, user_code):
    user_code.write(
        "hangs_up",
        f"""
        import os, signal

        if os.getpid() != {os.getpid()}:
            signal.raise_signal(signal.SIGHUP)
        """,
    )
    user_code.import_environments("hangs_up")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        (end,) = run_locally([planned("one")], tmp_path, workers=1).ended
    finally:
        signal.signal(signal.SIGHUP, before)
    assert end.finished


def test_a_worker_has_the_environment_variables_of_its_parent_at_the_time(monkeypatch):
    for value in ("first", "second"):
        monkeypatch.setenv("BOOTDQN_TEST", value)
        process, connection = start_process(_send_variable)
        assert connection.recv() == value
        end_process(process, connection)


def _send_variable(connection):
    connection.send(os.environ["BOOTDQN_TEST"])


def test_processes_of_a_user_keep_a_fork_server_of_their_own():
    """Ours starts with signals blocked, and with PyTorch imported."""
    process, connection = start_process(_send_signal_mask)
    assert connection.recv() >= set(STOP_SIGNALS)
    end_process(process, connection)
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    own = context.Process(target=_send_signal_mask, args=(theirs,))
    own.start()
    assert not ours.recv() & set(STOP_SIGNALS)
    own.join()


def _send_signal_mask(connection):
    connection.send(signal.pthread_sigmask(signal.SIG_BLOCK, []))
