"""One process at work on one run: it consumes the rounds of the loop until the goal is met or somebody asks to stop."""

import contextlib
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from bootdqn.common.errors import DamagedFileError, RunLostError, TrainingError, is_lack_of_memory, raised_in
from bootdqn.common.files import make_directory, storable, write_json_atomically
from bootdqn.config.train import SavingConfig, TrainConfig
from bootdqn.runs.checkpoint import Checkpoints, Loaded
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import Lock
from bootdqn.runs.signals import StopRequest
from bootdqn.runs.weights import save_weights
from bootdqn.training.callbacks import Progress
from bootdqn.training.evaluation import Evaluator
from bootdqn.training.loggers import Logger, Loggers
from bootdqn.training.loop import Parts, begin, train
from bootdqn.training.metrics import Clock, JsonLines, Records, timing_until
from bootdqn.training.saving import Run, Saver, digest, get_state, is_snapshot_due, set_state
from bootdqn.training.stopping import make_stopping_rule

SHOW_EVERY_SECONDS = 0.25
TIMING_EVERY_SECONDS = 10.0
SPEED_WINDOW_SECONDS = 120.0
CLOCK_CHECK_INTERVAL = 16
MAX_TRACEBACK_LINES = 200
"""Of a traceback in the summary: the last ones."""


class RunCallbacks(NamedTuple):
    """How a run speaks to people."""

    show: Callable[[Progress], None] = lambda _: None
    """Takes its progress, a few times a second."""
    announce: Callable[[str], None] = lambda _: None
    """Takes a line that is good to know before the first step: what the run is, and what it needs."""
    warn: Callable[[str], None] = lambda _: None
    """Takes a line that must be read: something went wrong that does not end the run."""


NO_CALLBACKS = RunCallbacks()


class Trainer:
    """Trains a run from where it is, in a folder that nobody else uses."""

    def __init__(
        self,
        config: TrainConfig[Any],
        folder: RunDirectory,
        parts: Parts,
        lock: Lock,
        *,
        saving: SavingConfig,
        checkpoints: Checkpoints,
        loaded: Loaded | None,
        sinks: list[Logger],
        voice: RunCallbacks,
        stop: StopRequest,
    ) -> None:
        """Begin the run, or go on from `loaded`, the checkpoint that was found."""
        self._config, self._folder, self._parts, self._checkpoints = config, folder, parts, checkpoints
        self._show, self._warn, self._stop, self._lock = voice.show, voice.warn, stop, lock
        self._keeps_checkpoint = bool(saving.keep_checkpoint)
        records = Records(folder.metrics, config.run.log_every, Loggers(sinks, voice.warn))
        self._run = Run(parts, records, make_stopping_rule(config.env), Evaluator(config, parts.learner.q_values))
        self._timing = JsonLines(folder.timing)
        self.not_exact: list[str] = []
        seconds = 0.0
        try:
            if loaded is not None:
                seconds = self._go_on_from(loaded)
        except BaseException:
            self._close()
            raise
        step = parts.position.step
        self._clock = Clock(TIMING_EVERY_SECONDS, seconds=seconds, step=step)
        self._glance = Clock(SHOW_EVERY_SECONDS, step=step)
        self._pace = _SpeedEstimate()
        self._saver = Saver(self._run, checkpoints, saving, config, lock, self._clock_seconds, voice.warn)

    def train(self) -> tuple[dict[str, Any], int]:
        """Train, and return the summary and the exit code."""
        try:
            if not self._parts.position.begun:
                begin(self._parts)
            if not self._checkpoints.exist():
                self._save()  # so that a run which has begun always has a checkpoint
            self._train_until_over()
            return self._finish()
        except RunLostError:
            raise  # the folder is another process's: not a word goes into it
        except TrainingError as error:
            message = f"{error}{_place(error)} (step {self._parts.position.step:,})"
            written = self._note_failure(error, message)
            kept = "its last checkpoint" + (", and summary.json the traceback" if written and error.__cause__ else "")
            raise TrainingError(f"{message}; {self._folder.path} keeps {kept}") from error
        except Exception as error:
            if is_lack_of_memory(error):
                self._note_failure(error, f"not enough memory: {error} (step {self._parts.position.step:,})")
            raise
        finally:
            self._close()

    def _note_failure(self, error: Exception, message: str) -> bool:
        """Write down what the run came to and why it failed, and return whether the summary could be written."""
        self._lock.check()
        for file in (self._run.records, self._timing):  # what it came to is in the last of them
            with contextlib.suppress(OSError):
                file.flush()
        lines = [storable(line) for line in traceback.format_exception(error)[-MAX_TRACEBACK_LINES:]]
        return self._write_summary(self._summary(status="failed", error=storable(message), traceback=lines))

    def _go_on_from(self, loaded: Loaded) -> float:
        """Put the run where `loaded` was made, and return the seconds it had taken until then."""
        self._checkpoints.load_segments(loaded, self._parts.replay)
        self.not_exact = set_state(self._run, loaded.state)
        try:
            seconds = float(loaded.state.values["clock"]["seconds"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DamagedFileError(f"{loaded.path} has no clock: {type(error).__name__}: {error}") from error
        length, last = timing_until(self._folder.timing, self._parts.position.step)
        self._timing.cut(length)
        return max(seconds, last)

    def _close(self) -> None:
        self._run.records.close()
        self._timing.close()

    def _train_until_over(self) -> None:
        run, position = self._run, self._parts.position
        rounds = train(self._config, self._parts)
        number = 0
        self._evaluate_if_due()  # the last process may have ended within one
        while not self._over:
            before, number = position.step, number + 1
            round_ = next(rounds)
            run.records.add_round(round_)
            run.goal.add_round(round_)
            if is_snapshot_due(self._config, before, position.step):
                self._try_to_write(self._save_snapshot)
            if number % CLOCK_CHECK_INTERVAL == 0:
                self._look_at_the_clock()
            if self._saver.is_due_by_steps():
                self._save()
            self._evaluate_if_due()

    @property
    def _over(self) -> bool:
        """Whether the run has nothing left to do, or was asked to stop."""
        return self._run.goal.over or bool(self._stop)

    def _evaluate_if_due(self) -> None:
        """Make the evaluation that is due, if one is, and write down what it found."""
        run, step = self._run, self._parts.position.step
        evaluation = run.evaluator.evaluate_if_due(step, lambda: bool(self._stop), self._show_evaluation)
        if evaluation is not None:
            self._lock.check()  # evaluations are long
            run.records.add(evaluation)
            run.goal.add_evaluation(evaluation["mean_return"])
            self._try_to_write(run.records.flush)
            self._try_to_write(self._save_weights)

    def _look_at_the_clock(self) -> None:
        step = self._parts.position.step
        if seen := self._glance.tick(step):
            self._show(self._progress(seen["steps_per_second"]))
        if record := self._clock.tick(step):
            self._lock.check()
            self._timing.write(record)
            self._try_to_write(self._timing.flush)
            self._try_to_write(self._run.records.flush)
        if self._saver.is_due_by_clock():
            self._save()

    def _save(self) -> bool:
        """Write a checkpoint, and the weights for evaluation and inspection; return whether both could be written."""
        record = self._saver.save()
        if record is None:
            return False
        self._timing.write({"seconds": round(self._clock.seconds, 3), **record})
        return self._try_to_write(self._save_weights)

    def _finish(self) -> tuple[dict[str, Any], int]:
        """Write down how the run ended; one asked to stop is saved, as is one at its end that may be taken further."""
        self._lock.check()
        run, step = self._run, self._parts.position.step
        done = run.goal.over and not run.evaluator.is_due(step)  # an evaluation that was abandoned is still due
        self._timing.write({"seconds": round(self._clock.seconds, 3), "step": step})
        written = self._try_to_write(lambda: run.records.flush(sync=True))
        if done:
            written &= self._save() if self._keeps_checkpoint else self._try_to_write(self._save_weights)
            self._try_to_write(self._timing.flush)
            summary = self._summary(status="finished", state_sha256=digest(get_state(run), self._parts))
            written = written and self._write_summary(summary)  # or the next start takes an unwritten run for finished
            if written:
                self._try_to_write(self._checkpoints.keep_last if self._keeps_checkpoint else self._checkpoints.remove)
            return summary, 0 if written else 1
        written &= self._save()
        self._try_to_write(self._timing.flush)
        summary = self._summary(status="interrupted")
        written &= self._write_summary(summary)
        return summary, self._stop.exit_code if written else 1

    def _write_summary(self, summary: dict[str, Any]) -> bool:
        return self._try_to_write(lambda: write_json_atomically(self._folder.summary, summary))

    def _summary(self, **ending: Any) -> dict[str, Any]:
        return {
            **ending,
            "steps": self._parts.position.step,
            "episodes": self._run.records.episodes,
            "updates": self._run.records.updates,
            "seconds": round(self._clock.seconds, 3),
            **self._run.goal.summary(),
        }

    def _try_to_write(self, write: Callable[[], None]) -> bool:
        """Return whether `write` could be done; a disk that refuses is no reason to stop training."""
        try:
            write()
        except OSError as error:
            self._warn(f"{self._folder.path} could not be written at step {self._parts.position.step:,}: {error}; "
                       "training goes on")  # fmt: skip
            return False
        return True

    def _save_weights(self) -> None:
        save_weights(self._folder.weights, self._parts.learner.online, self._parts.position.step)

    def _save_snapshot(self) -> None:
        self._lock.check()
        step = self._parts.position.step
        make_directory(self._folder.snapshots)
        save_weights(self._folder.snapshots / f"step-{step:012d}.safetensors", self._parts.learner.online, step)

    def _clock_seconds(self) -> float:
        return self._clock.seconds

    def _show_evaluation(self, episode: int, of: int) -> None:
        if seen := self._glance.tick(self._parts.position.step):
            progress = self._progress(seen["steps_per_second"])
            self._show(progress._replace(note=f"evaluating: episode {episode} of at most {of}"))

    def _progress(self, steps_per_second: float) -> Progress:
        goal, per_step = self._run.goal, self._config.env.frames_per_step
        self._pace.add(goal.completed)
        speed = f"{steps_per_second * per_step:,.0f} {'frames' if per_step > 1 else 'steps'}/s"
        saved = "" if self._saver.seconds is None else f", saved in {self._saver.seconds:.1f}s"
        left = self._pace.seconds_left
        return Progress(self._run.records.episodes, goal.completed, goal.position, speed, left, goal.note + saved)


def _place(error: TrainingError) -> str:
    """Say where code that is not ours raised what ended the run, if it did."""
    where = "" if error.__cause__ is None else raised_in(error.__cause__)
    return f" in {where}" if where else ""


class _SpeedEstimate:
    """How fast the run came along lately."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def add(self, completed: float) -> None:
        """Note how much is done now."""
        self._seen.append((time.monotonic(), completed))
        while self._seen[-1][0] - self._seen[0][0] > SPEED_WINDOW_SECONDS:
            self._seen.popleft()

    @property
    def seconds_left(self) -> float | None:
        (start, done_then), (now, done) = self._seen[0], self._seen[-1]
        return (now - start) * (1 - done) / (done - done_then) if done > done_then else None
