"""Runs on a real Ray cluster of two nodes: what is lost is taken up, and the numbers are those of a run alone."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from bootdqn.common.errors import UsageError
from bootdqn.common.lock import holder_of
from bootdqn.common.run_folder import RunFolder
from bootdqn.experiments.events import Ended, Notice, Started
from bootdqn.experiments.plan import PlannedRun
from bootdqn.experiments.ray_runs import _Runs, run_on_ray
from bootdqn.training.config import SavingConfig, from_flat
from bootdqn.training.run import run
from reference.environments import OUT_OF_MEMORY
from reference.own_code import FULL_DISK_ELSEWHERE, STRATEGY

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.xdist_group("ray"),
]
OFTEN = SavingConfig(checkpoint_every_steps=200)
LONG = {"environment": "deep-sea", "size": 10, "max_episodes": 450, "stop_when_solved": False, "strategy": "greedy"}


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="pip install -c constraints.txt -e '.[ray]'")
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(Path(__file__).parents[1]), *([before] if before else [])])
    os.environ |= {"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    started.add_node(num_cpus=1)
    yield started
    ray.shutdown()
    started.shutdown()
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The digests that two long runs end with when nothing happens to them."""
    folder = tmp_path_factory.mktemp("alone")
    digests = {}
    for seed in (0, 1):
        digests[seed] = run(long_run(seed).config, folder / str(seed)).summary["state_sha256"]
        digests[seed, "metrics"] = (folder / str(seed) / "metrics.jsonl").read_bytes()
    return digests


def long_run(seed):
    return PlannedRun(PurePosixPath(f"long-{seed}"), from_flat(LONG | {"seed": seed}))


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def signal_worker(folder, number):
    """Send a signal to the process that a run is trained by."""
    os.kill(holder_of(folder.lock).pid, number)


def has_new_checkpoint(folder):
    return any(path.name > "step-000000000000" for path in folder.checkpoints.glob("step-*"))


def assert_as_alone(path, seed, alone):
    folder = RunFolder(path)
    assert folder.read_summary()["state_sha256"] == alone[seed]
    assert folder.metrics.read_bytes() == alone[seed, "metrics"]


def test_a_worker_killed_and_a_node_removed_cost_nothing_but_time(cluster, tmp_path, alone):
    """The worker of one run is killed; when both runs are under way again, the second node is taken away.

    A run is held from its start until it is struck, so that it cannot be over before.
    """
    runs, events, held = [long_run(0), long_run(1)], [], []
    second = next(node for node in cluster.worker_nodes)

    def strike(event):
        events.append(event)
        if not isinstance(event, Started):
            return
        folder = RunFolder(tmp_path / event.run.name)
        held.append(folder)
        if len(held) <= 3:
            signal_worker(folder, signal.SIGSTOP)
        if len(held) == 2:
            signal_worker(held[0], signal.SIGCONT)
            wait_for(lambda: has_new_checkpoint(held[0]))
            signal_worker(held[0], signal.SIGKILL)
        if len(held) == 3:
            cluster.remove_node(second, allow_graceful=False)
            for one in held[1:]:
                with contextlib.suppress(ProcessLookupError):
                    signal_worker(one, signal.SIGCONT)

    outcome = run_on_ray(runs, tmp_path, cluster.address, strike, retries=3, saving=OFTEN)
    cluster.add_node(num_cpus=1)
    assert [end.finished for end in outcome.ended] == [True, True]
    assert held[0].path == held[2].path != held[1].path
    assert sum(isinstance(event, Ended) and event.retrying for event in events) >= 2
    for seed in (0, 1):
        assert_as_alone(tmp_path / f"long-{seed}", seed, alone)


def test_runs_that_no_node_is_large_enough_for_are_told_once_for_each_kind():
    class Submitted:
        def options(self, **asked):
            return SimpleNamespace(remote=lambda *_: f"{asked['name']} asks for {asked['num_cpus']}")

    nodes = [
        {"Alive": True, "Resources": {"CPU": 2.0, "memory": 2.0**40}},
        {"Alive": False, "Resources": {"CPU": 64.0, "memory": 2.0**40, "GPU": 8.0}},
    ]
    ray = SimpleNamespace(nodes=lambda: nodes, remote=lambda **_: lambda _task: Submitted())
    runs = [
        PlannedRun(PurePosixPath(f"{threads}-{seed}"), from_flat(LONG | {"threads": threads, "seed": seed}))
        for threads in (1, 4)
        for seed in (0, 1)
    ]
    events = []
    _Runs(ray, runs, Path("nowhere"), events.append, 0, 0.0, None)
    assert [(event.run, event.text.partition(",")[0]) for event in events] == [(runs[2], "no node has 4 CPUs")]
    assert events[0].text.endswith("and 0 GPUs: it and 1 other wait until one joins the cluster")
    events.clear()
    _Runs(ray, runs[:1], Path("nowhere"), events.append, 0, 0.5, None)
    assert events[0].text.endswith("and 0.5 GPUs: it waits until one joins the cluster")


def test_the_driver_killed_and_started_again_goes_on(cluster, tmp_path, alone):
    sweep = tmp_path / "long.toml"
    settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in LONG.items())
    sweep.write_text(f"[base]\n{settings}\n[axes]\nseed = [0, 1]\n")
    command = [sys.executable, "-m", "bootdqn", "sweep", str(sweep), "--out", str(tmp_path / "out")]
    command += ["--ray", cluster.address, "--checkpoint-every-steps", "200"]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    folders = [RunFolder(tmp_path / f"out/seed-{seed}") for seed in (0, 1)]
    wait_for(lambda: any(has_new_checkpoint(folder) for folder in folders))
    driver.kill()
    driver.communicate()
    again = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200, check=False
    )
    assert again.returncode == 0, again.stdout
    assert "2 of 2 runs finished" in again.stdout
    assert any(json.loads(folder.provenance.read_text()).get("resumed") for folder in folders)
    for seed in (0, 1):
        assert_as_alone(tmp_path / f"out/seed-{seed}", seed, alone)


def test_an_interrupt_saves_the_runs_under_way_and_leaves_out_those_not_begun(cluster, tmp_path):
    """Three runs on two CPUs: one waits."""
    endless = LONG | {"max_episodes": 10**6}
    runs = [PlannedRun(PurePosixPath(f"seed-{seed}"), from_flat(endless | {"seed": seed})) for seed in range(3)]
    started, ended = [], []

    def interrupt(event):
        (started if isinstance(event, Started) else ended if isinstance(event, Ended) else []).append(event.run)
        if isinstance(event, Started) and len(started) == 2:
            wait_for(lambda: all(has_new_checkpoint(RunFolder(tmp_path / one.name)) for one in started))
            signal.raise_signal(signal.SIGINT)

    outcome = run_on_ray(runs, tmp_path, cluster.address, interrupt, retries=1, saving=OFTEN)
    assert outcome.stop_exit_code == 130
    assert {end.run for end in outcome.ended} == set(started) == set(ended)
    assert [(end.summary["status"], end.error) for end in outcome.ended] == [("interrupted", None)] * 2


def test_bad_runs_among_good_ones_are_given_up_after_their_retries(cluster, tmp_path, own_code):
    own_code.import_environments("reference.environments")
    quick = LONG | {"size": 4, "max_episodes": 30}
    runs = [
        PlannedRun(PurePosixPath("good"), from_flat(quick)),
        PlannedRun(PurePosixPath("nowhere"), from_flat({"environment": "gym", "env_id": "Nowhere-v0"})),
        PlannedRun(PurePosixPath("greedy"), from_flat(OUT_OF_MEMORY)),
        PlannedRun(PurePosixPath("fine"), from_flat(quick | {"seed": 5})),
    ]
    events = []
    outcome = run_on_ray(runs, tmp_path, cluster.address, events.append, retries=1)
    ended = {str(end.run.name): end for end in outcome.ended}
    assert {name for name, end in ended.items() if end.finished} == {"good", "fine"}
    assert "Nowhere" in ended["nowhere"].error
    assert "MemoryError" in ended["greedy"].error
    retried = [str(event.run.name) for event in events if isinstance(event, Ended) and event.retrying]
    assert sorted(retried) == ["greedy", "nowhere"]
    run(from_flat(quick), tmp_path / "alone")
    assert (tmp_path / "alone/metrics.jsonl").read_bytes() == (tmp_path / "good/metrics.jsonl").read_bytes()


def test_a_folder_that_a_node_cannot_see_is_refused(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("bootdqn.experiments.ray_runs._sees", lambda _path: False)
    with pytest.raises(UsageError, match="is not shared"):
        run_on_ray([long_run(0)], tmp_path, cluster.address)


def test_a_strategy_of_ones_own_goes_along(cluster, tmp_path, own_code):
    own_code.write("my_strategy", STRATEGY)
    own_code.load_strategy("my_strategy.Mine")
    settings = LONG | {"size": 4, "max_episodes": 30, "strategy": "mine:scale=2"}
    (end,) = run_on_ray([PlannedRun(PurePosixPath("mine"), from_flat(settings))], tmp_path, cluster.address).ended
    assert end.finished
    run(from_flat(settings), tmp_path / "alone")
    assert (tmp_path / "alone/metrics.jsonl").read_bytes() == (tmp_path / "mine/metrics.jsonl").read_bytes()


def test_a_run_whose_end_could_not_be_written_is_not_finished_and_its_warnings_are_told(cluster, tmp_path, own_code):
    own_code.write("full_disk", FULL_DISK_ELSEWHERE)
    own_code.import_environments("full_disk")
    one = PlannedRun(PurePosixPath("one"), from_flat(LONG | {"size": 4, "max_episodes": 30}))
    events = []
    (end,) = run_on_ray([one], tmp_path, cluster.address, events.append).ended
    assert not end.finished
    assert "No space left on device" in end.error
    (notice,) = (event for event in events if isinstance(event, Notice))
    assert "could not be written at step 120: [Errno 28] No space left on device" in notice.text
    assert events.index(notice) < events.index(end)


def test_a_node_that_lacks_a_strategy_of_ones_own_is_named(cluster, tmp_path, own_code):
    own_code.write("my_strategy", STRATEGY)
    own_code.load_strategy("my_strategy.Mine")
    (own_code.folder / "my_strategy.py").unlink()
    with pytest.raises(UsageError, match=r"on .*: --strategy-from my_strategy.Mine: no module .* on every node"):
        run_on_ray([long_run(0)], tmp_path, cluster.address)


@pytest.mark.parametrize(
    ("address", "message"), [("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1"), ("somewhere", "auto, or HOST:PORT")]
)
def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path, address, message):
    with pytest.raises(UsageError, match=message):
        run_on_ray([long_run(0)], tmp_path, address)
