"""A committed run that is repeated has an equal summary, and one that differs is reported."""

import pytest

from reproduction import archive, rerun


def test_a_committed_run_is_equal_when_repeated(capsys):
    assert rerun.main(["deep-sea", "size-5/evoi-reduce-sum/seed-0"]) == 0
    assert capsys.readouterr().out == "deep-sea/size-5/evoi-reduce-sum/seed-0: equal\n1 of 1 runs are equal\n"


def test_a_run_that_differs_is_reported(tmp_path, monkeypatch, capsys):
    (fewest,) = rerun.shortest(archive.read_rows("deep-sea"), 1)
    other = fewest | {"run": "longer", "summary": fewest["summary"] | {"steps": 10**9}}
    spoiled = fewest | {"run": "spoiled", "summary": fewest["summary"] | {"solved_at": 9999}}
    monkeypatch.setattr(archive, "RESULTS", tmp_path)
    archive.write_rows("study", [other, spoiled])
    assert rerun.main(["study", "--shortest", "1"]) == 1
    solved_at = fewest["summary"]["solved_at"]
    assert capsys.readouterr().out == (f"study/spoiled: solved_at was 9999, now {solved_at}\n0 of 1 runs are equal\n")


def test_an_unknown_run_is_an_error_that_names_one(capsys):
    with pytest.raises(SystemExit):
        rerun.main(["deep-sea", "size-4"])
    assert "no run of deep-sea is named size-4; for example size-10/" in capsys.readouterr().err


def test_a_name_chooses_a_run_or_all_below_it_and_no_longer_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(archive, "RESULTS", tmp_path)
    monkeypatch.setattr(rerun, "differences", lambda _: [])
    runs = ("size-5/gain/seed-1", "size-5/gain/seed-10", "size-5/gain-scale-2.0/seed-1")
    archive.write_rows("study", [{"run": run, "summary": {"status": "finished", "steps": 1}} for run in runs])
    assert rerun.main(["study", "size-5/gain/seed-1"]) == 0
    assert "1 of 1 runs are equal" in capsys.readouterr().out
    assert rerun.main(["study", "size-5/gain/"]) == 0
    assert "2 of 2 runs are equal" in capsys.readouterr().out


def test_a_study_without_finished_runs_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(archive, "RESULTS", tmp_path)
    archive.write_rows("study", [{"run": "seed-0", "summary": {"status": "interrupted"}}])
    with pytest.raises(SystemExit):
        rerun.main(["study"])
    assert "no run of study is finished" in capsys.readouterr().err
