"""Run a sweep on a Ray cluster.

Ray's core is enough: a run is one task in a process of its own, and everything that Ray Tune would keep (which runs
there are, their progress and results) is in the run directories already, on storage that all nodes share. A sweep that
is lost is started again by the same command.

Ray ends its driver from C++ when it loses the cluster. So the driver is a child process (`ray_driver`), and this one,
which does not use Ray, reports its death.
"""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.config.train import LoggerConfig, SavingConfig
from bootdqn.runs.signals import StopRequest, stop_on_signal
from bootdqn.runs.user_code_imports import imported_user_code
from bootdqn.sweeps.cost import memory_needed
from bootdqn.sweeps.executor import Ended, Event, SweepExit
from bootdqn.sweeps.local import POLL_SECONDS, RunSettings
from bootdqn.sweeps.processes import end_process, start_process
from bootdqn.sweeps.ray_driver import Request, drive
from bootdqn.sweeps.sweep_file import PlannedRun

CONNECT_TIMEOUT_SECONDS = 5.0


def run_on_ray(
    runs: list[PlannedRun],
    out: Path,
    address: str,
    on_event: Callable[[Event], None] = lambda _: None,
    *,
    retries: int = 0,
    gpus_per_run: float = 0.0,
    saving: SavingConfig | None = None,
    loggers: LoggerConfig | None = None,
) -> SweepExit:
    """Train every run in its run directory below `out`, which all nodes share, and return how each ended.

    On a signal the runs that were started save a checkpoint and stop.

    Args:
        runs: The runs.
        out: The output directory.
        address: Of the cluster; `auto` finds the one this machine belongs to, or else starts one on this machine.
        on_event: Called with each event.
        retries: How often a run that fails, or whose worker process dies, is retried from its checkpoint. A run whose
            node is lost, or cannot train runs, is retried on another node however often.
        gpus_per_run: The share of a GPU that each run asks for.
        saving: When to save checkpoints.
        loggers: Loggers besides the metrics.

    Raises:
        UsageError: There is no such cluster, or none of its nodes sees `out` and has the user's code.
        TrainingError: The cluster was lost.
    """
    _check_reachable(address)
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with _marker_file(out) as marker_file, stop_on_signal() as stop:
        memory = dict(zip(runs, memory_needed(runs), strict=True))
        settings = RunSettings(out, imported_user_code(), saving, loggers or LoggerConfig())
        request = Request(memory, gpus_per_run, settings, marker_file)
        process, connection = start_process(drive, address, request, retries)
        try:
            ended = _relay(connection, on_event, stop, address)
        finally:
            end_process(process, connection)
        return SweepExit(ended, stop.exit_code if stop else None)


def _relay(
    connection: "Connection[Any, Any]", on_event: Callable[[Event], None], stop: StopRequest, address: str
) -> list[Ended]:
    """Pass events on from the driver, and a request to stop to it, until it sends how the runs ended, or its error."""
    stop_sent = False
    try:
        while True:
            if stop and not stop_sent:
                connection.send("stop")
                stop_sent = True
            if not connection.poll(POLL_SECONDS):
                continue
            message = connection.recv()
            if isinstance(message, Exception):
                break
            if isinstance(message, list):
                return message
            on_event(message)
    except (EOFError, ConnectionError) as error:
        raise TrainingError(
            f"lost the Ray cluster (--ray {address}); start it again and repeat the same command: the runs resume from "
            "their checkpoints"
        ) from error
    raise message


@contextmanager
def _marker_file(out: Path) -> Iterator[Path]:
    """Keep a file with a new name in `out` while the sweep runs."""
    marker_file = out / f".{uuid.uuid4().hex}.part"
    marker_file.touch()
    try:
        yield marker_file
    finally:
        with suppress(OSError):
            marker_file.unlink()


def _check_reachable(address: str) -> None:
    """Raise a UsageError unless something listens at `address`; Ray itself would try for many minutes."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--ray {address}: use auto, or HOST:PORT as ray start --head prints it")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_SECONDS).close()
    except OSError as error:
        raise UsageError(f"no Ray cluster at {address} ({error}); start one with ray start --head") from error
