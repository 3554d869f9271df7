"""The driver of a sweep on Ray, in a process of its own, and its tasks on the nodes. Ray is used in this file only.

A node is checked by the tasks that Ray schedules there: so a node that joins, leaves or hangs delays no other, and one
that cannot train runs is skipped until it can.
"""

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from bootdqn.common.errors import DamagedFileError, UsageError, install_command
from bootdqn.common.text import format_bytes, format_count
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import STALE_AFTER_SECONDS, LockHolder, holder_of
from bootdqn.runs.summary import seconds_left
from bootdqn.sweeps.executor import Ended, Event, Fault, Message, Progressed, Started, execute
from bootdqn.sweeps.local import RunSettings, train_planned_run
from bootdqn.sweeps.processes import ignore_stop_signals, unblock_stop_signals
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.callbacks import Progress

POLL_SECONDS = 1.0
STOP_TIMEOUT_SECONDS = 120.0
NODE_CHECK_SECONDS = 5.0
LOCK_TIMEOUT_SECONDS = 4 * STALE_AFTER_SECONDS
"""How long to wait for a run that another worker still trains: a node that is cut off from the cluster needs up to two
minutes to notice, and then its lock has to expire."""
NODE_LOST = "its node was lost"
NODE_ID = "ray.io/node-id"
"""Ray's label of a node."""


class Request(NamedTuple):
    """The sweep that the parent asks the driver to run."""

    memory: dict[PlannedRun, int]
    """The runs, with the bytes that each needs."""
    gpus_per_run: float
    settings: RunSettings
    marker_file: Path
    """A file in the output directory: a node that sees it shares the storage."""


def drive(connection: "Connection[Any, Any]", address: str, request: Request, retries: int) -> None:
    """Run the sweep, and send the parent its events, and at the end a list of `Ended`, or an exception.

    Anything that the parent sends, and its death, is a request to stop.
    """
    ignore_stop_signals()
    unblock_stop_signals()
    with suppress(ConnectionError):  # the parent was killed
        try:
            ray = _connect(address)
            ignore_stop_signals()  # Ray has set a handler of its own
            _silence()
            backend = RayBackend(ray, request)
            for message in backend.warnings():
                connection.send(message)
            connection.send(execute(request.memory, backend, connection.send, connection.poll, retries=retries))
        except Exception as error:
            error.add_note(traceback.format_exc())
            connection.send(error)
    with suppress(OSError):
        request.marker_file.unlink()  # as the parent does, unless it was killed


def _silence() -> None:
    """Discard the output of this process: Ray's own messages about lost nodes, and its last ones."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(devnull, stream)
    os.close(devnull)


class RayBackend:
    """Submits runs as Ray tasks, and reads their progress from the run directories."""

    slots = sys.maxsize
    """Ray queues the runs."""

    def __init__(self, ray: Any, request: Request) -> None:
        self._ray, self._request, self._out = ray, request, request.settings.out
        self._task = ray.remote(max_calls=1, max_retries=0)(train_on_node)
        self._pending: dict[Any, PlannedRun] = {}
        """Tasks that were submitted and have not ended."""
        self._resubmitted: set[Any] = set()
        """Those of them that were cancelled to be submitted again."""
        self._started: set[PurePosixPath] = set()
        self._previous_holders: dict[PurePosixPath, LockHolder | None] = {}
        """Who held the lock of a run directory when its task was submitted."""
        self._stop_deadline: float | None = None
        self._any_usable = False
        """Whether some node has ever trained a run."""
        self._skipped: dict[str, _SkippedNode] = {}
        """Nodes that cannot train runs, by their id."""
        self._watchers: dict[Any, str] = {}
        """Tasks that end once the node of this id can."""
        self._update_nodes()

    def warnings(self) -> Iterator[Message]:
        """Yield a message about runs that no node is large enough for: Ray queues them, as a cluster may grow."""
        too_large: dict[str, list[PlannedRun]] = {}
        for planned in self._request.memory:
            if not any(self._fits(planned, node) for node in self._nodes):
                needed = self._needed(planned)
                text = (
                    f"{needed['CPU']} CPUs, {format_bytes(int(needed['memory']))} of memory and {needed['GPU']:g} GPUs"
                )
                too_large.setdefault(text, []).append(planned)
        for text, (first, *others) in too_large.items():
            who = f"it and {format_count(len(others), 'other')} wait" if others else "it waits"
            yield Message(first, f"no node has {text}: {who} until one joins the cluster")

    def start(self, planned: PlannedRun) -> None:
        """Submit a run to the nodes that can train runs."""
        self._previous_holders[planned.name] = holder_of(RunDirectory(self._out / planned.name).lock)
        needed = self._needed(planned)
        task = self._task.options(
            name=str(planned.name),
            num_cpus=needed["CPU"],
            memory=needed["memory"],
            num_gpus=needed["GPU"],
            label_selector={NODE_ID: f"!in({','.join(self._skipped)})"} if self._skipped else {},
        )
        self._pending[task.remote(planned, self._request.settings, self._request.marker_file)] = planned

    def events(self) -> Iterator[Event]:
        """Wait a moment for tasks that end, and yield the events since the last call.

        Raises:
            UsageError: All nodes that are large enough for a run are skipped, and none has ever trained one.
        """
        self._update_nodes()
        self._check_any_node_usable()
        ready, _ = self._ray.wait([*self._pending, *self._watchers], timeout=POLL_SECONDS)
        for reference in ready:
            yield from (self._end_watch if reference in self._watchers else self._end_task)(reference)
        if self._stop_deadline is not None and time.monotonic() > self._stop_deadline:
            for planned in self._pending.values():
                yield Ended(planned, None, f"did not stop within {STOP_TIMEOUT_SECONDS:.0f} s", Fault.EXTERNAL)
            self._pending.clear()
        yield from self._read_directories()

    def stop(self) -> None:
        """Cancel all tasks: those that train save a checkpoint, those that wait end."""
        self._stop_deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        self._cancel(self._pending)

    def close(self) -> None:
        """Disconnect from the cluster, or shut down the one that was started on this machine."""
        self._ray.shutdown()

    def _cancel(self, references: Iterable[Any]) -> None:
        for reference in references:
            self._ray.cancel(reference, force=False)

    def _end_task(self, reference: Any) -> Iterator[Event]:
        """Yield the warnings of a task and its end, and skip its node if that cannot train runs."""
        planned = self._pending.pop(reference)
        self._started.discard(planned.name)
        result = self._result(reference, planned)
        end = result.end
        if result.node_problem is not None:
            yield from self._skip(result.node_id, result.node_problem)
        for text in result.warnings:
            yield Message(planned, text)
        if end.error is None and not end.finished and self._stop_deadline is None:
            end = replace(end, error="its worker process was stopped", fault=Fault.EXTERNAL)
        if reference in self._resubmitted:
            self._resubmitted.remove(reference)
            end = replace(end, fault=Fault.EXTERNAL)
        yield end

    def _result(self, reference: Any, planned: PlannedRun) -> "TaskResult":
        exceptions = self._ray.exceptions
        try:
            result: TaskResult = self._ray.get(reference)
        except exceptions.TaskCancelledError:
            return TaskResult(Ended(planned, None, "its task was cancelled", Fault.EXTERNAL))
        except exceptions.NodeDiedError:
            return TaskResult(Ended(planned, None, NODE_LOST, Fault.EXTERNAL))
        except exceptions.LocalRayletDiedError:
            sys.exit(1)  # as Ray itself ends a driver that has lost the cluster
        except exceptions.RayError as error:
            reason = str(error).partition("\n")[0]
            return TaskResult(Ended(planned, None, f"{type(error).__name__}: {reason}"))
        self._any_usable = self._any_usable or result.node_problem is None
        return result

    def _skip(self, node: str, problem: str) -> Iterator[Message]:
        """Submit no more runs to a node until a task that checks it there has ended."""
        if node in self._skipped or node not in self._nodes:
            return
        host = self._nodes[node]["NodeManagerHostname"]
        self._skipped[node] = _SkippedNode(host, problem)
        yield Message(None, f"node {host} is skipped: {problem}")
        watch = self._ray.remote(num_cpus=0, max_retries=0, label_selector={NODE_ID: node})(wait_until_usable)
        self._watchers[watch.remote(self._request.settings, self._request.marker_file)] = node

    def _end_watch(self, reference: Any) -> Iterator[Message]:
        """Use a node again: resubmit queued tasks, which exclude this node."""
        skipped = self._skipped.pop(self._watchers.pop(reference))
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError:  # the node was lost; should it still be there, the next run checks it
            return
        yield Message(None, f"node {skipped.host} is used again")
        waiting = {one for one, planned in self._pending.items() if planned.name not in self._started}
        self._cancel(waiting - self._resubmitted)
        self._resubmitted |= waiting

    def _update_nodes(self) -> None:
        """List the nodes that are alive, at which Ray ends this process if the cluster is lost."""
        nodes = self._ray.nodes()
        self._nodes = {node["NodeID"]: node for node in nodes if node["Alive"]}
        hosts = {node["NodeManagerHostname"] for node in self._nodes.values()}
        self._lost_hosts = {node["NodeManagerHostname"] for node in nodes} - hosts

    def _check_any_node_usable(self) -> None:
        if self._any_usable or not self._skipped:
            return
        large = {node for node in self._nodes if any(self._fits(planned, node) for planned in self._pending.values())}
        if large and large <= self._skipped.keys():
            problems = sorted({f"node {host}: {problem}" for host, problem in map(self._skipped.__getitem__, large)})
            raise UsageError(f"no node can train the runs: {', '.join(problems)}")

    def _needed(self, planned: PlannedRun) -> dict[str, float]:
        """Return the resources that a run asks of its node, by Ray's names."""
        return {
            "CPU": planned.config.run.threads,
            "memory": self._request.memory[planned],
            "GPU": self._request.gpus_per_run,
        }

    def _fits(self, planned: PlannedRun, node: str) -> bool:
        resources = self._nodes[node]["Resources"]
        return all(resources.get(name, 0) >= amount for name, amount in self._needed(planned).items())

    def _read_directories(self) -> Iterator[Event]:
        """Yield the runs that started, were lost, and the progress of the others, by their directories on the storage.

        A run has started when its directory is locked by another worker than the one that was lost with it.
        """
        for reference, planned in list(self._pending.items()):
            directory = RunDirectory(self._out / planned.name)
            holder = holder_of(directory.lock)
            if holder is None or holder == self._previous_holders[planned.name]:
                continue
            if planned.name not in self._started:
                self._started.add(planned.name)
                self._any_usable = True
                yield Started(planned)
            elif holder.host in self._lost_hosts:  # Ray ends its task only once its connections time out
                del self._pending[reference]
                self._resubmitted.discard(reference)
                self._started.discard(planned.name)
                yield Ended(planned, None, NODE_LOST, Fault.EXTERNAL)
            elif progress := read_progress(directory, planned):
                yield Progressed(planned, progress)


class _SkippedNode(NamedTuple):
    host: str
    problem: str


class TaskResult(NamedTuple):
    """How a task ended."""

    end: Ended
    warnings: Sequence[str] = ()
    node_id: str = ""
    node_problem: str | None = None
    """Why this node cannot train runs, which is then to blame for an error."""


def train_on_node(planned: PlannedRun, settings: RunSettings, marker_file: Path) -> TaskResult:
    """Train a run on the node that Ray has chosen; check the node before, and again if the run failed.

    Another worker may have been lost with the run, so its lock is waited for until it expires.
    """
    node = _import_ray().get_runtime_context().get_node_id()
    warnings: list[str] = []
    problem = node_problem(settings, marker_file)
    if problem is None:
        end = train_planned_run(planned, settings, warn=warnings.append, lock_timeout=LOCK_TIMEOUT_SECONDS)
        if end.error is None:
            return TaskResult(end, warnings, node)
        problem = node_problem(settings, marker_file)
    else:
        end = Ended(planned, None, problem)
    return TaskResult(replace(end, fault=Fault.EXTERNAL) if problem else end, warnings, node, problem)


def node_problem(settings: RunSettings, marker_file: Path) -> str | None:
    """Return why this node cannot train runs, and what to do about it, or None if it can."""
    out = marker_file.parent
    try:
        if not marker_file.exists():
            return f"it does not see {out}; choose an --out that all nodes share"
        with tempfile.NamedTemporaryFile(dir=out, prefix=".", suffix=".part"):
            pass
        settings.user_code.load()
    except OSError as error:
        return f"it cannot write to {out} ({error.strerror}); check the disk and its mount there"
    except UsageError as error:
        return f"{error}; install the module on every node, or start the sweep from a directory that all nodes share"
    return None


def wait_until_usable(settings: RunSettings, marker_file: Path) -> None:
    """Return once this node can train runs."""
    while node_problem(settings, marker_file):
        time.sleep(NODE_CHECK_SECONDS)


def read_progress(directory: RunDirectory, planned: PlannedRun) -> Progress | None:
    """Return the progress of a run by the last line of its `timing.jsonl`, or None if that cannot be read."""
    try:
        record = directory.last_timing() or {}
        step, seconds = int(record["step"]), float(record["seconds"])
    except (OSError, DamagedFileError, ValueError, KeyError, TypeError):
        return None
    completed = step / planned.config.env.max_training_steps
    speed = f"{step / max(seconds, 1e-9):,.0f} steps/s"
    return Progress(completed, f"{step:,} steps", speed, seconds_left(seconds, completed), "on the cluster")


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
        raise UsageError(f"--ray needs Ray, which is not installed: {install_command('ray')} ({error})") from error
    return ray
