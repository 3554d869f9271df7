"""The page about the two paths agrees with the package."""

import doctest
import json
import re
import subprocess
from pathlib import Path

from bootdqn.cli.main import parse
from bootdqn.config.settings import differences, to_flat
from bootdqn.config.train import resolve
from reproduction.archive import read_rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "two-paths.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_code_on_the_page_gives_what_the_page_shows():
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    page = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    results = doctest.DocTestRunner().run(page)
    assert results.attempted == len(page.examples) >= 9
    assert results.failed == 0


def test_the_loop_on_the_page_is_what_made_the_runs():
    """In a shell in which the program only prints its arguments."""
    (loop,) = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    completed = subprocess.run(
        ["sh", "-c", 'bootdqn() { printf "%s\\n" "$*"; }\n' + loop], check=True, capture_output=True, text=True
    )
    commands = [parse(line.split()) for line in completed.stdout.splitlines()]
    made = {command.run_dir.name: json.loads(json.dumps(to_flat(resolve(command.config)))) for command in commands}
    committed = {row["run"]: row for row in read_rows("two-paths")}
    assert {row["summary"]["status"] for row in committed.values()} == {"finished"}
    assert committed.keys() == made.keys()
    assert not any(differences(row["config"], made[name]) for name, row in committed.items())
