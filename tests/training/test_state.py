"""Restoring a run: problems of the machine are not blamed on the checkpoint."""

import json
import re

import pytest
import torch

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import PROVENANCE, read_json_object
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.provenance import Provenance, arithmetic, gpu, provenance
from bootdqn.training.callbacks import RunCallbacks
from reference.faults import AUTOGRAD, COMPILED, steps_watched, stopping_at, train

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """The directory of a run that was killed after 100 steps."""

    def kill(components):
        if components.loop.step == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), steps_watched(monkeypatch, kill):
        train(COMPILED, tmp_path / "run")
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
def test_too_little_memory_to_resume_is_not_blamed_on_the_checkpoint(killed, monkeypatch, error):
    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("bootdqn.agent.discrete_learner.DiscreteLearner.set_state", fail)
        with pytest.raises(type(error)):
            train(COMPILED, killed)
        error = ValueError("of another size")
        with pytest.raises(DamagedFileError, match="not one of this run: ValueError: of another size"):
            train(COMPILED, killed)
    assert train(COMPILED, killed).exit_code == 0


@pytest.mark.parametrize(
    ("began_with", "settings", "exact"),
    [
        ({}, COMPILED, True),
        ({"blas": ["Pentium"]}, COMPILED, True),  # which multiplies without it
        ({"blas": ["Pentium"]}, AUTOGRAD, False),
        ({"numpy": ["ENIAC"]}, COMPILED, False),
        ({"pytorch": "AVX9", "MKL_CBWR": "SSE2"}, COMPILED, True),  # which does not learn with PyTorch
        ({"pytorch": "AVX9"}, AUTOGRAD, False),
        ({"MKL_CBWR": "SSE2"}, AUTOGRAD, False),
    ],
    ids=str,
)
def test_a_run_resumed_with_other_instructions_warns_and_is_no_longer_exact(
    path, monkeypatch, began_with, settings, exact
):
    with stopping_at(monkeypatch, 100):
        train(settings, path)
    file, warned = RunDirectory(path).provenance, []
    began = read_json_object(file, PROVENANCE)
    began["machine"]["arithmetic"] |= began_with
    file.write_text(json.dumps(began))
    assert train(settings, path, callbacks=RunCallbacks(warn=warned.append)).exit_code == 0
    assert read_json_object(file, PROVENANCE)["exact"] is exact
    assert [line.partition(" (")[0] for line in warned] == ["this run was started with other instructions"] * (
        not exact
    )
    for value in began_with.values():
        assert exact or str(value) in warned[0]


@pytest.mark.parametrize("package", ["bootdqn", "torch", "numpy", "numba", "gymnasium", "reference"])
def test_a_run_resumed_with_another_version_of_a_package_warns_and_is_no_longer_exact(killed, package):
    file, warned = RunDirectory(killed).provenance, []
    began = read_json_object(file, PROVENANCE)
    now = began["packages"][package]
    began["packages"][package] = "0.1\x1b[2J"
    file.write_text(json.dumps(began))
    assert train(COMPILED, killed, callbacks=RunCallbacks(warn=warned.append)).exit_code == 0
    assert warned == [
        f"this run was started with {package} 0.1\\x1b[2J and is resumed with {package} {now}, so it is no longer exact"
    ]
    known = read_json_object(file, PROVENANCE)
    assert (known["exact"], known["resumed"][-1]["not_exact"]) == (False, warned)


def test_packages_that_no_number_depends_on_may_change(killed):
    file, warned = RunDirectory(killed).provenance, []
    began = read_json_object(file, PROVENANCE)
    began["packages"] |= {"scipy": "0.1", "lz4": None}
    file.write_text(json.dumps(began))
    assert train(COMPILED, killed, callbacks=RunCallbacks(warn=warned.append)).exit_code == 0
    assert warned == []


@pytest.fixture
def on_a_gpu(monkeypatch):
    """A machine that reports two GPUs."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda number: f"H{number}00")
    monkeypatch.setattr("torch.version.cuda", "12.9")
    monkeypatch.setattr("torch.backends.cudnn.version", lambda: 90100)


@pytest.mark.usefixtures("on_a_gpu")
def test_a_gpu_is_recorded_with_its_libraries():
    found = {"names": ["H000", "H100"], "cuda": "12.9", "cudnn": 90100}
    assert gpu() == provenance(1, "gymnasium")["machine"]["gpu"] == found


@pytest.mark.usefixtures("on_a_gpu")
@pytest.mark.parametrize("changed", [{"names": ["V100"]}, {"cuda": "11.8"}, {"cudnn": 8907}])
def test_another_gpu_cuda_or_cudnn_is_reported(tmp_path, changed):
    def changes(began):
        return Provenance(RunDirectory(tmp_path), {"machine": {"gpu": began}}).changes_of_gpu()

    assert changes(gpu()) == changes(None) == []
    (line,) = changes(gpu() | changed)
    assert line.startswith("this run was started on another GPU (")
    assert all(str(value) in line for value in changed.values())


def test_a_machine_without_a_gpu_has_none():
    assert torch.cuda.is_available() or gpu() is None


def test_kernels_of_one_kind_have_one_name(monkeypatch):
    for name in ("Zen", "Haswell"):
        found = [{"architecture": name, "filepath": "lib/libopenblas.so"}, {"filepath": "lib/libgomp.so"}]
        monkeypatch.setattr("threadpoolctl.threadpool_info", lambda found=found: found)
        assert arithmetic()["blas"] == ["Haswell"]


def test_a_library_that_another_package_has_loaded_does_not_count(monkeypatch):
    found = [
        {"architecture": "SkylakeX", "filepath": "site-packages/scipy.libs/libscipy_openblas.so"},
        {"architecture": "Prescott", "filepath": "site-packages/of_another.libs/libopenblas.so"},
    ]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: found)
    assert arithmetic()["blas"] == ["SkylakeX"]


@pytest.mark.parametrize("machine", [None, {}, {"arithmetic": "AVX2"}, []])
def test_a_run_without_a_recorded_start_is_considered_exact(killed, machine):
    file, warned = RunDirectory(killed).provenance, []
    file.write_text(json.dumps(read_json_object(file, PROVENANCE) | {"machine": machine}))
    assert train(COMPILED, killed, callbacks=RunCallbacks(warn=warned.append)).exit_code == 0
    assert warned == []
    assert read_json_object(file, PROVENANCE)["exact"] is True


def test_a_run_resumes_without_its_provenance_file(killed):
    file = RunDirectory(killed).provenance
    file.unlink()
    assert train(COMPILED, killed).exit_code == 0
    assert list(read_json_object(file, PROVENANCE)) == ["id", "keep_checkpoint", "exact", "resumed"]


def test_a_run_keeps_its_id_when_its_directory_is_renamed(killed):
    identity = Provenance.read(RunDirectory(killed)).identity
    renamed = killed.rename(killed.with_name("renamed"))
    assert train(COMPILED, renamed).exit_code == 0
    assert Provenance.read(RunDirectory(renamed)).identity == identity


@pytest.mark.parametrize("written", [None, 7, "", "../../elsewhere", "g" * 16, "a" * 17])
def test_an_id_that_no_run_can_have_is_replaced(killed, written):
    file = RunDirectory(killed).provenance
    file.write_text(json.dumps(read_json_object(file, PROVENANCE) | {"id": written}))
    assert re.fullmatch("[0-9a-f]{16}", Provenance.read(RunDirectory(killed)).identity)
