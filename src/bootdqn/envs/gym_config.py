"""The flags of an environment from Gymnasium's registry."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class GymConfig:
    """Any Gymnasium environment with discrete actions, and when to stop."""

    kind: ClassVar[str] = "gym"
    minutes_between_checkpoints: ClassVar[float] = 2.0
    frames_per_step: ClassVar[int] = 1
    env_id: str = "CartPole-v1"
    """The environment's registered name."""
    total_steps: int = 100_000
    """Stop after this many environment steps."""
    clip_rewards: bool = False
    """Learn from the sign of the rewards only."""

    def __post_init__(self) -> None:
        if self.total_steps < 1:
            raise ValueError(f"--total-steps must be at least 1, got {self.total_steps}")

    @property
    def label(self) -> str:
        """What tells this environment from its like, in a word."""
        return self.env_id

    @property
    def total_frames(self) -> int:
        """The steps, since every step is a frame here."""
        return self.total_steps
