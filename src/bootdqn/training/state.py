"""The state of a run: collected for a checkpoint, restored exactly, and its digest."""

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import DamagedFileError, TrainingError, UsageError, is_out_of_memory
from bootdqn.common.specs import Array, DiscreteSpec
from bootdqn.common.tensor_files import bytes_of, checked_array
from bootdqn.common.text import format_count
from bootdqn.envs.gymnasium_env import EpisodeNotReproducedError
from bootdqn.runs.checkpoint import State, encode
from bootdqn.training.evaluation import Evaluator
from bootdqn.training.loop import Components, LoopState, reset_environment
from bootdqn.training.metrics import MetricsWriter
from bootdqn.training.stopping import StoppingRule


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
    if loop.legal is not None:
        arrays["legal"] = loop.legal
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
        new_loop, loop_arrays = components.loop, arrays["loop"]
        spec = components.spec.observation
        learner_state = components.learner.get_state()
        components.learner.set_state(
            {name: checked_array(arrays["learner"], name, array) for name, array in learner_state.items()}
        )
        components.replay.set_state(arrays["replay"])
        _check_indices(components.replay.actions, components.spec.num_actions, "actions in the replay")
        masked, num_actions = components.replay.num_masked_actions, components.spec.num_actions
        if masked not in (None, num_actions):
            raise ValueError(f"saved with masks of {masked} actions, this run has {num_actions}")
        components.streams.set_state(values["streams"])
        components.actor.heads[:] = checked_array(loop_arrays, "heads", components.actor.heads)
        _check_indices(components.actor.heads, components.actor.num_heads, "head indices")
        if isinstance(spec, DiscreteSpec):
            _check_indices(loop_arrays["observations"], spec.num_values, "observations")
        components.loop = LoopState(
            started=True,
            step=int(values["step"]),
            learning=bool(values["learning"]),
            observations=checked_array(loop_arrays, "observations", new_loop.observations).copy(),
            lengths=checked_array(loop_arrays, "lengths", new_loop.lengths).copy(),
            returns=checked_array(loop_arrays, "returns", new_loop.returns).copy(),
            bonuses=checked_array(loop_arrays, "bonuses", new_loop.bonuses).copy(),
            legal=_legal_in(loop_arrays, components),
        )
        rule = training.stopping_rule
        training.metrics.set_state(values["records"])
        rule.set_state(values["goal"])
        training.evaluator.set_state(values["evaluator"])
        _ = rule.done, rule.completed, rule.note  # computed now, so that damage is found now
        if len(values["environments"]) != len(components.environments):
            saved = format_count(len(values["environments"]), "environment")
            raise ValueError(f"saved with {saved}, this run has {len(components.environments)}")
        return _restore_environments(components, values["environments"])
    except (UsageError, TrainingError):
        raise
    except Exception as error:  # an emulator may raise anything when its state is damaged
        if is_out_of_memory(error):
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


def _legal_in(arrays: dict[str, Array], components: Components) -> Array | None:
    """Return the legal actions (E, A) of the current observations; None where the environment rules out none."""
    if "legal" not in arrays:
        return None
    expected = np.ones((len(components.environments), components.spec.num_actions), np.bool_)
    return checked_array(arrays, "legal", expected).copy()


def _check_indices(indices: Array, limit: int, name: str) -> None:
    """Raise a ValueError unless all are in 0..limit-1: compiled code does not check its indices."""
    if indices.min() < 0 or indices.max() >= limit:
        raise ValueError(f"{name} {indices.min()}..{indices.max()} are outside 0..{limit - 1} of this run")
