"""The flags of the networks."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class NetworkConfig:
    """The ensemble of Q-networks."""

    num_heads: int = 20
    """K, the number of heads."""
    ensemble: Literal["auto", "independent", "shared"] = "independent"
    """K whole networks, or K heads on a shared torso (all but the last hidden layer); auto shares it for images."""
    hidden_sizes: tuple[int, ...] = (50, 50)
    """Width of each hidden layer."""

    def __post_init__(self) -> None:
        if self.num_heads < 1:
            raise ValueError(f"--num-heads must be at least 1, got {self.num_heads}")
        if not self.hidden_sizes or min(self.hidden_sizes) < 1:
            raise ValueError(f"--hidden-sizes must be one or more positive widths, got {self.hidden_sizes}")
