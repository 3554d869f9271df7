"""The flags of the networks."""

from dataclasses import dataclass
from typing import Literal

MOST_HEADS, WIDEST = 10_000, 1_000_000


@dataclass(frozen=True)
class NetworkConfig:
    """The ensemble of Q-networks."""

    num_heads: int = 20
    """K, the number of heads."""
    ensemble: Literal["auto", "independent", "shared"] = "independent"
    """K whole networks, or K heads on a shared torso (all but the last hidden layer); auto shares it for images."""
    hidden_sizes: tuple[int, ...] = (50, 50)
    """Width of each hidden layer."""
    prior_scale: float = 0.0
    """Add to each head a random network that never learns, times this (Osband et al. 2018; our experiments take 3)."""

    def __post_init__(self) -> None:
        if not 1 <= self.num_heads <= MOST_HEADS:
            raise ValueError(f"--num-heads must be in 1..{MOST_HEADS}, got {self.num_heads}")
        if not self.hidden_sizes or not all(1 <= width <= WIDEST for width in self.hidden_sizes):
            raise ValueError(f"--hidden-sizes must be one or more widths in 1..{WIDEST}, got {self.hidden_sizes}")
        if not 0 <= self.prior_scale < float("inf"):
            raise ValueError(f"--prior-scale must be finite and not negative, got {self.prior_scale}")
