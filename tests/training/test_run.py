"""One run directory: its files, its owner, and its state after a stop."""

import fcntl
import json
import math
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.backends import cuda, cudnn

from bootdqn.common.errors import UsageError
from bootdqn.common.text import format_number
from bootdqn.config.envs import AtariConfig, DeepSeaConfig, GymConfig
from bootdqn.config.settings import from_flat, to_flat
from bootdqn.config.train import resolve
from bootdqn.envs.deep_sea import SolvedRule
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import locked
from bootdqn.runs.provenance import provenance, source_of
from bootdqn.runs.signals import STOP_SIGNALS
from bootdqn.runs.summary import describe_result, summary_line
from bootdqn.training import run as run_module
from bootdqn.training.callbacks import RunCallbacks
from bootdqn.training.loop import EpisodeResult, StepActions, StepResult
from bootdqn.training.run import default_run_dir, train_run
from bootdqn.training.stopping import make_stopping_rule
from reference.planned import SMALL

MODES = [
    (cudnn, "allow_tf32"),
    (cuda.matmul, "allow_tf32"),
    (cuda.matmul, "allow_bf16_reduced_precision_reduction"),
    (cudnn, "deterministic"),
    (cudnn, "benchmark"),
]


def step_result(finished, step=0):
    """Return a round that ended these episodes, for those who do not ask how the agent acted."""
    acting = StepActions(np.zeros((1, 2, 2), np.float32), np.zeros(1, np.int64), np.zeros(1, np.int64))
    return StepResult(step, acting, finished, [])


def config(**settings):
    return from_flat(SMALL | {"stop_when_solved": False, "log_every": 10} | settings)


def test_the_directory_of_a_finished_run_is_complete(tmp_path):
    shown = []
    outcome = train_run(config(), tmp_path / "run", RunCallbacks(shown.append))
    directory = RunDirectory(tmp_path / "run")
    assert sorted(path.name for path in directory.path.iterdir()) == [
        "config.json",
        "metrics.jsonl",
        "provenance.json",
        "summary.json",
        "timing.jsonl",
        "weights.safetensors",
    ]
    assert directory.read_config() == to_flat(resolve(config()))
    episodes = list(directory.read_metrics("episode"))
    assert [record["episode"] for record in episodes] == list(range(1, 41))
    assert [record["step"] for record in episodes] == list(range(4, 161, 4))
    summary = directory.read_summary()
    assert summary == outcome.summary
    assert outcome.exit_code == 0
    assert (summary["status"], summary["steps"], summary["episodes"]) == ("finished", 160, 40)
    assert summary["good_episodes"] == sum(not record["bad"] for record in episodes)
    assert summary["bad_episodes"] == sum(record["bad"] for record in episodes)
    updates = list(directory.read_metrics("update"))
    assert [record["updates"] for record in updates] == [10, 20, 30]
    assert summary["updates"] == 33
    assert all(record["loss"] >= 0 and record["td_error"] >= 0 for record in updates)
    provenance = json.loads(directory.provenance.read_text())
    assert provenance["packages"]["torch"]
    assert provenance["threads"] == 1


def test_update_records_are_means_over_the_updates_since_the_last(tmp_path):
    train_run(config(log_every=1), tmp_path / "each")
    train_run(config(log_every=11), tmp_path / "eleven")
    each = [record["loss"] for record in RunDirectory(tmp_path / "each").read_metrics("update")]
    eleven = [record["loss"] for record in RunDirectory(tmp_path / "eleven").read_metrics("update")]
    windows = ((0, 10), (10, 11), (11, 22), (22, 33))
    assert eleven == pytest.approx([sum(each[start:end]) / (end - start) for start, end in windows])


def test_two_runs_of_one_configuration_have_equal_metrics_byte_for_byte(tmp_path):
    for name in ("one", "two"):
        train_run(config(), tmp_path / name)
    assert (tmp_path / "one/metrics.jsonl").read_bytes() == (tmp_path / "two/metrics.jsonl").read_bytes()
    assert (tmp_path / "one/config.json").read_bytes() == (tmp_path / "two/config.json").read_bytes()


def test_a_solved_run_stops_when_both_readings_hold(tmp_path):
    settings = {"size": 3, "num_heads": 20, "hidden_sizes": [50, 50], "max_episodes": 1000, "stop_when_solved": True}
    summary = train_run(config(**settings), tmp_path / "run").summary
    assert summary["status"] == "finished"
    assert summary["episodes"] == max(summary["solved_at"], summary["solved_at_strict"]) < 1000


def test_episodes_beyond_the_cap_are_recorded_and_do_not_count(tmp_path):
    summary = train_run(config(num_envs=4, max_episodes=10), tmp_path / "run").summary
    episodes = list(RunDirectory(tmp_path / "run").read_metrics("episode"))
    assert [record["episode"] for record in episodes] == list(range(1, 13))
    assert summary["episodes"] == summary["good_episodes"] + summary["bad_episodes"] == 10
    assert summary["bad_episodes"] == sum(record["bad"] for record in episodes[:10])
    assert "not solved in 10 episodes" in summary_line(summary | {"solved_at_strict": None})


@given(bad=st.lists(st.booleans(), min_size=1, max_size=60), num_envs=st.integers(1, 7), cap=st.integers(1, 40))
def test_a_cap_counts_the_same_episodes_however_many_finish_at_a_time(bad, num_envs, cap):
    rule, counts = make_stopping_rule(DeepSeaConfig(max_episodes=cap)), SolvedRule()
    for start in range(0, len(bad), num_envs):
        finished = [EpisodeResult(0, 0, 1, 0.0, 0.0, {"bad_episode": one}) for one in bad[start : start + num_envs]]
        rule.add_step(step_result(finished, start))
    for one in bad[:cap]:
        counts.add_episode(bad=one)
    assert rule.get_state() == asdict(counts) | {"beyond_the_cap": bad[cap:]}
    assert rule.completed <= 1


def played(returns, step=0):
    return step_result([EpisodeResult(0, 0, 1, one, 0.0, {}) for one in returns], step)


@given(
    rounds=st.lists(st.lists(st.floats(-1e6, 1e6), max_size=4), max_size=90),
    stop=st.integers(0, 90),
    evaluations=st.lists(st.floats(-10, 10), max_size=2),
)
def test_the_recent_return_is_the_mean_of_the_last_hundred_episodes_stopped_in_between_or_not(
    rounds, stop, evaluations
):
    rule = make_stopping_rule(GymConfig())
    for number, returns in enumerate(rounds):
        if number == stop:
            state = json.loads(json.dumps(rule.get_state()))
            rule = make_stopping_rule(GymConfig())
            rule.set_state(state)
        rule.add_step(played(returns, step=number))
    for one in evaluations:
        rule.add_evaluation(one)
    every = [one for returns in rounds for one in returns]
    found = rule.summary()["recent_return"]
    if every:
        assert found == pytest.approx(math.fsum(every[-100:]) / len(every[-100:]), abs=1e-6)
        assert f"recent return {format_number(found)}" in rule.note
    else:
        assert found is None
        assert "no episode finished yet" in rule.note
    assert ("last evaluation" in rule.note) == bool(evaluations)


def test_the_progress_of_deep_sea_distinguishes_both_definitions_of_solved():
    rule = make_stopping_rule(DeepSeaConfig())
    notes = []
    for bad in [True] * 8 + [False] * 10:
        rule.add_step(step_result([EpisodeResult(0, 0, 1, 0.0, 0.0, {"bad_episode": bad})]))
        notes.append(rule.note)
    assert notes[0] == "regret 1.000, not solved yet"
    assert notes[8].startswith("regret 0.889, not solved yet (by bsuite's rule, ")
    assert notes[17] == (
        "regret 0.444, solved at episode 18 (by bsuite's rule, which does not ask for 10 good ones, at episode 9)"
    )


def test_progress_is_in_the_unit_of_the_budget():
    atari, gym = make_stopping_rule(AtariConfig(frame_skip=4)), make_stopping_rule(GymConfig())
    for rule in (atari, gym):
        rule.add_step(step_result([], 864))
    assert (atari.position, gym.position) == ("3,456 frames", "864 steps")


def test_the_last_line_counts_in_the_unit_of_the_flags():
    atari = {"status": "finished", "steps": 250, "frames": 1000, "seconds": 61.0, "max_evaluation": 3.0}
    assert summary_line(atari) == "finished, best evaluation 3 (1,000 frames, 1m 01s)"
    assert summary_line(atari | {"frames": 250}) == "finished, best evaluation 3 (250 steps, 1m 01s)"


def test_the_recent_return_of_a_run_is_that_of_its_records(tmp_path):
    settings = {"environment": "gym", "env_id": "FrozenLake-v1", "total_steps": 1500, "hidden_sizes": [8, 8]}
    summary = train_run(from_flat(settings | {"num_heads": 2, "eval_every_steps": None}), tmp_path).summary
    returns = [record["return"] for record in RunDirectory(tmp_path).read_metrics("episode")]
    assert len(returns) > 100
    assert summary["recent_return"] == sum(returns[-100:]) / 100
    mean = format_number(summary["recent_return"])
    expected = f"finished, mean return {mean} of the last 100 episodes, not evaluated (1,500"
    assert summary_line(summary).startswith(expected)


@pytest.mark.parametrize(
    ("found", "description"),
    [
        (
            {"solved_at": 53, "solved_at_strict": 57, "episodes": 57},
            "solved at episode 57 (by bsuite's rule, which does not ask for 10 good ones, at episode 53)",
        ),
        ({"solved_at": None, "solved_at_strict": None, "episodes": 40}, "not solved in 40 episodes"),
        ({"recent_return": 20.0, "episodes": 1}, "mean return 20 of the last 1 episode, not evaluated"),
        (
            {"recent_return": -0.005, "episodes": 7, "max_evaluation": 0.0625},
            "mean return -0.005 of the last 7 episodes, best evaluation 0.0625",
        ),
        ({"recent_return": None, "episodes": 0, "max_evaluation": None}, "not evaluated"),
        ({"episodes": 3, "max_evaluation": 1234.5}, "best evaluation 1,234"),
    ],
)
def test_the_result_of_a_run_is_described_from_its_summary(found, description):
    assert describe_result(found) == description


def test_the_directory_of_a_finished_run_is_unchanged(tmp_path):
    train_run(config(), tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    outcome = train_run(config(), tmp_path / "run")
    assert outcome.already_finished
    assert outcome.exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_directory_with_another_configuration_is_a_usage_error_and_unchanged(tmp_path):
    train_run(config(), tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UsageError, match=r"num_heads: 4 there, 5 here, .*seed: 0 there, 9 here"):
        train_run(config(num_heads=5, seed=9), tmp_path / "run")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_directory_that_holds_no_run_is_a_usage_error(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="is not a run directory"):
        train_run(config(), tmp_path)
    with pytest.raises(UsageError, match="is not a run directory"):
        train_run(config(), tmp_path / "thesis.tex")


def test_an_empty_directory_is_accepted(tmp_path):
    assert train_run(config(), tmp_path).exit_code == 0


def test_a_run_without_a_checkpoint_is_restarted_only_on_request(tmp_path):
    train_run(config(), tmp_path / "whole")
    train_run(config(), tmp_path / "begun")
    directory = RunDirectory(tmp_path / "begun")
    directory.summary.unlink()
    directory.metrics.write_text('{"kind": "episode"}\n{"half')
    with pytest.raises(UsageError, match="--restart starts the run again"):
        train_run(config(), directory.path)
    train_run(config(), directory.path, restart=True)
    assert directory.metrics.read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()
    assert directory.read_summary()["state_sha256"] == RunDirectory(tmp_path / "whole").read_summary()["state_sha256"]


def test_a_directory_that_another_process_trains_in_is_an_error(tmp_path):
    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run" / "lock.json"), pytest.raises(UsageError, match="in use by process"):
        train_run(config(), tmp_path / "run")
    assert train_run(config(), tmp_path / "run").exit_code == 0


def test_half_written_files_of_a_crash_do_not_occupy_the_directory(tmp_path):
    (tmp_path / ".config.json.part").write_text("{")
    assert train_run(config(), tmp_path).exit_code == 0


def test_the_provenance_knows_what_was_changed_in_the_whole_package(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/losses.py").write_text("old\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    assert source_of(tmp_path)["dirty"] is False
    (tmp_path / "agent/losses.py").write_text("new\n")
    (tmp_path / "untracked.py").write_text("")
    source = source_of(tmp_path)
    assert source["dirty"] is True
    assert "+new" in source["diff"]
    assert any("untracked.py" in line for line in source["changed"])
    assert provenance(1, "gymnasium")["source"].keys() == source.keys()


def test_the_default_run_directory_is_readable_and_never_that_of_another_run(tmp_path):
    first = default_run_dir(config(strategy="evoi:reduce=sum", seed=3), tmp_path)
    assert first == tmp_path / "deep-sea-4-evoi-reduce-sum-seed3"
    train_run(config(strategy="evoi:reduce=sum", seed=3), first)
    assert default_run_dir(config(strategy="evoi:reduce=sum", seed=3), tmp_path) == first
    assert default_run_dir(config(strategy="evoi:reduce=sum", seed=3, num_heads=9), tmp_path) == first.with_name(
        first.name + "-2"
    )


def modes():
    return tuple(getattr(backend, name) for backend, name in MODES)


@pytest.fixture
def restored_modes():
    before = modes()
    yield
    for (backend, name), value in zip(MODES, before, strict=True):
        setattr(backend, name, value)


@pytest.mark.usefixtures("restored_modes")
def test_a_run_trains_with_plain_floats_and_leaves_their_modes_as_they_were(tmp_path, monkeypatch):
    seen = []
    original = run_module.make_components
    monkeypatch.setattr(run_module, "make_components", lambda config: seen.append(modes()) or original(config))
    for before in [(True, True, True, False, True), (False, False, False, True, False)]:
        for (backend, name), value in zip(MODES, before, strict=True):
            setattr(backend, name, value)
        train_run(config(), tmp_path / f"run{before[0]}")
        assert modes() == before
    assert seen == [(False, False, False, True, False)] * 2


@pytest.mark.parametrize(("set_before", "expected"), [(None, ":4096:8"), (":16:8", ":16:8")])
def test_the_workspace_of_cublas_is_fixed_before_cuda_starts(tmp_path, monkeypatch, set_before, expected):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # restored after the test
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    if set_before:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", set_before)
    seen, original = [], run_module.make_components
    monkeypatch.setattr(
        run_module, "make_components", lambda c: seen.append(os.environ["CUBLAS_WORKSPACE_CONFIG"]) or original(c)
    )
    train_run(config(max_episodes=2), tmp_path / "run")
    assert seen == [expected]
    assert not torch.cuda.is_initialized()


def test_training_leaves_threads_and_signals_as_they_were(tmp_path):
    import torch

    torch.set_num_threads(2)
    handlers = [signal.getsignal(number) for number in STOP_SIGNALS]
    train_run(config(), tmp_path / "run")
    assert torch.get_num_threads() == 2
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == handlers
    torch.set_num_threads(1)


@pytest.fixture
def started(tmp_path):
    """Return a function that starts a long run in `tmp_path`, with SIGHUP not ignored; here it ends at the latest."""
    processes = []

    def start(prepare=lambda: None, **options):
        def prepared():
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests run under
            prepare()

        command = [
            sys.executable,
            "-m",
            "bootdqn",
            "train",
            "deep-sea",
            "--size",
            "30",
            "--run-dir",
            str(tmp_path / "run"),
        ]
        processes.append(subprocess.Popen(command, preexec_fn=prepared, **options))  # noqa: PLW1509 - no threads yet
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def assert_interrupted(path):
    directory = RunDirectory(path)
    assert directory.read_summary()["status"] == "interrupted"
    assert directory.read_summary()["episodes"] == len(list(directory.read_metrics("episode")))
    assert not directory.lock.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_a_readable_run_directory_and_the_usual_exit_code(tmp_path, started, number, code):
    path = tmp_path / "run"
    process = started(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (path / "timing.jsonl").exists() or process.poll() is not None)
    os.kill(process.pid, number)
    output, errors = process.communicate(timeout=240)
    assert process.returncode == code, errors
    assert "interrupted" in output
    assert_interrupted(path)


def test_a_run_whose_terminal_is_lost_is_saved(tmp_path, started):
    master, terminal = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    process = started(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), start_new_session=True, **streams)
    os.close(terminal)
    wait_until(lambda: os.read(master, 10_000) and (tmp_path / "run/timing.jsonl").exists())
    os.close(master)
    assert process.wait(timeout=240) == 129
    assert_interrupted(tmp_path / "run")


def wait_until(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
