"""Signals while a run trains: it stops, and its progress is saved."""

import json
import signal

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.runs import checkpoint
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.signals import RepeatedSignalError, stop_on_signal
from reference.faults import (
    COMPILED,
    EVALUATED,
    Walk,
    assert_good_checkpoint,
    at_step,
    disturbed,
    results,
    steps_watched,
    stopping_at,
    train,
    train_by_command,
)

pytestmark = pytest.mark.usefixtures("one_thread")


def test_an_evaluation_interrupted_by_a_signal_is_repeated_on_resuming(path, monkeypatch, unbroken):
    def ask_to_stop(walk, observation):
        _training, *evaluations = Walk.made
        if walk in evaluations[1:2] and walk.resets == 2:
            signal.raise_signal(signal.SIGTERM)
        return observation

    with disturbed(monkeypatch, reset=ask_to_stop):
        outcome = train(EVALUATED, path)
    assert outcome.exit_code == 143
    directory = RunDirectory(path)
    assert directory.read_summary()["status"] == "interrupted"
    assert [record["step"] for record in directory.read_metrics("evaluation")] == [64]
    assert_good_checkpoint(path, step=128)
    assert train(EVALUATED, path).exit_code == 0
    assert [record["step"] for record in directory.read_metrics("evaluation")] == [64, 128, 192]
    assert results(path) == unbroken(EVALUATED)


def test_a_second_interrupt_leaves_at_once_and_the_last_checkpoint_is_good(path, monkeypatch, unbroken):
    def ask_twice(*outcome):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return outcome

    with disturbed(monkeypatch, step=at_step(100, ask_twice)):
        assert train_by_command(COMPILED, path) == 130
        assert Walk.made[0].steps == 100
    assert RunDirectory(path).read_summary() is None
    assert_good_checkpoint(path, step=96)
    train(COMPILED, path)
    assert results(path) == unbroken(COMPILED)


def test_a_second_interrupt_while_a_checkpoint_is_written_leaves_the_one_before(path, monkeypatch, unbroken):
    original = checkpoint.write_bytes_atomically

    def interrupted(file, content):
        if json.loads(content).get("step") == 96:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        original(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_bytes_atomically", interrupted)
        assert train_by_command(COMPILED, path) == 130
    assert_good_checkpoint(path, step=48)
    train(COMPILED, path)
    assert results(path) == unbroken(COMPILED)


def test_one_signal_of_each_kind_is_one_request(path, monkeypatch):
    def both(components):
        if components.loop.step == 100:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    with steps_watched(monkeypatch, both):
        assert train(COMPILED, path).exit_code == 130
    assert_good_checkpoint(path, step=100)


def test_a_request_from_before_the_run_counts_and_is_the_same_one(path):
    with stop_on_signal() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert train(COMPILED, path).exit_code == 143
        assert stop.exit_code == 143
        with pytest.raises(RepeatedSignalError):
            signal.raise_signal(signal.SIGTERM)
    assert_good_checkpoint(path, step=0)


@pytest.fixture
def on_hangup():
    """Return a function that returns how the process handles SIGHUP outside of a run."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda handler: signal.signal(signal.SIGHUP, handler)
    signal.signal(signal.SIGHUP, before)


def test_a_hangup_is_one_request_however_often_it_comes(path, monkeypatch, on_hangup, unbroken):
    """A shell that dies signals its job, and so does the kernel."""
    on_hangup(signal.SIG_DFL)

    def twice(components):
        if components.loop.step == 100:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)

    with steps_watched(monkeypatch, twice):
        assert train(COMPILED, path).exit_code == 129
    assert_good_checkpoint(path, step=100)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    train(COMPILED, path)
    assert results(path) == unbroken(COMPILED)


def test_a_hangup_that_is_ignored_stays_ignored(path, monkeypatch, on_hangup, unbroken):
    on_hangup(signal.SIG_IGN)
    with stopping_at(monkeypatch, 100, number=signal.SIGHUP):
        assert train(COMPILED, path).exit_code == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert results(path) == unbroken(COMPILED)


def test_an_interrupted_run_prints_how_to_resume(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100, number=signal.SIGINT):
        assert train_by_command(COMPILED, path) == 130
    assert capsys.readouterr().err == f"bootdqn resume {path} resumes it\n"
    assert run_command_line(["resume", str(path), "--quiet"]) == 0
    assert "resumes it" not in capsys.readouterr().err
