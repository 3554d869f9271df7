"""Runs that somebody made to break the report: each is listed with the reason, and the page is written."""

import csv
import json
import os
import subprocess
import sys

import pytest

from bootdqn.common.text import MAX_LABEL
from bootdqn.reports.report import write_report
from bootdqn.runs.directory import find_runs
from reference.run_directories import write_atari, write_deep_sea, write_gym


def nested(depth):
    return json.loads("[" * depth + "]" * depth)


def not_counted(root):
    """Write the report on `root` and return why runs are listed."""
    write_report(root, root / "out.html")
    with (root / "out_files/tables/not-counted.csv").open(encoding="utf-8") as file:
        return {row["run"]: row["why"] for row in csv.DictReader(file)}


UNREADABLE = {
    "an integer of 400 digits": ({"size": 10**400}, "a number has 1,329 bits"),
    "settings nested 900 deep": ({"hidden_sizes": nested(900)}, "it is nested more than 32 deep"),
    "half a character": ({"strategy": "gain\ud800"}, "a text contains NUL or unpaired surrogates"),
    "a NUL": ({"strategy": "gain\0"}, "a text contains NUL or unpaired surrogates"),
    "an environment of 10 MB": ({"environment": "x" * 10**7}, "the limit is 262,144"),
    "an environment of 100 kB": ({"environment": "x" * 10**5}, "a text has 100,000 characters"),
}


def test_a_run_that_cannot_be_read_is_listed_with_the_reason_and_the_page_is_written(tmp_path):
    write_deep_sea(tmp_path / "whole", seed=1, bad=[True, False])
    for name, (changes, _) in UNREADABLE.items():
        write_deep_sea(tmp_path / name, seed=2, bad=[True], **changes)
    write_gym(tmp_path / "returns", found=(1.7e308,) * 3)
    write_atari(tmp_path / "scores", scores=(1.7e308, -1.7e308))
    why = not_counted(tmp_path)
    assert why.keys() == {*UNREADABLE, "returns", "scores"}
    for name, (_, reason) in UNREADABLE.items():
        assert why[name].startswith("unreadable: ")
        assert reason in why[name]
    assert "a number is 1.7e+308" in why["returns"]
    assert "a number is 1.7e+308" in why["scores"]
    assert "1 of 9 runs" in (tmp_path / "out.html").read_text()


def test_names_are_plotted_literally(tmp_path):
    formula, long = r"$\frac{$", "x" * 5000
    write_gym(tmp_path / "gym", env_id=formula, strategy=formula, episodes=[(1, 1.0), (2, 2.0)])
    write_gym(tmp_path / "long", env_id=long, episodes=[(1, 1.0), (2, 2.0)])
    write_deep_sea(tmp_path / "sea", strategy="{:>400000000}", bad=[True, False], **{"{0.nothing}": "{}"})
    write_atari(tmp_path / "game", game="a\tb\nc", strategy="_hidden")
    write_report(tmp_path, tmp_path / "out.html")
    figures = tmp_path / "out_files/figures"
    assert (figures / "gym-frac.svg").read_text().count(f">{formula}</text>") == 2, "the title and the legend"
    assert f">{long[: MAX_LABEL - 1]}…</text>" in (figures / f"gym-{long[:80]}.svg").read_text()
    assert ">{ (&gt;400000000})</text>" in (figures / "deep-sea-regret.svg").read_text()
    assert "All of these runs: {0.nothing}={}." in (tmp_path / "out.html").read_text()
    figure = (figures / "atari-scores.svg").read_text()
    assert r">a\tb\nc</text>" in figure
    assert ">_hidden</text>" in figure.replace("> ", ">")


def test_the_largest_numbers_that_are_read_can_be_plotted(tmp_path):
    write_gym(tmp_path / "gym", found=(1e100,) * 3, episodes=[(1, -1e100), (2**62, 1e100)])
    write_deep_sea(tmp_path / "sea", size=2**62, cap=2**63 - 1, solved=2**62, bad=[True, False])
    write_atari(tmp_path / "game", scores=(-1e100, 1e100), every=2**61, total_frames=2**62)
    write_report(tmp_path, tmp_path / "out.html")


@pytest.mark.parametrize("name", ["metrics.jsonl", "summary.json", "config.json"])
def test_a_path_that_is_no_regular_file_is_listed_without_blocking(tmp_path, name):
    makers = {"pipe": os.mkfifo, "directory": os.mkdir, "device": lambda path: path.symlink_to("/dev/zero")}
    for kind, make in makers.items():
        write_gym(tmp_path / kind, seed=len(kind), episodes=[(1, 1.0)])
        (tmp_path / kind / name).unlink()
        make(tmp_path / kind / name)
    why = not_counted(tmp_path)
    assert {kind: text.partition(": ")[0] for kind, text in why.items()} == dict.fromkeys(makers, "unreadable")
    assert all(f"{name} is a" in text for text in why.values())


def test_a_directory_whose_name_is_no_text_is_reported_on(tmp_path):
    bad = os.fsencode(tmp_path) + b"/runs-\xff\x1b[2J"
    os.mkdir(bad)  # noqa: PTH102 - its name is bytes
    root = type(tmp_path)(os.fsdecode(bad))
    write_deep_sea(root / os.fsdecode(b"\xfe"), bad=[True])
    write_deep_sea(root / "lost", seed=1)
    (root / "lost/config.json").unlink()
    write_report(root, tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert r"runs-\udcff\x1b[2J" in page
    completed = subprocess.run([sys.executable, "-m", "bootdqn", "report", bad], capture_output=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert rb"runs-\udcff" in completed.stdout
    completed = subprocess.run([sys.executable, "-m", "bootdqn", "evaluate", bad], capture_output=True, check=False)
    assert completed.returncode == 2
    assert completed.stderr.startswith(b"bootdqn: ")
    assert rb"runs-\udcff\x1b[2J" in completed.stderr


def test_directories_nested_thousands_deep_are_skipped(tmp_path):
    before = os.open(".", os.O_RDONLY)
    write_deep_sea(tmp_path / "run")
    try:
        os.chdir(tmp_path)
        for _ in range(3000):
            os.mkdir("deep")  # noqa: PTH102 - no path to it is short enough
            os.chdir("deep")
        assert [run.path for run in find_runs(tmp_path)] == [tmp_path / "run"]
    finally:
        for _ in range(3000):
            os.chdir("..")
            os.rmdir("deep")  # noqa: PTH106
        os.chdir(before)
        os.close(before)
