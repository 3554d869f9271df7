"""The trainer: consumes the steps of the loop until the stopping rule is met or a signal asks to stop."""

import contextlib
import itertools
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from bootdqn.common.errors import DamagedFileError, LockLostError, TrainingError, is_out_of_memory
from bootdqn.common.files import make_directory, sanitize_text, write_json_atomically
from bootdqn.config.train import SavingConfig, TrainConfig
from bootdqn.runs.checkpoint import Checkpoints, LoadedCheckpoint, State
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import Lock
from bootdqn.runs.signals import StopRequest
from bootdqn.runs.weights import save_weights
from bootdqn.training.callbacks import Progress, RunCallbacks
from bootdqn.training.evaluation import Evaluator
from bootdqn.training.loggers import Logger, Loggers
from bootdqn.training.loop import Components, reset_environments, train
from bootdqn.training.metrics import Clock, JsonLines, MetricsWriter, read_timing_up_to
from bootdqn.training.state import TrainingState, digest, get_state, set_state
from bootdqn.training.stopping import make_stopping_rule

SHOW_EVERY_SECONDS = 0.25
TIMING_EVERY_SECONDS = 10.0
SPEED_WINDOW = 480
"""Times the progress is shown, over which the speed is averaged: two minutes."""
CLOCK_CHECK_INTERVAL = 16
RETRY_SECONDS = 60.0
"""Time to the next try after a checkpoint could not be written."""
FIRST_LOG_SNAPSHOT = 100
MAX_TRACEBACK_LINES = 200
"""Last lines of a traceback that are kept in the summary."""


class Trainer:
    """Trains a run in a locked run directory, from the start or from a checkpoint."""

    def __init__(
        self,
        config: TrainConfig[Any],
        directory: RunDirectory,
        components: Components,
        lock: Lock,
        *,
        saving: SavingConfig,
        checkpoints: Checkpoints,
        loaded: LoadedCheckpoint | None,
        loggers: list[Logger],
        callbacks: RunCallbacks,
        stop: StopRequest,
    ) -> None:
        """Restore the checkpoint `loaded`; None starts the run."""
        self._config, self._directory, self._components, self._checkpoints = config, directory, components, checkpoints
        self._show, self._warn, self._stop, self._lock = callbacks.show, callbacks.warn, stop, lock
        self._keeps_checkpoint = bool(saving.keep_checkpoint)
        self._metrics = MetricsWriter(directory.metrics, config.run.log_every, Loggers(loggers, callbacks.warn))
        self._stopping_rule = make_stopping_rule(config.env)
        self._evaluator = Evaluator(config, components.learner.q_values)
        self._timing = JsonLines(directory.timing)
        self.inexact_reasons: list[str] = []
        seconds = 0.0
        try:
            if loaded is not None:
                seconds = self._restore(loaded)
        except BaseException:
            self._close()
            raise
        step = components.loop.step
        self._clock = Clock(TIMING_EVERY_SECONDS, seconds=seconds, step=step)
        self._show_clock = Clock(SHOW_EVERY_SECONDS, step=step)
        self._recent: deque[tuple[float, float]] = deque(maxlen=SPEED_WINDOW)
        """Times, and the fractions of the run that were completed then."""
        self._checkpoint_steps = saving.checkpoint_every_steps
        self._checkpoint_interval = 60 * (saving.checkpoint_every_minutes or config.env.minutes_between_checkpoints)
        self._next_checkpoint, self._last_checkpoint_step = time.monotonic() + self._checkpoint_interval, step
        self._checkpoint_seconds: float | None = None
        """How long the last checkpoint took."""

    def train(self) -> tuple[dict[str, Any], int]:
        """Train, and return the summary and the exit code."""
        try:
            if not self._components.loop.started:
                reset_environments(self._components)
            if not self._checkpoints.exist():
                self._save()  # so that a run that was started always has a checkpoint
            self._train_until_done()
            return self._finish()
        except LockLostError:
            raise  # nothing is written to a directory that another process uses
        except TrainingError as error:
            message = f"{error} (step {self._step:,})"
            written = self._write_failure(error, message)
            has_traceback = written and error.__cause__ is not None
            files = "its last checkpoint" + (", and summary.json the traceback" if has_traceback else "")
            raise TrainingError(f"{message}; {self._directory.path} keeps {files}") from error
        except Exception as error:
            if is_out_of_memory(error):
                self._write_failure(error, f"not enough memory: {error} (step {self._step:,})")
            raise
        finally:
            self._close()

    def _write_failure(self, error: Exception, message: str) -> bool:
        """Write the metrics, and a summary of why the run failed; return whether the summary could be written."""
        self._lock.check()
        for file in (self._metrics, self._timing):
            with contextlib.suppress(OSError):
                file.flush()
        lines = [sanitize_text(line) for line in traceback.format_exception(error)[-MAX_TRACEBACK_LINES:]]
        return self._write_summary(self._summary(status="failed", error=sanitize_text(message), traceback=lines))

    def _restore(self, loaded: LoadedCheckpoint) -> float:
        """Restore a checkpoint, and return the seconds that the run had taken until then."""
        self._checkpoints.load_segments(loaded, self._components.replay)
        self.inexact_reasons = set_state(self._state, loaded.state)
        try:
            seconds = float(loaded.state.values["clock"]["seconds"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DamagedFileError(f"{loaded.path} has no clock: {type(error).__name__}: {error}") from error
        length, last = read_timing_up_to(self._directory.timing, self._step)
        self._timing.cut(length)
        return max(seconds, last)

    def _close(self) -> None:
        self._metrics.close()
        self._timing.close()

    def _train_until_done(self) -> None:
        steps, before, every_steps = train(self._config, self._components), self._step, self._checkpoint_steps
        self._evaluate_if_due()  # the process before may have ended in an evaluation
        for number in itertools.count(1):
            if self._stopping_rule.done or self._stop:
                return
            result = next(steps)
            self._metrics.add_step(result)
            self._stopping_rule.add_step(result)
            if _is_snapshot_due(self._config.run.snapshot_every, before, result.step):
                self._try_to_write(self._save_snapshot)
            if number % CLOCK_CHECK_INTERVAL == 0:
                self._check_clocks()
            if every_steps and _passes_multiple(self._last_checkpoint_step, result.step, every_steps):
                self._save()
            self._evaluate_if_due()
            before = result.step

    @property
    def _state(self) -> TrainingState:
        return TrainingState(self._components, self._metrics, self._stopping_rule, self._evaluator)

    @property
    def _step(self) -> int:
        return self._components.loop.step

    def _evaluate_if_due(self) -> None:
        """Evaluate if that is due, and write the result."""
        evaluation = self._evaluator.evaluate_if_due(self._step, lambda: bool(self._stop), self._show_evaluation)
        if evaluation is not None:
            self._lock.check()  # evaluations are long
            self._metrics.add(evaluation)
            self._stopping_rule.add_evaluation(evaluation["mean_return"])
            self._try_to_write(self._metrics.flush)
            self._try_to_write(self._save_weights)

    def _check_clocks(self) -> None:
        """Show the progress, and write timing and checkpoints, whichever is due."""
        step = self._step
        if timing := self._show_clock.tick(step):
            self._show(self._progress(timing["steps_per_second"]))
        if record := self._clock.tick(step):
            self._lock.check()
            self._timing.write(record)
            self._try_to_write(self._timing.flush)
            self._try_to_write(self._metrics.flush)
        if time.monotonic() >= self._next_checkpoint:
            self._save()

    def _save(self) -> bool:
        """Write a checkpoint and the weights; return whether both could be written."""
        record = self._save_checkpoint()
        if record is None:
            return False
        self._timing.write({"seconds": round(self._clock.seconds, 3), **record})
        return self._try_to_write(self._save_weights)

    def _save_checkpoint(self) -> dict[str, Any] | None:
        """Write a checkpoint; return its timing record, or None after a warning that it could not be written."""
        self._lock.check()
        start, step = time.monotonic(), self._step
        self._last_checkpoint_step = step
        try:
            self._metrics.flush(sync=True)
            state = get_state(self._state)
            values = state.values | {"clock": {"seconds": self._clock.seconds}}
            written = self._checkpoints.save(step, State(values, state.arrays), self._components.replay)
        except OSError as error:
            wait = min(RETRY_SECONDS, self._checkpoint_interval)
            self._next_checkpoint = time.monotonic() + wait
            self._warn(
                f"no checkpoint at step {step:,}: {error}; training continues, next try within {wait:.0f} seconds"
            )
            return None
        now = time.monotonic()
        self._next_checkpoint, self._checkpoint_seconds = now + self._checkpoint_interval, now - start
        return {"step": step, "checkpoint_seconds": round(now - start, 3), "checkpoint_bytes": written}

    def _finish(self) -> tuple[dict[str, Any], int]:
        """Write the summary, the weights, and a checkpoint if the run is interrupted or keeps its last one."""
        self._lock.check()
        step = self._step
        done = self._stopping_rule.done and not self._evaluator.is_due(step)  # an abandoned evaluation is still due
        self._timing.write({"seconds": round(self._clock.seconds, 3), "step": step})
        written = self._try_to_write(lambda: self._metrics.flush(sync=True))
        if done:
            written &= self._save() if self._keeps_checkpoint else self._try_to_write(self._save_weights)
            self._try_to_write(self._timing.flush)
            summary = self._summary(status="finished", state_sha256=digest(get_state(self._state), self._components))
            written = written and self._write_summary(summary)  # finished only if everything is on the disk
            if written:
                self._try_to_write(self._checkpoints.keep_last if self._keeps_checkpoint else self._checkpoints.remove)
            return summary, 0 if written else 1
        written &= self._save()
        self._try_to_write(self._timing.flush)
        summary = self._summary(status="interrupted")
        written &= self._write_summary(summary)
        return summary, self._stop.exit_code if written else 1

    def _write_summary(self, summary: dict[str, Any]) -> bool:
        return self._try_to_write(lambda: write_json_atomically(self._directory.summary, summary))

    def _summary(self, **ending: Any) -> dict[str, Any]:
        return {
            **ending,
            "steps": self._step,
            "episodes": self._metrics.episodes,
            "updates": self._metrics.updates,
            "seconds": round(self._clock.seconds, 3),
            **self._stopping_rule.summary(),
        }

    def _try_to_write(self, write: Callable[[], None]) -> bool:
        """Return whether `write` succeeded; after an error of the disk training continues, with a warning."""
        try:
            write()
        except OSError as error:
            self._warn(
                f"{self._directory.path} could not be written at step {self._step:,}: {error}; training continues"
            )
            return False
        return True

    def _save_weights(self) -> None:
        save_weights(self._directory.weights, self._components.learner.online, self._step)

    def _save_snapshot(self) -> None:
        self._lock.check()
        make_directory(self._directory.snapshots)
        path = self._directory.snapshots / f"step-{self._step:012d}.safetensors"
        save_weights(path, self._components.learner.online, self._step)

    def _show_evaluation(self, episode: int, of: int) -> None:
        if timing := self._show_clock.tick(self._step):
            progress = self._progress(timing["steps_per_second"])
            self._show(progress._replace(note=f"evaluating: episode {episode} of at most {of}"))

    def _progress(self, steps_per_second: float) -> Progress:
        rule, per_step = self._stopping_rule, self._config.env.frames_per_step
        self._recent.append((time.monotonic(), rule.completed))
        (start, first), (now, last) = self._recent[0], self._recent[-1]
        seconds_left = (now - start) * (1 - last) / (last - first) if last > first else None
        speed = f"{steps_per_second * per_step:,.0f} {'frames' if per_step > 1 else 'steps'}/s"
        saved = "" if self._checkpoint_seconds is None else f", saved in {self._checkpoint_seconds:.1f}s"
        return Progress(rule.completed, rule.position, speed, seconds_left, rule.note + saved)


def _is_snapshot_due(every: int | Literal["log"] | None, before: int, step: int) -> bool:
    """Return whether a snapshot is due after `step` steps, when the last check was after `before`."""
    if every == "log":
        return _doublings(step) > _doublings(before)
    return every is not None and _passes_multiple(before, step, every)


def _passes_multiple(before: int, step: int, every: int) -> bool:
    return step // every > before // every


def _doublings(step: int) -> int:
    """Return how many of 100, 200, 400, 800, ... are at most `step`."""
    return (step // FIRST_LOG_SNAPSHOT).bit_length()
