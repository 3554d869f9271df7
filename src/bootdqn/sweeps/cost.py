"""What runs will cost, found by trying a little of each kind: time, memory, disk."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import UsageError
from bootdqn.common.text import format_count
from bootdqn.config.envs import EnvConfig
from bootdqn.config.train import TrainConfig
from bootdqn.envs.factory import for_evaluation, make_environment
from bootdqn.runs.threads import pinned_threads
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.training.evaluation import evaluate
from bootdqn.training.loop import Components, make_components, train
from bootdqn.training.memory_estimate import Estimate, check_environments_fit, estimate

PROBE_SECONDS = 4.0
"""How long all kinds of run of a sweep are tried together."""
SHORTEST_PROBE, LONGEST_PROBE = 0.1, 2.0
"""How long each of them is tried, at least and at most."""
ENDLESS = 2**62


class Cost(NamedTuple):
    """What one run needs at most."""

    steps: int
    seconds: float
    needed: Estimate


def longest_evaluations(config: TrainConfig[EnvConfig]) -> int:
    """Return the most steps that all evaluations of a run can take together."""
    env, rules = config.env, config.evaluation
    if env.eval_every_frames is None:
        return 0
    each, times = rules.eval_max_steps, env.longest_steps * env.frames_per_step // env.eval_every_frames
    if env.longest_episode is not None:
        each = min(each, rules.eval_episodes * env.longest_episode)
    return times * each


def longest_first(runs: list[PlannedRun]) -> list[PlannedRun]:
    """Return the runs ordered so that all workers stay busy to the end: by seed, and for each the longest first."""
    return sorted(runs, key=lambda planned: (planned.config.run.seed, -planned.config.env.longest_steps))


def costs(runs: list[PlannedRun], show: Callable[[str], None] = lambda _words: None) -> list[Cost | UsageError]:
    """Return the cost of each run, or why it cannot be made; runs that differ in what hardly matters are tried once.

    Args:
        runs: All of them.
        show: Takes what is being tried, in words.
    """
    kinds = [_kind(planned.config) for planned in runs]
    probe_seconds = min(max(PROBE_SECONDS / max(len(set(kinds)), 1), SHORTEST_PROBE), LONGEST_PROBE)
    known: dict[Any, _Measured | UsageError] = {}
    found: list[Cost | UsageError] = []
    for planned, kind in zip(runs, kinds, strict=True):
        if kind not in known:
            show(f"{len(known) + 1} of {format_count(len(set(kinds)), 'kind')} of run")
            known[kind] = _measured_or_refused(planned.config, probe_seconds)
        measured, steps = known[kind], planned.config.env.longest_steps
        if isinstance(measured, UsageError):
            found.append(measured)
        else:
            seconds = steps / measured.training + longest_evaluations(planned.config) / measured.evaluating
            found.append(Cost(steps, seconds, measured.needed))
    return found


def memory_needed(runs: list[PlannedRun]) -> list[int]:
    """Return the bytes of memory that each run needs, without trying it; 0 for one that cannot even be made.

    A run on a GPU counts as on the processor: it may be made on another machine, and this one may have no GPU.
    """
    configs = [replace(planned.config, run=replace(planned.config.run, device="cpu")) for planned in runs]
    known: dict[Any, int] = {}
    for config in configs:
        kind = _kind(config)
        if kind not in known:
            try:
                check_environments_fit(config.run.num_envs)
                known[kind] = estimate(make_components(config)).memory
            except Exception:  # the run itself will say why
                known[kind] = 0
    return [known[_kind(config)] for config in configs]


def _kind(config: TrainConfig[Any]) -> Any:
    """Return what the cost of a step depends on; of our own strategies EVOI stands for all."""
    env = config.env
    actor = config.actor if config.actor.strategy_from else replace(config.actor, strategy="evoi", warmup_steps=0)
    evaluated, run = env.eval_every_frames is not None, replace(config.run, seed=0)
    return (env.kind, env.costs_like, evaluated, actor, config.network, config.learner, config.replay, run)


class _Measured(NamedTuple):
    """What a little of a run showed."""

    evaluating: float
    """Steps a second of an evaluation."""
    training: float
    """Steps a second once it has begun to learn."""
    needed: Estimate


def _measured_or_refused(config: TrainConfig[Any], probe_seconds: float) -> _Measured | UsageError:
    try:
        return _measured(config, probe_seconds)
    except UsageError as error:
        return error


def _measured(config: TrainConfig[Any], probe_seconds: float) -> _Measured:
    config = replace(config, learner=replace(config.learner, learning_starts=1))  # batches are sampled with replacement
    check_environments_fit(config.run.num_envs)
    with pinned_threads(config.run.threads):
        components = make_components(config)
        needed = estimate(components)
        evaluating = _steps_a_second_of_evaluations(config, components, probe_seconds / 4)
        steps = train(config, components)
        next(result for result in steps if result.updates)  # what comes before is not what takes the time
        start, begun = time.perf_counter(), components.loop.step
        while time.perf_counter() - start < probe_seconds:
            next(steps)
        return _Measured(evaluating, (components.loop.step - begun) / (time.perf_counter() - start), needed)


def _steps_a_second_of_evaluations(config: TrainConfig[Any], components: Components, probe_seconds: float) -> float:
    if config.env.eval_every_frames is None:
        return math.inf
    environment = make_environment(for_evaluation(config.env))
    components.learner.q_values(components.loop.observations)  # whatever must be compiled is compiled now
    steps, start = 0, time.perf_counter()

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return time.perf_counter() - start > probe_seconds

    evaluate(
        components.learner.q_values,
        environment,
        episodes=ENDLESS,
        max_steps=ENDLESS,
        rule=config.evaluation.vote,
        rng=np.random.default_rng(0),
        stop=stop,
    )
    return steps / (time.perf_counter() - start)
