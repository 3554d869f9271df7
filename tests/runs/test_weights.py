"""Weights that cannot be those of the run are an error in every command that uses them."""

import os
import shutil

import numpy as np
import pytest

from bootdqn import load_run
from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import DamagedFileError
from bootdqn.common.tensor_files import read_tensors_and_metadata, write_tensors
from bootdqn.config.settings import from_flat
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.run import train_run

SETTINGS = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 3,
    "max_episodes": 2,
    "num_heads": 2,
    "hidden_sizes": [4],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "run"
    train_run(from_flat(SETTINGS | {"snapshot_every": 5}), path)
    return path


@pytest.fixture
def directory(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def changed(directory, change, step="6"):
    """Write the weights again, as `change` makes them."""
    arrays, _ = read_tensors_and_metadata(directory.weights)
    directory.weights.unlink()
    write_tensors(directory.weights, change({name: array.copy() for name, array in arrays.items()}), {"step": step})


def with_first(function):
    """Return a change of the first array only."""
    return lambda arrays: {
        name: array if number else function(array) for number, (name, array) in enumerate(arrays.items())
    }


def with_one(value):
    def put(array):
        array.flat[-1] = value
        return array

    return with_first(put)


CHANGES = {
    "all NaN": (lambda arrays: {name: np.full_like(array, np.nan) for name, array in arrays.items()}, "not finite"),
    "one NaN": (with_one(np.nan), "weights that are not finite"),
    "one infinity": (with_one(np.inf), "weights that are not finite"),
    "floats called integers": (with_first(lambda array: array.view(np.int32)), "float32 .* found int32"),
    "twice as exact": (with_first(lambda array: array.astype(np.float64)), "float32 .* found float64"),
    "another shape": (with_first(lambda array: array.reshape(-1)), "should be float32"),
    "one too few": (lambda arrays: dict(list(arrays.items())[1:]), "found nothing"),
    "one too many": (lambda arrays: arrays | {"extra": np.zeros(1, np.float32)}, "it has no 'extra'"),
    "far too large": (lambda arrays: arrays | {"extra": np.zeros(2**23, np.float32)}, "the limit is"),
}


@pytest.mark.parametrize(("change", "problem"), CHANGES.values(), ids=CHANGES)
def test_invalid_weights_are_an_error(directory, capsys, change, problem):
    changed(directory, change)
    with pytest.raises(DamagedFileError, match=f"weights.safetensors .*{problem}"):
        load_run(directory.path)
    for command in ("evaluate", "inspect"):
        assert run_command_line([command, str(directory.path), "--weights", str(directory.weights)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"bootdqn: {directory.weights} ")


@pytest.mark.parametrize("step", ["-1", "9" * 30, "9" * 5000, "six"])
def test_an_invalid_step_is_an_error(directory, step):
    changed(directory, lambda arrays: arrays, step)
    with pytest.raises(DamagedFileError, match="does not hold the networks of this run"):
        load_run(directory.path)


@pytest.mark.parametrize("kind", ["a named pipe", "a symbolic link", "a directory"])
@pytest.mark.parametrize("command", ["evaluate", "inspect"])
def test_a_path_that_is_no_regular_file_is_an_error_without_blocking(directory, tmp_path, capsys, kind, command):
    moved = directory.weights.rename(tmp_path / "moved")
    {"a named pipe": os.mkfifo, "a symbolic link": lambda path: path.symlink_to(moved), "a directory": os.mkdir}[kind](
        directory.weights
    )
    assert run_command_line([command, str(directory.path)]) == 2
    assert capsys.readouterr().err.startswith(f"bootdqn: {directory.weights} is {kind}, not a file")


def test_a_file_that_the_user_names_may_be_a_link(directory, tmp_path, capsys):
    link = tmp_path / "best"
    link.symlink_to(directory.weights)
    assert run_command_line(["evaluate", str(directory.path), "--weights", str(link), "--episodes", "1"]) == 0
    assert "mean return" in capsys.readouterr().out


def test_snapshots_behind_a_link_are_not_read(directory, tmp_path, capsys):
    directory.snapshots.rename(tmp_path / "moved")
    directory.snapshots.symlink_to(tmp_path / "moved")
    assert run_command_line(["evaluate", str(directory.path), "--weights", "5"]) == 2
    assert f"{directory.snapshots} is a symbolic link, not a directory" in capsys.readouterr().err


def test_networks_whose_outputs_overflow_are_an_error(directory, capsys):
    changed(directory, lambda arrays: {name: np.full_like(array, 3e38) for name, array in arrays.items()})
    for command in ("evaluate", "inspect"):
        assert run_command_line([command, str(directory.path)]) == 1
        assert "not finite" in capsys.readouterr().err
