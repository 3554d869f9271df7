"""One run in one folder: claim the folder, train until the goal is met, write down what happened."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bootdqn.agent.build import precision_advice
from bootdqn.common.errors import UsageError
from bootdqn.common.files import held_exclusively, write_json_atomically
from bootdqn.common.run_folder import RunFolder
from bootdqn.envs.make import effective_settings
from bootdqn.training.config import TrainConfig, differences, resolve, to_flat
from bootdqn.training.estimate import estimate, refuse_what_cannot_fit
from bootdqn.training.evaluation import Evaluator
from bootdqn.training.goals import Goal, make_goal
from bootdqn.training.loop import Parts, make_parts, train
from bootdqn.training.provenance import provenance
from bootdqn.training.records import Clock, JsonLines, Records
from bootdqn.training.signals import StopRequest, stop_on_signal
from bootdqn.training.sinks import Sink, TensorBoardSink, WandbSink, refuse_missing_sinks
from bootdqn.training.threads import pinned_threads
from bootdqn.training.weights import save_weights

SHOW_EVERY_SECONDS = 0.25
TIMING_EVERY_SECONDS = 10.0
ROUNDS_BETWEEN_LOOKS_AT_THE_CLOCK = 16


class Progress(NamedTuple):
    """What a run shows while it is under way."""

    episodes: int
    completed: float
    """From 0 to 1, of the longest the run can be."""
    position: str
    speed: str
    seconds_left: float | None
    """At most, if it goes on like this."""
    note: str


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    summary: dict[str, Any]
    exit_code: int
    already_finished: bool = False


def run(
    config: TrainConfig[Any],
    path: Path,
    show: Callable[[Progress], None] = lambda _: None,
    announce: Callable[[str], None] = lambda _: None,
    *,
    tensorboard: bool = False,
    wandb: bool = False,
) -> Outcome:
    """Train the run that `config` describes in the folder `path`.

    A folder that holds the same run, finished, is left alone; stopped before its end, it starts from the beginning.

    Args:
        config: Everything that the numbers depend on.
        path: The folder, made if it is missing.
        show: Called a few times a second with the state of the run.
        announce: Called before the first step with what the run is and needs.
        tensorboard: Also write TensorBoard's event files.
        wandb: Also log to Weights & Biases.

    Raises:
        UsageError: The folder holds something else, or the configuration asks for what is not there.
    """
    refuse_missing_sinks(*["tensorboard"] * tensorboard, *["wandb"] * wandb)
    config = resolve(config)
    folder = RunFolder(path)
    finished = finished_summary(folder, config)
    if finished is not None:
        return Outcome(finished, 0, already_finished=True)
    with pinned_threads(config.run.threads), stop_on_signal() as stop:
        parts = make_parts(config)
        needed = estimate(parts)
        refuse_what_cannot_fit(needed, path)
        settings = effective_settings(config.env)
        announce(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()))
        announce(f"needs about {needed}")
        announce(precision_advice(config.learner, config.run.device))
        folder.path.mkdir(parents=True, exist_ok=True)
        with held_exclusively(folder.path):
            finished_summary(folder, config)  # once more: another process may have come first
            write_json_atomically(folder.config, to_flat(config))
            write_json_atomically(folder.provenance, provenance(config.run.threads) | {"environment": settings})
            sinks: list[Sink] = [TensorBoardSink(path)] if tensorboard else []
            sinks += [WandbSink(path, to_flat(config))] if wandb else []
            return _train_in(folder, config, parts, sinks, show, stop)


def default_run_dir(config: TrainConfig[Any], root: Path = Path("runs")) -> Path:
    """Return a readable folder below `root` for this configuration: the one that holds it already, or a new one."""
    config = resolve(config)
    words = re.findall(r"[a-z0-9.]+", f"{config.env.label} {config.actor.strategy}".lower())
    name = "-".join([config.env.kind, *words, f"seed{config.run.seed}"])
    for candidate in itertools.chain([root / name], (root / f"{name}-{count}" for count in itertools.count(2))):
        folder = RunFolder(candidate)
        if not candidate.exists() or (folder.config.exists() and folder.read_config() == to_flat(config)):
            return candidate
    raise AssertionError("there is always a next number")


def finished_summary(folder: RunFolder, config: TrainConfig[Any]) -> dict[str, Any] | None:
    """Return the summary if `folder` holds this very run, finished; None if it is free for it.

    Raises:
        UsageError: The folder holds something else.
    """
    if folder.config.exists():
        different = differences(folder.read_config(), to_flat(config))
        if different:
            listed = ", ".join(f"{key}: {old!r} there, {new!r} here" for key, (old, new) in different.items())
            raise UsageError(f"{folder.path} holds another configuration ({listed}); choose another --run-dir")
        summary = folder.read_summary()
        return summary if summary is not None and summary.get("status") == "finished" else None
    if folder.path.exists() and (not folder.path.is_dir() or any(not _is_left_over(p) for p in folder.path.iterdir())):
        raise UsageError(f"{folder.path} exists and is not a run folder; choose another --run-dir")
    return None


def _is_left_over(path: Path) -> bool:
    """Return whether `path` is a file that a crash left half written."""
    return path.name.startswith(".") and path.suffix == ".part"


def _train_in(
    folder: RunFolder,
    config: TrainConfig[Any],
    parts: Parts,
    sinks: list[Sink],
    show: Callable[[Progress], None],
    stop: StopRequest,
) -> Outcome:
    for left_over in (folder.summary, folder.weights):
        left_over.unlink(missing_ok=True)
    records, timing = Records(folder.metrics, config.run.log_every, sinks), JsonLines(folder.timing)
    goal, evaluator = make_goal(config.env), Evaluator(config, parts.learner.q_values)
    clock, glance = Clock(TIMING_EVERY_SECONDS), Clock(SHOW_EVERY_SECONDS)
    step = 0
    try:
        for rounds, round_ in enumerate(train(config, parts), start=1):
            step = round_.step
            records.add_round(round_)
            goal.add_round(round_)
            if evaluation := evaluator.evaluate_if_due(step, lambda: bool(stop)):
                records.add(evaluation)
                records.flush()
                goal.add_evaluation(evaluation["mean_return"])
                save_weights(folder.weights, parts.learner.online, step)
            if goal.over or stop:
                break
            if rounds % ROUNDS_BETWEEN_LOOKS_AT_THE_CLOCK == 0 and (seen := glance.tick(step)):
                frames_per_second = seen["steps_per_second"] * config.env.frames_per_step
                show(_progress(records.episodes, frames_per_second, config, clock.seconds, goal))
                if record := clock.tick(step):
                    timing.write(record)
                    timing.flush()
                    records.flush()
        timing.write({"seconds": round(clock.seconds, 3), "step": step})
        save_weights(folder.weights, parts.learner.online, step)
    finally:
        records.close()
        timing.close()
    done = goal.over and not evaluator.is_due(step)  # an evaluation that was abandoned is still due
    summary = {
        "status": "finished" if done else "interrupted",
        "steps": step,
        "episodes": records.episodes,
        "updates": records.updates,
        "seconds": round(clock.seconds, 3),
        **goal.summary(),
    }
    write_json_atomically(folder.summary, summary)
    return Outcome(summary, 0 if done else stop.exit_code)


def _progress(
    episodes: int, frames_per_second: float, config: TrainConfig[Any], seconds: float, goal: Goal
) -> Progress:
    unit = "frames" if config.env.frames_per_step > 1 else "steps"
    left = seconds * (1 - goal.completed) / goal.completed if goal.completed else None
    return Progress(episodes, goal.completed, goal.position, f"{frames_per_second:,.0f} {unit}/s", left, goal.note)
