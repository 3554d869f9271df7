"""The pages about our results say what the committed runs say, and nothing else has a number."""

import re

from bootdqn.report.paper import RUNTIME_GROWTH, RUNTIME_MINUTES
from reproduction import write_docs


def pages():
    return [write_docs.ROOT / "README.md", *write_docs.DOCS.glob("*.md")]


def written_by_runs(text):
    return "<!-- end -->" in text


def test_the_pages_with_results_are_those_that_are_written():
    assert {path for path in pages() if written_by_runs(path.read_text())} == set(write_docs.PAGES)


def test_every_block_is_what_the_committed_runs_say():
    for path in write_docs.PAGES:
        page = path.read_text()
        assert len(list(write_docs.BLOCK.finditer(page))) == page.count("<!-- end -->") > 0
        assert write_docs.rewritten(page) == page, f"{path.name} is stale: make reproduction"


def test_a_number_that_the_runs_do_not_say_is_found():
    page = write_docs.PAGES[0].read_text()
    block = next(found for found in write_docs.BLOCK.finditer(page) if found["what"] == "table")
    number = re.search(r"\d+", block["content"])
    at = block.start("content") + number.start()
    spoiled = page[:at] + "9" + page[at:]
    assert write_docs.rewritten(spoiled) == page


def test_outside_of_the_blocks_there_is_no_number_but_of_grids_and_heads():
    for path in write_docs.PAGES[:2]:  # the others explain with numbers of their own
        prose = write_docs.BLOCK.sub("", path.read_text())
        prose = re.sub(r"\b[NK] = \d+(?:(?:,| and| to| or) \d+)*", "", prose)
        prose = re.sub(r"```.*?```", "", prose, flags=re.DOTALL)
        prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose)
        assert re.findall(r".*\d.*", prose) == [], path.name


def test_the_speed_by_k_stands_beside_what_the_paper_prints():
    rows = re.findall(r"^\| (\d+) \|.*\| (.*?) \|$", write_docs.speed("speed"), re.MULTILINE)
    expected = {str(k): f"{RUNTIME_GROWTH[k]:+d} %" if k in RUNTIME_GROWTH else "" for k in RUNTIME_MINUTES}
    assert dict(rows) == expected


def test_every_figure_is_drawn_and_there():
    for path in write_docs.PAGES:
        for image, content in write_docs.figures(path.read_text()):
            assert content.startswith(b"\x89PNG")
            assert image.exists(), "make reproduction"
