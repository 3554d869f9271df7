"""The state of a run, restored exactly, and when it is saved as a checkpoint or snapshot."""

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
from bootdqn.training.loop import Components, LoopState, reset_environment
from bootdqn.training.metrics import MetricsWriter
from bootdqn.training.stopping import StoppingRule

RETRY_SECONDS = 60.0
FIRST_LOG_SNAPSHOT = 100


class TrainingState(NamedTuple):
    """Everything of a run that has a state."""

    components: Components
    metrics: MetricsWriter
    stopping_rule: StoppingRule
    evaluator: Evaluator


def get_state(training: TrainingState) -> State:
    """Return the state between two steps; its arrays may be views, valid until the next step."""
    components, loop = training.components, training.components.loop
    values = {
        "step": loop.step,
        "learning": loop.learning,
        "streams": components.streams.get_state(),
        "environments": [environment.get_state() for environment in components.environments],
        "records": training.metrics.get_state(),
        "goal": training.stopping_rule.get_state(),
        "evaluator": training.evaluator.get_state(),
    }
    arrays = {
        "observations": loop.observations,
        "lengths": loop.lengths,
        "returns": loop.returns,
        "bonuses": loop.bonuses,
        "heads": components.actor.heads,
    }
    learner, replay = components.learner.get_state(), components.replay.get_state()
    return State(values, {"learner": learner, "replay": replay, "loop": arrays})


def set_state(training: TrainingState, state: State) -> list[str]:
    """Restore `state`; the contents of the replay buffer are restored before.

    Returns:
        A line for each thing that could not be restored exactly.

    Raises:
        DamagedFileError: The state is not one of this run.
    """
    components, (values, arrays) = training.components, state
    try:
        fresh, loop = components.loop, arrays["loop"]
        spec = components.spec.observation
        of_learner = components.learner.get_state()
        components.learner.set_state({name: like(arrays["learner"], name, array) for name, array in of_learner.items()})
        components.replay.set_state(arrays["replay"])
        _refuse_outside(components.replay.actions, components.spec.num_actions, "actions in the replay")
        components.streams.set_state(values["streams"])
        components.actor.heads[:] = like(loop, "heads", components.actor.heads)
        _refuse_outside(components.actor.heads, components.actor.num_heads, "heads")
        if isinstance(spec, DiscreteSpec):
            _refuse_outside(loop["observations"], spec.num_values, "observations")
        components.loop = LoopState(
            started=True,
            step=int(values["step"]),
            learning=bool(values["learning"]),
            observations=like(loop, "observations", fresh.observations).copy(),
            lengths=like(loop, "lengths", fresh.lengths).copy(),
            returns=like(loop, "returns", fresh.returns).copy(),
            bonuses=like(loop, "bonuses", fresh.bonuses).copy(),
        )
        rule = training.stopping_rule
        training.metrics.set_state(values["records"])
        rule.set_state(values["goal"])
        training.evaluator.set_state(values["evaluator"])
        _ = rule.done, rule.completed, rule.note  # computed now, so that damage is found now
        if len(values["environments"]) != len(components.environments):
            raise ValueError("it has another number of environments")
        return _restore_environments(components, values["environments"])
    except (UsageError, TrainingError):
        raise
    except Exception as error:  # an emulator may raise anything when its state is damaged
        if is_lack_of_memory(error):
            raise  # which says nothing about the checkpoint
        raise DamagedFileError(f"the checkpoint is not one of this run: {type(error).__name__}: {error}") from error


def digest(state: State, components: Components) -> str:
    """Return the SHA-256 of a state and the contents of the replay buffer: equal for runs whose numbers are equal."""
    total = hashlib.sha256(json.dumps(encode(state.values), sort_keys=True).encode())
    for name, arrays in sorted(state.arrays.items()):
        _add(total, name, arrays)
    for index, version in enumerate(components.replay.segment_versions):
        if version:
            _add(total, f"segment {index}", components.replay.get_segment(index))
    return total.hexdigest()


def _add(total: Any, label: str, arrays: dict[str, Array]) -> None:
    for name, array in sorted(arrays.items()):
        total.update(f"{label}.{name} {array.dtype} {array.shape}".encode())
        total.update(bytes_of(np.ascontiguousarray(array)))


def _restore_environments(components: Components, states: list[dict[str, Any]]) -> list[str]:
    problems = []
    for env, (environment, state) in enumerate(zip(components.environments, states, strict=True)):
        try:
            environment.set_state(state)
        except EpisodeNotReproducedError as error:
            problems.append(f"environment {env}: {error}; a new episode starts, and this run is no longer exact")
            components.replay.cut_episode(env)
            components.loop.abandon_episode(env)
            components.loop.observations[env] = reset_environment(components, env)
    return problems


def _refuse_outside(numbers: Array, limit: int, what: str) -> None:
    """Raise a ValueError unless all are in 0..limit-1: compiled code does not check its indices."""
    if numbers.min() < 0 or numbers.max() >= limit:
        raise ValueError(f"it has {what} from {numbers.min()} to {numbers.max()}, there are {limit} here")


class Saver:
    """Writes checkpoints on a schedule."""

    def __init__(
        self,
        training: TrainingState,
        checkpoints: Checkpoints,
        schedule: SavingConfig,
        config: TrainConfig[Any],
        lock: Lock,
        seconds: Callable[[], float],
        warn: Callable[[str], None],
    ) -> None:
        self._training, self._checkpoints = training, checkpoints
        self._lock, self._seconds_so_far, self._warn = lock, seconds, warn
        minutes = schedule.checkpoint_every_minutes or config.env.minutes_between_checkpoints
        self._interval, self._every_steps = 60 * minutes, schedule.checkpoint_every_steps
        self._next_try = time.monotonic() + self._interval
        self._last_step = training.components.loop.step
        self.seconds: float | None = None
        """How long the last checkpoint took."""

    def is_due_by_steps(self) -> bool:
        """Return whether enough steps were taken for a checkpoint."""
        step = self._training.components.loop.step
        return self._every_steps is not None and _passes_a_multiple(self._last_step, step, self._every_steps)

    def is_due_by_clock(self) -> bool:
        """Return whether it is time for a checkpoint."""
        return time.monotonic() >= self._next_try

    def save(self) -> dict[str, Any] | None:
        """Write a checkpoint; return its timing record, or None after a warning that it could not be written.

        Raises:
            RunLostError: Another process has taken over the run directory.
        """
        self._lock.check()
        start, step = time.monotonic(), self._training.components.loop.step
        self._last_step = step
        try:
            self._training.metrics.flush(sync=True)
            state = get_state(self._training)
            values = state.values | {"clock": {"seconds": self._seconds_so_far()}}
            written = self._checkpoints.save(step, State(values, state.arrays), self._training.components.replay)
        except OSError as error:
            wait = min(RETRY_SECONDS, self._interval)
            self._next_try = time.monotonic() + wait
            self._warn(
                f"no checkpoint at step {step:,}: {error}; training continues, next try within {wait:.0f} seconds"
            )
            return None
        now = time.monotonic()
        self._next_try, self.seconds = now + self._interval, now - start
        return {"step": step, "checkpoint_seconds": round(self.seconds, 3), "checkpoint_bytes": written}


def is_snapshot_due(config: TrainConfig[Any], before: int, step: int) -> bool:
    """Return whether a snapshot is due after `step` steps, `before` of which were there at the last check."""
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
