"""The runs that count as finished are those that their plan describes."""

import json

import pytest

from bootdqn.config.train import differences, to_flat
from reproduction import plans


@pytest.mark.parametrize("study", plans.SWEEPS)
def test_a_committed_run_has_the_settings_of_its_plan(study):
    for run in plans.planned_runs(study):
        path = plans.RESULTS / study / run.name / "config.json"
        if path.exists():
            assert differences(json.loads(path.read_text(encoding="utf-8")), to_flat(run.config)) == {}, run.name


def test_only_finished_runs_count(tmp_path, monkeypatch):
    monkeypatch.setattr(plans, "RESULTS", tmp_path)
    first, second, *others = plans.planned_runs("explorer-harm")
    for run, status in ((first, "finished"), (second, "interrupted")):
        path = tmp_path / "explorer-harm" / run.name
        path.mkdir(parents=True)
        (path / "summary.json").write_text(json.dumps({"status": status}), encoding="utf-8")
    assert plans.progress("explorer-harm") == (1, 2 + len(others))
