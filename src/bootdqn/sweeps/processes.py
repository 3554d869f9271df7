"""Child processes of a sweep, with a connection to each; no signal to stop is lost while one starts."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from bootdqn.runs.signals import STOP_SIGNALS, handled_signals

EXIT_WITHIN_SECONDS = 10.0


def spawn(target: Callable[..., None], *arguments: Any) -> tuple[SpawnProcess, "Connection[Any, Any]"]:
    """Start a process that calls `target(connection, *arguments)`, and return it with the other end of the connection.

    Signals to stop are blocked there until it calls `unblock_stop_signals`.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    resource_tracker.ensure_running()  # now: the first process would start it, and it unblocks the signals
    with _blocked_signals():  # inherited
        process.start()
    theirs.close()
    return process, ours


def dismiss(process: SpawnProcess, connection: "Connection[Any, Any]") -> None:
    """Close the connection, at which a process ends by itself, and kill one that does not."""
    connection.close()
    process.join(timeout=EXIT_WITHIN_SECONDS)
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
    """Handle the signals that came since this process was started, and those to come."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


@contextmanager
def _blocked_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
