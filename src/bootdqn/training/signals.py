"""Stopping on request: a signal asks, the same one again insists."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class InsistedError(KeyboardInterrupt):
    """The same signal came a second time: leave at once."""

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.exit_code = 128 + signal_number


class StopRequest:
    """Whether the process was asked to stop, and by which signal."""

    signal_number: int | None = None

    def __bool__(self) -> bool:
        """Return whether a stop was requested."""
        return self.signal_number is not None

    @property
    def exit_code(self) -> int:
        """The exit code that shells expect of a process ended by this signal: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self.signal_number or 0)


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM instead of dying of them; the same one a second time raises an InsistedError at once.

    One of each is one request: Ctrl-C in a terminal reaches a worker directly, and then again as its parent's SIGTERM.
    Outside of the main thread, where Python handles no signals, no request ever comes.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, _frame: FrameType | None) -> None:
        if request.signal_number == number:
            raise InsistedError(number)
        request.signal_number = request.signal_number or number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
