"""Many runs on a Ray cluster.

Ray's core is enough: a run is one task in a process of its own, and everything that Ray Tune would keep (which runs
there are, how far each is, what it found) is in the run directories already, on storage that all nodes share. A sweep
that dies is simply started again.

Ray ends its driver from C++ when it loses the cluster. So the driver is a child process (`ray_driver`), and this one,
which does not use Ray, explains its death.
"""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.config.train import SavingConfig
from bootdqn.runs.plugins import loaded_plugins
from bootdqn.runs.signals import StopRequest, stop_on_signal
from bootdqn.sweeps.cost import memory_needed
from bootdqn.sweeps.events import Ended, Event, SweepOutcome
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.sweeps.processes import dismiss, spawn
from bootdqn.sweeps.ray_driver import DONE, STOP, Request, drive
from bootdqn.sweeps.ray_task import Orders

CONNECT_SECONDS = 5.0
NOTICE_SIGNAL_SECONDS = 0.2


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
    """Train every run in its directory below `out`, which all nodes share, and return how each ended.

    On a signal the runs under way save themselves and stop; those not begun are left out of the result.

    Args:
        runs: What to train.
        out: The output directory.
        address: Of the cluster; `auto` finds the one this machine belongs to, or else starts one on this machine.
        on_event: Called with what happens.
        retries: How often a run that fails, or whose worker process dies, is tried again from its checkpoint. A run
            that a node is lost with, or cannot train, is not to blame: it is trained elsewhere, however often.
        gpus_per_run: The share of a GPU that each run asks for.
        saving: When to make checkpoints.

    Raises:
        UsageError: There is no such cluster, or none of its nodes sees `out` and has the user's code.
        TrainingError: The cluster was lost.
    """
    _refuse_where_nobody_answers(address)
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    memory, ended = memory_needed(runs), list[Ended]()
    with _token(out) as token, stop_on_signal() as stop:
        orders = Orders(token, loaded_plugins(), saving)
        process, connection = spawn(drive, Request(runs, memory, address, orders, retries, gpus_per_run))
        try:
            for message in _messages(connection, stop, address):
                if isinstance(message, Exception):
                    raise message
                if isinstance(message, Ended) and not message.retrying:
                    ended.append(message)
                on_event(message)
        finally:
            dismiss(process, connection)
        return SweepOutcome(ended, stop.exit_code if stop else None)


def _messages(connection: "Connection[Any, Any]", stop: StopRequest, address: str) -> Iterator[Event | Exception]:
    """Yield what the driver sends until it is done, and pass a request to stop on to it."""
    passed_on = False
    try:
        while True:
            if stop and not passed_on:
                connection.send(STOP)
                passed_on = True
            if not connection.poll(NOTICE_SIGNAL_SECONDS):
                continue
            message = connection.recv()
            if message == DONE:
                return
            yield message
    except (EOFError, ConnectionError) as error:
        raise TrainingError(
            f"lost the Ray cluster (--ray {address}); start it again and repeat the same command: the runs resume from "
            "their checkpoints"
        ) from error


@contextmanager
def _token(out: Path) -> Iterator[Path]:
    """Put a file with a new name into `out` for as long as the sweep lasts."""
    token = out / f".{uuid.uuid4().hex}.part"
    token.touch()
    try:
        yield token
    finally:
        with suppress(OSError):
            token.unlink()


def _refuse_where_nobody_answers(address: str) -> None:
    """Raise a UsageError unless something listens at `address`, which Ray itself would try for many minutes."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--ray {address}: it is auto, or HOST:PORT as ray start --head prints it")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise UsageError(f"no Ray cluster at {address} ({error}); start one with ray start --head") from error
