"""The state of a run, and when it is saved as a checkpoint or snapshot."""

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import DamagedFileError, TrainingError, UsageError, is_lack_of_memory
from bootdqn.common.specs import Array, DiscreteSpec
from bootdqn.common.tensor_files import bytes_of
from bootdqn.config.train import SavingConfig, TrainConfig
from bootdqn.envs.gymnasium_env import EpisodeNotReproducedError
from bootdqn.replay.observation_stores import like
from bootdqn.runs.checkpoint import Checkpoints, State, encode
from bootdqn.runs.lock import Lock
from bootdqn.training.evaluation import Evaluator
from bootdqn.training.loop import Parts, Position, begin_new_episode
from bootdqn.training.metrics import Records
from bootdqn.training.stopping import StoppingRule


class Run(NamedTuple):
    """Everything of a run that has a state."""

    parts: Parts
    records: Records
    goal: StoppingRule
    evaluator: Evaluator


def get_state(run: Run) -> State:
    """Return the state between two rounds; its arrays may be views, to be used before the next round."""
    parts, position = run.parts, run.parts.position
    values = {
        "step": position.step,
        "learning": position.learning,
        "streams": parts.streams.get_state(),
        "environments": [environment.get_state() for environment in parts.environments],
        "records": run.records.get_state(),
        "goal": run.goal.get_state(),
        "evaluator": run.evaluator.get_state(),
    }
    loop = {
        "observations": position.observations,
        "lengths": position.lengths,
        "returns": position.returns,
        "bonuses": position.bonuses,
        "heads": parts.actor.heads,
    }
    return State(values, {"learner": parts.learner.get_state(), "replay": parts.replay.get_state(), "loop": loop})


def set_state(run: Run, state: State) -> list[str]:
    """Go on from `state`; the replay's contents are in place already.

    Returns:
        What could not be restored exactly, a line each.

    Raises:
        DamagedFileError: The state is not one of this run.
    """
    parts, (values, arrays) = run.parts, state
    try:
        position = parts.position
        loop = arrays["loop"]
        spec = parts.spec.observation
        of_learner = parts.learner.get_state()
        parts.learner.set_state({name: like(arrays["learner"], name, array) for name, array in of_learner.items()})
        parts.replay.set_state(arrays["replay"])
        _refuse_outside(parts.replay.actions, parts.spec.num_actions, "actions in the replay")
        parts.streams.set_state(values["streams"])
        parts.actor.heads[:] = like(loop, "heads", parts.actor.heads)
        _refuse_outside(parts.actor.heads, parts.actor.num_heads, "heads")
        if isinstance(spec, DiscreteSpec):
            _refuse_outside(loop["observations"], spec.num_values, "observations")
        parts.position = Position(
            begun=True,
            step=int(values["step"]),
            learning=bool(values["learning"]),
            observations=like(loop, "observations", position.observations).copy(),
            lengths=like(loop, "lengths", position.lengths).copy(),
            returns=like(loop, "returns", position.returns).copy(),
            bonuses=like(loop, "bonuses", position.bonuses).copy(),
        )
        run.records.set_state(values["records"])
        run.goal.set_state(values["goal"])
        run.evaluator.set_state(values["evaluator"])
        _ = run.goal.over, run.goal.completed, run.goal.note  # a look at it, so that rubbish is found now
        if len(values["environments"]) != len(parts.environments):
            raise ValueError("it has another number of environments")
        return _restore_environments(parts, values["environments"])
    except (UsageError, TrainingError):
        raise
    except Exception as error:  # an emulator that is given rubbish raises anything
        if is_lack_of_memory(error):
            raise  # a machine that is too small says nothing of the checkpoint
        raise DamagedFileError(f"the checkpoint is not one of this run: {type(error).__name__}: {error}") from error


def digest(state: State, parts: Parts) -> str:
    """Return the SHA-256 of a state with the replay's contents: equal for runs whose every number is equal."""
    total = hashlib.sha256(json.dumps(encode(state.values), sort_keys=True).encode())
    for name, arrays in sorted(state.arrays.items()):
        _add(total, name, arrays)
    for index, version in enumerate(parts.replay.segment_versions):
        if version:
            _add(total, f"segment {index}", parts.replay.get_segment(index))
    return total.hexdigest()


def _add(total: Any, label: str, arrays: dict[str, Array]) -> None:
    for name, array in sorted(arrays.items()):
        total.update(f"{label}.{name} {array.dtype} {array.shape}".encode())
        total.update(bytes_of(np.ascontiguousarray(array)))


def _restore_environments(parts: Parts, states: list[dict[str, Any]]) -> list[str]:
    problems = []
    for env, (environment, state) in enumerate(zip(parts.environments, states, strict=True)):
        try:
            environment.set_state(state)
        except EpisodeNotReproducedError as error:
            problems.append(f"environment {env}: {error}; a new episode begins, and this run is no longer exact")
            parts.replay.cut_episode(env)
            parts.position.abandon_episode(env)
            parts.position.observations[env] = begin_new_episode(parts, env)
    return problems


def _refuse_outside(numbers: Array, limit: int, what: str) -> None:
    """Raise a ValueError unless all are from 0 up to `limit`: compiled code does not look before it uses them."""
    if numbers.min() < 0 or numbers.max() >= limit:
        raise ValueError(f"it has {what} from {numbers.min()} to {numbers.max()}, there are {limit} here")


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
