"""The code in a document, ready to be run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

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


def run_as_console_script(arguments, folder):
    """Run `bootdqn` in `folder` as the installed script does: the folder is not on Python's path."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bootdqn", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
