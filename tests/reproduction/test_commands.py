"""The commands on the pages about our results are understood, and write to directories named after the studies."""

import re
import shlex

import pytest

from bootdqn.cli.main import parse
from bootdqn.sweeps.sweep_file import load_sweep
from reproduction.archive import studies_with_runs
from reproduction.plans import SWEEPS
from reproduction.studies import ROOT

PAGES = [
    "docs/reproduction/atari.md",
    "docs/reproduction/deep-sea.md",
    "docs/reproduction/deep-sea-every-step.md",
    "docs/reproduction/deep-sea-choices.md",
    "docs/reproduction/deep-sea-frontier.md",
    "docs/reproduction/deep-sea-search.md",
]


def commands(page):
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", "")
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("bootdqn")]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_are_understood(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert commands(page)
    for command in commands(page):
        parsed = parse(command)
        written = [word.split("/")[1] for word in command if word.startswith("runs/")]
        assert len(written) == 1
        assert written[0] in {*SWEEPS, *studies_with_runs()}
        if command[0] == "sweep":
            assert load_sweep(parsed.name).with_overrides(parsed.overrides).runs()
