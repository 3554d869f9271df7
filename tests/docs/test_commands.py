"""The commands and the links on the pages lead somewhere."""

import re
import shlex

import pytest

from bootdqn.cli.main import parse
from bootdqn.sweeps.plan import load_sweep
from reference.documents import ROOT, blocks

DOCS = ROOT / "docs"
PAGES = sorted(
    {str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("*/README.md"))}
)
SHELL = {
    name: [
        words[1:]
        for block in blocks(DOCS / name)
        if block.language == "sh"
        for words in (shlex.split(line, comments=True) for line in block.text.splitlines())
        if words[0] == "bootdqn"
    ]
    for name in ("atari.md", "cluster.md", "experiments.md", "gymnasium.md", "inspector.md", "report.md")
}


@pytest.mark.parametrize("page", SHELL)
def test_the_commands_of_a_page_are_understood(page, user_code):
    environments = next(b for b in blocks(DOCS / "adding-an-environment.md") if b.file == "my_environments.py")
    (user_code.folder / environments.file).write_text(environments.text)
    assert SHELL[page]
    for command in SHELL[page]:
        parsed = parse(command)
        assert parsed is not None
        if command[0] == "sweep":
            assert load_sweep(parsed.name).with_overrides(parsed.overrides).runs()


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page):
    here = ROOT / page
    for target in re.findall(r"\]\((?!http)(.*?)\)", here.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        path = here.parent / name if name else here
        assert path.exists(), target
        headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
