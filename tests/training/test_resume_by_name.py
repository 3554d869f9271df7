"""Resuming a run by its directory alone."""

import json

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import TrainingError
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import locked
from reference.faults import (
    AUTOGRAD,
    COMPILED,
    EVALUATED,
    STEPS,
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


def test_a_stopped_run_is_resumed_by_its_directory_alone(path, monkeypatch, capsys, unbroken):
    with stopping_at(monkeypatch, 100):
        assert train_by_command(AUTOGRAD, path) == 143
    assert "interrupted" in capsys.readouterr().out
    assert run_command_line(["resume", str(path)]) == 0
    captured = capsys.readouterr()
    assert "Resuming from step 100" in captured.err
    assert "finished" in captured.out
    assert results(path) == unbroken(AUTOGRAD)
    provenance = json.loads(RunDirectory(path).provenance.read_text())
    assert [entry["step"] for entry in provenance["resumed"]] == [100]
    assert provenance["exact"]


def test_resuming_a_finished_run_changes_nothing(path, capsys):
    train(COMPILED, path)
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.iterdir()}
    assert run_command_line(["resume", str(path)]) == 0
    assert "already finished" in capsys.readouterr().out
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.iterdir()} == before


def test_a_directory_that_holds_no_run_cannot_be_resumed_and_is_unchanged(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    for directory, message in (
        ("", "is not a run directory"),
        ("thesis.tex", "is not a run directory"),
        ("nowhere", "does not exist"),
    ):
        assert run_command_line(["resume", str(tmp_path / directory)]) == 2
        assert f"{tmp_path / directory} {message}" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_that_another_process_trains_cannot_be_resumed(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100):
        train(COMPILED, path)
    with locked(path / "lock.json"):
        assert run_command_line(["resume", str(path), "--quiet"]) == 2
    assert "in use by process" in capsys.readouterr().err
    assert_good_checkpoint(path, step=100)


class Takeover:
    """Another process takes the directory of a run over, once, and sees what is in it then."""

    def __init__(self, path):
        self.path, self.found = path, None

    def __call__(self):
        if self.found is None:
            (self.path / "lock.json").unlink()
            holder = {"host": "faraway", "boot_id": "", "pid": 7, "since": "", "token": ""}
            (self.path / "lock.json").write_text(json.dumps(holder))
            self.found = self.files()

    def files(self):
        return {file: file.read_bytes() for file in self.path.rglob("*") if file.is_file()}

    def after(self, step):
        return lambda components: components.loop.step == step and self()


@pytest.mark.parametrize(
    ("settings", "step"),
    [(COMPILED, 70), ({"snapshot_every": 70}, 70), (COMPILED, STEPS)],
    ids=["a checkpoint", "a snapshot", "the end"],
)
def test_a_run_that_another_process_took_over_writes_nothing_more(path, monkeypatch, settings, step):
    take_over = Takeover(path)
    with (
        steps_watched(monkeypatch, take_over.after(step)),
        pytest.raises(TrainingError, match="taken over by process 7 on faraway"),
    ):
        train(settings, path)
    assert take_over.files() == take_over.found


def test_a_run_taken_over_while_it_is_evaluated_writes_nothing_of_that(path, monkeypatch):
    take_over = Takeover(path)

    def reset(walk, observation):
        if walk is not Walk.made[0]:
            take_over()
        return observation

    with disturbed(monkeypatch, reset=reset), pytest.raises(TrainingError, match="taken over by process 7"):
        train(EVALUATED, path)
    assert take_over.files() == take_over.found


def test_a_run_taken_over_whose_environment_raises_writes_no_summary(path, monkeypatch):
    take_over = Takeover(path)

    def fail(*_outcome):
        raise RuntimeError("out of order")

    with (
        steps_watched(monkeypatch, take_over.after(70)),
        disturbed(monkeypatch, step=at_step(71, fail)),
        pytest.raises(TrainingError, match="taken over by process 7"),
    ):
        train(COMPILED, path)
    assert take_over.files() == take_over.found


def test_a_run_whose_episode_cannot_be_replayed_resumes_and_warns_that_it_is_not_exact(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100):
        train(COMPILED, path)
    with disturbed(monkeypatch, step=lambda _, observation, reward, *rest: (observation, reward + 0.5, *rest)):
        assert run_command_line(["resume", str(path), "--quiet"]) == 0
    assert "environment 0: the episode came out differently" in capsys.readouterr().err
    provenance = json.loads(RunDirectory(path).provenance.read_text())
    assert not provenance["exact"]
    assert RunDirectory(path).read_summary()["steps"] == STEPS
