"""Environments that return invalid values, or raise: the run stops with the reason, and resumes once they are fixed."""

import inspect

import numpy as np
import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import TrainingError
from bootdqn.runs.directory import RunDirectory
from reference.faults import (
    AUTOGRAD,
    CHECKPOINT_EVERY,
    COMPILED,
    LEARNERS,
    LEARNING_STARTS,
    SHARED,
    STEPS,
    Walk,
    assert_failed,
    assert_good_checkpoint,
    at_step,
    disturbed,
    results,
    train,
    train_by_command,
    with_observation,
    with_reward,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(params=["compiled", "autograd"])
def learner(request):
    return LEARNERS[request.param]


# Numbers from the environment that are none


@pytest.mark.parametrize("reward", [float("nan"), -float("inf"), 1e39, np.float32("inf")], ids=repr)
def test_a_reward_that_cannot_be_stored_stops_the_run_at_once(path, monkeypatch, reward):
    with disturbed(monkeypatch, step=at_step(100, with_reward(reward))):
        with pytest.raises(TrainingError, match="environment 0 gave the reward") as caught:
            train(COMPILED, path)
        assert str(float(reward)) in str(caught.value)
        assert Walk.made[0].steps == 100
    assert_failed(path, caught.value, step=99)
    assert RunDirectory(path).read_summary()["updates"] == 99 - LEARNING_STARTS + 1
    assert_good_checkpoint(path, step=96)


@pytest.mark.parametrize("message", ["half a \ud800 character", "a \0", "x" * 10**7], ids=["surrogate", "NUL", "long"])
def test_a_run_can_be_resumed_after_an_error_whose_text_cannot_be_stored_unchanged(
    path, monkeypatch, unbroken, message
):
    def raises(*_):
        raise ValueError(message)

    with disturbed(monkeypatch, step=at_step(100, raises)), pytest.raises(TrainingError, match="raised ValueError"):
        train(COMPILED, path)
    summary = RunDirectory(path).read_summary()
    assert summary["status"] == "failed"
    assert "environment 0 raised ValueError" in summary["error"]
    train(COMPILED, path)
    assert results(path) == unbroken(COMPILED)


def test_the_largest_reward_that_can_be_stored_is_taken(path, monkeypatch):
    largest = float(np.finfo(np.float32).max)
    with disturbed(monkeypatch, step=at_step(5, with_reward(largest))):
        train({"learning_starts": STEPS + 1}, path)
    assert max(record["return"] for record in RunDirectory(path).read_metrics("episode")) == largest


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_observation_that_is_not_finite_stops_the_run_at_once(path, monkeypatch, value):
    strange = np.float32([0.5, value, 0])
    with (
        disturbed(monkeypatch, step=at_step(100, with_observation(strange))),
        pytest.raises(TrainingError, match=r"environment 0 gave an observation .* not finite at \[1\]") as caught,
    ):
        train(SHARED, path)
    assert_failed(path, caught.value, step=99)
    assert_good_checkpoint(path, step=96)


def test_an_observation_that_is_not_finite_stops_the_run_at_the_start_of_an_episode(path, monkeypatch):
    def disturbance(walk, observation):
        return observation * np.float32("nan") if walk.resets == 5 else observation

    with disturbed(monkeypatch, reset=disturbance):
        with pytest.raises(TrainingError, match="environment 0 gave an observation that is not finite"):
            train(SHARED, path)
        assert Walk.made[0].resets == 5
    assert RunDirectory(path).read_summary()["episodes"] == 3, "the round in which the fourth ended did not end"


@pytest.mark.parametrize(
    ("settings", "outcome_of", "complaint"),
    [
        (AUTOGRAD, with_reward(float("nan")), "reward nan"),
        (COMPILED, with_observation(10), r"observation 10, not one of 0\.\.9"),
        (COMPILED, with_observation(-1), r"observation -1, not one of 0\.\.9"),
        (COMPILED, with_observation(float("nan")), r"observation nan, not one of 0\.\.9"),
        (COMPILED, with_observation(None), "TypeError"),
        (COMPILED, with_reward(None), "TypeError"),
        (COMPILED, with_reward("much"), "ValueError"),
        (COMPILED, lambda *outcome: outcome[:4], "ValueError"),
        (SHARED, with_observation([0.5, float("nan"), 0.5]), "not finite at"),
        (SHARED, with_observation(np.zeros(1, np.float32)), r"of shape \(1,\), not \(3,\)"),
        (SHARED, with_observation(np.zeros((3, 1), np.float32)), r"of shape \(3, 1\), not \(3,\)"),
    ],
)
def test_invalid_values_from_the_environment_are_blamed_on_it(path, monkeypatch, settings, outcome_of, complaint):
    with (
        disturbed(monkeypatch, step=at_step(100, outcome_of)),
        pytest.raises(TrainingError, match=f"environment 0 (gave|raised) .*{complaint}") as caught,
    ):
        train(settings, path)
    assert_failed(path, caught.value, step=99)
    assert_good_checkpoint(path, step=96)


def test_of_several_environments_the_right_one_is_named(path, monkeypatch):
    with (
        disturbed(monkeypatch, step=at_step(20, with_reward(float("nan")), env=2)),
        pytest.raises(TrainingError, match="environment 2 gave the reward nan"),
    ):
        train({"num_envs": 3}, path)


# An environment that raises


class OutOfOrderError(Exception):
    pass


def raising(error):
    def outcome_of(*_):
        raise error

    return outcome_of


@pytest.mark.parametrize("error", [OutOfOrderError("the motor is hot"), OSError("the motor is hot")], ids=repr)
def test_an_error_of_the_environment_ends_the_run_which_finishes_once_it_is_fixed(
    path, monkeypatch, unbroken, learner, error
):
    with (
        disturbed(monkeypatch, step=at_step(100, raising(error))),
        pytest.raises(TrainingError) as caught,
    ):
        train(learner, path)
    lines, first = inspect.getsourcelines(raising)
    line = first + next(number for number, text in enumerate(lines) if "raise error" in text)
    message = (
        f"environment 0 raised {type(error).__name__} after step 99: the motor is hot in {__file__}, line {line} (step"
    )
    assert message in str(caught.value)
    assert_failed(path, caught.value, step=99)
    assert any("in step" in line for line in RunDirectory(path).read_summary()["traceback"])
    assert_good_checkpoint(path, step=96)
    train(learner, path)
    assert results(path) == unbroken(learner)


def test_an_environment_that_cannot_reset_ends_the_run_which_finishes_once_it_is_fixed(path, monkeypatch, unbroken):
    def jammed(walk, observation):
        if walk.resets == 5:
            raise OutOfOrderError("the door is jammed")
        return observation

    with (
        disturbed(monkeypatch, reset=jammed),
        pytest.raises(TrainingError, match=r"environment 0 raised OutOfOrderError .*the door is jammed") as caught,
    ):
        train(COMPILED, path)
    steps = RunDirectory(path).read_summary()["steps"]
    assert_failed(path, caught.value, step=steps)
    assert_good_checkpoint(path, step=steps // CHECKPOINT_EVERY * CHECKPOINT_EVERY)
    train(COMPILED, path)
    assert results(path) == unbroken(COMPILED)


def test_an_environment_that_never_starts_leaves_a_run_directory_that_a_fixed_one_can_use(path, monkeypatch, unbroken):
    jammed = raising(OutOfOrderError("the door is jammed"))
    complaint = "environment 0 raised OutOfOrderError after step 0: the door is jammed"
    with disturbed(monkeypatch, reset=jammed), pytest.raises(TrainingError, match=complaint):
        train(COMPILED, path)
    assert not (path / "lock.json").exists()
    train(COMPILED, path)
    assert results(path) == unbroken(COMPILED)


def test_an_environment_that_runs_out_of_memory_ends_the_run_and_is_not_blamed(path, monkeypatch, capsys):
    none_left = raising(MemoryError("none left"))
    with disturbed(monkeypatch, step=at_step(100, none_left)):
        assert train_by_command(COMPILED, path) == 2
    assert capsys.readouterr().err.startswith("bootdqn: not enough memory (none left); lower --replay-capacity")
    summary = RunDirectory(path).read_summary()
    assert (summary["status"], summary["error"]) == ("failed", "not enough memory: none left (step 99)")
    assert len(list(RunDirectory(path).read_metrics("episode"))) == summary["episodes"]
    assert_good_checkpoint(path, step=96)


@pytest.mark.parametrize("outcome_of", [with_reward(float("nan")), raising(OutOfOrderError("the motor is hot"))])
def test_the_command_line_reports_the_error_in_one_line_and_can_resume_the_run(
    path, monkeypatch, capsys, unbroken, outcome_of
):
    with disturbed(monkeypatch, step=at_step(100, outcome_of)):
        assert train_by_command(COMPILED, path) == 1
    message = capsys.readouterr().err
    assert message.startswith("bootdqn: environment 0 ")
    assert len(message.splitlines()) == 1
    assert run_command_line(["resume", str(path)]) == 0
    assert "Resuming from step 96" in capsys.readouterr().err
    assert results(path) == unbroken(COMPILED)
