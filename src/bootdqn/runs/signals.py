"""Stopping on signals: the first asks to stop, the same one again ends the process at once.

SIGHUP, sent when a terminal or an ssh session is lost, only asks: the shell and the kernel each send one.
"""

import errno
import os
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RepeatedSignalError(KeyboardInterrupt):
    """The same signal came a second time: stop at once."""

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.exit_code = 128 + signal_number


class StopRequest:
    """Whether the process was asked to stop, and by which signal; it is the signals' handler."""

    signal_number: int | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Note a signal; the same one a second time raises a RepeatedSignalError, unless it is SIGHUP."""
        if number == signal.SIGHUP:
            _detach_lost_terminal()
        elif self.signal_number == number:
            raise RepeatedSignalError(number)
        self.signal_number = self.signal_number or number

    def __bool__(self) -> bool:
        """Return whether a stop was requested."""
        return self.signal_number is not None

    @property
    def exit_code(self) -> int:
        """The exit code that shells expect of a process ended by this signal: 130 for Ctrl-C, 143 for SIGTERM, ..."""
        return 128 + (self.signal_number or 0)


def handled_signals() -> list[signal.Signals]:
    """Return the signals that ask to stop; not SIGHUP where it is ignored, as with `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in STOP_SIGNALS if not (ignored and number == signal.SIGHUP)]


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Note the signals to stop instead of dying of them; a repeated one raises a RepeatedSignalError at once.

    One of each is one request: Ctrl-C in a terminal reaches a worker directly, and then again as its parent's SIGTERM.
    A nested `stop_on_signal` shares the outer request, so that no signal is missed between the two. Outside of the main
    thread, where Python handles no signals, no request ever comes.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    outer = signal.getsignal(signal.SIGINT)
    if isinstance(outer, StopRequest):
        yield outer
        return
    before = {number: signal.signal(number, request) for number in handled_signals()}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _detach_lost_terminal() -> None:
    """Redirect output to /dev/null if the terminal was lost: writing to it would raise before a run is saved."""
    for stream in (1, 2):
        try:
            termios.tcgetattr(stream)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream)
                os.close(nowhere)
