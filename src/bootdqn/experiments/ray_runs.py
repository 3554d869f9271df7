"""Many runs on a Ray cluster. Ray is used in this file only.

Ray's core is enough: a run is one task in a process of its own, and everything that Ray Tune would keep (which runs
there are, how far each is, what it found) is in the run folders already, on storage that all nodes share. A driver that
dies is simply started again.
"""

import os
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from bootdqn.common.errors import DamagedFileError, FolderInUseError, UsageError, how_to_install
from bootdqn.common.lock import LOST_AFTER_SECONDS, Holder, holder_of
from bootdqn.common.run_folder import RunFolder
from bootdqn.common.written import counted
from bootdqn.experiments.cost import memory_needed
from bootdqn.experiments.events import Ended, Event, Notice, Started, SweepOutcome, Underway, end_of
from bootdqn.experiments.plan import PlannedRun
from bootdqn.training.config import SavingConfig
from bootdqn.training.estimate import gigabytes
from bootdqn.training.extensions import Extensions, loaded
from bootdqn.training.progress import Progress
from bootdqn.training.signals import stop_on_signal

LOOK_EVERY_SECONDS = 1.0
STOP_WITHIN_SECONDS = 120.0
PROBE_SECONDS = 180.0
CONNECT_SECONDS = 5.0


def run_on_ray(
    runs: list[PlannedRun],
    out: Path,
    address: str,
    on_event: Callable[[Event], None] = lambda _: None,
    *,
    retries: int = 0,
    gpus_per_run: float = 0.0,
    saving: SavingConfig | None = None,
) -> SweepOutcome:
    """Train every run in its folder below `out`, a folder that all nodes share, and return how each ended.

    Args:
        runs: What to train.
        out: Where.
        address: Of the cluster; `auto` finds the one this machine belongs to, or else starts one on this machine.
        on_event: Called with what happens.
        retries: How often a run that failed, or whose worker or node was lost or told to stop, is tried again from its
            checkpoint.
        gpus_per_run: The share of a GPU that each run asks for.
        saving: When to make checkpoints.

    Raises:
        UsageError: There is no such cluster, or a node does not see `out`, or lacks the user's own code.
    """
    ray = _import_ray()
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    _connect(ray, address)
    try:
        _refuse_what_is_not_shared(ray, out)
        _refuse_code_that_is_not_everywhere(ray, loaded())
        return _Runs(ray, runs, out, on_event, retries, gpus_per_run, saving).finish()
    finally:
        ray.shutdown()


class _Runs:
    """The runs of one driver."""

    def __init__(
        self,
        ray: Any,
        runs: list[PlannedRun],
        out: Path,
        on_event: Callable[[Event], None],
        retries: int,
        gpus_per_run: float,
        saving: SavingConfig | None,
    ) -> None:
        self._ray, self._out, self._on_event, self._retries = ray, out, on_event, retries
        self._gpus, self._saving, self._extensions = gpus_per_run, saving, loaded()
        self._task = ray.remote(max_calls=1, max_retries=0)(_train)
        self._memory = {planned.name: needed for planned, needed in zip(runs, memory_needed(runs), strict=True)}
        self._started: set[PurePosixPath] = set()
        self._left_behind: dict[PurePosixPath, Holder | None] = {}
        self._failures: Counter[PurePosixPath] = Counter()
        self._pending: dict[Any, PlannedRun] = {}
        self._tell_what_must_wait(runs)
        for planned in runs:
            self._submit(planned)

    def finish(self) -> SweepOutcome:
        """Wait for all of them; a signal cancels them: those under way save themselves, the others are left out."""
        ended: list[Ended] = []
        with stop_on_signal() as stop:
            cancelled_at = None
            while self._pending:
                ready, _ = self._ray.wait(list(self._pending), timeout=LOOK_EVERY_SECONDS)
                for reference in ready:
                    end = self._result(reference, retry=not stop)
                    if end is None:
                        continue
                    self._on_event(end)
                    if not end.retrying:
                        ended.append(end)
                if stop and cancelled_at is None:
                    cancelled_at = time.monotonic()
                    for reference in self._pending:
                        self._ray.cancel(reference, force=False)
                if cancelled_at is not None and time.monotonic() - cancelled_at > STOP_WITHIN_SECONDS:
                    break
                self._look_at_folders()
            return SweepOutcome(ended, stop.exit_code if stop else None)

    def _asked(self, planned: PlannedRun) -> dict[str, float]:
        """Return what a run asks of its node, as Ray names it."""
        return {"CPU": planned.config.run.threads, "memory": self._memory[planned.name], "GPU": self._gpus}

    def _tell_what_must_wait(self, runs: list[PlannedRun]) -> None:
        """Warn of runs that no node is large enough for: Ray lets them wait, as a cluster may grow, without a word."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        waiting: dict[str, list[PlannedRun]] = {}
        for planned in runs:
            asked = self._asked(planned)
            if not any(all(node.get(name, 0) >= amount for name, amount in asked.items()) for node in nodes):
                words = f"{asked['CPU']} CPUs, {gigabytes(int(asked['memory']))} of memory and {asked['GPU']:g} GPUs"
                waiting.setdefault(words, []).append(planned)
        for words, (first, *others) in waiting.items():
            who = f"it and {counted(len(others), 'other')} wait" if others else "it waits"
            self._on_event(Notice(first, f"no node has {words}: {who} until one joins the cluster"))

    def _submit(self, planned: PlannedRun) -> None:
        self._left_behind[planned.name] = holder_of(RunFolder(self._out / planned.name).lock)
        asked = self._asked(planned)
        task = self._task.options(
            num_cpus=asked["CPU"], memory=asked["memory"], num_gpus=asked["GPU"], name=str(planned.name)
        )
        self._pending[task.remote(planned, self._out / planned.name, self._saving, self._extensions)] = planned

    def _result(self, reference: Any, *, retry: bool) -> Ended | None:
        """Return how a run ended, once its warnings are told, and submit it again where it failed and may `retry`.

        One that somebody else stopped has failed, too: on a cluster that is a node being taken away, while on one
        machine it is a person who means this run. None is for a run that was cancelled before it began.
        """
        planned = self._pending.pop(reference)
        begun = planned.name in self._started
        self._started.discard(planned.name)
        end: Ended
        try:
            end, warnings = self._ray.get(reference)
        except self._ray.exceptions.RayError as problem:
            if isinstance(problem, self._ray.exceptions.TaskCancelledError) and not (begun or retry):
                return None
            reason = str(problem).partition("\n")[0]
            end, warnings = Ended(planned, None, f"{type(problem).__name__}: {reason}"), []
        for text in warnings:
            self._on_event(Notice(planned, text))
        if retry and end.error is None and not end.finished:
            end = replace(end, error="its worker was told to stop")
        if end.error is not None and retry:
            self._failures[planned.name] += 1
            if self._failures[planned.name] <= self._retries:
                self._submit(planned)
                return replace(end, retrying=True)
        return end

    def _look_at_folders(self) -> None:
        """Tell how far the runs are, as their folders on the shared storage say.

        A run has started when its folder is locked by another worker than the one that was lost with it.
        """
        for planned in self._pending.values():
            folder = RunFolder(self._out / planned.name)
            if holder_of(folder.lock) in (None, self._left_behind[planned.name]):
                continue
            if planned.name not in self._started:
                self._started.add(planned.name)
                self._on_event(Started(planned))
            elif progress := _progress_of(folder, planned):
                self._on_event(Underway(planned, progress))


def _train(
    planned: PlannedRun, path: Path, saving: SavingConfig | None, extensions: Extensions
) -> tuple[Ended, list[str]]:
    """Train one run in a worker; return how it ended, and what it warned of.

    Where the run's last worker was lost with its host, its lock is waited for.
    """
    from bootdqn.training.run import run
    from bootdqn.training.session import Voice

    deadline = time.monotonic() + 1.5 * LOST_AFTER_SECONDS
    while True:
        warnings: list[str] = []
        try:
            extensions.load()
            outcome = run(planned.config, path, Voice(warn=warnings.append), saving=saving)
            return end_of(planned, outcome, warnings), warnings
        except FolderInUseError as error:
            if time.monotonic() > deadline:
                return Ended(planned, None, str(error)), warnings
            time.sleep(LOST_AFTER_SECONDS / 20)
        except KeyboardInterrupt:
            return Ended(planned, None, "stopped at once"), warnings
        except Exception as error:
            return Ended(planned, None, f"{type(error).__name__}: {error}"), warnings


def _progress_of(folder: RunFolder, planned: PlannedRun) -> Progress | None:
    """Return where a run is, from the last line of its `timing.jsonl`."""
    try:
        record = folder.last_timing() or {}
        step, seconds = int(record["step"]), float(record["seconds"])
    except (OSError, DamagedFileError, ValueError, KeyError, TypeError):
        return None
    completed = step / planned.config.env.longest_steps
    left = seconds * (1 - completed) / completed if completed else None
    return Progress(
        0, completed, f"{step:,} steps", f"{step / max(seconds, 1e-9):,.0f} steps/s", left, "on the cluster"
    )


def _connect(ray: Any, address: str) -> None:
    if address != "auto":
        _refuse_where_nobody_answers(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as error:
        if address != "auto":
            raise UsageError(f"no Ray cluster at {address} ({error}); start one with ray start --head") from error
        ray.init(include_dashboard=False, **quiet)


def _refuse_where_nobody_answers(address: str) -> None:
    """Raise a UsageError unless something listens at `address`, which Ray itself would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--ray {address}: it is auto, or HOST:PORT as ray start --head prints it")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise UsageError(f"no Ray cluster at {address} ({error}); start one with ray start --head") from error


def _refuse_what_is_not_shared(ray: Any, out: Path) -> None:
    """Raise a UsageError if a node of the cluster does not see a file that was just written to `out`."""
    token = out / f".{uuid.uuid4().hex}.part"
    token.touch()
    try:
        blind = [host for host, sees in _ask_every_node(ray, _sees, str(token)) if not sees]
    finally:
        token.unlink(missing_ok=True)
    if blind:
        raise UsageError(f"{out} is not shared: {', '.join(blind)} cannot see it; choose an --out that every node has")


def _refuse_code_that_is_not_everywhere(ray: Any, extensions: Extensions) -> None:
    """Raise a UsageError if a node of the cluster cannot import the user's own code."""
    if not (extensions.strategies or extensions.imports):
        return
    for host, problem in _ask_every_node(ray, _problem_with, extensions):
        if problem is not None:
            raise UsageError(f"on {host}: {problem}; install the module on every node, or start from a shared folder")


def _ask_every_node(ray: Any, question: Callable[[Any], Any], argument: Any) -> list[tuple[str, Any]]:
    """Return what `question(argument)` answers on each node of the cluster, with the node's host."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"]]
    probe = ray.remote(num_cpus=0, max_retries=2)(question)
    answers = {
        probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
            argument
        ): node["NodeManagerHostname"]
        for node in nodes
    }
    ready, late = ray.wait(list(answers), num_returns=len(answers), timeout=PROBE_SECONDS)
    if late:
        raise UsageError(f"no answer from {', '.join(answers[one] for one in late)}; remove the node, or try again")
    return [(answers[one], ray.get(one)) for one in ready]


def _problem_with(extensions: Extensions) -> str | None:
    try:
        extensions.load()
    except UsageError as error:
        return str(error)
    return None


def _sees(path: str) -> bool:
    return Path(path).exists()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--ray needs Ray, which is not installed: {how_to_install('ray')} ({error})") from error
    return ray
