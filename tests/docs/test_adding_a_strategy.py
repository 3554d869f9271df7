"""The page on strategies of one's own: every block of code on it does what the page says."""

import subprocess
import sys

from bootdqn.cli.main import run_command_line
from reference.documents import ROOT, blocks, commands

PAGE = ROOT / "docs/adding-a-strategy.md"


def test_every_block_of_the_page_runs_in_its_order(user_code, monkeypatch):
    """Files are written, modules of them imported, tests of them called, commands run."""
    monkeypatch.syspath_prepend(user_code.folder)
    ran = []
    for block in blocks(PAGE):
        if block.language == "sh":
            for command in commands(block):
                user_code.forget()
                sys.path.insert(0, str(user_code.folder))
                assert run_command_line(command) == 0, command
                ran.append(command[0])
            continue
        assert block.file, "a block of code has a name"
        (user_code.folder / block.file).write_text(block.text)
        if block.language == "python":
            scope = {"__name__": block.file.removesuffix(".py")}
            exec(compile(block.text, block.file, "exec"), scope)
            tests = [name for name in scope if name.startswith("test_")]
            for name in tests:
                scope[name]()
            ran += tests
    assert ran.count("train") == 3
    assert {"inspect", "sweep", "report", "evaluate"} <= set(ran)
    assert sum(name.startswith("test_") for name in ran) == 4


def test_the_tests_of_the_page_catch_a_wrong_strategy(tmp_path):
    """With the variance in the place of the standard deviation, they fail."""
    found = {block.file: block.text for block in blocks(PAGE)}
    (tmp_path / "my_strategy.py").write_text(found["my_strategy.py"].replace("q.std(", "q.var("))
    (tmp_path / "test_my_strategy.py").write_text(found["test_my_strategy.py"])
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(pytest, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
