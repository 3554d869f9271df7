"""Files that are whole or not there, and run directories that can be damaged."""

import json
import os

import pytest

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import write_json_atomically, write_text_atomically
from bootdqn.runs.directory import RunDirectory, find_runs


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.json"
    write_json_atomically(path, {"old": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json_atomically(path, {"new": float("nan")})
    assert json.loads(path.read_text()) == {"old": 1}


def test_a_write_leaves_nothing_else_behind(tmp_path):
    write_text_atomically(tmp_path / "a.txt", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_two_writers_of_one_file_do_not_interfere(tmp_path, monkeypatch):
    path, sync = tmp_path / "a.txt", os.fsync

    def let_another_write_in_between(handle):
        monkeypatch.setattr(os, "fsync", sync)
        write_text_atomically(path, "of the other")
        sync(handle)

    monkeypatch.setattr(os, "fsync", let_another_write_in_between)
    write_text_atomically(path, "of the one")
    assert path.read_text() == "of the one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_half_written_last_line_is_skipped(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.metrics.write_text('{"kind": "episode", "n": 1}\n{"kind": "update"}\n{"kind": "epi')
    assert list(directory.read_metrics("episode")) == [{"kind": "episode", "n": 1}]
    assert len(list(directory.read_metrics())) == 2


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.metrics.write_text('{"kind": "episode"}\nrubbish\n{"kind": "episode"}\n')
    with pytest.raises(DamagedFileError, match="line 2"):
        list(directory.read_metrics())


@pytest.mark.parametrize("content", ["", "[1, 2]", "{", "\x00\x01", "[" * 100_000])
def test_a_damaged_configuration_is_a_typed_error(tmp_path, content):
    directory = RunDirectory(tmp_path)
    directory.config.write_text(content)
    with pytest.raises(DamagedFileError, match=r"config\.json"):
        directory.read_config()


def test_runs_are_found_at_any_depth(tmp_path):
    for name in ("b/x", "a", "b/y/z"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
    assert [run.path.relative_to(tmp_path).as_posix() for run in find_runs(tmp_path)] == ["a", "b/x", "b/y/z"]
