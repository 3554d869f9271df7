"""The code in a document, ready to be run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from bootdqn.cli.main import run_command_line

ROOT = Path(__file__).parents[2]


class Block(NamedTuple):
    """A fenced block: its language, and its lines."""

    language: str
    text: str

    @property
    def file(self):
        """The name that its first line gives it, in a comment."""
        found = re.match(r"# (\S+\.\w+)\n", self.text)
        return found and found[1]


def blocks(document):
    """Return the fenced blocks of a document in their order."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [Block(*one) for one in found]


def commands(block):
    """Return the command lines of a block of shell, as lists of words without the program."""
    lines = [shlex.split(line, comments=True) for line in block.text.splitlines()]
    assert all(line[0] == "bootdqn" for line in lines if line)
    return [line[1:] for line in lines if line]


def run_page(page, user_code):
    """Run the blocks of a page in their order in the directory of `user_code`; return what ran, by name.

    Files are written; those of Python are executed, their tests called. Python without a name runs in one namespace
    for the page. Commands run as in a process that has imported nothing yet.
    """
    ran, shared = [], {"__name__": "__main__"}
    for block in blocks(page):
        if block.file:
            (user_code.directory / block.file).write_text(block.text)
        if block.language == "sh":
            for command in commands(block):
                user_code.forget()
                with patch("bootdqn.sweeps.cost.PROBE_SECONDS", 0.1):  # an estimate need not be a good one
                    assert run_command_line(command) == 0, command
                ran.append(command[0])
        elif block.language == "python":
            sys.path.insert(0, str(user_code.directory))
            scope = {"__name__": block.file.removesuffix(".py")} if block.file else shared
            exec(compile(block.text, f"{page.name}: {block.file}", "exec"), scope)
            tests = [name for name in scope if name.startswith("test_")]
            for name in tests:
                scope[name]()
            ran += [block.file or "", *tests]
    return ran


def run_as_console_script(arguments, directory):
    """Run `bootdqn` in `directory` as the installed script does: the directory is not on Python's path."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bootdqn", *arguments],
        cwd=directory, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
