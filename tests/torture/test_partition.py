"""Two Ray nodes with addresses of their own, and a minute in which they cannot reach each other."""

import json
import os
import re
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pytest

from bootdqn.config.settings import from_flat
from bootdqn.runs.directory import RunDirectory
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.run import train_run
from reference.network import HEAD_PORT, Host, Network

PARTITION_SECONDS = 60
PATIENCE = 600
NUM_RUNS = 4
SETTINGS = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 4,
    "max_episodes": 400,
    "stop_when_solved": False,
    "strategy": "slow",
}
SLOW_ON_NODE_B = """
    import platform, time
    from dataclasses import dataclass
    from typing import ClassVar

    import bootdqn


    @dataclass(frozen=True)
    class Slow(bootdqn.Strategy):
        name: ClassVar[str] = "slow"

        def scores(self, q, head):
            if platform.node() == "node-b":
                time.sleep(0.1)
            return bootdqn.head_values(q, head)
"""
"""Greedy, but a run of 1600 steps on node b outlasts the partition."""
QUICK_HEALTH_CHECKS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 3,
}
"""The head takes a node for lost, and its runs are submitted again, while the node still trains them."""


@pytest.fixture
def network():
    pytest.importorskip("ray", reason="pip install -c constraints.txt -e '.[ray]'")
    made = Network()
    yield made
    made.remove()


@pytest.fixture
def hosts(network):
    head, other = network.addresses
    checks = f"--system-config={json.dumps(QUICK_HEALTH_CHECKS)}"
    with Host(network.a, "node-a", head, ["--head", f"--port={HEAD_PORT}", "--include-dashboard=false", checks]) as a:
        wait_for(a.has_started)
        with Host(network.b, "node-b", other, [f"--address={head}:{HEAD_PORT}"]) as b:
            wait_for(b.has_started)
            yield a, b


class Writers(threading.Thread):
    """Records which processes have the metrics of a run open for writing, by looking at all processes."""

    def __init__(self, out):
        super().__init__(daemon=True)
        self._out, self._done, self.start_time = out, threading.Event(), time.monotonic()
        self.seen, self.at_once = defaultdict(dict), defaultdict(int)
        """Processes of each run with the seconds of their first and last sight; and the most of them at once."""

    def run(self):
        while not self._done.wait(0.3):
            now = defaultdict(set)
            for handle in Path("/proc").glob("[0-9]*/fd/*"):
                with suppress(OSError):
                    target = handle.readlink()
                    if target.name == "metrics.jsonl" and target.is_relative_to(self._out) and is_writable(handle):
                        now[target.parent.name].add(int(handle.parts[2]))
            for name, processes in now.items():
                self.at_once[name] = max(self.at_once[name], len(processes))
                for process in processes:
                    seconds = round(time.monotonic() - self.start_time)
                    self.seen[name][process] = self.seen[name].get(process, (seconds,))[0], seconds

    def stop(self):
        self._done.set()
        self.join()


def is_writable(handle):
    flags = re.search(r"^flags:\s*(\d+)$", (handle.parents[1] / "fdinfo" / handle.name).read_text(), re.MULTILINE)
    return int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)


def host_of(directory):
    """Return the host that holds the lock of a run directory, or None."""
    with suppress(OSError, ValueError):
        return json.loads(directory.lock.read_text())["host"]
    return None


def sweep_command(directory, address):
    settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in SETTINGS.items())
    (directory / "slow.toml").write_text(f"[base]\n{settings}\n[axes]\nseed = {list(range(NUM_RUNS))}\n")
    sweep = [sys.executable, "-m", "bootdqn", "sweep", "slow.toml", "--strategy-from", "slow.Slow", "--retries", "0"]
    return [*sweep, "--out", "out", "--ray", f"{address}:{HEAD_PORT}", "--checkpoint-every-steps", "50"]


@pytest.mark.timeout(3600)
def test_a_partition_of_a_minute_loses_nothing_and_no_run_is_written_by_two_processes(hosts, network, user_code):
    user_code.write("slow", SLOW_ON_NODE_B)
    user_code.load_strategy("slow.Slow")
    a, _ = hosts
    out = user_code.directory / "out"
    directories = [RunDirectory(out / f"seed-{seed}") for seed in range(NUM_RUNS)]
    writers = Writers(out)
    writers.start()
    driver = a.popen(sweep_command(user_code.directory, a.address))

    def on_b():
        """Return the runs that node b trains beyond their first checkpoint."""
        assert driver.poll() is None, driver.communicate()
        return [one for one in directories if host_of(one) == "node-b" and any(one.checkpoints.glob("step-*[1-9]*"))]

    wait_for(on_b)
    (cut_off,) = on_b()
    task = f"ray::{cut_off.path.name}"
    network.disconnect()
    time.sleep(PARTITION_SECONDS)
    on_both = [task in host.titles() for host in hosts]
    network.connect()
    output, errors = driver.communicate(timeout=PATIENCE)
    writers.stop()
    print(output, errors, dict(writers.seen), sep="\n")
    assert on_both == [True, True], "node a has the run, too, and waits for the process on node b"
    assert (driver.returncode, errors) == (0, "")
    assert f"{NUM_RUNS} of {NUM_RUNS} runs finished" in output
    assert set(writers.at_once.values()) == {1}, "and every run was seen"
    assert len(writers.seen[cut_off.path.name]) == 2, "the run on node b was resumed by another process"
    assert cut_off.read_provenance()["exact"]
    for seed, directory in enumerate(directories):
        alone = user_code.directory / "alone" / str(seed)
        planned = PlannedRun(PurePosixPath(f"seed-{seed}"), from_flat(SETTINGS | {"seed": seed}))
        digest = train_run(planned.config, alone).summary["state_sha256"]
        assert directory.read_summary()["state_sha256"] == digest
        assert directory.metrics.read_bytes() == RunDirectory(alone).metrics.read_bytes()
