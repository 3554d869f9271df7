"""The pages about our results say what the committed runs say, and nothing else has a number."""

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bootdqn.report.paper import RUNTIME_GROWTH, RUNTIME_MINUTES

RESULTS = Path(__file__).parents[1] / "results"


def script(name):
    spec = importlib.util.spec_from_file_location(name, RESULTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reproduction():
    return script("reproduction")


def pages():
    return [RESULTS.parent / "README.md", *(RESULTS.parent / "docs").glob("*.md")]


def written_by_runs(text):
    return "<!-- end -->" in text


def test_the_pages_with_results_are_those_that_are_written(reproduction):
    assert {path for path in pages() if written_by_runs(path.read_text())} == set(reproduction.PAGES)


def test_every_block_is_what_the_committed_runs_say(reproduction):
    for path in reproduction.PAGES:
        page = path.read_text()
        assert len(list(reproduction.BLOCK.finditer(page))) == page.count("<!-- end -->") > 0
        assert reproduction.rewritten(page) == page, f"{path.name} is stale: make reproduction"


def test_a_number_that_the_runs_do_not_say_is_found(reproduction):
    page = reproduction.PAGES[0].read_text()
    block = next(found for found in reproduction.BLOCK.finditer(page) if found["what"] == "table")
    number = re.search(r"\d+", block["content"])
    at = block.start("content") + number.start()
    spoiled = page[:at] + "9" + page[at:]
    assert reproduction.rewritten(spoiled) == page


def test_outside_of_the_blocks_there_is_no_number_but_of_grids_and_heads(reproduction):
    for path in reproduction.PAGES[:2]:  # the others explain with numbers of their own
        prose = reproduction.BLOCK.sub("", path.read_text())
        prose = re.sub(r"\b[NK] = \d+(?:(?:,| and| to| or) \d+)*", "", prose)
        prose = re.sub(r"```.*?```", "", prose, flags=re.DOTALL)
        prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose)
        assert re.findall(r".*\d.*", prose) == [], path.name


def test_the_speed_by_k_stands_beside_what_the_paper_prints(reproduction):
    rows = re.findall(r"^\| (\d+) \|.*\| (.*?) \|$", reproduction.speed("speed"), re.MULTILINE)
    expected = {str(k): f"{RUNTIME_GROWTH[k]:+d} %" if k in RUNTIME_GROWTH else "" for k in RUNTIME_MINUTES}
    assert dict(rows) == expected


def test_every_figure_is_drawn_and_there(reproduction):
    for path in reproduction.PAGES:
        for image, content in reproduction.figures(path.read_text()):
            assert content.startswith(b"\x89PNG")
            assert image.exists(), "make reproduction"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the runs were made with AVX2")
def test_a_committed_run_made_again_ends_as_it_did():
    command = [sys.executable, RESULTS / "rerun.py", "deep-sea/size-10/evoi-reduce-sum", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert re.fullmatch(r"deep-sea/size-10/\S+: the same\n1 of 1 ended as they did\n", found.stdout), found.stderr


def test_a_run_that_does_not_end_as_it_did_is_told(tmp_path, monkeypatch, capsys):
    rerun = script("rerun")
    (shortest,) = rerun.shortest(RESULTS / "deep-sea", 1)
    spoiled = json.loads(shortest.summary.read_text()) | {"solved_at": 9999}
    (tmp_path / "study/run").mkdir(parents=True)
    shutil.copy(shortest.config, tmp_path / "study/run")
    (tmp_path / "study/run/summary.json").write_text(json.dumps(spoiled))
    monkeypatch.setattr(rerun, "RESULTS", tmp_path)
    assert rerun.main("study", "5") == 1
    told = capsys.readouterr().out
    assert "study/run: solved_at 9999 then, " in told
    assert told.endswith("0 of 1 ended as they did\n")
