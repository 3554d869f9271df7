"""The pages of the documentation do what they show: their Python blocks run, in order, in one namespace a page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/formulas.md", "docs/python-api.md", "docs/deep-sea.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program_of(page):
    """Return the page's Python blocks as one program in which every line has the number that it has on the page."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block.group(1).splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


@pytest.mark.parametrize("name", PAGES)
def test_the_python_of_a_page_runs(name, tmp_path):
    page = ROOT / name
    program = program_of(page)
    assert program.strip(), f"{name} has no Python to run"
    code = f"exec(compile({program!r}, {str(page)!r}, 'exec'), {{'__name__': '__main__'}})"
    command = [sys.executable, "-W", "error", "-c", code]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_page_that_is_wrong_fails_where_it_is_wrong(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nx = 1\n```\n\ntext\n\n```sh\nfalse\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as raised:
        exec(compile(program_of(page), str(page), "exec"), {})
    assert raised.traceback[-1].lineno + 1 == 14
