"""Start and end worker processes; no signal to stop is lost while one starts.

On Linux they come from a fork server that only they use, which imports PyTorch once for all of them. Python has one
fork server for each process. This one is started with signals blocked, so that no signal to a new worker is lost, and
with PyTorch imported; a user's own processes must have neither.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import context, forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FunctionType
from typing import Any

from bootdqn.runs.signals import STOP_SIGNALS, handled_signals

EXIT_TIMEOUT_SECONDS = 10.0

if sys.platform == "linux":
    from multiprocessing import popen_forkserver

    class _PrivateServer(forkserver.ForkServer):
        read_signed = staticmethod(forkserver.read_signed)

    _SERVER = _PrivateServer()
    _SERVER.set_forkserver_preload(["bootdqn.training.run"])

    class _Popen(popen_forkserver.Popen):
        """A process of the private server: Python's own code, in which `forkserver` is that one."""

        _launch = FunctionType(
            popen_forkserver.Popen._launch.__code__,  # type: ignore[attr-defined]
            vars(popen_forkserver) | {"forkserver": _SERVER},
        )

    class WorkerProcess(context.ForkServerProcess):
        """A process of the private fork server."""

        @staticmethod
        def _Popen(process: BaseProcess) -> Any:  # noqa: N802 - Python's name
            return _Popen(process)

else:  # a process that has imported PyTorch may not be forked
    WorkerProcess = context.SpawnProcess


def start_process(target: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, "Connection[Any, Any]"]:
    """Start a process that calls `target(connection, *arguments)`, and return it with the other end of the connection.

    It has the environment variables of this process, and ignores the signals to stop that this one ignores. The others
    are blocked there until it calls `unblock_stop_signals`.
    """
    ours, theirs = multiprocessing.Pipe()
    inherited = dict(os.environ), set(STOP_SIGNALS) - set(handled_signals())
    process = WorkerProcess(target=_call, args=(*inherited, target, theirs, *arguments), daemon=True)
    resource_tracker.ensure_running()  # now: the first process would start it, and it unblocks the signals
    with _blocked_signals():  # inherited, by way of the server
        process.start()
    theirs.close()
    return process, ours


def _call(environment: dict[str, str], ignored: set[signal.Signals], target: Callable[..., None], *args: Any) -> None:
    """Call `target` with what a child inherits; the fork server has it from the time when it was started."""
    os.environ.clear()
    os.environ.update(environment)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    target(*args)


def end_process(process: BaseProcess, connection: "Connection[Any, Any]") -> None:
    """Close the connection, at which a process ends by itself, and kill one that does not."""
    connection.close()
    process.join(timeout=EXIT_TIMEOUT_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()


def ignore_stop_signals() -> None:
    """Let signals to stop have no effect.

    Unlike SIG_IGN, a handler keeps those that are blocked pending, and is not inherited by programs started from here.
    """
    for number in handled_signals():
        signal.signal(number, lambda *_: None)


def unblock_stop_signals() -> None:
    """Handle the signals received since this process was started, and those to come."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


@contextmanager
def _blocked_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
