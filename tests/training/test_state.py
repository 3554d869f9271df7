"""Putting a run together again: what is wrong with the machine is not blamed on the checkpoint."""

import json

import pytest
import torch

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.run_folder import RunFolder, read_json_object
from bootdqn.training.session import Voice
from reference.faults import FUSED, rounds_watched, train


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """The folder of a run that was killed after 100 steps."""

    def kill(parts):
        if parts.position.step == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), rounds_watched(monkeypatch, kill):
        train(FUSED, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("none left"),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=repr,
)
def test_too_little_memory_to_go_on_is_not_a_foreign_checkpoint(killed, monkeypatch, error):
    def refuse(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("bootdqn.agent.tabular_learner.TabularLearner.set_state", refuse)
        with pytest.raises(type(error)):
            train(FUSED, killed)
        error = ValueError("of another size")
        with pytest.raises(DamagedFileError, match="not one of this run: ValueError: of another size"):
            train(FUSED, killed)
    assert train(FUSED, killed).exit_code == 0


def test_a_run_that_goes_on_with_other_instructions_says_so_and_is_no_longer_exact(killed):
    file, warned = RunFolder(killed).provenance, []
    began = read_json_object(file)
    began["machine"]["arithmetic"] = {"pytorch": "AVX9", "blas": ["Pentium"]}
    file.write_text(json.dumps(began))
    assert train(FUSED, killed, voice=Voice(warn=warned.append)).exit_code == 0
    (line,) = warned
    assert line.startswith("this run began with pytorch AVX9, blas ['Pentium'] and goes on with pytorch ")
    assert read_json_object(file)["exact"] is False


@pytest.mark.parametrize("machine", [None, {}, "unchanged", []])
def test_a_run_that_goes_on_where_it_began_or_began_nobody_knows_where_is_exact(killed, machine):
    file, warned = RunFolder(killed).provenance, []
    if machine != "unchanged":
        file.write_text(json.dumps(read_json_object(file) | {"machine": machine}))
    assert train(FUSED, killed, voice=Voice(warn=warned.append)).exit_code == 0
    assert warned == []
    assert read_json_object(file)["exact"] is True


def test_a_run_goes_on_without_the_file_about_its_beginning(killed):
    file = RunFolder(killed).provenance
    file.unlink()
    assert train(FUSED, killed).exit_code == 0
    assert list(read_json_object(file)) == ["exact", "resumed"]
