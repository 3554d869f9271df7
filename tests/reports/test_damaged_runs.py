"""Damaged files: the run is listed as damaged, and the report is written."""

import csv
import json

import pytest

from bootdqn.common import files
from bootdqn.common.errors import DamagedFileError, WriteError
from bootdqn.reports.report import write_report
from bootdqn.reports.report_data import load_report_data
from bootdqn.runs.directory import RunDirectory
from reference.run_directories import write_atari, write_deep_sea, write_gym


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def read(root):
    """Return how many runs count, and why the others do not."""
    runs = load_report_data(root).runs
    return sum(runs.counted), {run.run: run.problem.partition(":")[0] for run in runs.itertuples() if run.problem}


@pytest.mark.parametrize("line", [b"[]", b"3", b'"text"', b"null", b'{"kind": "\xff"}', b"[" * 100_000, b"{"])
def test_a_line_that_is_no_object_in_utf_8_is_a_typed_error(tmp_path, line):
    run_dir = RunDirectory(tmp_path)
    run_dir.metrics.write_bytes(b'{"kind": "episode"}\n' + line + b'\n{"kind": "episode"}\n')
    records = run_dir.read_metrics("episode")
    assert next(records) == {"kind": "episode"}
    with pytest.raises(DamagedFileError, match=r"metrics\.jsonl, line 2"):
        next(records)


def test_a_last_line_that_breaks_off_within_a_character_is_skipped(tmp_path):
    run_dir = RunDirectory(tmp_path)
    run_dir.metrics.write_bytes(b'{"kind": "episode"}\n' + '{"kind": "ε'.encode()[:-1])
    assert list(run_dir.read_metrics()) == [{"kind": "episode"}]


@pytest.mark.parametrize("line", [b"[]\n", b"\xff\n"])
def test_damaged_records_of_either_kind_do_not_end_the_report(tmp_path, line):
    write_deep_sea(tmp_path / "sea", bad=[True, False])
    write_atari(tmp_path / "game")
    for name in ("sea", "game"):
        (tmp_path / name / "metrics.jsonl").write_bytes(line)
    write_report(tmp_path, tmp_path / "out.html")
    with (tmp_path / "out_files/tables/not-counted.csv").open(encoding="utf-8") as file:
        why = {row["run"]: row["why"] for row in csv.DictReader(file)}
    assert why["game"].startswith("unreadable: ")


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("config", {"size": "three"}),
        ("config", {"size": [3]}),
        ("config", {"size": 0}),
        ("config", {"seed": None}),
        ("config", {"max_episodes": True}),
        ("config", {"epsilon": 0.1, "epsilon_steps": "many"}),
        ("summary", {"solved_at_strict": "x"}),
        ("summary", {"solved_at": 1.5}),
    ],
)
def test_a_damaged_deep_sea_run_is_listed(tmp_path, file, values):
    write_deep_sea(tmp_path / "whole", seed=1)
    write_deep_sea(tmp_path / "run", seed=0)
    change(tmp_path / f"run/{file}.json", **values)
    assert read(tmp_path) == (1, {"run": "unreadable"})


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("config", {"num_heads": "ten"}),
        ("config", {"total_frames": 1e400}),
        ("config", {"epsilon": 0.1, "epsilon_steps": "many"}),
        ("summary", {"seconds": "long"}),
        ("metrics", {"frames": float("inf")}),
        ("metrics", {"mean_return": float("nan")}),
        ("metrics", {"vote_entropy": None}),
    ],
)
def test_a_damaged_atari_run_is_listed(tmp_path, file, values):
    write_atari(tmp_path / "whole", seed=1)
    write_atari(tmp_path / "run", seed=0, scores=(1.0,))
    path = tmp_path / f"run/{file}.json{'l' * (file == 'metrics')}"
    change(path, **values)
    if file == "metrics":
        path.write_text(path.read_text() + "\n")
    assert read(tmp_path) == (1, {"run": "unreadable"})


def not_counted(root):
    """Return why runs are listed in the report on `root`."""
    write_report(root, root / "out.html")
    with (root / "out_files/tables/not-counted.csv").open(encoding="utf-8") as file:
        return {row["run"]: row["why"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("kept", ["summary.json", "metrics.jsonl"])
def test_a_run_directory_that_has_lost_its_configuration_is_listed(tmp_path, kept):
    write_deep_sea(tmp_path / "whole", bad=[True])
    write_deep_sea(tmp_path / "lost", seed=1, bad=[True])
    for file in (tmp_path / "lost").iterdir():
        if file.name != kept:
            file.unlink()
    assert not_counted(tmp_path) == {"lost": "unreadable: it has no config.json"}


PARTLY = "what summary.json says is counted, and no curve of it is plotted"


def test_records_that_end_early_are_listed_and_not_plotted(tmp_path):
    write_deep_sea(tmp_path / "sea/whole", seed=0, bad=[True, False])
    write_deep_sea(tmp_path / "sea/short", seed=1, bad=[True, False, True, False])
    write_deep_sea(tmp_path / "sea/small", seed=0, size=4, bad=[True])
    write_gym(tmp_path / "gym", episodes=[(5, 1.0), (9, 1.0)])
    write_atari(tmp_path / "game")
    for name, episodes in (("sea/whole", 2), ("sea/short", 400), ("sea/small", 2), ("gym", 1000), ("game", 7)):
        change(tmp_path / name / "summary.json", episodes=episodes)
    assert not_counted(tmp_path) == {
        "sea/short": f"unreadable: its metrics end at episode 4 of 400; {PARTLY}",
        "sea/small": f"unreadable: its metrics end at episode 1 of 2; {PARTLY}",
        "gym": f"unreadable: its metrics end at episode 2 of 1,000; {PARTLY}",
        "game": "unreadable: its metrics end at episode 0 of 7",
    }
    regret = load_report_data(tmp_path / "sea").regret
    assert list(regret.itertuples(index=False, name=None)) == [("whole", 1, 1.0), ("whole", 2, 0.5)]
    assert {path.stem for path in (tmp_path / "out_files/figures").glob("*.png")} >= {"deep-sea-regret"}
    assert not list((tmp_path / "out_files/figures").glob("gym-*"))


def test_a_curve_that_cannot_be_read_is_listed(tmp_path):
    write_deep_sea(tmp_path / "sea", bad=[True, False])
    write_gym(tmp_path / "gym", episodes=[(5, 1.0), (9, 1.0)])
    for name in ("sea", "gym"):
        path = tmp_path / name / "metrics.jsonl"
        path.write_text("[]\n" + path.read_text())
    found = not_counted(tmp_path)
    assert found.keys() == {"sea", "gym"}
    assert all(
        "metrics.jsonl, line 1: expected a JSON object" in why and why.endswith(PARTLY) for why in found.values()
    )


@pytest.mark.parametrize("block", [1, 7, 64, 2**16])
def test_the_last_record_is_found_from_the_end(tmp_path, monkeypatch, block):
    monkeypatch.setattr(files, "BLOCK", block)
    run_dir = RunDirectory(tmp_path)
    assert run_dir.last_metrics() is None
    for content, last, last_episode in (
        (b"", None, None),
        (b'{"kind": "epi', None, None),
        (b'{"kind": "episode", "n": 1}\n', 1, 1),
        (b'{"kind": "episode", "n": 1}\n{"kind": "update", "n": 2}\n{"kind": "ep', 2, 1),
    ):
        run_dir.metrics.write_bytes(content)
        assert (run_dir.last_metrics() or {}).get("n") == last
        assert (run_dir.last_metrics("episode") or {}).get("n") == last_episode
    run_dir.metrics.write_bytes(b'{"kind": "episode"}\n[]\n')
    with pytest.raises(DamagedFileError, match=r"the end of .*metrics\.jsonl: expected a JSON object"):
        run_dir.last_metrics("episode")


@pytest.mark.parametrize("link", ["report_files", "report_files/figures", "report_files/tables"])
def test_figures_and_tables_are_written_through_no_link(tmp_path, link):
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    write_deep_sea(runs / "run", bad=[True])
    for name in ("figures/deep-sea.png", "tables/deep-sea.csv", "deep-sea.png", "deep-sea.csv"):
        (elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere / name).write_text("mine")
    (runs / link).parent.mkdir(exist_ok=True)
    (runs / link).symlink_to(elsewhere)
    with pytest.raises(WriteError, match="cannot be written"):
        write_report(runs, runs / "report.html")
    files = [file for file in elsewhere.rglob("*") if file.is_file()]
    assert len(files) == 4
    assert {file.read_text() for file in files} == {"mine"}
