"""One run in one folder: claim the folder, train until the goal is met, write down what happened."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bootdqn.common.errors import UsageError
from bootdqn.common.files import write_json_atomically
from bootdqn.common.run_folder import RunFolder
from bootdqn.training.config import TrainConfig, differences, resolve, to_flat
from bootdqn.training.goals import DeepSeaGoal
from bootdqn.training.loop import Parts, make_parts, train
from bootdqn.training.provenance import provenance
from bootdqn.training.records import Clock, JsonLines, UpdateAverages, episode_record
from bootdqn.training.signals import StopRequest, stop_on_signal
from bootdqn.training.threads import pinned_threads

Status = Literal["finished", "interrupted"]

SHOW_EVERY_SECONDS = 0.25
TIMING_EVERY_SECONDS = 10.0
ROUNDS_BETWEEN_LOOKS_AT_THE_CLOCK = 16


class Progress(NamedTuple):
    """What a run shows while it is under way."""

    step: int
    episodes: int
    completed: float
    steps_per_second: float
    seconds: float
    seconds_left: float | None
    note: str


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    summary: dict[str, Any]
    exit_code: int
    already_finished: bool = False


def run(config: TrainConfig[Any], path: Path, show: Callable[[Progress], None] = lambda _: None) -> Outcome:
    """Train the run that `config` describes in the folder `path`.

    A folder that holds the same run, finished, is left alone; stopped before its end, it starts from the beginning.

    Args:
        config: Everything that the numbers depend on.
        path: The folder, made if it is missing.
        show: Called a few times a second with the state of the run.

    Raises:
        UsageError: The folder holds something else, or the configuration asks for what is not there.
    """
    config = resolve(config)
    folder = RunFolder(path)
    finished = finished_summary(folder, config)
    if finished is not None:
        return Outcome(finished, 0, already_finished=True)
    with pinned_threads(config.run.threads), stop_on_signal() as stop:
        parts = make_parts(config)
        folder.path.mkdir(parents=True, exist_ok=True)
        write_json_atomically(folder.config, to_flat(config))
        return _train_in(folder, config, parts, show, stop)


def default_run_dir(config: TrainConfig[Any], root: Path = Path("runs")) -> Path:
    """Return a readable folder below `root` for this configuration: the one that holds it already, or a new one."""
    config = resolve(config)
    words = re.findall(r"[a-z0-9.]+", config.actor.strategy)
    name = "-".join([config.env.kind, str(config.env.size), *words, f"seed{config.run.seed}"])
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
    if folder.path.exists() and (not folder.path.is_dir() or any(folder.path.iterdir())):
        raise UsageError(f"{folder.path} exists and is not a run folder; choose another --run-dir")
    return None


def _train_in(
    folder: RunFolder, config: TrainConfig[Any], parts: Parts, show: Callable[[Progress], None], stop: StopRequest
) -> Outcome:
    folder.summary.unlink(missing_ok=True)
    write_json_atomically(folder.provenance, provenance(config.run.threads))
    metrics, timing = JsonLines(folder.metrics), JsonLines(folder.timing)
    goal, averages = DeepSeaGoal(config.env), UpdateAverages(config.run.log_every)
    clock, glance = Clock(TIMING_EVERY_SECONDS), Clock(SHOW_EVERY_SECONDS)
    episodes = 0
    step = 0
    try:
        for rounds, round_ in enumerate(train(config, parts), start=1):
            step = round_.step
            for episode in round_.finished:
                episodes += 1
                goal.add_episode(episode)
                metrics.write(episode_record(episodes, step, episode))
            if record := averages.add(round_):
                metrics.write(record)
            if goal.over or stop:
                break
            if rounds % ROUNDS_BETWEEN_LOOKS_AT_THE_CLOCK == 0 and (seen := glance.tick(step)):
                show(_progress(step, episodes, seen["steps_per_second"], clock.seconds, goal))
                if record := clock.tick(step):
                    timing.write(record)
                    timing.flush()
                    metrics.flush()
        timing.write({"seconds": round(clock.seconds, 3), "step": step})
    finally:
        metrics.close()
        timing.close()
    status: Status = "finished" if goal.over else "interrupted"
    summary = {
        "status": status,
        "steps": step,
        "episodes": episodes,
        "updates": averages.updates,
        "seconds": round(clock.seconds, 3),
        **goal.summary(),
    }
    write_json_atomically(folder.summary, summary)
    return Outcome(summary, 0 if status == "finished" else stop.exit_code)


def _progress(step: int, episodes: int, steps_per_second: float, seconds: float, goal: DeepSeaGoal) -> Progress:
    completed = goal.completed
    left = seconds * (1 - completed) / completed if completed else None
    return Progress(step, episodes, completed, steps_per_second, seconds, left, goal.note)
