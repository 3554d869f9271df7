"""The driver of a sweep on Ray, in a process of its own. Ray is used in this file only.

A node is checked by the runs themselves, when they land there (`ray_task`): so a node that joins, leaves or hangs holds
up nothing, and one that cannot train a run is skipped until it can.
"""

import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from bootdqn.common.errors import DamagedFileError, UsageError, how_to_install
from bootdqn.common.text import format_count
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import Holder, holder_of
from bootdqn.sweeps.events import Ended, Event, Notice, Started, Underway
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.sweeps.processes import ignore_stop_signals, unblock_stop_signals
from bootdqn.sweeps.ray_task import Attempt, Orders, attempt, wait_until_usable
from bootdqn.training.callbacks import Progress

STOP, DONE = "stop", "done"
"""What the parent sends, and what is sent to it last; all else is events, or an exception."""
LOOK_EVERY_SECONDS = 1.0
STOP_WITHIN_SECONDS = 120.0
NODE_ID = "ray.io/node-id"
"""Ray's label of a node."""


class Request(NamedTuple):
    """What the driver is asked to do."""

    runs: list[PlannedRun]
    memory: list[int]
    """Bytes that each run needs."""
    address: str
    orders: Orders
    retries: int
    gpus_per_run: float


def drive(connection: "Connection[Any, Any]", request: Request) -> None:
    """Train the runs that the parent requests and send it what happens, for as long as it is there."""
    ignore_stop_signals()
    unblock_stop_signals()
    with suppress(ConnectionError):  # the parent was killed
        try:
            ray = _connect(request.address)
            ignore_stop_signals()  # Ray has set a handler of its own
            _silence()
            try:
                _Driver(ray, request, connection.send).finish(lambda: connection.poll() and connection.recv() == STOP)
            finally:
                ray.shutdown()
        except Exception as error:
            error.add_note(traceback.format_exc())
            connection.send(error)
        else:
            connection.send(DONE)
    with suppress(OSError):
        request.orders.token.unlink()  # as the parent does, unless it was killed


def _silence() -> None:
    """Discard what this process prints: Ray's own words on nodes that are lost, and its last ones."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


class _Driver:
    """Submits runs as tasks, each until it has ended for good, and follows them in their directories."""

    def __init__(self, ray: Any, request: Request, send: Callable[[Event], None]) -> None:
        self._ray, self._request, self._send = ray, request, send
        self._task = ray.remote(max_calls=1, max_retries=0)(_attempt)
        self._out = request.orders.token.parent
        self._memory = {planned.name: needed for planned, needed in zip(request.runs, request.memory, strict=True)}
        self._pending: dict[Any, PlannedRun] = {}
        """The tasks submitted, which wait for a node or are under way."""
        self._recalled: set[Any] = set()
        """Those of them that were cancelled to be submitted anew."""
        self._started: set[PurePosixPath] = set()
        self._stopping = False
        self._left_behind: dict[PurePosixPath, Holder | None] = {}
        self._failures: Counter[PurePosixPath] = Counter()
        self._any_usable = False
        """Whether some node has ever trained a run."""
        self._skipped: dict[str, _SkippedNode] = {}
        """Nodes that cannot train runs, by their id."""
        self._watchers: dict[Any, str] = {}
        """Tasks that end once the node of this id can."""
        self._look_at_nodes()
        self._warn_of_runs_that_must_wait()
        for planned in request.runs:
            self._submit(planned)

    def finish(self, is_stop_requested: Callable[[], bool]) -> None:
        """Wait for all runs; on request they are cancelled: those under way save themselves, the others never start.

        Raises:
            UsageError: No node can train any of them.
        """
        deadline = float("inf")
        while self._pending and time.monotonic() < deadline:
            ready, _ = self._ray.wait([*self._pending, *self._watchers], timeout=LOOK_EVERY_SECONDS)
            for reference in ready:
                (self._end_watch if reference in self._watchers else self._end_attempt)(reference)
            if is_stop_requested():
                self._stopping, deadline = True, time.monotonic() + STOP_WITHIN_SECONDS
                self._cancel(*self._pending)
            self._look_at_nodes()
            self._look_at_directories()

    def _submit(self, planned: PlannedRun) -> None:
        self._left_behind[planned.name] = holder_of(RunDirectory(self._out / planned.name).lock)
        needed = self._needed(planned)
        task = self._task.options(
            name=str(planned.name),
            num_cpus=needed["CPU"],
            memory=needed["memory"],
            num_gpus=needed["GPU"],
            label_selector={NODE_ID: f"!in({','.join(self._skipped)})"} if self._skipped else {},
        )
        self._pending[task.remote(planned, self._request.orders)] = planned

    def _cancel(self, *references: Any) -> None:
        for reference in references:
            self._ray.cancel(reference, force=False)

    def _end_attempt(self, reference: Any) -> None:
        """Send how an attempt at a run ended, and submit the run again unless that was its end."""
        planned = self._pending.pop(reference)
        begun = planned.name in self._started
        self._started.discard(planned.name)
        end, warnings, blameless = self._result(reference, planned)
        if reference in self._recalled:
            self._recalled.remove(reference)
            blameless = True
        for text in warnings:
            self._send(Notice(planned, text))
        again = not (end.finished or self._stopping)
        if again and end.error is None:
            end, blameless = replace(end, error="its worker process was told to stop"), True
        if again and not blameless:
            self._failures[planned.name] += 1
            again = self._failures[planned.name] <= self._request.retries
        if again:
            self._submit(planned)
        if begun or end.finished or not blameless:  # else nobody has heard of it
            self._send(replace(end, retrying=again))

    def _result(self, reference: Any, planned: PlannedRun) -> tuple[Ended, list[str], bool]:
        """Return how an attempt at a run ended, its warnings, and whether it ended for no fault of the run's own."""
        exceptions = self._ray.exceptions
        try:
            node, (end, warnings, problem) = self._ray.get(reference)
        except exceptions.TaskCancelledError:
            return Ended(planned, None, "its task was cancelled"), [], True
        except exceptions.NodeDiedError:
            return Ended(planned, None, "its node was lost"), [], True
        except exceptions.LocalRayletDiedError:
            sys.exit(1)  # as Ray itself ends a driver that has lost the cluster
        except exceptions.RayError as error:
            reason = str(error).partition("\n")[0]
            return Ended(planned, None, f"{type(error).__name__}: {reason}"), [], False
        if problem is None:
            self._any_usable = True
            return end, warnings, False
        self._skip(node, problem)
        return end, warnings, True

    def _skip(self, node: str, problem: str) -> None:
        """Submit no more runs to a node, until a task that watches it there says that it can train them."""
        if node in self._skipped or node not in self._nodes:
            return
        host = self._nodes[node]["NodeManagerHostname"]
        self._skipped[node] = _SkippedNode(host, problem)
        self._send(Notice(None, f"node {host} is skipped: {problem}"))
        watch = self._ray.remote(num_cpus=0, max_retries=0, label_selector={NODE_ID: node})(wait_until_usable)
        self._watchers[watch.remote(self._request.orders)] = node

    def _end_watch(self, reference: Any) -> None:
        """Use a node again; tasks that wait are recalled, since they were submitted for all nodes but it."""
        skipped = self._skipped.pop(self._watchers.pop(reference))
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError:  # it was lost; should it be there all the same, the next run checks it
            return
        self._send(Notice(None, f"node {skipped.host} is used again"))
        waiting = {one for one, planned in self._pending.items() if planned.name not in self._started}
        self._cancel(*(waiting - self._recalled))
        self._recalled |= waiting

    def _look_at_nodes(self) -> None:
        """Find out which nodes there are, at which Ray ends this process if the cluster is lost.

        Raises:
            UsageError: All nodes that are large enough for a run are skipped, and none has ever trained one.
        """
        self._nodes = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        if self._any_usable or not self._skipped:
            return
        large = {node for node in self._nodes if any(self._fits(planned, node) for planned in self._pending.values())}
        if large and large <= self._skipped.keys():
            problems = sorted({f"node {host}: {problem}" for host, problem in map(self._skipped.__getitem__, large)})
            raise UsageError(f"no node can train the runs: {', '.join(problems)}")

    def _needed(self, planned: PlannedRun) -> dict[str, float]:
        """Return what a run asks of its node, as Ray names it."""
        return {
            "CPU": planned.config.run.threads,
            "memory": self._memory[planned.name],
            "GPU": self._request.gpus_per_run,
        }

    def _fits(self, planned: PlannedRun, node: str) -> bool:
        resources = self._nodes[node]["Resources"]
        return all(resources.get(name, 0) >= amount for name, amount in self._needed(planned).items())

    def _warn_of_runs_that_must_wait(self) -> None:
        """Warn of runs that no node is large enough for: Ray lets them wait, as a cluster may grow, without a word."""
        waiting: dict[str, list[PlannedRun]] = {}
        for planned in self._request.runs:
            if not any(self._fits(planned, node) for node in self._nodes):
                from bootdqn.training.memory_estimate import (
                    gigabytes,  # it brings PyTorch along, which is seldom needed here
                )

                needed = self._needed(planned)
                words = f"{needed['CPU']} CPUs, {gigabytes(int(needed['memory']))} of memory and {needed['GPU']:g} GPUs"
                waiting.setdefault(words, []).append(planned)
        for words, (first, *others) in waiting.items():
            who = f"it and {format_count(len(others), 'other')} wait" if others else "it waits"
            self._send(Notice(first, f"no node has {words}: {who} until one joins the cluster"))

    def _look_at_directories(self) -> None:
        """Send how far the runs are, as their directories on the shared storage say.

        A run has started when its directory is locked by another worker than the one that was lost with it.
        """
        for planned in self._pending.values():
            directory = RunDirectory(self._out / planned.name)
            if holder_of(directory.lock) in (None, self._left_behind[planned.name]):
                continue
            if planned.name not in self._started:
                self._started.add(planned.name)
                self._any_usable = True
                self._send(Started(planned))
            elif progress := _progress_of(directory, planned):
                self._send(Underway(planned, progress))


class _SkippedNode(NamedTuple):
    host: str
    problem: str


def _attempt(planned: PlannedRun, orders: Orders) -> tuple[str, Attempt]:
    """Attempt a run on the node that Ray has chosen, and return the node's id, too."""
    return _import_ray().get_runtime_context().get_node_id(), attempt(planned, orders)


def _progress_of(directory: RunDirectory, planned: PlannedRun) -> Progress | None:
    """Return where a run is, from the last line of its `timing.jsonl`."""
    try:
        record = directory.last_timing() or {}
        step, seconds = int(record["step"]), float(record["seconds"])
    except (OSError, DamagedFileError, ValueError, KeyError, TypeError):
        return None
    completed = step / planned.config.env.longest_steps
    left = seconds * (1 - completed) / completed if completed else None
    return Progress(
        0, completed, f"{step:,} steps", f"{step / max(seconds, 1e-9):,.0f} steps/s", left, "on the cluster"
    )


def _connect(address: str) -> Any:
    """Connect to the cluster at `address`; where `auto` finds none, start one on this machine."""
    ray = _import_ray()
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as error:
        if address != "auto":
            raise UsageError(f"no Ray cluster at {address} ({error}); start one with ray start --head") from error
        ray.init(include_dashboard=False, **quiet)
    return ray


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--ray needs Ray, which is not installed: {how_to_install('ray')} ({error})") from error
    return ray
