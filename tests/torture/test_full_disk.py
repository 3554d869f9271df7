"""A disk that is full or broken: earlier checkpoints stay good, training continues, and the results are the same."""

import contextlib
import errno
import itertools
import json
import os
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bootdqn.common.specs import DiscreteSpec
from bootdqn.replay import buffer as ring
from bootdqn.runs.checkpoint import Checkpoints, State
from torture.faults import every_other_checkpoint_failing, faulty_disk, files_limited
from torture.legs import results, stopping_at, train, train_unbroken, with_segments_of
from torture.settings import DEEP_SEA

SETTINGS = DEEP_SEA | {"max_episodes": 80, "replay_capacity": 160}
SMALL_SEGMENTS = with_segments_of(24)
OFTEN = {"checkpoint_every_steps": 16}
NO_CHECKPOINT = re.compile(
    r"no checkpoint at step [\d,]+: \[Errno \d+\] [^\n]+; training continues, next try within \d+ seconds"
)
NOT_WRITTEN = re.compile(r"\S+ could not be written at step [\d,]+: \[Errno \d+\] [^\n]+; training continues")


# One checkpoint


def small_replay(num_transitions):
    replay = ring.ReplayBuffer(DiscreteSpec(1000), capacity=30, num_heads=2, discount=0.9)
    replay.start_episode(0, 0)
    for number in range(num_transitions):
        replay.add(0, 1, number, number, np.ones(2, bool), terminated=False, truncated=False)
    return replay


def state_after(num_transitions):
    replay = small_replay(num_transitions)
    arrays = {"learner": {"weights": np.arange(num_transitions), "bias": np.zeros(3)}, "replay": replay.get_state()}
    return State({"step": num_transitions}, arrays), replay


def whole(path):
    """Return all that the newest whole checkpoint in `path` holds; there must be nothing to warn of."""
    checkpoints, lines, replay = Checkpoints(path), [], small_replay(0)
    loaded = checkpoints.load(lines.append)
    assert lines == []
    checkpoints.load_segments(loaded, replay)
    replay.set_state(loaded.state.arrays["replay"])
    segments = [replay.get_segment(index) for index in range(len(replay.segment_versions))]
    return loaded.path.name, loaded.state.values, loaded.state.arrays, segments


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_a_checkpoint_that_fails_at_any_operation_leaves_the_one_before_as_it_was(tmp_path, monkeypatch, error):
    monkeypatch.setattr(ring, "SEGMENT_SLOTS", 8)
    Checkpoints(tmp_path / "before").save(20, *state_after(20))
    before = whole(tmp_path / "before")
    with faulty_disk() as faults:
        for place in itertools.count():
            path = tmp_path / f"failed-{place}"
            shutil.copytree(tmp_path / "before", path)
            checkpoints = Checkpoints(path)
            checkpoints.load(lambda _: None)
            faults.rearm(place, error)
            with contextlib.suppress(OSError):
                checkpoints.save(25, *state_after(25))
            if not faults.fired:
                break
            names = sorted(file.name for file in path.rglob("*"))
            assert names == sorted(file.name for file in (tmp_path / "before").rglob("*")), faults.operations
            np.testing.assert_equal(whole(path), before)
            faults.rearm(None)
            checkpoints.save(25, *state_after(25))
            assert whole(path)[0] == "step-000000000025"
    assert {"open", "write", "flush", "fsync", "mkdir", "rename", "replace"} == set(faults.operations)
    print(f"{place} operations of a checkpoint, each failed once with {errno.errorcode[error]}")


def test_a_checkpoint_before_which_nothing_can_be_removed_is_a_checkpoint_all_the_same(tmp_path, monkeypatch):
    def fail(path, *, dir_fd=None):
        missing = dir_fd is None and not Path(path).exists()
        raise FileNotFoundError(path) if missing else OSError(errno.EIO, "Input/output error")

    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(10, *state_after(10))
    (tmp_path / "checkpoints/notes.txt").write_text("somebody's own")
    with monkeypatch.context() as patches:
        for name in ("unlink", "rmdir"):
            patches.setattr(os, name, fail)
        for step in (20, 25, 28):
            assert checkpoints.save(step, *state_after(step))
    assert whole(tmp_path / "checkpoints")[0] == "step-000000000028"
    checkpoints.save(29, *state_after(29))
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert left == ["notes.txt", "segments", "step-000000000028", "step-000000000029"]
    assert len(list((tmp_path / "checkpoints/segments").iterdir())) == 2


# A run


def test_a_run_whose_checkpoints_fail_at_every_operation_has_the_same_results(tmp_path, sized):
    settings = SETTINGS | {"max_episodes": sized(160, 700)}
    expected = train_unbroken(settings, tmp_path / "unbroken", SMALL_SEGMENTS)
    report = tmp_path / "run/report.json"
    failing = partial(every_other_checkpoint_failing, range(0, 100, sized(5, 1)), report)
    (tmp_path / "run").mkdir()
    leg = train(settings, tmp_path / "run", SMALL_SEGMENTS, failing, saving=OFTEN)
    assert (leg.exit_code, leg.error) == (0, None)
    reported = json.loads(report.read_text())
    assert reported["left"] == []
    assert len(leg.warned) == len(reported["reached"])
    assert all(NO_CHECKPOINT.fullmatch(line) for line in leg.warned), leg.warned
    assert results(tmp_path / "run") == expected
    print(f"{len(leg.warned)} checkpoints failed, the last at operation {reported['reached'][-1]}")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return train_unbroken(SETTINGS, tmp_path_factory.mktemp("full-disk") / "unbroken", SMALL_SEGMENTS)


@pytest.fixture(params=[0, 2048], ids="files of at most {} bytes".format)
def limited(request):
    return partial(files_limited, request.param)


def assert_each_is_reported_in_one_line(lines):
    assert lines
    assert all(NO_CHECKPOINT.fullmatch(line) or NOT_WRITTEN.fullmatch(line) for line in lines), lines


def test_a_disk_that_is_full_for_a_while_costs_checkpoints_and_nothing_else(tmp_path, expected, limited):
    leg = train(SETTINGS, tmp_path / "run", SMALL_SEGMENTS, partial(limited, 70, 320), saving=OFTEN)
    assert (leg.exit_code, leg.error) == (0, None)
    assert_each_is_reported_in_one_line(leg.warned)
    assert results(tmp_path / "run") == expected


def test_a_stop_that_cannot_be_saved_is_an_error_and_the_run_resumes_from_the_checkpoint_before(
    tmp_path, expected, limited
):
    stopped = train(
        SETTINGS, tmp_path / "run", SMALL_SEGMENTS, partial(limited, 100, 1000), stopping_at(203), saving=OFTEN
    )
    assert (stopped.exit_code, stopped.error) == (1, None)
    assert_each_is_reported_in_one_line(stopped.warned)
    assert any(line.startswith("no checkpoint at step 203") for line in stopped.warned)
    resumed = train(SETTINGS, tmp_path / "run", SMALL_SEGMENTS)
    assert (resumed.exit_code, resumed.error, resumed.warned, resumed.resumed_from) == (0, None, [], 96)
    assert results(tmp_path / "run") == expected


def test_an_end_that_cannot_be_written_is_an_error_and_the_run_can_be_ended_again(tmp_path, expected, limited):
    ended = train(SETTINGS, tmp_path / "run", SMALL_SEGMENTS, partial(limited, 380, 1000), saving=OFTEN)
    assert (ended.exit_code, ended.error) == (1, None)
    assert_each_is_reported_in_one_line(ended.warned)
    assert not (tmp_path / "run/summary.json").exists()
    again = train(SETTINGS, tmp_path / "run", SMALL_SEGMENTS)
    assert (again.exit_code, again.error, again.warned, again.resumed_from) == (0, None, [], 368)
    assert results(tmp_path / "run") == expected
