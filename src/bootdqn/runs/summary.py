"""Describe a run: how much of its budget it has used, its result and its length, in the same words everywhere."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.text import format_count, format_duration, format_number
from bootdqn.config.defaults import DEFAULTS
from bootdqn.envs.deep_sea import describe_solved
from bootdqn.runs.directory import RunDirectory

RECENT_EPISODES = 100
"""Training episodes that the recent return is averaged over."""
BUDGET_UNITS = {"max_episodes": "episode", "total_frames": "frame", "total_steps": "step"}
"""The units of the settings that are the budget of a run."""


def describe_result(summary: Mapping[str, Any]) -> str:
    """Return the results of a run in a few words."""
    if "experiment" in summary:
        return describe_bsuite_counts(summary)
    if "solved_at_strict" in summary:
        otherwise = f"not solved in {format_count(summary['episodes'], 'episode')}"
        return describe_solved(summary["solved_at"], summary["solved_at_strict"], otherwise)
    recent, best = summary.get("recent_return"), summary.get("max_evaluation")
    evaluated = "not evaluated" if best is None else f"best evaluation {format_number(best)}"
    if recent is None:
        return evaluated
    episodes = format_count(min(summary["episodes"], RECENT_EPISODES), "episode")
    return f"mean return {format_number(recent)} of the last {episodes}, {evaluated}"


def describe_bsuite_counts(counts: Mapping[str, Any]) -> str:
    """Return the counts of a run on bsuite that its score depends on, in words."""
    episodes = counts["episodes"]
    if counts["experiment"] == "cartpole_swingup":
        mean, best = (
            format_number(value) for value in (counts["total_return"] / max(episodes, 1), counts["best_episode"])
        )
        return f"mean return {mean} of {format_count(episodes, 'episode')}, best {best}"
    bad = f"{counts['bad_episodes'] / max(episodes, 1):.3f} of {format_count(episodes, 'episode')} bad"
    if counts["solved_at"] is None:
        return bad
    return f"solved by bsuite's rule at episode {counts['solved_at']:,}, {bad}"


def summary_line(summary: Mapping[str, Any]) -> str:
    """Return the status, results, length and time of a run in a line."""
    result = describe_result(summary)
    return f"{summary['status']}, {result} ({describe_length(summary)}, {format_duration(summary['seconds'])})"


def describe_length(summary: Mapping[str, Any]) -> str:
    """Return the length of a run: in frames where a step is several of them, as in the flags, else in steps."""
    steps, frames = summary["steps"], summary.get("frames")
    return format_count(steps, "step") if frames in (None, steps) else format_count(frames, "frame")


class BudgetUse(NamedTuple):
    """How much of its budget a run has used: episodes on DeepSea, frames on Atari, steps elsewhere."""

    used: int
    budget: int
    unit: str

    @property
    def completed(self) -> float:
        """The fraction of the budget."""
        return min(1.0, self.used / self.budget)

    def __str__(self) -> str:
        return f"{format_count(self.used, self.unit)} of at most {self.budget:,}"


def budget_use(
    directory: RunDirectory, config: Mapping[str, Any], summary: Mapping[str, Any], checkpoint: int = 0
) -> BudgetUse:
    """Return how much of its budget a run has used, by its summary, or else by its metrics and last checkpoint.

    Args:
        directory: The run directory.
        config: Its configuration, flat.
        summary: Its summary, empty where it has none.
        checkpoint: The step of its last checkpoint, where that is known.

    Raises:
        DamagedFileError: Something is missing in its files, or not a number.
    """
    try:
        setting = DEFAULTS[config["environment"]].env.budget
        unit = BUDGET_UNITS[setting]
        budget, used = int(config[setting]), summary.get("episodes" if unit == "episode" else "frames")
        if used is None:
            last = directory.last_metrics("episode" if unit == "episode" else None) or {"episode": 0, "step": 0}
            frames = int(config["frame_skip"]) if unit == "frame" else 1
            used = last["episode"] if unit == "episode" else max(int(last["step"]), checkpoint) * frames
        return BudgetUse(min(int(used), budget), budget, unit)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{directory.path}: {type(error).__name__}: {error}") from error


def seconds_left(seconds: float, completed: float) -> float | None:
    """Return how long a run takes at most at its speed so far: `completed` of it took so many seconds."""
    return seconds * (1 - completed) / completed if completed else None
