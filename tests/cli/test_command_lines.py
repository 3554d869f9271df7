"""Malformed command lines: each is an error of one or two lines that names what to write instead."""

import shlex

import gymnasium
import pytest

from bootdqn.cli.main import run_command_line
from reference.malformed import MALFORMED, contents, make_directories


@pytest.mark.parametrize(("line", "hint"), MALFORMED.items(), ids=MALFORMED)
def test_a_malformed_command_line_is_an_error_that_names_the_remedy(tmp_path, monkeypatch, capsys, line, hint):
    for env_id in [name for name in gymnasium.registry if name.startswith("ALE/")]:
        monkeypatch.delitem(gymnasium.registry, env_id)  # as in a process of its own, without other tests' environments
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
