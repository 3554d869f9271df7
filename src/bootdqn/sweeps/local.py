"""Run a sweep in worker processes on this machine; one that dies does not harm the others."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from bootdqn.common.errors import RunInUseError, TrainingError, UsageError
from bootdqn.config.train import LoggerConfig, SavingConfig
from bootdqn.runs.lock import STALE_AFTER_SECONDS
from bootdqn.runs.signals import StopRequest, stop_on_signal
from bootdqn.runs.user_code_imports import UserCodeImports, imported_user_code
from bootdqn.sweeps.executor import Ended, Event, Fault, Message, Progressed, Started, SweepExit, execute
from bootdqn.sweeps.processes import end_process, ignore_stop_signals, start_process, unblock_stop_signals
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.callbacks import Progress, RunCallbacks

POLL_SECONDS = 0.2
"""How long to wait for events before signals to this process are checked."""
LOCK_CHECK_SECONDS = STALE_AFTER_SECONDS / 20


class RunSettings(NamedTuple):
    """Settings that all runs of a sweep share in their worker processes."""

    out: Path
    """The run directories are below it."""
    user_code: UserCodeImports
    saving: SavingConfig | None
    loggers: LoggerConfig = LoggerConfig()


def run_locally(
    runs: Iterable[PlannedRun],
    out: Path,
    workers: int,
    on_event: Callable[[Event], None] = lambda _: None,
    *,
    retries: int = 0,
    saving: SavingConfig | None = None,
    loggers: LoggerConfig | None = None,
) -> SweepExit:
    """Train every run in its run directory below `out`, `workers` at a time, and return how each ended.

    A failed run is retried `retries` times, in a new process. On a signal to stop, the runs that were started save a
    checkpoint and stop. The worker processes import the user code that this process has imported.

    Raises:
        TrainingError: An idle worker process died, and the one that replaced it could not be reached, either.
    """
    runs = list(runs)
    with stop_on_signal() as stop:
        settings = RunSettings(out, imported_user_code(), saving, loggers or LoggerConfig())
        backend = LocalBackend(min(workers, len(runs)), settings, stop)
        ended = execute(runs, backend, on_event, lambda: bool(stop), retries=retries)
        return SweepExit(ended, stop.exit_code if stop else None)


class LocalBackend:
    """Worker processes that each train one run at a time."""

    def __init__(self, workers: int, settings: RunSettings, stop: StopRequest) -> None:
        self.slots, self._stop = workers, stop
        self._workers = [_Worker(settings) for _ in range(workers)]
        self._started: list[Started] = []
        """Events not yet returned."""

    def start(self, planned: PlannedRun) -> None:
        """Send a run to an idle worker."""
        next(worker for worker in self._workers if worker.run is None).start(planned)
        self._started.append(Started(planned))

    def events(self) -> Iterable[Event]:
        """Return the events since the last call; wait a moment if there are none."""
        started, self._started = self._started, []
        if started:
            return started
        busy = [worker for worker in self._workers if worker.run is not None]
        ready = set(wait([worker.connection for worker in busy], POLL_SECONDS))
        return [worker.receive() for worker in busy if worker.connection in ready]

    def stop(self) -> None:
        """Ask every worker to stop."""
        for worker in self._workers:
            worker.stop(self._stop)

    def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.close()


class _Worker:
    """A process that trains the runs it is sent, one at a time; it is replaced if it dies."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self.run: PlannedRun | None = None
        self._process, self.connection = start_process(_work, settings)

    def start(self, planned: PlannedRun) -> None:
        """Send a run to the process; if the process died while it was idle, replace it first, once.

        Raises:
            TrainingError: The new process cannot be reached, either.
        """
        self.run = planned
        if self._process.is_alive():
            with suppress(OSError):  # it has died, and the system does not report that yet
                self.connection.send(planned)
                return
        self.close()
        self._process, self.connection = start_process(_work, self._settings)
        try:
            self.connection.send(planned)
        except OSError as error:
            raise TrainingError(
                f"{planned.name}: a worker process died before it was sent this run, and so did the next ({error})"
            ) from error

    def receive(self) -> Event:
        """Receive an event; a process that died has failed its run."""
        assert self.run is not None
        try:
            event: Event = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            event = Ended(self.run, None, f"the process died (exit code {self._process.exitcode})")
        if isinstance(event, Ended):
            self.run = None
            if event.error is not None:
                self.close()  # the next run needs a process that no failure has harmed
        return event

    def stop(self, request: StopRequest) -> None:
        """Pass a request on by another signal: the first may have reached all processes, and a repeated one kills."""
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGINT if request.signal_number == signal.SIGTERM else signal.SIGTERM)

    def close(self) -> None:
        """End the process."""
        end_process(self._process, self.connection)


def _work(connection: "Connection[Any, Any]", settings: RunSettings) -> None:
    """Train runs until the parent closes the connection.

    The parent asks to stop once, at any time after it sent a run, so the request must not be lost: signals are blocked
    until a StopRequest handles them, which `run` shares. It is reset after a run and before the parent learns of its
    end, so never after the parent has sent the next run. At the very end signals have no effect.
    """
    ignore_stop_signals()
    with stop_on_signal() as stop, suppress(EOFError, OSError, KeyboardInterrupt):
        unblock_stop_signals()
        while True:
            ended = _train_and_report(connection.recv(), settings, connection)
            stop.signal_number = None
            connection.send(ended)


def _train_and_report(planned: PlannedRun, settings: RunSettings, connection: "Connection[Any, Any]") -> Ended:
    parent_is_alive = True

    def send(event: Event) -> None:
        nonlocal parent_is_alive
        try:
            if parent_is_alive:
                connection.send(event)
        except OSError:
            parent_is_alive = False
            signal.raise_signal(signal.SIGTERM)  # save a checkpoint and stop

    return train_planned_run(
        planned,
        settings,
        show=lambda progress: send(Progressed(planned, progress)),
        warn=lambda text: send(Message(planned, text)),
    )


def train_planned_run(
    planned: PlannedRun,
    settings: RunSettings,
    *,
    show: Callable[[Progress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    lock_timeout: float = 0.0,
) -> Ended:
    """Train a run in this process and return how it ended.

    Args:
        planned: The run.
        settings: Shared by all runs of the sweep.
        show: Called with the progress of the run.
        warn: Called with each warning.
        lock_timeout: Seconds to wait for a run directory that another process uses.
    """
    from bootdqn.training.run import train_run

    warnings, deadline = list[str](), time.monotonic() + lock_timeout

    def keep_warning(text: str) -> None:
        warnings.append(text)
        warn(text)

    while True:
        try:
            settings.user_code.load()
            callbacks = RunCallbacks(show=show, warn=keep_warning)
            outcome = train_run(
                planned.config,
                settings.out / planned.name,
                callbacks,
                saving=settings.saving,
                tensorboard=settings.loggers.tensorboard,
                wandb=settings.loggers.wandb,
                sweep=settings.out,
            )
        except RunInUseError as error:
            if time.monotonic() >= deadline:
                return Ended(planned, None, f"{type(error).__name__}: {error}")
            time.sleep(LOCK_CHECK_SECONDS)
        except KeyboardInterrupt:
            return Ended(planned, None, "killed by a second signal")
        except Exception as error:
            fault = Fault.USAGE if isinstance(error, UsageError) else Fault.RUN
            return Ended(planned, None, f"{type(error).__name__}: {error}", fault)
        else:
            if outcome.exit_code == 1:
                return Ended(
                    planned, None, ": ".join(["its summary or checkpoint could not be written", *warnings[-1:]])
                )
            return Ended(planned, outcome.summary)
