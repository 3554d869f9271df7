"""Links in a run directory lead nowhere: what they point to is neither written, nor cut, nor removed."""

import os
import shutil

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.runs.directory import RunDirectory
from reference.faults import COMPILED, results, stopping_at, train, train_by_command

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = {"snapshot_every": 50}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped in the middle, with checkpoints and snapshots."""
    path = tmp_path_factory.mktemp("links") / "run"
    with pytest.MonkeyPatch.context() as patch, stopping_at(patch, 100):
        assert train(SETTINGS, path).exit_code == 143
    return path


@pytest.fixture
def copy(stopped, path):
    """A copy of that run, to be tampered with."""
    shutil.copytree(stopped, path)
    return RunDirectory(path)


@pytest.fixture
def elsewhere(tmp_path):
    """A directory of the user's own beside the run."""
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "thesis.txt").write_text("four years of work\n" * 20)
    return outside


def move_out(path, outside):
    """Put `path` where nothing of the run should be touched, and a link in its place; return where it is now."""
    moved = outside / path.name
    shutil.move(path, moved)
    path.symlink_to(moved)
    return moved


def contents(path):
    return {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def resume_error(capsys, path, *words):
    """Resume the run in `path`, which must be an error of one line; return the line."""
    assert run_command_line(["resume", str(path), "--quiet", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("name", ["metrics", "timing", "checkpoints", "snapshots", "weights", "summary", "provenance"])
@pytest.mark.parametrize("words", [(), ("--restart",)], ids=["resumed", "restarted"])
def test_the_target_of_a_link_is_unchanged(copy, elsewhere, capsys, name, words):
    move_out(getattr(copy, name), elsewhere)
    before = contents(elsewhere)
    link = getattr(copy, name)
    assert resume_error(capsys, copy.path, *words).startswith(f"bootdqn: {link} is a symbolic link, not a ")
    assert contents(elsewhere) == before


def test_segments_behind_a_link_are_not_tidied_up(copy, elsewhere, capsys):
    moved = move_out(copy.checkpoints / "segments", elsewhere)
    (moved / "thesis.txt").write_text("four years of work")
    before = contents(elsewhere)
    assert "segments is a symbolic link, not a directory" in resume_error(capsys, copy.path)
    assert contents(elsewhere) == before


def test_a_checkpoint_behind_a_link_is_not_used_and_not_removed(copy, elsewhere, capsys, unbroken):
    newest = max(copy.checkpoints.glob("step-*"))
    move_out(newest, elsewhere)
    before = contents(elsewhere)
    assert run_command_line(["resume", str(copy.path), "--quiet"]) == 0
    assert f"{newest.name} is damaged ({newest} is a symbolic link, not a directory" in capsys.readouterr().err
    assert contents(elsewhere) == before
    assert results(copy.path) == unbroken(SETTINGS)


@pytest.mark.parametrize("name", ["metrics", "timing"])
def test_a_file_with_another_name_elsewhere_is_not_written(copy, elsewhere, capsys, name):
    file = getattr(copy, name)
    os.link(file, elsewhere / "backup")
    before = contents(elsewhere)
    assert f"{file} has 2 names (hard links)" in resume_error(capsys, copy.path)
    assert contents(elsewhere) == before


def test_only_files_of_the_run_are_ever_removed(copy):
    notes = [
        copy.checkpoints / "notes.txt",
        copy.checkpoints / "segments/notes.txt",
        copy.checkpoints / "old/manifest.json",
        copy.snapshots / "best.safetensors",
        copy.path / "notes.txt",
    ]
    for note in notes:
        note.parent.mkdir(exist_ok=True)
        note.write_text("mine")
    assert run_command_line(["resume", str(copy.path), "--quiet"]) == 0
    assert run_command_line(["resume", str(copy.path), "--quiet", "--restart"]) == 0
    assert {path for path in copy.checkpoints.rglob("*") if path.is_file()} == set(notes[:3])
    assert all(note.read_text() == "mine" for note in notes)


def test_the_run_directory_itself_may_be_a_link(copy, tmp_path, unbroken):
    link = tmp_path / "link"
    link.symlink_to(copy.path)
    assert run_command_line(["resume", str(link), "--quiet"]) == 0
    assert results(copy.path) == unbroken(SETTINGS)


@pytest.mark.parametrize("name", ["config", "lock", "metrics", "summary", "checkpoints"])
def test_a_dangling_link_is_not_treated_as_a_missing_file(path, elsewhere, capsys, name):
    path.mkdir()
    getattr(RunDirectory(path), name).symlink_to(elsewhere / "not-there")
    assert train_by_command(COMPILED, path) == 2
    assert f"{getattr(RunDirectory(path), name)} is a symbolic link" in capsys.readouterr().err
    assert not (elsewhere / "not-there").exists()
