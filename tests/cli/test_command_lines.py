"""Command lines that cannot be meant: each is answered in a line or two that says what to write instead."""

import shlex

import pytest

from bootdqn.cli.main import run_command_line
from reference.malformed import MALFORMED, contents, make_directories


@pytest.mark.parametrize(("line", "hint"), MALFORMED.items(), ids=MALFORMED)
def test_what_cannot_be_meant_is_answered_with_what_to_write_instead(tmp_path, monkeypatch, capsys, line, hint):
    make_directories(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    assert run_command_line(shlex.split(line)) == 2
    answer = capsys.readouterr().err
    assert answer.startswith("bootdqn: ")
    assert hint in answer
    assert "Traceback" not in answer
    assert len(answer.splitlines()) <= 2
    assert contents(tmp_path) == before
