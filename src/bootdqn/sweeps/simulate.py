"""Simulate a sweep on a cluster, from one event to the next: a run ends, a node fails, a node joins.

Runs start in their order as soon as a node has the cores, the memory and the share of a GPU that they need, as on Ray.
A run on a node that fails resumes elsewhere from its last checkpoint, after those that wait already.

    slowdown s(n) = 1 + (n - 1) / (m - 1) * (s(m) - 1)    n of at most m = runs_per_gpu runs on a GPU
    cycle       c = max(i + w, sum of w over all runs)    interval i, and w seconds to write a checkpoint alone
    progress    i / (c * s(n))                            seconds of a run alone, in a second

The cycle is the lower bound of a closed queue: storage is free whenever a run needs it, or always busy.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bootdqn.common.errors import UsageError
from bootdqn.common.random_streams import random_stream
from bootdqn.runs.lock import STALE_AFTER_SECONDS
from bootdqn.sweeps.cluster_file import ClusterConfig

MAX_FAILURES = 100_000
"""Failures after which a sweep counts as one that never ends."""
_ROUNDING = 1e-9


class Job(NamedTuple):
    """One run, by its needs."""

    seconds: float
    """To train alone on its cores and its GPU, without checkpoints."""
    cores: int
    memory: float
    """Bytes, as are all sizes below."""
    checkpoint_interval: float
    """Seconds of training from one checkpoint to the next."""
    state: float
    """Size of a checkpoint without the replay."""
    replay: float
    """Size of the full replay."""
    replay_per_second: float
    """Replay that a second of training alone changes."""
    replay_segment: float
    """Size of the part of the replay that is written as one."""
    disk: float
    """At most, while it trains."""
    disk_after: float
    """Once it is finished."""

    def checkpoint_bytes(self, slowdown: float) -> float:
        """Return the size of the files that a checkpoint writes: the state, and the replay that changed."""
        changed = self.checkpoint_interval / slowdown * self.replay_per_second + self.replay_segment
        return self.state + min(self.replay, changed)


class Simulation(NamedTuple):
    """The course of a sweep."""

    seconds: float
    """Until the last run ends."""
    most_at_a_time: int
    gpu_seconds_in_use: float
    """Of all GPUs, while they have at least one run."""
    failures: int
    """Of nodes, before the last run ended."""
    lost_seconds: float
    """Training that was repeated, in seconds of runs alone."""
    written: float
    """Bytes of all checkpoints."""
    read: float
    """Bytes of checkpoints that runs resumed from."""
    most_disk: float
    """Bytes at a time."""


@dataclass(eq=False)
class _Run:
    """A run that waits for a node, or has one."""

    job: Job
    remaining: float
    """Seconds of training alone."""
    attempts: int = 0
    locked_until: float = 0.0
    """When the lock of the process that was lost with its node expires."""
    node: int = -1
    gpu: int = -1
    """Of the node; -1 where nodes have none."""
    wait: float = 0.0
    """Seconds on its node before it trains."""
    phase: float = 0.0
    """Elapsed fraction of the checkpoint cycle."""
    progress: float = 0.0
    """Seconds of training alone, in a second."""
    cycle: float = math.inf
    """Seconds from one checkpoint to the next."""
    checkpoint: float = 0.0
    """Bytes that a checkpoint writes."""

    def until_next_event(self) -> float:
        """Return the seconds until it starts to train, or ends."""
        return self.wait or self.remaining / self.progress


class _Node:
    """Free resources of a node."""

    def __init__(self, cluster: ClusterConfig) -> None:
        self.cores, self.memory = cluster.cores, cluster.memory_gib * 2**30
        self.runs_on_gpu = [0] * cluster.gpus
        self.runs = 0
        self.down_until: float | None = None

    def gpu_for(self, job: Job, runs_per_gpu: int) -> int | None:
        """Return the fullest GPU that has a share left, or -1 on a node without GPUs; None if the job does not fit."""
        if self.down_until is not None or self.cores < job.cores or self.memory < job.memory:
            return None
        if not self.runs_on_gpu:
            return -1
        free = [gpu for gpu, runs in enumerate(self.runs_on_gpu) if runs < runs_per_gpu]
        return max(free, key=lambda gpu: self.runs_on_gpu[gpu], default=None)

    def take(self, job: Job, gpu: int, sign: int = 1) -> None:
        """Assign the resources of a job, or return them with a `sign` of -1."""
        self.cores -= sign * job.cores
        self.memory -= sign * job.memory
        self.runs += sign
        if gpu >= 0:
            self.runs_on_gpu[gpu] += sign


def simulate(jobs: Sequence[Job], cluster: ClusterConfig, failures: Iterable[tuple[float, int]] = ()) -> Simulation:
    """Return the course of a sweep of `jobs`, which start in their order.

    Args:
        jobs: The runs.
        cluster: The nodes.
        failures: Seconds and node of each failure, ascending, as from `node_failures`; a node that is down ignores it.

    Raises:
        UsageError: A job needs more than a node has, or the sweep does not end within `MAX_FAILURES` failures.
    """
    for job in jobs:
        if _Node(cluster).gpu_for(job, cluster.runs_per_gpu) is None:
            raise UsageError(
                f"a run needs {job.cores} cores and {job.memory / 2**30:.1f} GiB of memory, more than a node of the "
                f"cluster has: cores = {cluster.cores}, memory_gib = {cluster.memory_gib:g}"
            )
    sweep, upcoming = _Sweep(jobs, cluster), iter(failures)
    failure = next(upcoming, None)
    while sweep.waiting or sweep.running:
        sweep.start_runs()
        sweep.update_speeds()
        sweep.advance(min(sweep.next_event(), math.inf if failure is None else failure[0]))
        sweep.end_runs()
        sweep.replace_nodes()
        while failure is not None and failure[0] <= sweep.now:
            sweep.fail(failure[1])
            failure = next(upcoming, None)
    return sweep.result()


def node_failures(cluster: ClusterConfig, seed: int) -> Iterator[tuple[float, int]]:
    """Yield the seconds and the node of random failures, which are independent and equally likely at any time."""
    rate = cluster.nodes * cluster.node_failures_per_hour / 3600
    rng, now = random_stream(seed, "node failures"), 0.0
    while rate:
        now += rng.exponential(1 / rate)
        yield now, int(rng.integers(cluster.nodes))


class _Sweep:
    """Nodes and runs at a moment, and the totals until then."""

    def __init__(self, jobs: Sequence[Job], cluster: ClusterConfig) -> None:
        self.now, self._cluster = 0.0, cluster
        self.waiting, self.running = [_Run(job, job.seconds) for job in jobs], list[_Run]()
        self._nodes = [_Node(cluster) for _ in range(cluster.nodes)]
        self._bandwidth = (cluster.storage_mib_per_second or math.inf) * 2**20
        self._most_at_a_time, self._failures = 0, 0
        self._gpu_seconds = self._lost = self._written = self._read = self._disk_after = self._most_disk = 0.0

    def start_runs(self) -> None:
        """Start the runs that fit, each on the node with the fewest runs."""
        for run in list(self.waiting):
            gpus = {index: node.gpu_for(run.job, self._cluster.runs_per_gpu) for index, node in enumerate(self._nodes)}
            fitting = {index: gpu for index, gpu in gpus.items() if gpu is not None}
            if fitting:
                run.node = min(fitting, key=lambda index: self._nodes[index].runs)
                run.gpu = fitting[run.node]
                self._start(run)
        self._most_at_a_time = max(self._most_at_a_time, len(self.running))
        disk = sum(run.job.disk for run in (*self.running, *self.waiting) if run.attempts)
        self._most_disk = max(self._most_disk, disk + self._disk_after)

    def _start(self, run: _Run) -> None:
        self.waiting.remove(run)
        self.running.append(run)
        self._nodes[run.node].take(run.job, run.gpu)
        run.wait = max(0.0, run.locked_until - self.now) + self._cluster.startup_seconds
        if run.attempts:
            size = run.job.state + run.job.replay
            run.wait += size / self._bandwidth
            self._read += size
        run.attempts += 1

    def update_speeds(self) -> None:
        """Set the speed of all runs until the next event."""
        slowdowns = [self._slowdown(run) for run in self.running]
        for run, slowdown in zip(self.running, slowdowns, strict=True):
            run.checkpoint = run.job.checkpoint_bytes(slowdown)
        all_writes = sum(run.checkpoint for run in self.running) / self._bandwidth
        for run, slowdown in zip(self.running, slowdowns, strict=True):
            interval = run.job.checkpoint_interval
            run.cycle = max(interval + run.checkpoint / self._bandwidth, all_writes)
            run.progress = interval / (run.cycle * slowdown)

    def _slowdown(self, run: _Run) -> float:
        if run.gpu < 0 or self._cluster.runs_per_gpu == 1:
            return 1.0
        others = self._nodes[run.node].runs_on_gpu[run.gpu] - 1
        return 1 + others / (self._cluster.runs_per_gpu - 1) * (self._cluster.shared_slowdown - 1)

    def next_event(self) -> float:
        """Return when the next run starts to train or ends, or the next node joins."""
        joins = [node.down_until for node in self._nodes if node.down_until is not None]
        return min([*(self.now + run.until_next_event() for run in self.running), *joins])

    def advance(self, until: float) -> None:
        """Train all runs until a time."""
        elapsed, self.now = until - self.now, until
        self._gpu_seconds += elapsed * sum(runs > 0 for node in self._nodes for runs in node.runs_on_gpu)
        for run in self.running:
            if run.wait:
                run.wait = run.wait - elapsed if run.wait - elapsed > self._rounding(1.0) else 0.0
            else:
                run.remaining -= elapsed * run.progress
                run.phase = (run.phase + elapsed / run.cycle) % 1
                self._written += elapsed / run.cycle * run.checkpoint

    def end_runs(self) -> None:
        """Remove the runs that are finished."""
        for run in [one for one in self.running if one.remaining <= self._rounding(one.job.seconds)]:
            self._release(run)
            self._disk_after += run.job.disk_after

    def _rounding(self, seconds: float) -> float:
        """Return the largest remainder that rounding leaves of `seconds`; a smaller step does not advance the clock."""
        return _ROUNDING * seconds + math.ulp(self.now)

    def replace_nodes(self) -> None:
        """Let new nodes join in the places of those that failed."""
        for node in self._nodes:
            if node.down_until is not None and node.down_until <= self.now:
                node.down_until = None

    def fail(self, index: int) -> None:
        """Lose a node, and the training of its runs since their last checkpoints."""
        node = self._nodes[index]
        if node.down_until is not None or not (self.waiting or self.running):
            return
        self._failures += 1
        if self._failures > MAX_FAILURES:
            raise UsageError(
                f"the sweep does not end within {MAX_FAILURES:,} failures of nodes; lower node_failures_per_hour, or "
                "--checkpoint-every-minutes"
            )
        node.down_until = self.now + 60 * self._cluster.node_replacement_minutes
        for run in [one for one in self.running if one.node == index]:
            lost = min(run.phase * run.cycle * run.progress, run.job.seconds - run.remaining)
            self._lost += lost
            run.remaining, run.phase, run.locked_until = run.remaining + lost, 0.0, self.now + STALE_AFTER_SECONDS
            self._release(run)
            self.waiting.append(run)

    def _release(self, run: _Run) -> None:
        self.running.remove(run)
        self._nodes[run.node].take(run.job, run.gpu, sign=-1)

    def result(self) -> Simulation:
        """Return the totals."""
        return Simulation(
            self.now, self._most_at_a_time, self._gpu_seconds, self._failures,
            self._lost, self._written, self._read, self._most_disk,
        )  # fmt: skip
