"""The command line in a real pseudo-terminal: of any width, with and without colours."""

import itertools
import os
import re
import shlex
import subprocess
import sys

import pytest

from bootdqn.cli.main import COMMANDS
from reference.malformed import MALFORMED, contents, make_directories
from reference.terminal import Terminals, run_in_child

WIDTHS = (30, 80, 200)
COLOURS = ({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"})
TERMINALS = [
    {"columns": columns, "environment": {"TERM": ("xterm-256color", "dumb")[number % 2], **colours}}
    for number, (columns, colours) in enumerate(itertools.product(WIDTHS, COLOURS))
]
"""Every pair of a width, a kind of terminal and a wish about colours."""
ESCAPE = "\x1b"
HELP = ["", "train", *(f"train {name}" for name in COMMANDS["train"]), *(name for name in COMMANDS if name != "train")]
TYPICAL = [
    "train deep-sea --sizee 5",
    "train deep-sea --size five",
    "train deep-sea --strategy evio",
    "resume",
    "demo --foo",
]


@pytest.fixture(scope="module")
def terminals():
    started = Terminals()
    yield started
    started.close()


@pytest.mark.parametrize(("line", "hint"), MALFORMED.items(), ids=MALFORMED)
def test_a_usage_error_takes_one_or_two_lines_in_every_terminal(terminals, tmp_path, line, hint):
    make_directories(tmp_path)
    before = contents(tmp_path)
    answers = terminals.run(shlex.split(line), TERMINALS, tmp_path)
    for how, (code, screen) in zip(TERMINALS, answers, strict=True):
        assert code == 2, screen
        assert screen.startswith("bootdqn: "), screen
        assert hint in screen
        assert len(screen.splitlines()) <= 2, screen
        assert "Traceback" not in screen
        if "NO_COLOR" in how["environment"]:
            assert ESCAPE not in screen
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", HELP)
def test_help_is_readable_in_every_terminal_and_has_no_colour_where_none_is_wanted(terminals, tmp_path, command):
    answers = terminals.run([*command.split(), "--help"], TERMINALS, tmp_path)
    for how, (code, screen) in zip(TERMINALS, answers, strict=True):
        assert code == 0
        assert screen.startswith("usage: bootdqn")
        if "NO_COLOR" in how["environment"] or how["environment"]["TERM"] == "dumb":
            assert ESCAPE not in screen
        if command in ("", "train") or how["columns"] < 80:
            continue
        plain = re.sub(r"\x1b\[[\d;]*m", "", screen)
        assert max(map(len, plain.splitlines())) <= how["columns"] or "Example: " in plain


@pytest.mark.parametrize("line", TYPICAL)
def test_a_usage_error_in_a_fresh_process_is_the_same(tmp_path, line):
    def execute():
        os.execv(sys.executable, [sys.executable, "-m", "bootdqn", *shlex.split(line)])

    how = {"columns": 80, "environment": {"TERM": "xterm-256color"}}
    ((code, screen),) = run_in_child(execute, [how], tmp_path)
    piped = subprocess.run(
        [sys.executable, "-m", "bootdqn", *shlex.split(line)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (code, screen) == (2, piped.stderr)
    assert MALFORMED[line] in screen
