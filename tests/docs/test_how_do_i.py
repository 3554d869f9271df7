"""The pages of questions: every answer runs, in order, and each question has one."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from bootdqn.cli.main import parse
from reference.documents import ROOT, blocks, run_page

PAGES = [ROOT / "docs/how-do-i.md", ROOT / "docs/how-do-i-experiments.md"]
TEXT = "".join(page.read_text(encoding="utf-8") for page in PAGES)
USER_CODE = {"my_strategy.py": "adding-a-strategy.md", "my_environments.py": "adding-an-environment.md"}


def test_every_answer_runs(user_code):
    for file, page in USER_CODE.items():
        text = next(block.text for block in blocks(ROOT / "docs" / page) if block.file == file)
        (user_code.directory / file).write_text(text)
    ran = [name for page in PAGES for name in run_page(page, user_code)]
    assert {"train", "resume", "evaluate", "inspect", "sweep", "report"} <= set(ran)
    for made in ("inspect.html", "play.mp4", "so-far.html", "runs/compare/report.html", "runs/paper/report.html"):
        assert (user_code.directory / made).stat().st_size > 1000
    assert list((user_code.directory / "runs/logged").rglob("events.out.tfevents*"))


def test_every_question_has_an_answer_and_a_block():
    questions = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    assert len(questions) >= 15
    for question in questions:
        heading, answer, *_ = [line for line in question.splitlines() if line]
        assert re.fullmatch(r"\.\.\. .*\?", heading), heading
        assert not answer.startswith("```"), heading
        assert question.count("```") >= 2, heading


def test_the_commands_for_clusters_are_understood(tmp_path):
    ray, slurm = (shlex.split(block.text.splitlines()[-1]) for block in blocks(PAGES[1]) if block.language == "console")
    assert ray[0] == "bootdqn"
    assert parse(ray[1:]).gpus_per_run == 1
    job = slurm[slurm.index("--wrap") + 1]
    scripts = Path(sys.executable).parent
    variables = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "2"}
    done = subprocess.run(["sh", "-c", job], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("runs/*seed2*/summary.json"))
