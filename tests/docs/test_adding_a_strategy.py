"""The pages on user code: every block of code on them does what the page describes."""

import subprocess
import sys

from reference.documents import ROOT, blocks, run_page

PAGE = ROOT / "docs/adding-a-strategy.md"


def test_every_block_of_the_page_runs_in_its_order(user_code):
    ran = run_page(PAGE, user_code)
    assert ran.count("train") == 2
    assert {"inspect", "sweep", "report"} <= set(ran)
    assert sum(name.startswith("test_") and not name.endswith(".py") for name in ran) == 4


def test_every_block_of_the_page_on_environments_runs_in_its_order(user_code):
    ran = run_page(ROOT / "docs/adding-an-environment.md", user_code)
    assert ran == ["my_environments.py", "train", "evaluate", "train_lake.py"]


def test_the_tests_of_the_page_catch_a_wrong_strategy(tmp_path):
    """With the variance in the place of the standard deviation, they fail."""
    found = {block.file: block.text for block in blocks(PAGE)}
    (tmp_path / "my_strategy.py").write_text(found["my_strategy.py"].replace("q.std(", "q.var("))
    (tmp_path / "test_my_strategy.py").write_text(found["test_my_strategy.py"])
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(pytest, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
