"""The commands and the links on the pages lead somewhere."""

import re
import shlex

import pytest

from bootdqn.cli.main import parse
from bootdqn.sweeps.sweep_file import load_sweep
from reference.documents import ROOT, blocks

DOCS = ROOT / "docs"
PAGES = sorted(
    {
        str(path.relative_to(ROOT))
        for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("[!.]*/README.md"))  # not of caches
    }
)
WITH_COMMANDS = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("atari", "cluster", "experiments", "gymnasium", "inspector", "presets", "reliability", "report")
    ),
)
MOST_LINES = {"README.md": 90} | {page: 170 for page in PAGES if page.startswith("docs/")}


def commands_of(page):
    """Return the command lines of `bootdqn` on a page, as lists of words without the program."""
    lines = [line for block in blocks(ROOT / page) if block.language == "sh" for line in block.text.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line[1:] for line in words if line[0] in ("bootdqn", ".venv/bin/bootdqn")]


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_are_understood(page, user_code):
    environments = next(b for b in blocks(DOCS / "adding-an-environment.md") if b.file == "my_environments.py")
    (user_code.directory / environments.file).write_text(environments.text)
    assert commands_of(page)
    for command in commands_of(page):
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


@pytest.mark.parametrize("page", MOST_LINES)
def test_a_page_is_short(page):
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= MOST_LINES[page]


def test_the_first_screen_of_the_readme_links_the_example_in_one_file():
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert any("(examples/minimal_bootdqn.py)" in line for line in first_screen)
