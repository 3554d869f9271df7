"""Committed runs survive packing and unpacking."""

import gzip
import json

import pytest

from bootdqn.runs.directory import RunDirectory
from reference.run_directories import write_run_dir
from reproduction import archive, plans

CONFIG = {"environment": "deep-sea", "size": 5, "seed": 0}
FINISHED = {"status": "finished", "steps": 12, "seconds": 0.125}
EPISODES = [{"kind": "episode", "episode": number, "return": -0.01 / 3} for number in (1, 2)]
METRICS = [EPISODES[0], {"kind": "evaluation", "mean_return": 0.5}, EPISODES[1], {"kind": "update", "loss": None}]


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "RESULTS", tmp_path / "results")


def files_of(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("kept", "kinds"),
    [((), []), (("evaluation",), ["evaluation", "episode"]), (("episode", "update"), ["episode", "episode", "update"])],
)
def test_a_study_keeps_its_kinds_of_metrics_and_the_last_episode(tmp_path, monkeypatch, kept, kinds):
    monkeypatch.setitem(archive.KEPT_METRICS, "study", kept)
    write_run_dir(tmp_path / "runs/a/seed-0", CONFIG, FINISHED, METRICS)
    assert archive.pack("study", tmp_path / "runs") == (1, 1)
    (row,) = archive.read_rows("study")
    assert [record["kind"] for record in row["metrics"]] == kinds
    assert all(record in METRICS for record in row["metrics"])
    assert EPISODES[1] in row["metrics"] or not kept


def test_unpacked_runs_are_those_that_were_packed(tmp_path, monkeypatch):
    monkeypatch.setitem(archive.KEPT_METRICS, "study", ("episode", "evaluation", "update"))
    for seed in range(3):
        write_run_dir(tmp_path / f"runs/a/seed-{seed}", CONFIG | {"seed": seed}, FINISHED, METRICS)
    archive.pack("study", tmp_path / "runs")
    assert archive.unpack("study", tmp_path / "again") == 3
    for run in (tmp_path / "runs/a").iterdir():
        before, after = RunDirectory(run), RunDirectory(tmp_path / "again/a" / run.name)
        assert after.read_config() == before.read_config()
        assert after.read_summary() == before.read_summary()
        assert list(after.read_metrics()) == list(before.read_metrics())
    unpacked = files_of(tmp_path / "again")
    assert archive.unpack("study", tmp_path / "again") == 0, "nothing is overwritten"
    archive.pack("once-more", tmp_path / "again")
    assert files_of(tmp_path / "again") == unpacked


def test_the_same_runs_give_the_same_bytes(tmp_path):
    for seed in (1, 0):
        write_run_dir(tmp_path / f"runs/seed-{seed}", CONFIG | {"seed": seed}, FINISHED)
    archive.pack("study", tmp_path / "runs")
    packed = archive.table_of("study").read_bytes()
    archive.pack("study", tmp_path / "runs")
    assert archive.table_of("study").read_bytes() == packed
    names = [json.loads(line)["run"] for line in gzip.decompress(packed).splitlines()]
    assert names == ["seed-0", "seed-1"]


def test_only_finished_runs_are_added_and_none_is_replaced(tmp_path, capsys):
    write_run_dir(tmp_path / "runs/seed-0", CONFIG, FINISHED)
    write_run_dir(tmp_path / "runs/seed-1", CONFIG, FINISHED | {"status": "interrupted"})
    assert archive.main(["pack", "study", str(tmp_path / "runs")]) == 0
    for seed, steps in ((1, 99), (0, 77)):
        summary = FINISHED | {"steps": steps}
        RunDirectory(tmp_path / f"runs/seed-{seed}").summary.write_text(json.dumps(summary))
    assert archive.main(["pack", "study", str(tmp_path / "runs")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" runs are new")[0] for line in printed] == ["1 of 1", "1 of 2"]
    assert [row["summary"]["steps"] for row in archive.read_rows("study")] == [12, 99]


def test_a_row_names_the_commit_and_the_versions_that_made_it(tmp_path):
    write_run_dir(tmp_path / "runs/seed-0", CONFIG, FINISHED)
    provenance = {"source": {"commit": "abc", "diff": ""}, "packages": {"torch": "2.13.0"}, "machine": {"host": "vm"}}
    RunDirectory(tmp_path / "runs/seed-0").provenance.write_text(json.dumps(provenance))
    archive.pack("study", tmp_path / "runs")
    (row,) = archive.read_rows("study")
    assert row["made_by"] == {"commit": "abc", "packages": {"torch": "2.13.0"}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["unpack", "deep-see", "runs"], "unknown study deep-see: all, or one of study"),
        (["pack", "study", "nowhere"], "no runs in nowhere"),
        (["pack", "all", "runs"], "pack one study at a time"),
    ],
)
def test_mistakes_name_what_there_is(words, message, capsys):
    archive.write_rows("study", [])
    with pytest.raises(SystemExit):
        archive.main(words)
    assert message in capsys.readouterr().err


def test_all_studies_are_unpacked_side_by_side(tmp_path, capsys):
    for study in ("one", "two"):
        archive.write_rows(study, [{"run": "seed-0", "config": CONFIG, "summary": FINISHED, "metrics": []}])
    assert archive.main(["unpack", "all", str(tmp_path / "runs")]) == 0
    assert sorted(files_of(tmp_path / "runs")) == [
        f"{study}/seed-0/{name}" for study in ("one", "two") for name in ("config.json", "summary.json")
    ]
    assert "1 runs of one written to" in capsys.readouterr().out


def test_a_finished_run_replaces_the_row_of_one_that_was_stopped(tmp_path):
    stopped = {"run": "seed-0", "config": CONFIG, "summary": FINISHED | {"status": "interrupted"}, "metrics": []}
    archive.write_rows("study", [stopped])
    write_run_dir(tmp_path / "runs/seed-0", CONFIG, FINISHED)
    assert archive.pack("study", tmp_path / "runs") == (1, 1)
    assert archive.read_rows("study")[0]["summary"] == FINISHED
    assert archive.pack("study", tmp_path / "runs") == (0, 1)


def test_runs_that_no_sweep_can_resume_are_not_unpacked(tmp_path, capsys):
    stopped = {"run": "seed-1", "config": CONFIG, "summary": FINISHED | {"status": "interrupted"}, "metrics": []}
    archive.write_rows("study", [stopped, stopped | {"run": "seed-0", "summary": FINISHED}])
    archive.main(["unpack", "study", str(tmp_path / "runs")])
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["seed-0"]
    assert "left out: 1 that were stopped and cannot be resumed" in capsys.readouterr().out


@pytest.mark.parametrize("study", plans.SWEEPS)
def test_the_metrics_that_scores_come_from_are_kept(study):
    config = plans.planned_runs(study)[0].config
    if config.env.kind in ("atari", "minatar") or "minigrid" in study:
        assert "evaluation" in archive.KEPT_METRICS[study]
