"""When a run is saved, and what happens when that fails: training goes on, a line says so, and it is tried again."""

import time
from collections.abc import Callable
from typing import Any

from bootdqn.common.lock import Lock
from bootdqn.training.checkpoint import Checkpoints, State
from bootdqn.training.config import SavingConfig, TrainConfig
from bootdqn.training.state import Run, get_state

RETRY_SECONDS = 60.0
FIRST_LOG_SNAPSHOT = 100


class Saver:
    """Saves a run on schedule."""

    def __init__(
        self,
        run: Run,
        checkpoints: Checkpoints,
        schedule: SavingConfig,
        config: TrainConfig[Any],
        lock: Lock,
        seconds: Callable[[], float],
        warn: Callable[[str], None],
    ) -> None:
        self._run, self._checkpoints, self._lock, self._clock, self._warn = run, checkpoints, lock, seconds, warn
        minutes = schedule.checkpoint_every_minutes or config.env.minutes_between_checkpoints
        self._interval, self._every_steps = 60 * minutes, schedule.checkpoint_every_steps
        self._next_try = time.monotonic() + self._interval
        self._last_step = run.parts.position.step
        self.seconds: float | None = None
        """How long the last one took."""

    def is_due_by_steps(self) -> bool:
        """Return whether enough steps were taken for a checkpoint."""
        step = self._run.parts.position.step
        return self._every_steps is not None and _passes_a_multiple(self._last_step, step, self._every_steps)

    def is_due_by_clock(self) -> bool:
        """Return whether it is time for a checkpoint."""
        return time.monotonic() >= self._next_try

    def save(self) -> dict[str, Any] | None:
        """Write a checkpoint; return a record of it, or None where it failed, which is told and not raised.

        Raises:
            TrainingError: Another process has taken over the folder.
        """
        self._lock.check()
        start, step = time.monotonic(), self._run.parts.position.step
        self._last_step = step
        try:
            self._run.records.flush(sync=True)
            state = get_state(self._run)
            values = state.values | {"clock": {"seconds": self._clock()}}
            written = self._checkpoints.save(step, State(values, state.arrays), self._run.parts.replay)
        except OSError as error:
            wait = min(RETRY_SECONDS, self._interval)
            self._next_try = time.monotonic() + wait
            self._warn(f"no checkpoint at step {step:,}: {error}; training goes on, next try within {wait:.0f} seconds")
            return None
        now = time.monotonic()
        self._next_try, self.seconds = now + self._interval, now - start
        return {"step": step, "checkpoint_seconds": round(self.seconds, 3), "checkpoint_bytes": written}


def is_snapshot_due(config: TrainConfig[Any], before: int, step: int) -> bool:
    """Return whether the networks are to be kept after `step` steps, the round before having ended at `before`."""
    every = config.run.snapshot_every
    if every is None or step == before:
        return False
    if every == "log":
        return _doublings(step) > _doublings(before)
    return _passes_a_multiple(before, step, every)


def _passes_a_multiple(before: int, step: int, every: int) -> bool:
    return step // every > before // every


def _doublings(step: int) -> int:
    """Return how many of 100, 200, 400, 800, ... are at most `step`."""
    return (step // FIRST_LOG_SNAPSHOT).bit_length()
