"""A strategy of your own: between the active head and the most hopeful head for each action."""

from dataclasses import dataclass
from typing import Any, ClassVar

from bootdqn import Strategy, head_values


@dataclass(frozen=True)
class Hopeful(Strategy):
    """Thompson sampling meets optimism: `(1 - hope) * q[h, a] + hope * max_k q[k, a]`; without hope it is BootDQN."""

    name: ClassVar[str] = "hopeful"
    hope: float = 0.5
    """How much the most hopeful head counts, from 0 to 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.hope <= 1:
            raise ValueError(f"hope must be in [0, 1], got {self.hope}")

    def scores(self, q: Any, head: Any) -> Any:
        """Return a score (..., A) for every action; the highest is chosen."""
        return (1 - self.hope) * head_values(q, head) + self.hope * q.max(axis=-2)
