"""The flags of the replay."""

from dataclasses import dataclass

LARGEST_CAPACITY = 10**9


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer and its bootstrap masks."""

    replay_capacity: int = 10_000
    """How many transitions are kept; the oldest go first."""
    mask_probability: float = 0.5
    """Chance that a head may learn from a transition, drawn for each head when the transition is stored."""

    def __post_init__(self) -> None:
        if not 1 <= self.replay_capacity <= LARGEST_CAPACITY:
            raise ValueError(f"--replay-capacity must be in 1..{LARGEST_CAPACITY}, got {self.replay_capacity}")
        if not 0 < self.mask_probability <= 1:
            raise ValueError(f"--mask-probability must be in (0, 1], got {self.mask_probability}")
