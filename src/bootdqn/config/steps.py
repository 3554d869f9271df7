"""The common part of the configurations of environments in which a step is one frame."""

from abc import ABC, abstractmethod
from typing import ClassVar


class OneFrameSteps:
    """Base of environments whose steps are frames, one screen each."""

    frames_per_step: ClassVar[int] = 1
    frame_stack: ClassVar[int] = 1
    eval_every_steps: int | None

    @property
    def default_period(self) -> int | None:
        """Default of `update_every` and `target_every`, in steps; None where they have none."""
        return None

    @property
    def eval_every_frames(self) -> int | None:
        """Same as `eval_every_steps`: every step is one frame here."""
        return self.eval_every_steps


class EpisodeBudget(OneFrameSteps):
    """Base of those that are trained for a number of episodes."""

    budget: ClassVar[str] = "max_episodes"
    minutes_between_checkpoints: ClassVar[float] = 1.0
    clip_rewards: ClassVar[bool] = False


class StepBudget(OneFrameSteps, ABC):
    """Base of those that are trained for a number of steps, in episodes of unknown length."""

    budget: ClassVar[str] = "total_steps"
    minutes_between_checkpoints: ClassVar[float] = 2.0
    longest_episode: ClassVar[None] = None
    total_steps: int

    @property
    @abstractmethod
    def label(self) -> str:
        """Short name of the environment, for names of runs."""

    @property
    def total_frames(self) -> int:
        """Same as `total_steps`: every step is one frame here."""
        return self.total_steps

    @property
    def longest_steps(self) -> int:
        """Maximum number of steps of training."""
        return self.total_steps

    @property
    def costs_like(self) -> str:
        """Key that environments with the same cost per step share."""
        return self.label
