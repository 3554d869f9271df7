"""Files that are not what they should be: the run is listed as damaged, and the report is written."""

import csv
import json

import pytest

from bootdqn.analysis.atari import read_played
from bootdqn.analysis.deep_sea import read_results
from bootdqn.analysis.report import write_report
from bootdqn.analysis.runs import read_runs
from bootdqn.common.errors import DamagedFileError
from bootdqn.common.run_folder import RunFolder
from reference.run_folders import DEFAULTS, write_atari, write_deep_sea


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def read(root, reader):
    """Return how many runs count, and why the others do not."""
    found, troubles = reader(read_runs(root, DEFAULTS)[0])
    return len(found), {trouble.name: trouble.problem.partition(":")[0] for trouble in troubles}


@pytest.mark.parametrize("line", [b"[]", b"3", b'"text"', b"null", b'{"kind": "\xff"}', b"[" * 100_000, b"{"])
def test_a_line_that_is_no_object_in_utf_8_is_a_typed_error(tmp_path, line):
    folder = RunFolder(tmp_path)
    folder.metrics.write_bytes(b'{"kind": "episode"}\n' + line + b'\n{"kind": "episode"}\n')
    records = folder.read_metrics("episode")
    assert next(records) == {"kind": "episode"}
    with pytest.raises(DamagedFileError, match=r"metrics\.jsonl, line 2"):
        next(records)


def test_a_last_line_that_breaks_off_within_a_letter_is_passed_over(tmp_path):
    folder = RunFolder(tmp_path)
    folder.metrics.write_bytes(b'{"kind": "episode"}\n' + '{"kind": "ε'.encode()[:-1])
    assert list(folder.read_metrics()) == [{"kind": "episode"}]


@pytest.mark.parametrize("line", [b"[]\n", b"\xff\n"])
def test_damaged_records_of_either_kind_do_not_end_the_report(tmp_path, line):
    write_deep_sea(tmp_path / "sea", bad=[True, False])
    write_atari(tmp_path / "game")
    for name in ("sea", "game"):
        (tmp_path / name / "metrics.jsonl").write_bytes(line)
    write_report(tmp_path, tmp_path / "out.html", DEFAULTS)
    with (tmp_path / "out_files/tables/not-counted.csv").open(encoding="utf-8") as file:
        why = {row["run"]: row["why"] for row in csv.DictReader(file)}
    assert why["game"].startswith("damaged: DamagedFileError")


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
    assert read(tmp_path, read_results) == (1, {"run": "damaged"})


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
    assert read(tmp_path, read_played) == (1, {"run": "damaged"})
