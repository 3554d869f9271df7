"""The driver of a sweep on Ray, where no cluster is needed."""

import json
import os
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from bootdqn.common.errors import UsageError
from bootdqn.config.settings import from_flat
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import LockHolder
from bootdqn.runs.user_code_imports import UserCodeImports
from bootdqn.sweeps.executor import Ended, Fault, Message, Started, execute
from bootdqn.sweeps.local import RunSettings
from bootdqn.sweeps.ray_driver import RayBackend, Request, TaskResult, node_problem, read_progress
from bootdqn.sweeps.ray_sweep import run_on_ray
from bootdqn.sweeps.sweep_file import PlannedRun
from reference.planned import QUICK, planned
from reference.user_code import STRATEGY

TIMING = '{"seconds": 2.0, "step": 16}\n{"seconds": 4.0, "step": 40}\n{"seconds": 5.0, "st'


def test_the_last_whole_line_counts(tmp_path):
    directory = RunDirectory(tmp_path)
    assert read_progress(directory, planned("run")) is None
    directory.timing.write_text(TIMING)
    progress = read_progress(directory, planned("run"))
    assert (progress.completed, progress.position, progress.speed) == (0.25, "40 steps", "10 steps/s")


@pytest.mark.parametrize("content", ["[]\n", "{}\n", "x\n", '{"seconds": null, "step": 1}\n', '{"step": 1e999}\n'])
def test_a_line_without_valid_progress_is_ignored(tmp_path, content):
    RunDirectory(tmp_path).timing.write_text(content)
    assert read_progress(RunDirectory(tmp_path), planned("run")) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_path_that_is_no_regular_file_does_not_block(tmp_path, make):
    make(RunDirectory(tmp_path).timing)
    assert read_progress(RunDirectory(tmp_path), planned("run")) is None


class Ray:
    """Stands for Ray where no cluster is needed: every attempt at a run is made on one node, which has a problem."""

    exceptions = None

    def __init__(self, nodes, problem=None):
        self._nodes, self._problem = nodes, problem

    def nodes(self):
        return [{"NodeID": name, "NodeManagerHostname": name, **node} for name, node in self._nodes.items()]

    def remote(self, **_options):
        return lambda task: SimpleNamespace(
            options=lambda **_: SimpleNamespace(remote=lambda planned, *_: planned),
            remote=lambda *_: task.__name__,
        )

    def wait(self, references, timeout):  # noqa: ARG002
        return [one for one in references if one != "wait_until_usable"], []

    def get(self, planned):
        end = Ended(planned, None, self._problem, Fault.EXTERNAL)
        return TaskResult(end, [], next(iter(self._nodes)), self._problem)

    def shutdown(self):
        pass


def backend_on(ray, runs, gpus_per_run=0.0, out=Path("nowhere")):
    settings = RunSettings(out, UserCodeImports(), None)
    memory = dict.fromkeys(runs, 2**20)
    return RayBackend(ray, Request(memory, gpus_per_run, settings, Path("nowhere/token")))


def test_runs_that_no_node_is_large_enough_for_are_reported_once_for_each_kind():
    ray = Ray(
        {
            "small": {"Alive": True, "Resources": {"CPU": 2.0, "memory": 2.0**40}},
            "lost": {"Alive": False, "Resources": {"CPU": 64.0, "memory": 2.0**40, "GPU": 8.0}},
        }
    )
    runs = [
        PlannedRun(PurePosixPath(f"{threads}-{seed}"), from_flat(QUICK | {"threads": threads, "seed": seed}))
        for threads in (1, 4)
        for seed in (0, 1)
    ]
    waits = "no node has 4 CPUs, 1 MiB of memory and 0 GPUs: it and 1 other wait until one joins the cluster"
    assert list(backend_on(ray, runs).warnings()) == [Message(runs[2], waits)]
    (message,) = backend_on(ray, runs[:1], gpus_per_run=0.5).warnings()
    assert message.text.endswith("and 0.5 GPUs: it waits until one joins the cluster")


def test_a_head_without_cpus_does_not_hide_that_no_node_can_train_a_run():
    resources = {"node": 1.0, "head": 0.0}
    nodes = {name: {"Alive": True, "Resources": {"CPU": cpus, "memory": 2.0**40}} for name, cpus in resources.items()}
    one = PlannedRun(PurePosixPath("one"), from_flat(QUICK))
    with pytest.raises(UsageError, match="no node can train the runs: node node: its disk is lost"):
        execute([one], backend_on(Ray(nodes, "its disk is lost"), [one]), lambda _: None, lambda: False, retries=0)


def test_a_run_on_a_host_that_vanished_is_lost_even_if_its_task_never_ends(tmp_path, monkeypatch):
    """As where a machine loses its power or its network: Ray knows that the node is dead, and still waits for it."""
    node = {"Alive": True, "Resources": {"CPU": 1.0, "memory": 2.0**40}}
    nodes = {"here": node, "there": node}
    ray, one = Ray(nodes), planned("one")
    monkeypatch.setattr(ray, "wait", lambda *_, **__: ([], []))
    backend = backend_on(ray, [one], out=tmp_path)
    backend.start(one)
    lock = RunDirectory(tmp_path / "one").lock
    lock.parent.mkdir()
    lock.write_text(json.dumps(asdict(LockHolder("there", "boot", 1, "now", "token"))))
    assert list(backend.events()) == [Started(one)]
    assert list(backend.events()) == []
    nodes["there"] = node | {"Alive": False}
    assert list(backend.events()) == [Ended(one, None, "its node was lost", Fault.EXTERNAL)]
    backend.start(one)
    assert list(backend.events()) == [], "the lock of the worker that was lost with the host does not count"
    lock.write_text(json.dumps(asdict(LockHolder("here", "boot", 1, "now", "other token"))))
    assert list(backend.events()) == [Started(one)]


def test_a_node_that_lacks_user_code_cannot_train_runs(tmp_path, user_code):
    marker_file = tmp_path / "token"
    marker_file.touch()
    settings = RunSettings(tmp_path, UserCodeImports(("my_strategy.Mine",), directory=user_code.directory), None)
    missing = "--strategy-from my_strategy.Mine: no module 'my_strategy' is installed"
    assert node_problem(settings, marker_file).startswith(missing)
    assert "install the module on every node" in node_problem(settings, marker_file)
    user_code.write("my_strategy", STRATEGY)
    assert node_problem(settings, marker_file) is None


@pytest.mark.parametrize(
    ("address", "message"), [("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1"), ("somewhere", "auto, or HOST:PORT")]
)
def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path, address, message):
    with pytest.raises(UsageError, match=message):
        run_on_ray([PlannedRun(PurePosixPath("one"), from_flat(QUICK))], tmp_path, address)
