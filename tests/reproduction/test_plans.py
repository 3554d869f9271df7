"""The runs that count as finished are those that their plan describes."""

import pytest

from bootdqn.config.settings import differences, to_flat
from reproduction import archive, plans


@pytest.mark.parametrize("study", plans.SWEEPS)
def test_a_committed_run_has_the_settings_of_its_plan(study):
    committed = {row["run"]: row["config"] for row in archive.read_rows(study)}
    for run in plans.planned_runs(study):
        if str(run.name) in committed:
            assert differences(committed[str(run.name)], to_flat(run.config)) == {}, run.name


def test_only_finished_runs_count(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "RESULTS", tmp_path)
    first, second, *others = plans.planned_runs("explorer-harm")
    statuses = {first: "finished", second: "interrupted"}
    archive.write_rows(
        "explorer-harm", [{"run": str(run.name), "summary": {"status": status}} for run, status in statuses.items()]
    )
    assert plans.progress("explorer-harm") == (1, 2 + len(others))
