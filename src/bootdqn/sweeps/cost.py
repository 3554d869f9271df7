"""Estimate the cost of runs: time by probing each kind of run, memory and disk; list it as a dry run."""

import heapq
import itertools
import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from bootdqn.common.errors import UsageError
from bootdqn.common.text import format_bytes, format_count, format_duration
from bootdqn.config.envs import EnvConfig
from bootdqn.config.train import TrainConfig
from bootdqn.envs.factory import episode_limit, evaluation_config, new_environment
from bootdqn.runs.resources import ResourceEstimate, available_cores, available_memory, check_environments_fit
from bootdqn.runs.threads import pinned_threads
from bootdqn.sweeps.executor import describe_failures, split_remaining
from bootdqn.sweeps.sweep_file import PlannedRun
from bootdqn.training.evaluation import evaluate
from bootdqn.training.loop import Components, make_components, train

PROBE_SECONDS = 4.0
"""Time to probe all kinds of run of a sweep together."""
MIN_PROBE_SECONDS, MAX_PROBE_SECONDS = 0.1, 2.0
"""Limits of the time to probe each of them."""
UNLIMITED = 2**62
"""More episodes or steps than a probe can take."""


class Cost(NamedTuple):
    """Upper bounds for one run."""

    steps: int
    seconds: float
    needed: ResourceEstimate
    evaluation_seconds: float = 0.0
    """The part of `seconds` that evaluations take."""


def max_evaluation_steps(config: TrainConfig[EnvConfig], episode_steps: int | None = None) -> int:
    """Return the most steps that all evaluations of a run can take together.

    Args:
        config: The run.
        episode_steps: Steps of an episode, where they are known or assumed to be fewer than the configuration allows.
    """
    env, rules = config.env, config.evaluation
    if env.eval_every_frames is None:
        return 0
    each, times = rules.eval_max_steps, env.max_training_steps * env.frames_per_step // env.eval_every_frames
    lengths = [length for length in (env.max_episode_steps, episode_steps) if length is not None]
    if lengths:
        each = min(each, rules.eval_episodes * min(lengths))
    return times * each


def estimate_costs(runs: list[PlannedRun], show: Callable[[str], None] = lambda _: None) -> list[Cost | UsageError]:
    """Return the cost of each run, or why it cannot be trained; each kind of run is probed once.

    Args:
        runs: The runs.
        show: Called with the number of the kind that is being probed.
    """
    kinds = [_cost_group(planned.config) for planned in runs]
    number = len(set(kinds))
    probe_seconds = min(max(PROBE_SECONDS / max(number, 1), MIN_PROBE_SECONDS), MAX_PROBE_SECONDS)
    probes: dict[Any, _Probe | UsageError] = {}
    found: list[Cost | UsageError] = []
    for planned, kind in zip(runs, kinds, strict=True):
        if kind not in probes:
            show(f"{len(probes) + 1} of {format_count(number, 'kind')} of run")
            try:
                probes[kind] = _probe(planned.config, probe_seconds)
            except UsageError as error:
                probes[kind] = error
        probe, steps = probes[kind], planned.config.env.max_training_steps
        if isinstance(probe, UsageError):
            found.append(probe)
        else:
            evaluation_seconds = max_evaluation_steps(planned.config, probe.episode_limit) / probe.evaluation_speed
            seconds = steps / probe.training_speed + evaluation_seconds
            found.append(Cost(steps, seconds, probe.needed, evaluation_seconds))
    return found


def memory_needed(runs: list[PlannedRun]) -> list[int]:
    """Return the bytes of memory that each run needs, without probing; 0 for one that cannot be created."""
    needed = resources_needed(runs)
    return [0 if isinstance(one, Exception) else one.memory for one in needed]


def resources_needed(runs: list[PlannedRun]) -> list[ResourceEstimate | Exception]:
    """Return the memory and disk that each run needs, without probing, or why it cannot be created.

    A run on a GPU counts as on the CPU: it may be trained on another machine, and this one may have no GPU.
    """
    configs = [replace(planned.config, run=replace(planned.config.run, device="cpu")) for planned in runs]
    kinds = [_cost_group(config) for config in configs]
    needed = {kind: _resources(config) for kind, config in dict(zip(kinds, configs, strict=True)).items()}
    return [needed[kind] for kind in kinds]


def _resources(config: TrainConfig[Any]) -> ResourceEstimate | Exception:
    try:
        check_environments_fit(config.run.num_envs)
        with closing(make_components(config)) as components:
            return components.estimate_resources()
    except Exception as error:  # the run itself will report it
        return error


def _cost_group(config: TrainConfig[Any]) -> Any:
    """Return the settings that the cost of a step depends on; EVOI stands for every strategy of the package."""
    env = config.env
    actor = config.actor if config.actor.strategy_from else replace(config.actor, strategy="evoi", warmup_steps=0)
    evaluated, run = env.eval_every_frames is not None, replace(config.run, seed=0)
    return (env.kind, env.cost_key, evaluated, actor, config.network, config.learner, config.replay, run)


class _Probe(NamedTuple):
    """Measurements of a kind of run; speeds are in steps a second."""

    evaluation_speed: float
    training_speed: float
    """After the first update."""
    needed: ResourceEstimate
    episode_limit: int | None = None
    """Steps of the longest episode, where the environment limits it."""


def _probe(config: TrainConfig[Any], probe_seconds: float) -> _Probe:
    config = replace(config, learner=replace(config.learner, learning_starts=1))  # batches are sampled with replacement
    check_environments_fit(config.run.num_envs)
    with pinned_threads(config.run.threads), closing(make_components(config)) as components:
        needed = components.estimate_resources()
        evaluation_speed = _evaluation_speed(config, components, probe_seconds / 4)
        steps = train(config, components)
        next(result for result in steps if result.updates)
        start, first_step = time.perf_counter(), components.loop.step
        while time.perf_counter() - start < probe_seconds:
            next(steps)
        training_speed = (components.loop.step - first_step) / (time.perf_counter() - start)
        return _Probe(evaluation_speed, training_speed, needed, episode_limit(components.environments[0]))


def _evaluation_speed(config: TrainConfig[Any], components: Components, probe_seconds: float) -> float:
    if config.env.eval_every_frames is None:
        return math.inf
    components.learner.q_values(components.loop.observations)  # compile before the clock starts
    steps = 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return time.perf_counter() - start > probe_seconds

    with new_environment(evaluation_config(config.env)) as environment:
        start = time.perf_counter()
        evaluate(
            components.learner.q_values,
            environment,
            episodes=UNLIMITED,
            max_steps=UNLIMITED,
            rule=config.evaluation.vote,
            rng=np.random.default_rng(0),
            stop=stop,
        )
        return steps / (time.perf_counter() - start)


def in_scheduling_order(runs: list[PlannedRun]) -> list[PlannedRun]:
    """Return the runs sorted by seed, the longest of each seed first, so that no worker is idle before the end."""
    return sorted(runs, key=lambda planned: (planned.config.run.seed, -planned.config.env.max_training_steps))


def runs_at_a_time(
    runs: list[PlannedRun],
    workers: int | None,
    log: Callable[[str], None] = lambda _: None,
    memory: list[int] | None = None,
) -> int:
    """Return `workers`, or if that is None as many as fit on the cores and into the memory of this machine.

    A run that does not fit by itself counts as no memory: it will fail, and the others are trained.

    Args:
        runs: The runs.
        workers: The number that the user chose.
        log: Called with a line where the memory holds fewer runs than the cores.
        memory: Bytes that each run needs, where they are known already.

    Raises:
        UsageError: The largest `workers` of the runs need more memory together than there is.
    """
    threads = max(planned.config.run.threads for planned in runs)
    at_a_time = min(workers or max(1, available_cores() // threads), len(runs))
    available = available_memory()
    if at_a_time == 1 or available is None:
        return at_a_time
    sizes = sorted((size for size in memory or memory_needed(runs) if size <= available), reverse=True)
    needed = sum(sizes[:at_a_time])
    if needed <= available:
        return at_a_time
    fitting = sum(total <= available for total in itertools.accumulate(sizes))
    lack = (
        f"{at_a_time} runs at a time need {format_bytes(needed)} of memory, and {format_bytes(available)} are available"
    )
    if workers is not None:
        raise UsageError(f"{lack}; choose --workers {fitting}")
    log(f"{lack}; running {fitting} at a time")
    return fitting


class DryRun(NamedTuple):
    """A table of the costs of a sweep, and a line for each reason why some runs cannot be trained."""

    table: Table
    problems: list[str]


def dry_run(
    runs: list[PlannedRun],
    out: Path,
    workers: int | None,
    *,
    keeps_checkpoints: bool = False,
    show: Callable[[str], None] = lambda _: None,
) -> DryRun:
    """Estimate the cost of the runs that are not finished, with one row for all seeds of the same settings.

    Args:
        runs: The runs.
        out: The output directory.
        workers: Runs at a time (None: as many as this machine holds).
        keeps_checkpoints: Whether finished runs keep their checkpoints.
        show: Called with the number of the kind of run that is being probed.

    Raises:
        UsageError: `out` is a file, or none of the runs can be trained.
    """
    todo, ended = split_remaining(runs, out)
    todo = in_scheduling_order(todo)
    found = dict(zip((run.name for run in todo), estimate_costs(todo, show), strict=True))
    refused = [str(cost) for cost in found.values() if isinstance(cost, UsageError)]
    if refused and len(refused) == len(runs):
        raise UsageError(refused[0])
    problems = [f"{format_count(refused.count(why), 'run')} cannot be trained: {why}" for why in dict.fromkeys(refused)]
    problems += describe_failures(ended, out)
    measured = {name: cost for name, cost in found.items() if isinstance(cost, Cost)}
    table = _table(runs, measured, {end.run.name for end in ended if end.finished})
    if measured:
        todo = [run for run in todo if run.name in measured]
        table.caption = _total(todo, measured, workers, keeps_checkpoints=keeps_checkpoints)
    return DryRun(table, problems)


def _table(runs: list[PlannedRun], measured: dict[PurePosixPath, Cost], done: set[PurePosixPath]) -> Table:
    """Return a table with a row for each cell, that is for the runs that differ only in their seed."""
    cells: dict[PurePosixPath, list[PlannedRun]] = {}
    for run in runs:
        cells.setdefault(run.name.parent, []).append(run)
    in_frames = all(run.config.env.kind == "atari" for run in runs)
    table = Table()
    table.add_column("settings", overflow="fold")
    for title in ("runs", "frames each" if in_frames else "steps each", "time each", "memory", "disk"):
        table.add_column(title, justify="right")
    for cell, group in cells.items():
        num_done = sum(run.name in done for run in group)
        seeds = f"{len(group)}, {num_done} done" if 0 < num_done < len(group) else str(len(group))
        found = [(run, measured[run.name]) for run in group if run.name in measured]
        settings = " ".join(cell.parts) or "the base"
        if not found:
            table.add_row(settings, seeds, "", "done" if num_done == len(group) else "not possible", "", "")
            continue
        run, cost = max(found, key=lambda one: one[1].seconds)
        length = cost.steps * (run.config.env.frames_per_step if in_frames else 1)
        memory, disk = format_bytes(cost.needed.memory), format_bytes(cost.needed.disk)
        table.add_row(settings, seeds, f"{length:,}", format_duration(cost.seconds), memory, disk)
    return table


def _total(
    todo: list[PlannedRun], measured: dict[PurePosixPath, Cost], workers: int | None, *, keeps_checkpoints: bool
) -> str:
    """Return a line with the cost of all runs together, or with the reason why `workers` at a time do not fit."""
    found = [measured[run.name] for run in todo]
    memory, lines = [cost.needed.memory for cost in found], list[str]()
    try:
        at_a_time = runs_at_a_time(todo, workers, lines.append, memory)
    except UsageError as error:
        return str(error)
    seconds = _finishing_time([cost.seconds for cost in found], at_a_time)
    peak_memory = sum(heapq.nlargest(at_a_time, memory))
    disk = sum(heapq.nlargest(len(found) if keeps_checkpoints else at_a_time, (cost.needed.disk for cost in found)))
    lines.append(
        f"at most {format_duration(seconds)} with {at_a_time} at a time, {format_bytes(peak_memory)} of memory and "
        f"{format_bytes(disk)} of disk for "
        f"{'all runs, which keep their checkpoints' if keeps_checkpoints else 'the runs in progress'}"
    )
    return "; ".join(lines)


def _finishing_time(seconds: list[float], at_a_time: int) -> float:
    """Return when the last run ends if each starts, in this order, as soon as a worker is free."""
    free_at = [0.0] * at_a_time
    for one in seconds:
        heapq.heapreplace(free_at, free_at[0] + one)
    return max(free_at)
