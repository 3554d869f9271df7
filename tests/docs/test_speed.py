"""The page on speed: how long runs took is what the summaries of the complete study say."""

import json
import re
from statistics import median

import pytest

from reference.documents import ROOT

ROWS = re.findall(
    r"^\| (.*?) \| (.*) \| (.*) \| (.*) \|$", (ROOT / "docs/speed.md").read_text().split("## How long")[1], re.M
)
TABLE = {name: dict(zip((10, 20, 30), cells, strict=True)) for name, *cells in ROWS}


def summaries(size):
    """Return the strategy and the summary of every finished run."""
    for path in (ROOT / "results/deep-sea-small").rglob("summary.json"):
        config, summary = (json.loads(path.with_name(name).read_text()) for name in ("config.json", "summary.json"))
        if config["size"] == size and summary["status"] == "finished":
            yield config["strategy"], summary


def stated(name, size):
    """Return the median, the least and the most that a row states."""
    numbers = re.match(r"([\d,]+)(?: s)? \(([\d,]+) to ([\d,]+)\)", TABLE[name][size]).groups()
    return [int(number.replace(",", "")) for number in numbers]


def assert_roughly(name, size, found):
    for said, value in zip(stated(name, size), (median(found), min(found), max(found)), strict=True):
        assert said == pytest.approx(value, rel=0.05)


@pytest.mark.parametrize("size", [10, 20])
def test_the_table_is_that_of_the_runs(size):
    runs = list(summaries(size))
    assert_roughly("steps a second", size, [run["steps"] / run["seconds"] for _, run in runs])
    solved = [run["seconds"] for strategy, run in runs
              if strategy in ("gain", "evoi:reduce=sum") and run["solved_at_strict"]]  # fmt: skip
    assert_roughly("until Gain or EVOI (sum) has solved it", size, solved)
    capped = [run["seconds"] for _, run in runs if run["solved_at_strict"] is None]
    assert_roughly("to the cap, where a run does not solve it", size, capped)
