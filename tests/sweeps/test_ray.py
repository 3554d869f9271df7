"""Runs on a real Ray cluster of two nodes: whatever is lost, the numbers are those of a run alone."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.config.settings import from_flat
from bootdqn.config.train import SavingConfig
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import holder_of
from bootdqn.sweeps.executor import Ended, Message, Started
from bootdqn.sweeps.ray_sweep import run_on_ray
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.run import train_run
from reference.environments import OUT_OF_MEMORY
from reference.planned import QUICK
from reference.ray_cluster import RayCluster, unshare_mounts
from reference.user_code import FULL_DISK_ELSEWHERE, HELD_ELSEWHERE

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(600),  # a dozen processes start one after the other, however busy the machine is
]
PATIENCE = 240
"""Timeout in seconds for what takes a few on an idle machine."""
OFTEN = SavingConfig(checkpoint_every_steps=50)
HELD = QUICK | {"max_episodes": 100, "strategy": "held"}
"""400 steps, of which no process can make more than 60 before the run is released."""


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray", reason="pip install -c constraints.txt -e '.[ray]'")
    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(Path(__file__).parents[1]), *([before] if before else [])])
    # Ray gives its workers a low priority by default: on busy cores they would starve
    os.environ |= {"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    started = RayCluster()
    yield started
    started.shutdown()
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@pytest.fixture(scope="module")
def alone():
    """What runs come to when nothing happens to them, by their names, once it is known."""
    return {}


@pytest.fixture
def held(user_code, alone):
    """Two runs that wait on the cluster, once each has a checkpoint, until they are released."""
    user_code.write("held", HELD_ELSEWHERE)
    user_code.load_strategy("held.Held")
    return HeldRuns(user_code.directory, alone)


class HeldRuns:
    def __init__(self, directory, alone):
        self.directory, self.out, self._alone = directory, directory / "out", alone
        self.runs = [PlannedRun(PurePosixPath(f"seed-{seed}"), from_flat(HELD | {"seed": seed})) for seed in (0, 1)]
        self.directories = [RunDirectory(self.out / planned.name) for planned in self.runs]

    def release(self, slow=()):
        """Let the runs continue, slowly in the processes with the ids `slow`."""
        (self.directory / "written").write_text(" ".join(map(str, slow)))
        (self.directory / "written").rename(self.directory / "released")

    def wait_for_checkpoints(self):
        wait_for(lambda: all(has_new_checkpoint(directory) for directory in self.directories))

    def command(self, cluster):
        """Return the arguments of the command that trains the same runs."""
        settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in HELD.items())
        (self.directory / "held.toml").write_text(f"[base]\n{settings}\n[axes]\nseed = [0, 1]\n")
        sweep = ["sweep", "held.toml", "--strategy-from", "held.Held", "--out", "out", "--ray", cluster.address]
        return [*sweep, "--checkpoint-every-steps", "50"]

    def resume(self, cluster, capsys):
        """Release the runs, and let the same command finish them; who still trains them has not the time to."""
        self.release(slow=[holder_of(directory.lock).pid for directory in self.directories])
        code, (output, errors) = run_command_line(self.command(cluster)), capsys.readouterr()
        assert (code, errors) == (0, ""), output
        assert "2 of 2 runs finished" in output
        assert all(json.loads(directory.provenance.read_text()).get("resumed") for directory in self.directories)
        self.assert_as_alone()

    def assert_as_alone(self):
        for planned, directory in zip(self.runs, self.directories, strict=True):
            if planned.name not in self._alone:
                path = self.directory / "alone" / planned.name
                digest = train_run(planned.config, path).summary["state_sha256"]
                self._alone[planned.name] = digest, RunDirectory(path).metrics.read_bytes()
            digest, metrics = self._alone[planned.name]
            assert directory.read_summary()["state_sha256"] == digest
            assert directory.metrics.read_bytes() == metrics


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def has_new_checkpoint(directory):
    return any(path.name > "step-000000000000" for path in directory.checkpoints.glob("step-*"))


def test_a_killed_worker_and_a_node_that_flaps_three_times_cost_nothing_but_time(cluster, held):
    """Each time both runs are under way, one is struck; its worker's death counts as a failure, its node's does not."""
    events, started = [], []

    def strike(event):
        events.append(event)
        if not isinstance(event, Started):
            return
        started.append(RunDirectory(held.out / event.run.name))
        if len(started) == 2:
            held.wait_for_checkpoints()
            os.kill(holder_of(started[0].lock).pid, signal.SIGKILL)
        elif 3 <= len(started) <= 5:
            cluster.kill_node()
            cluster.add_node()
        elif len(started) == 6:
            held.release()

    outcome = run_on_ray(held.runs, held.out, cluster.address, strike, retries=1, saving=OFTEN)
    assert [end.finished for end in outcome.ended] == [True, True]
    crashed, *lost = [event.error for event in events if isinstance(event, Ended) and event.retrying]
    assert crashed.startswith("WorkerCrashedError")
    assert lost == ["its node was lost"] * 3
    held.assert_as_alone()


def test_a_sweep_starts_while_a_node_has_just_died_and_one_joins_and_its_driver_may_be_killed(cluster, held, capsys):
    cluster.kill_node()
    command = [sys.executable, "-m", "bootdqn", *held.command(cluster)]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    cluster.add_node()
    held.wait_for_checkpoints()
    driver.kill()
    driver.wait()
    held.resume(cluster, capsys)
    assert {path.name for path in held.out.iterdir()} == {"seed-0", "seed-1"}


def test_a_cluster_that_is_lost_ends_the_sweep_in_a_line_and_the_same_command_resumes(cluster, held, capsys):
    with ThreadPoolExecutor(1) as thread:
        sweep = thread.submit(run_command_line, held.command(cluster))
        held.wait_for_checkpoints()
        cluster.restart()
        assert sweep.result(PATIENCE) == 1
    assert capsys.readouterr().err == (
        f"bootdqn: lost the Ray cluster (--ray {cluster.address}); start it again and repeat the same command: the "
        "runs resume from their checkpoints\n"
    )
    held.resume(cluster, capsys)


def test_a_node_where_the_output_directory_is_read_only_is_skipped_until_it_is_not(cluster, held):
    """The second node cannot write at first; once it can it is used, and then it becomes read-only under its run."""
    events = []

    def change(event):
        events.append(event)
        notices, started = (sum(isinstance(one, kind) for one in events) for kind in (Message, Started))
        if isinstance(event, Message) and notices == 1:
            cluster.make_writable(held.out)
        if isinstance(event, Started) and started == 2:
            held.wait_for_checkpoints()
            cluster.make_read_only(held.out)
            held.release()

    held.out.mkdir()
    cluster.make_read_only(held.out)
    outcome = run_on_ray(held.runs, held.out, cluster.address, change, saving=OFTEN)
    cluster.make_writable(held.out)
    assert [end.finished for end in outcome.ended] == [True, True]
    printed = [event.text for event in events if isinstance(event, Message) and event.run is None]
    cannot = f"it cannot write to {held.out} (Read-only file system); check the disk and its mount there"
    node = f"node {platform.node()} is"
    assert printed == [f"{node} skipped: {cannot}", f"{node} used again", f"{node} skipped: {cannot}"]
    held.assert_as_alone()


def test_an_output_directory_that_no_node_sees_is_a_usage_error(cluster, held, capsys):
    """The driver has another file system there than the nodes."""
    held.out.mkdir()
    with ThreadPoolExecutor(1) as thread:
        if not thread.submit(unshare_mounts).result():
            pytest.skip("this system does not let the tests have mounts of their own")
        thread.submit(subprocess.run, ["mount", "-t", "tmpfs", "tmpfs", held.out], check=True).result()
        assert thread.submit(run_command_line, held.command(cluster)).result(PATIENCE) == 2
    assert capsys.readouterr().err == (
        f"bootdqn: no node can train the runs: node {platform.node()}: it does not see {held.out}; choose an --out "
        "that all nodes share\n"
    )
    assert list(held.out.iterdir()) == []


def test_an_interrupt_saves_the_runs_under_way_and_skips_those_not_started(cluster, tmp_path):
    """Three runs on two CPUs: one waits."""
    endless = QUICK | {"max_episodes": 10**6}
    runs = [PlannedRun(PurePosixPath(f"seed-{seed}"), from_flat(endless | {"seed": seed})) for seed in range(3)]
    started, ended = [], []

    def interrupt(event):
        (started if isinstance(event, Started) else ended if isinstance(event, Ended) else []).append(event.run)
        if isinstance(event, Started) and len(started) == 2:
            wait_for(lambda: all(has_new_checkpoint(RunDirectory(tmp_path / one.name)) for one in started))
            signal.raise_signal(signal.SIGINT)

    outcome = run_on_ray(runs, tmp_path, cluster.address, interrupt, retries=1, saving=OFTEN)
    assert outcome.stop_exit_code == 130
    assert {end.run for end in outcome.ended} == set(started) == set(ended)
    assert [(end.summary["status"], end.error) for end in outcome.ended] == [("interrupted", None)] * 2


def test_bad_runs_among_good_ones_are_given_up_after_their_retries(cluster, tmp_path, user_code):
    """One has no environment, one runs out of memory, and the end of one cannot be written."""
    user_code.write("full_disk", FULL_DISK_ELSEWHERE)
    for module in ("reference.environments", "full_disk"):
        user_code.import_environments(module)
    settings = {
        "nowhere": {"environment": "gym", "env_id": "Nowhere-v0"},
        "good": QUICK,
        "greedy": OUT_OF_MEMORY,
        "full": QUICK | {"seed": 5},
    }
    runs = [PlannedRun(PurePosixPath(name), from_flat(values)) for name, values in settings.items()]
    events = []
    outcome = run_on_ray(runs, tmp_path, cluster.address, events.append, retries=1)
    ended = {str(end.run.name): end for end in outcome.ended}
    assert {name for name, end in ended.items() if end.finished} == {"good"}
    assert "Nowhere" in ended["nowhere"].error
    assert "MemoryError" in ended["greedy"].error
    assert "No space left on device" in ended["full"].error
    retried = [str(event.run.name) for event in events if isinstance(event, Ended) and event.retrying]
    assert sorted(retried) == ["full", "greedy"], "and not what would fail the same way again"
    warnings = [event for event in events if isinstance(event, Message)]
    assert [str(event.run.name) for event in warnings] == ["full", "full"]
    assert "could not be written at step 120: [Errno 28] No space left on device" in warnings[-1].text
    assert events.index(warnings[-1]) < events.index(ended["full"])
    train_run(from_flat(QUICK), tmp_path / "alone")
    assert (tmp_path / "alone/metrics.jsonl").read_bytes() == (tmp_path / "good/metrics.jsonl").read_bytes()
