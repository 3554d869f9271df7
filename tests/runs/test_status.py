"""The status of a run directory: every state, from the fewest files that make it."""

import json

import pytest

from bootdqn.common.errors import DamagedFileError, UsageError
from bootdqn.config.settings import from_flat, to_flat
from bootdqn.config.train import resolve
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import locked
from bootdqn.runs.status import RunState, run_status

FINISHED = {"status": "finished", "steps": 90, "episodes": 30, "seconds": 1.0}
SOLVED = FINISHED | {"solved_at": 20, "solved_at_strict": 30}
EPISODE = {"kind": "episode", "episode": 12, "step": 36}
METRICS = {"metrics.jsonl": json.dumps(EPISODE) + "\n"}
CHECKPOINT = {"checkpoints/step-000000000036/manifest.json": "{}"}


def config(**settings):
    return resolve(from_flat({"environment": "deep-sea", "size": 3, "max_episodes": 50} | settings))


def summary(content):
    return {"summary.json": json.dumps(content)}


def held(path, files, **settings):
    """Return a directory with these files, and the configuration of the settings unless it is among them."""
    files = {"config.json": json.dumps(to_flat(config(**settings)))} | files
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            (path / name).write_text(content)
    return RunDirectory(path)


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({"config.json": None}, RunState.EMPTY),
        ({"config.json": None, "lock.json": "", ".config.json.part": "{"}, RunState.EMPTY),
        ({}, RunState.EMPTY),
        (METRICS | CHECKPOINT, RunState.INCOMPLETE),
        (METRICS | CHECKPOINT | summary({"status": "interrupted"}), RunState.INCOMPLETE),
        (METRICS, RunState.NO_CHECKPOINT),
        (summary(FINISHED), RunState.FINISHED),
        (summary({"status": "finished"}), RunState.DAMAGED),
        (summary([]), RunState.DAMAGED),
        ({"config.json": "{"}, RunState.DAMAGED),
        ({"config.json": None, "thesis.tex": "years of work"}, RunState.NOT_A_RUN),
    ],
)
def test_every_state_of_a_run_directory(path, files, state):
    status = run_status(held(path, files), config())
    assert status.state is state
    trainable = state in (RunState.EMPTY, RunState.INCOMPLETE, RunState.FINISHED)
    assert (status.problem == "") == trainable
    if trainable:
        status.check()
    else:
        with pytest.raises(DamagedFileError if state is RunState.DAMAGED else UsageError):
            status.check()


@pytest.mark.parametrize(
    ("files", "budget", "state"),
    [
        (summary(FINISHED) | CHECKPOINT, 80, RunState.INCOMPLETE),
        (summary(FINISHED), 80, RunState.NO_CHECKPOINT),
        (summary(SOLVED), 80, RunState.FINISHED),
        (summary(SOLVED), 30, RunState.FINISHED),
        (summary(SOLVED), 29, RunState.SMALLER_BUDGET),
        (METRICS | CHECKPOINT, 12, RunState.INCOMPLETE),
        (METRICS | CHECKPOINT, 11, RunState.SMALLER_BUDGET),
        (METRICS, 80, RunState.NO_CHECKPOINT),
    ],
)
def test_a_run_with_another_budget(path, files, budget, state):
    status = run_status(held(path, files), config(max_episodes=budget))
    assert (status.state, status.new_budget) == (state, True)


def test_a_checkpoint_counts_as_used_where_the_metrics_end_before_it(path):
    lake = {"environment": "gym", "env_id": "FrozenLake-v1", "total_steps": 100}
    metrics = {"metrics.jsonl": json.dumps({"kind": "episode", "episode": 1, "step": 30}) + "\n"}
    directory = held(path, {"config.json": json.dumps(to_flat(from_flat(lake)))} | metrics | CHECKPOINT)
    for budget, state in ((36, RunState.INCOMPLETE), (35, RunState.SMALLER_BUDGET)):
        assert run_status(directory, from_flat(lake | {"total_steps": budget})).state is state


def test_another_configuration_is_listed(path):
    status = run_status(held(path, summary(FINISHED)), config(seed=4))
    assert status.state is RunState.OTHER_CONFIG
    assert "(mapping_seed: 0 there, 4 here, seed: 0 there, 4 here)" in status.problem
    with pytest.raises(UsageError, match=r"4 here\); choose another run directory$"):
        status.check()


@pytest.mark.parametrize("files", [METRICS, summary([]), summary({"status": "finished"})])
def test_a_restart_needs_the_same_configuration_only(path, files):
    directory = held(path, files)
    run_status(directory, config()).check(restart=True)
    with pytest.raises(UsageError, match="another configuration"):
        run_status(directory, config(seed=4)).check(restart=True)
    directory.config.write_text("{")
    with pytest.raises(DamagedFileError):
        run_status(directory, config()).check(restart=True)


def test_the_label_of_a_run_is_that_of_its_summary_or_whether_a_process_trains_it(path):
    directory = held(path, METRICS)
    assert run_status(directory).state is RunState.INCOMPLETE
    assert run_status(directory).label == "stopped"
    with locked(directory.lock):
        assert run_status(directory).label == "under way"
    directory.summary.write_text('{"status": "interrupted"}')
    assert run_status(directory).label == "interrupted"
    directory.summary.write_text('{"status": "finished"}')
    assert run_status(directory).state is RunState.FINISHED
