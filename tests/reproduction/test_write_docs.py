"""The pages about our results agree with the committed runs, and have no other numbers."""

import re

import pytest

from bootdqn.reports.paper import RUNTIME_GROWTH, RUNTIME_MINUTES
from reproduction import tables, write_docs
from reproduction.studies import ROOT

PROSE_WITHOUT_NUMBERS = ["docs/what-helps.md", *(page for page in write_docs.PAGES if "reproduction" in page)]


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_every_block_on_a_page_is_listed_once_and_every_listed_block_is_on_its_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [
        (str(path.relative_to(ROOT)), block["name"])
        for path in pages
        for block in write_docs.BLOCK.finditer(path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == sorted((page, name) for page, name, _ in write_docs.BLOCKS)
    assert sum(path.read_text(encoding="utf-8").count("<!-- end -->") for path in pages) == len(found)


@pytest.mark.parametrize("page", write_docs.PAGES)
def test_every_block_agrees_with_the_committed_runs(page):
    assert write_docs.rewrite(page, text_of(page)) == text_of(page), f"{page} is out of date: make reproduction"


def test_a_number_that_differs_from_the_runs_is_detected():
    page = write_docs.DEEP_SEA
    text = text_of(page)
    block = next(found for found in write_docs.BLOCK.finditer(text) if found["name"] == "deep-sea each-seed")
    number = re.search(r"\d+", block["content"])
    at = block.start("content") + number.start()
    spoiled = text[:at] + "9" + text[at:]
    assert write_docs.rewrite(page, spoiled) == text


@pytest.mark.parametrize("page", PROSE_WITHOUT_NUMBERS)
def test_outside_of_the_blocks_there_is_no_number_but_of_grids_and_heads(page):
    prose = write_docs.BLOCK.sub("", text_of(page))
    prose = re.sub(r"\b[NK] = \d+(?:(?:,| and| to| or) \d+)*", "", prose)
    prose = re.sub(r"```.*?```", "", prose, flags=re.DOTALL)
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)|<details markdown=\"1\">", "", prose)
    assert re.findall(r".*\d.*", prose) == []


def test_the_speed_by_k_stands_beside_what_the_paper_prints():
    rows = re.findall(r"^\| (\d+) \|.*\| (.*?) \|$", tables.speed_by_heads("speed"), re.MULTILINE)
    expected = {str(k): f"{RUNTIME_GROWTH[k]:+d} %" if k in RUNTIME_GROWTH else "" for k in RUNTIME_MINUTES}
    assert dict(rows) == expected


def test_every_figure_is_plotted_and_there():
    plotted = write_docs.plot_figures()
    shown = {
        image for page in write_docs.PAGES for image in re.findall(r"images/(reproduction-.*?\.png)", text_of(page))
    }
    assert {image.name for image in plotted} == shown
    for image, content in plotted.items():
        assert content.startswith(b"\x89PNG")
        assert image.exists(), "make reproduction"
