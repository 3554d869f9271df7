"""The page on speed: its durations are those of the summaries of the study, read here without the package."""

import re
from statistics import median

import pytest

from bootdqn.common.text import format_duration
from reference.documents import ROOT
from reproduction.archive import read_rows

ROWS = re.findall(
    r"^\| (.*?) \| (.*) \| (.*) \| (.*) \|$", (ROOT / "docs/speed.md").read_text().split("## How long")[1], re.M
)
TABLE = {name: dict(zip((10, 20, 30), cells, strict=True)) for name, *cells in ROWS}


def runs(size):
    """Return the strategy and the summary of every finished run."""
    for row in read_rows("deep-sea-every-step"):
        config, summary = row["config"], row["summary"]
        if config["size"] == size and summary["status"] == "finished":
            yield config["strategy"], summary


def format_cell(values, shown):
    return f"{shown(median(values))} ({shown(min(values))} to {shown(max(values))}, {len(values)} runs)"


@pytest.mark.parametrize("size", [10, 20, 30])
def test_the_table_is_that_of_the_runs(size):
    found = list(runs(size))
    speeds = [run["steps"] / run["seconds"] for _, run in found]
    assert TABLE["steps a second"][size] == format_cell(speeds, "{:,.0f}".format)
    solved = [run["seconds"] for name, run in found if name in ("gain", "evoi:reduce=sum") and run["solved_at_strict"]]
    assert TABLE["until Gain or EVOI (sum) has solved it"][size] == format_cell(solved, format_duration)
    capped = [run["seconds"] for _, run in found if run["solved_at_strict"] is None]
    assert TABLE["until it is given up"][size] == format_cell(capped, format_duration)
