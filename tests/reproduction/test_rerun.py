"""A committed run that is repeated has an equal summary, and one that differs is reported."""

import json
import re
import shutil

from reproduction import rerun


def test_a_committed_run_is_equal_when_repeated(capsys):
    assert rerun.main("deep-sea/size-5/evoi-reduce-sum", "1") == 0
    assert re.fullmatch(r"deep-sea/size-5/\S+: equal\n1 of 1 runs are equal\n", capsys.readouterr().out)


def test_a_run_that_differs_is_reported(tmp_path, monkeypatch, capsys):
    (shortest,) = rerun.shortest_runs(rerun.RESULTS / "deep-sea", 1)
    spoiled = json.loads(shortest.summary.read_text()) | {"solved_at": 9999}
    (tmp_path / "study/run").mkdir(parents=True)
    shutil.copy(shortest.config, tmp_path / "study/run")
    (tmp_path / "study/run/summary.json").write_text(json.dumps(spoiled))
    monkeypatch.setattr(rerun, "RESULTS", tmp_path)
    assert rerun.main("study", "5") == 1
    printed = capsys.readouterr().out
    assert "study/run: solved_at was 9999, now " in printed
    assert printed.endswith("0 of 1 runs are equal\n")
