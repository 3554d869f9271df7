"""The flags of DeepSea."""

import math
from dataclasses import dataclass
from typing import ClassVar

LARGEST_SIZE = 1000


@dataclass(frozen=True)
class DeepSeaConfig:
    """The DeepSea environment, and when to stop."""

    kind: ClassVar[str] = "deep-sea"
    budget: ClassVar[str] = "max_episodes"
    must_be_said: ClassVar[str | None] = None
    minutes_between_checkpoints: ClassVar[float] = 1.0
    frames_per_step: ClassVar[int] = 1
    frame_stack: ClassVar[int] = 1
    clip_rewards: ClassVar[bool] = False
    size: int = 10
    """N, the side of the grid and the length of an episode."""
    max_episodes: int = 100_000
    """Stop after this many episodes, solved or not."""
    stop_when_solved: bool = True
    """Stop once both readings of "solved" hold."""
    eval_every_steps: int | None = None
    """Environment steps from one evaluation to the next (None: no evaluation)."""
    deterministic: bool = True
    """Turn off for the windy version: a move right may fail, and the last rewards are noisy."""
    randomize_actions: bool = True
    """Draw for each cell which action means right."""
    mapping_seed: int | None = None
    """Seed of that draw (None: the run's seed; there is none without a draw)."""
    unscaled_move_cost: float = 0.01
    """What N moves to the right cost together."""

    @property
    def label(self) -> str:
        """A short name of this environment, for the names of runs."""
        return str(self.size)

    @property
    def costs_like(self) -> str:
        """What the cost of a step depends on."""
        return self.label

    @property
    def longest_episode(self) -> int:
        """The most steps of an episode."""
        return self.size

    @property
    def longest_steps(self) -> int:
        """The most steps that training takes."""
        return self.max_episodes * self.longest_episode

    @property
    def eval_every_frames(self) -> int | None:
        """The steps from one evaluation to the next, since every step is a frame here."""
        return self.eval_every_steps

    @property
    def default_target_every(self) -> int:
        """Steps from one change of the target networks to the next, unless the run says another number."""
        return self.size

    def __post_init__(self) -> None:
        if not 1 <= self.size <= LARGEST_SIZE:
            raise ValueError(f"--size must be in 1..{LARGEST_SIZE}, got {self.size}")
        for field in ("max_episodes", "eval_every_steps"):
            if getattr(self, field) is not None and getattr(self, field) < 1:
                raise ValueError(f"--{field.replace('_', '-')} must be at least 1, got {getattr(self, field)}")
        if not math.isfinite(self.unscaled_move_cost):
            raise ValueError(f"--unscaled-move-cost must be finite, got {self.unscaled_move_cost}")
        if self.mapping_seed is not None and not 0 <= self.mapping_seed < 2**32:
            raise ValueError(f"--mapping-seed must be in 0..4294967295, got {self.mapping_seed}")
        if self.mapping_seed is not None and not self.randomize_actions:
            raise ValueError("--mapping-seed is the seed of a draw: it needs --randomize-actions")
