"""Many runs on one machine: worker processes that each train one run at a time, and a parent that outlives them."""

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path, PurePosixPath
from typing import Any

from bootdqn.common.errors import TrainingError
from bootdqn.config.train import SavingConfig
from bootdqn.runs.plugins import Plugins, loaded_plugins
from bootdqn.runs.signals import StopRequest, stop_on_signal
from bootdqn.sweeps.events import Ended, Event, Notice, Started, SweepOutcome, Underway, end_of
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.sweeps.processes import dismiss, ignore_stop_signals, spawn, unblock_stop_signals
from bootdqn.training.callbacks import RunCallbacks
from bootdqn.training.run import run


def run_all(
    runs: Iterable[PlannedRun],
    out: Path,
    workers: int,
    on_event: Callable[[Event], None] = lambda _: None,
    *,
    retries: int = 0,
    saving: SavingConfig | None = None,
) -> SweepOutcome:
    """Train every run in its folder below `out`, `workers` at a time, and return how each ended.

    A run that fails, or whose process dies, is tried again `retries` times, from its last checkpoint and in a new
    process, after all others; it does not stop them. On a signal to stop the runs under way save themselves and stop,
    and those not begun are left out of the result. The processes import what this one has of the user's own code.

    Raises:
        TrainingError: A process died while it was idle, and the one that took its place was not reached, either.
    """
    waiting, ended, crew = deque(runs), list[Ended](), list[_Worker]()
    failures: Counter[PurePosixPath] = Counter()
    with stop_on_signal() as stop:
        try:
            crew += [_Worker(out, saving, loaded_plugins()) for _ in range(min(workers, len(waiting)))]
            stopping = False
            while True:
                if stop and not stopping:
                    stopping = True
                    waiting.clear()
                    for worker in crew:
                        worker.ask_to_stop(stop)
                for worker in crew:
                    if worker.current is None and waiting:
                        on_event(Started(worker.begin(waiting.popleft())))
                busy = [worker for worker in crew if worker.current is not None]
                if not busy:
                    return SweepOutcome(ended, stop.exit_code if stop else None)
                for worker in _with_news(busy):
                    event = worker.news()
                    if isinstance(event, Ended):
                        if event.error is not None:
                            worker.dismiss()  # what a failure did to its process must not harm the next run
                            failures[event.run.name] += 1
                            event = replace(event, retrying=not stop and failures[event.run.name] <= retries)
                        (waiting.append(event.run) if event.retrying else ended.append(event))
                    on_event(event)
        finally:
            for worker in crew:
                worker.dismiss()


class _Worker:
    """A process that trains the runs it is sent, one after the other; a new process is started if it dies."""

    def __init__(self, out: Path, saving: SavingConfig | None, extensions: Plugins) -> None:
        self._orders = out, saving, extensions
        self.current: PlannedRun | None = None
        self.process, self.connection = spawn(_work, *self._orders)

    @property
    def busy_with(self) -> PlannedRun:
        """The run under way."""
        assert self.current is not None
        return self.current

    def begin(self, planned: PlannedRun) -> PlannedRun:
        """Send a run to the process; one that died while it was idle is replaced first, once.

        Raises:
            TrainingError: The new process cannot be reached, either.
        """
        self.current = planned
        if self.process.is_alive():
            with suppress(OSError):  # it has died, and the system does not say so yet
                self.connection.send(planned)
                return planned
        self.dismiss()
        self.process, self.connection = spawn(_work, *self._orders)
        try:
            self.connection.send(planned)
        except OSError as error:
            raise TrainingError(
                f"{planned.name}: a process died before it was sent this run, and the next was not reached ({error})"
            ) from error
        return planned

    def news(self) -> Event:
        """Receive what the process has to say; a process that ended without a word counts as a failed run."""
        current = self.busy_with
        try:
            event: Event = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            event = Ended(current, None, f"the process died (exit code {self.process.exitcode})")
        if isinstance(event, Ended):
            self.current = None
        return event

    def ask_to_stop(self, asked: StopRequest) -> None:
        """Pass the request on by the other signal: the one that came may have come to all, and two alike insist."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGINT if asked.signal_number == signal.SIGTERM else signal.SIGTERM)

    def dismiss(self) -> None:
        """End the process: it is idle, or the parent is going down."""
        dismiss(self.process, self.connection)


def _with_news(workers: list[_Worker]) -> list[_Worker]:
    """Wait until some workers have something to say, or a moment, so that a signal to this process is noticed."""
    ready = set(wait([worker.connection for worker in workers], timeout=0.2))
    return [worker for worker in workers if worker.connection in ready]


def _work(connection: "Connection[Any, Any]", out: Path, saving: SavingConfig | None, extensions: Plugins) -> None:
    """Train runs until the parent closes the connection.

    The parent asks to stop once, at any time after it sent a run, so no moment may miss it: signals are blocked until
    one request notes them, which `run` shares. It is forgotten after a run and before the parent hears of its end, so
    never one that the parent sends with the next run under way. At the very end signals mean nothing.
    """
    ignore_stop_signals()
    with stop_on_signal() as stop, suppress(EOFError, OSError, KeyboardInterrupt):
        unblock_stop_signals()
        while True:
            ended = _train_one(connection.recv(), out, saving, extensions, connection)
            stop.signal_number = None
            connection.send(ended)


def _train_one(
    planned: PlannedRun,
    out: Path,
    saving: SavingConfig | None,
    extensions: Plugins,
    connection: "Connection[Any, Any]",
) -> Ended:
    parent_is_there, warnings = True, list[str]()

    def tell(event: Event) -> None:
        nonlocal parent_is_there
        try:
            if parent_is_there:
                connection.send(event)
        except OSError:
            parent_is_there = False
            signal.raise_signal(signal.SIGTERM)  # save what there is, and stop

    def warn(text: str) -> None:
        warnings.append(text)
        tell(Notice(planned, text))

    try:
        extensions.load()
        callbacks = RunCallbacks(show=lambda progress: tell(Underway(planned, progress)), warn=warn)
        outcome = run(planned.config, out / planned.name, callbacks, saving=saving)
    except KeyboardInterrupt:
        return Ended(planned, None, "stopped at once")
    except Exception as error:
        return Ended(planned, None, f"{type(error).__name__}: {error}")
    return end_of(planned, outcome, warnings)
