"""Estimate the cost of a sweep on a cluster by simulation: wall time, GPU hours, storage and the effect of failures."""

import math
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

from rich.table import Table

from bootdqn.common.errors import UsageError
from bootdqn.common.text import format_bytes, format_count, format_duration, format_number
from bootdqn.config.train import SavingConfig
from bootdqn.replay.buffer import SEGMENT_SLOTS
from bootdqn.runs.resources import METRICS_BYTES, ResourceEstimate
from bootdqn.sweeps.cluster_file import ClusterConfig
from bootdqn.sweeps.cost import (
    Cost,
    DryRun,
    estimate_costs,
    in_scheduling_order,
    max_evaluation_steps,
    resources_needed,
)
from bootdqn.sweeps.executor import describe_failures, split_remaining
from bootdqn.sweeps.simulate import Job, Simulation, node_failures, simulate
from bootdqn.sweeps.sweep_file import PlannedRun

NUM_SIMULATIONS = 100
"""With random failures of nodes."""
STATE_COPIES = 4
"""Copies of the weights in a checkpoint: online, target, and Adam's two moments."""


def simulate_sweep(
    runs: list[PlannedRun],
    out: Path,
    cluster: ClusterConfig,
    saving: SavingConfig,
    *,
    show: Callable[[str], None] = lambda _: None,
) -> DryRun:
    """Simulate the runs that are not finished in `out`, without and with failures of nodes.

    Args:
        runs: The runs.
        out: The output directory.
        cluster: The nodes.
        saving: When to save checkpoints.
        show: Called with the number of the kind of run that is being measured.

    Raises:
        UsageError: `out` is a file, a run cannot be trained or fits on no node, or nothing is left to simulate.
    """
    todo, ended = split_remaining(runs, out)
    problems = describe_failures(ended, out)
    if not todo:
        raise UsageError(f"no run in {out} is left to simulate")
    jobs = jobs_of(in_scheduling_order(todo), cluster, saving, show)
    return DryRun(_table(jobs, cluster), problems)


def jobs_of(
    runs: list[PlannedRun],
    cluster: ClusterConfig,
    saving: SavingConfig,
    show: Callable[[str], None] = lambda _: None,
) -> list[Job]:
    """Return the needs of each run, by the speed of the cluster file, or else by measurements on this machine.

    Raises:
        UsageError: A run cannot be trained.
    """
    speed, jobs = cluster.frames_per_second, []
    found = estimate_costs(runs, show) if speed is None else resources_needed(runs)
    for planned, cost in zip(runs, found, strict=True):
        if isinstance(cost, UsageError):
            raise cost
        if isinstance(cost, Exception):
            raise UsageError(f"run {planned.name}: {type(cost).__name__}: {cost}") from cost
        jobs.append(_job(planned, cluster, saving, cost))
    return jobs


def _job(planned: PlannedRun, cluster: ClusterConfig, saving: SavingConfig, cost: Cost | ResourceEstimate) -> Job:
    config = planned.config
    env, steps = config.env, config.env.max_training_steps
    assumed = cluster.evaluation_episode_frames
    episode_steps = None if assumed is None else math.ceil(assumed / env.frames_per_step)
    evaluation_steps, most = (max_evaluation_steps(config, one) for one in (episode_steps, None))
    if isinstance(cost, Cost):
        needed = cost.needed
        training = cost.seconds - cost.evaluation_seconds
        evaluation = cost.evaluation_seconds * evaluation_steps / max(most, 1)
    else:
        needed, steps_per_second = cost, (cluster.frames_per_second or math.inf) / env.frames_per_step
        training, evaluation = steps / steps_per_second, evaluation_steps / steps_per_second
    replay_slot = needed.replay / config.replay.replay_capacity
    return Job(
        seconds=training + evaluation,
        cores=config.run.threads,
        memory=needed.memory,
        checkpoint_interval=60 * (saving.checkpoint_every_minutes or env.minutes_between_checkpoints),
        state=STATE_COPIES * needed.weights,
        replay=needed.replay,
        replay_per_second=replay_slot * steps / (training + evaluation),
        replay_segment=replay_slot * SEGMENT_SLOTS,
        disk=needed.disk,
        disk_after=needed.disk if saving.keep_checkpoint else needed.weights + METRICS_BYTES,
    )


def simulate_failures(jobs: list[Job], cluster: ClusterConfig) -> list[Simulation]:
    """Return simulations with random failures of nodes at the rate of the cluster, with seeds 0, 1, 2, ..."""
    return [simulate(jobs, cluster, node_failures(cluster, seed)) for seed in range(NUM_SIMULATIONS)]


def describe(cluster: ClusterConfig) -> str:
    """Return a line about the nodes of a cluster and the speed of a run there."""
    gpus = f"{format_count(cluster.gpus, 'GPU')}, " if cluster.gpus else ""
    cores = format_count(cluster.cores, "core")
    nodes = f"{format_count(cluster.nodes, 'node')} of {cores}, {gpus}{cluster.memory_gib:g} GiB of memory"
    if cluster.frames_per_second is None:
        return f"{nodes}; runs as fast as on this machine"
    speed = f"{cluster.frames_per_second:,.0f} frames/s for a run alone"
    if cluster.gpus and cluster.runs_per_gpu > 1:
        shared = cluster.frames_per_second / cluster.shared_slowdown
        speed += f", {shared:,.0f} for each of {cluster.runs_per_gpu} on a GPU"
    return f"{nodes}; {speed}"


def _table(jobs: list[Job], cluster: ClusterConfig) -> Table:
    """Return a table of the simulated sweep, with a second column if nodes fail."""
    without_failures = simulate(jobs, cluster)
    table = Table(title=describe(cluster), title_justify="left", title_style="")
    table.add_column("")
    table.add_column("without failures", justify="right")
    if cluster.node_failures_per_hour:
        table.add_column(f"with failures: median of {NUM_SIMULATIONS} (5 % to 95 %)", justify="right")
        failing = simulate_failures(jobs, cluster)
    for name, quantity, shown in _quantities(cluster):
        cells = [shown(quantity(without_failures))]
        if cluster.node_failures_per_hour:
            cells.append(median_and_percentiles([quantity(one) for one in failing], shown))
        table.add_row(name, *cells)
    return table


def _quantities(cluster: ClusterConfig) -> list[tuple[str, Callable[[Simulation], float], Callable[[float], str]]]:
    """Return the rows of the table: name, value of a simulation, and its format."""
    hours = cluster.nodes * (cluster.gpus or cluster.cores) / 3600
    unit = "GPU hours" if cluster.gpus else "core hours"
    rows: list[tuple[str, Callable[[Simulation], float], Callable[[float], str]]] = [
        ("runs at a time, at most", lambda one: one.most_at_a_time, "{:,.0f}".format),
        ("wall time", lambda one: one.seconds, format_duration),
        (f"{unit}, all nodes until the end", lambda one: one.seconds * hours, format_number),
        ("GPU hours with a run", lambda one: one.gpu_seconds_in_use / 3600, format_number),
        ("storage, at most", lambda one: one.most_disk, format_bytes),
        ("checkpoints written", lambda one: one.written, format_bytes),
        ("checkpoints written a second", lambda one: one.written / one.seconds, format_bytes),
        ("checkpoints read to resume", lambda one: one.read, format_bytes),
        ("failures of nodes", lambda one: one.failures, "{:,.0f}".format),
        ("training repeated, all runs", lambda one: one.lost_seconds, format_duration),
    ]
    without = {"GPU hours with a run"} if not cluster.gpus else set()
    if not cluster.node_failures_per_hour:
        without |= {"checkpoints read to resume", "failures of nodes", "training repeated, all runs"}
    return [row for row in rows if row[0] not in without]


def median_and_percentiles(values: list[float], shown: Callable[[float], str]) -> str:
    """Return the median, and the 5th and 95th percentile where they differ from it."""
    twentieths = quantiles(values, n=20, method="inclusive")
    middle, low, high = (shown(value) for value in (median(values), twentieths[0], twentieths[-1]))
    return middle if low == middle == high else f"{middle} ({low} to {high})"
