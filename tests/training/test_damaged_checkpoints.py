"""Checkpoints that cannot be used, and restarting."""

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import DamagedFileError
from bootdqn.runs.directory import RunDirectory
from reference.faults import COMPILED, results, stopping_at, train, train_by_command

pytestmark = pytest.mark.usefixtures("one_thread")


def flip_a_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGES = {
    "a bit of the networks": lambda directory: flip_a_bit(directory / "learner.safetensors"),
    "half of the state": lambda directory: (directory / "state.json").write_bytes(
        (directory / "state.json").read_bytes()[:99]
    ),
    "an empty manifest": lambda directory: (directory / "manifest.json").write_bytes(b""),
    "a bit of the manifest": lambda directory: flip_a_bit(directory / "manifest.json"),
    "a file that is gone": lambda directory: (directory / "replay.safetensors").unlink(),
    "everything": lambda directory: [file.unlink() for file in directory.iterdir()],
}


def damage(path, damage_of, count):
    """Damage the newest checkpoints and return their names."""
    newest = sorted(RunDirectory(path).checkpoints.glob("step-*"), reverse=True)[:count]
    for directory in newest:
        damage_of(directory)
    return [directory.name for directory in newest]


@pytest.mark.parametrize("damage_of", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(path, monkeypatch, capsys, unbroken, damage_of):
    with stopping_at(monkeypatch, 100):
        assert train_by_command(COMPILED, path) == 143
    (name,) = damage(path, damage_of, count=1)
    capsys.readouterr()
    assert run_command_line(["resume", str(path)]) == 0
    output = capsys.readouterr().err
    assert f"CHECKPOINT {name} is damaged (" in output
    assert "; resuming from step-000000000096" in output
    assert "Traceback" not in output
    assert results(path) == unbroken(COMPILED)


def test_a_run_without_a_usable_checkpoint_names_the_remedy_and_restarts_on_request(
    path, monkeypatch, capsys, unbroken
):
    with stopping_at(monkeypatch, 100):
        assert train_by_command(COMPILED, path) == 143
    names = damage(path, DAMAGES["a bit of the networks"], count=2)
    capsys.readouterr()
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    for _ in range(2):
        assert train_by_command(COMPILED, path) == 2
        output = capsys.readouterr().err
        assert all(f"{name} is damaged" in output for name in names)
        assert "--restart starts the run again" in output
        assert len(output.splitlines()) == 1
        assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    with pytest.raises(DamagedFileError):
        train(COMPILED, path)
    assert train_by_command(COMPILED, path, "--restart") == 0
    assert results(path) == unbroken(COMPILED)


def test_metrics_shorter_than_their_checkpoint_says_are_no_traceback(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100):
        train(COMPILED, path)
    RunDirectory(path).metrics.write_text("")
    assert run_command_line(["resume", str(path), "--quiet"]) == 2
    output = capsys.readouterr().err
    assert "metrics.jsonl has fewer bytes than its checkpoint recorded" in output
    assert "start again with --restart" in output


@pytest.mark.parametrize("content", ["", '{"status": "fini', "[]"])
def test_a_run_with_a_damaged_summary_can_be_restarted(path, capsys, content):
    train(COMPILED, path)
    found = results(path)
    RunDirectory(path).summary.write_text(content)
    for attempt in (lambda *more: train_by_command(COMPILED, path, *more),
                    lambda *more: run_command_line(["resume", str(path), "--quiet", *more])):  # fmt: skip
        RunDirectory(path).summary.write_text(content)
        assert attempt() == 2
        output = capsys.readouterr().err
        assert "summary.json" in output
        assert "--restart starts the run again" in output
        assert attempt("--restart") == 0
        assert results(path) == found


def test_a_restart_does_not_take_the_directory_of_another_run(path, capsys):
    train(COMPILED, path)
    found = results(path)
    assert train_by_command({"seed": 4}, path, "--restart") == 2
    assert "holds another configuration (seed: 3 there, 4 here)" in capsys.readouterr().err
    assert results(path) == found


def test_a_finished_run_is_restarted_on_request_and_has_the_same_results(path, capsys):
    settings = {"snapshot_every": 100}
    train(settings, path)
    found = results(path)
    stale = RunDirectory(path).snapshots / "step-000000000007.safetensors"
    stale.write_bytes(b"of another time")
    assert train_by_command(settings, path) == 0
    assert "already finished" in capsys.readouterr().out
    assert stale.exists()
    assert train_by_command(settings, path, "--restart") == 0
    assert "already" not in capsys.readouterr().out
    assert results(path) == found


def test_a_checkpoint_of_another_format_names_the_version_to_resume_with(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100), monkeypatch.context() as patch:
        patch.setattr("bootdqn.runs.checkpoint.FORMAT_VERSION", 1)
        assert train_by_command(COMPILED, path) == 143
    assert run_command_line(["resume", str(path)]) == 2
    assert "of format 1, and this version reads 3: resume with the version that made it" in capsys.readouterr().err
