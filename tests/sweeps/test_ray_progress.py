"""How far a run on a cluster is, as the driver reads it from a directory that others write to."""

import os

import pytest

from bootdqn.runs.directory import RunDirectory
from bootdqn.sweeps.ray_driver import _progress_of
from reference.planned import planned

TIMING = '{"seconds": 2.0, "step": 16}\n{"seconds": 4.0, "step": 40}\n{"seconds": 5.0, "st'


def test_the_last_whole_line_counts(tmp_path):
    folder = RunDirectory(tmp_path)
    assert _progress_of(folder, planned("run")) is None
    folder.timing.write_text(TIMING)
    progress = _progress_of(folder, planned("run"))
    assert (progress.completed, progress.position, progress.speed) == (0.25, "40 steps", "10 steps/s")


@pytest.mark.parametrize("content", ["[]\n", "{}\n", "x\n", '{"seconds": null, "step": 1}\n', '{"step": 1e999}\n'])
def test_a_line_that_says_nothing_is_no_progress(tmp_path, content):
    RunDirectory(tmp_path).timing.write_text(content)
    assert _progress_of(RunDirectory(tmp_path), planned("run")) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_waited_for(tmp_path, make):
    make(RunDirectory(tmp_path).timing)
    assert _progress_of(RunDirectory(tmp_path), planned("run")) is None
