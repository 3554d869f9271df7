"""The common part of the configurations of environments: what a run needs to know of each of them."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import ClassVar


class BaseEnvConfig(ABC):
    """Base of the configurations of environments; a field of one overrides the property of its name."""

    kind: ClassVar[str]
    """Name of the environment on the command line."""
    required_field: ClassVar[str | None]
    """The field that chooses the task; None where its default does."""
    budget: ClassVar[str]
    """The field that ends training."""
    minutes_between_checkpoints: ClassVar[float]

    @property
    @abstractmethod
    def label(self) -> str:
        """Short name of the environment, for names of runs."""

    @property
    def cost_key(self) -> Hashable:
        """Key that environments with the same cost per step share."""
        return self.label

    @property
    @abstractmethod
    def max_episode_steps(self) -> int | None:
        """Maximum number of steps of an episode; None if unknown."""

    @property
    @abstractmethod
    def max_training_steps(self) -> int:
        """Maximum number of steps of training; the last may exceed a budget of frames."""

    @property
    def default_update_every(self) -> int | None:
        """Default of `update_every` and `target_every`, in steps; None where they have none."""
        return None

    @property
    def frames_per_step(self) -> int:
        """Frames in a step."""
        return 1

    @property
    def frame_stack(self) -> int:
        """Frames in an observation."""
        return 1

    @property
    @abstractmethod
    def eval_every_frames(self) -> int | None:
        """Frames from one evaluation to the next; None: no evaluation."""

    @property
    def clip_rewards(self) -> bool:
        """Whether only the sign of a reward is learned."""
        return False


class EpisodeBudget(BaseEnvConfig):
    """Base of those that are trained for a number of episodes; a step is a frame."""

    budget: ClassVar[str] = "max_episodes"
    minutes_between_checkpoints: ClassVar[float] = 1.0
    eval_every_steps: int | None

    @property
    def eval_every_frames(self) -> int | None:
        """Same as `eval_every_steps`."""
        return self.eval_every_steps


class StepBudget(BaseEnvConfig):
    """Base of those that are trained for a number of steps, in episodes of unknown length; a step is a frame."""

    budget: ClassVar[str] = "total_steps"
    minutes_between_checkpoints: ClassVar[float] = 2.0
    total_steps: int
    eval_every_steps: int | None

    @property
    def eval_every_frames(self) -> int | None:
        """Same as `eval_every_steps`."""
        return self.eval_every_steps

    @property
    def total_frames(self) -> int:
        """Same as `total_steps`."""
        return self.total_steps

    @property
    def max_episode_steps(self) -> None:
        """None: unknown."""
        return None

    @property
    def max_training_steps(self) -> int:
        """Maximum number of steps of training."""
        return self.total_steps
