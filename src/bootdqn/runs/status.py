"""How much of its budget a run has used: episodes on DeepSea, frames on Atari, steps elsewhere."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.text import format_count
from bootdqn.runs.directory import RunDirectory

_BUDGETS = {"deep-sea": ("max_episodes", "episode"), "atari": ("total_frames", "frame"), "gym": ("total_steps", "step")}
"""By the environment's kind, the setting that is the budget, and what it counts."""


class BudgetUse(NamedTuple):
    """How much of its budget a run has used."""

    used: int
    budget: int
    unit: str

    def __str__(self) -> str:
        return f"{format_count(self.used, self.unit)} of at most {self.budget:,}"


def budget_use(folder: RunDirectory, config: Mapping[str, Any]) -> BudgetUse:
    """Return how far the run in `folder` has come, by its summary, or by its last record where it has none.

    Raises:
        DamagedFileError: Its files do not tell.
    """
    summary = folder.read_summary() or {}
    try:
        setting, unit = _BUDGETS[config["environment"]]
        budget, used = int(config[setting]), summary.get("episodes" if unit == "episode" else "frames")
        if used is None:
            last = folder.last_metrics("episode" if unit == "episode" else None) or {"episode": 0, "step": 0}
            frames = int(config["frame_skip"]) if unit == "frame" else 1
            used = last["episode"] if unit == "episode" else int(last["step"]) * frames
        return BudgetUse(min(int(used), budget), budget, unit)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{folder.path}: {type(error).__name__}: {error}") from error
