"""The flags of the replay."""

from dataclasses import dataclass
from typing import Literal, get_args

LARGEST_CAPACITY = 10**9
Drawing = Literal["uniform", "prioritized"]


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer and its bootstrap masks."""

    replay_capacity: int = 10_000
    """How many transitions are kept; the oldest go first."""
    mask_probability: float = 0.5
    """Chance that a head may learn from a transition, drawn for each head when the transition is stored."""
    replay: Drawing = "uniform"
    """How transitions are drawn: all alike, or in proportion to the heads' last errors (Schaul et al. 2016)."""
    alpha: float = 0.6
    """How much the errors tell in prioritized drawing: 0 is uniform, 1 in full proportion."""
    beta: float = 0.4
    """How far importance weights undo that in the loss: 0 not at all, 1 fully."""
    beta_steps: int | None = None
    """Environment steps over which beta rises to 1 (None: it stays)."""

    def __post_init__(self) -> None:
        if not 1 <= self.replay_capacity <= LARGEST_CAPACITY:
            raise ValueError(f"--replay-capacity must be in 1..{LARGEST_CAPACITY}, got {self.replay_capacity}")
        if not 0 < self.mask_probability <= 1:
            raise ValueError(f"--mask-probability must be in (0, 1], got {self.mask_probability}")
        if self.replay not in get_args(Drawing):
            raise ValueError(f"--replay must be one of {', '.join(get_args(Drawing))}; got {self.replay!r}")
        for name in ("alpha", "beta"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"--{name} must be in [0, 1], got {getattr(self, name)}")
        if self.beta_steps is not None and self.beta_steps < 1:
            raise ValueError(f"--beta-steps must be at least 1, got {self.beta_steps}")
        if self.replay == "uniform" and (self.alpha, self.beta, self.beta_steps) != (0.6, 0.4, None):
            raise ValueError("--alpha, --beta and --beta-steps belong to --replay prioritized")

    def beta_at(self, step: int) -> float:
        """Return beta after `step` environment steps."""
        risen = 0.0 if self.beta_steps is None else min(step / self.beta_steps, 1.0)
        return self.beta + risen * (1 - self.beta)
