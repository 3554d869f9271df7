"""Stopping on request: the first signal asks, the second one insists."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
    """Note SIGINT and SIGTERM instead of dying of them; a second one raises KeyboardInterrupt at once."""
    request = StopRequest()

    def note(number: int, _frame: FrameType | None) -> None:
        if request:
            raise KeyboardInterrupt
        request.signal_number = number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
