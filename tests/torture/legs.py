"""A run in legs: each trains in a fresh process until it is done, stops at a chosen step, or is killed.

The processes are forked from a server that has imported everything and run nothing, so that none pays for the imports.
"""

import contextlib
import hashlib
import multiprocessing
import signal
from functools import partial
from typing import NamedTuple

from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.runs.directory import RunDirectory
from bootdqn.sweeps.processes import unblock_stop_signals

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([
    "bootdqn.training.run", "scipy.linalg.cython_blas", "threadpoolctl", "ale_py", "cv2", "torch._dynamo",
    "numba.cpython.unicode", "numba.experimental", "numba.np.linalg", "numba.np.npyimpl", "numba.typed",
    "numba.np.random.generator_methods", "numba.np.polynomial.polynomial_functions",
])  # fmt: skip
LONGEST_SILENCE_SECONDS = 250


class Leg(NamedTuple):
    """The outcome and the messages of a process."""

    exit_code: int | None
    """What the run ended with; None where it was killed or raised."""
    error: str | None
    """The type and the message of what the run raised."""
    info: list[str]
    warned: list[str]

    @property
    def resumed_from(self):
        """The step it resumed from, or None where it started."""
        found = [line for line in self.info if line.startswith("Resuming from step ")]
        return int(found[0].rsplit(" ", 1)[1].replace(",", "")) if found else None


class FreshProcess:
    """A process of its own for one call: `function(send, *arguments)`."""

    def __init__(self, function, *arguments):
        self._ours, theirs = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_call, args=(theirs, function, arguments), daemon=True)
        self._process.start()
        theirs.close()
        self.pid = self._process.pid

    def is_alive(self):
        return self._process.is_alive()

    def kill(self):
        self._process.kill()
        self._process.join()

    def messages(self):
        """Return all that was sent until the process ended, as one that is not killed must by itself."""
        messages = []
        try:
            while self._ours.poll(LONGEST_SILENCE_SECONDS):
                messages.append(self._ours.recv())
            self.kill()
            raise AssertionError(f"silent for {LONGEST_SILENCE_SECONDS} s, after {messages}")
        except EOFError:
            self._process.join(LONGEST_SILENCE_SECONDS)
        finally:
            self._ours.close()
        assert self._process.exitcode in (0, -signal.SIGKILL), (self._process.exitcode, messages)
        return messages


def start_leg(settings, path, *around, saving=None):
    """Start training in a fresh process; `around` are calls that return contexts to train in."""
    return FreshProcess(_train, settings, path, around, saving or {})


def end_leg(process):
    """Wait for the process of a leg and return the `Leg`."""
    received = {"exit_code": [], "error": [], "info": [], "warned": []}
    for kind, message in process.messages():
        received[kind].append(message)
    return Leg((*received["exit_code"], None)[0], (*received["error"], None)[0], received["info"], received["warned"])


def train(settings, path, *around, saving=None):
    """Train in a fresh process and return its `Leg`."""
    return end_leg(start_leg(settings, path, *around, saving=saving))


def train_unbroken(settings, path, *around):
    """Train from start to end and return the results that every stopped and resumed run must have."""
    leg = train(settings, path, *around)
    assert (leg.exit_code, leg.error, leg.warned) == (0, None, [])
    return results(path)


def results(path):
    """Return the digests of all results of a finished run."""
    directory = RunDirectory(path)
    summary = directory.read_summary()
    assert summary["status"] == "finished"
    files = [directory.metrics, directory.weights, *sorted(directory.snapshots.glob("*"))]
    return {"state": summary["state_sha256"]} | {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files
    }


def stopping_at(step):
    """Return a context in which the process sends itself SIGTERM once a round has reached `step`."""
    return partial(_stopping_at, step)


def with_segments_of(slots):
    """Return a context in which the replay is saved in segments of `slots`, so that a small one has several."""
    return partial(_with_segments_of, slots)


@contextlib.contextmanager
def replaced(owner, name, value):
    """Put `value` in the place of an attribute for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield before
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def _stopping_at(step):
    from bootdqn.training import trainer

    original = trainer.train

    def train_and_stop(config, components):
        for result in original(config, components):
            if result.step >= step:
                signal.raise_signal(signal.SIGTERM)
            yield result

    with replaced(trainer, "train", train_and_stop):
        yield


@contextlib.contextmanager
def _with_segments_of(slots):
    from bootdqn.replay import buffer as ring

    with replaced(ring, "SEGMENT_SLOTS", slots):
        yield


def _call(connection, function, arguments):
    unblock_stop_signals()  # which the server blocks if a sweep of this process has started it
    function(connection.send, *arguments)
    connection.close()


def _train(send, settings, path, around, saving):
    from bootdqn.common.user_code import import_environments
    from bootdqn.config.settings import from_flat
    from bootdqn.config.train import SavingConfig
    from bootdqn.training.callbacks import RunCallbacks
    from bootdqn.training.run import train_run

    for module in settings.get("imports", ()):
        import_environments(module)
    with contextlib.ExitStack() as stack:
        for enter in around:
            stack.enter_context(enter())
        try:
            outcome = train_run(
                from_flat(settings),
                path,
                RunCallbacks(
                    info=lambda line: send(("info", line)),
                    warn=lambda line: send(("warned", line)) if line else None,
                ),
                saving=SavingConfig(**saving),
            )
        except (UsageError, TrainingError) as error:
            send(("error", f"{type(error).__name__}: {error}"))
        else:
            send(("exit_code", outcome.exit_code))
