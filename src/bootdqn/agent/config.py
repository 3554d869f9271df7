"""The flags of acting and learning."""

from dataclasses import dataclass
from typing import Literal, get_args

from bootdqn.exploration.registry import parse_strategy_from
from bootdqn.exploration.strategies import format_strategy

LossKind = Literal["squared", "huber"]
Engine = Literal["auto", "fused", "autograd"]
Precision = Literal["fp32", "bf16"]
LARGEST_RATE = 1e35
"""What single precision can still hold after Adam's first step."""


@dataclass(frozen=True)
class ActorConfig:
    """How actions are chosen."""

    strategy: str = "evoi"
    """greedy, ucb, gain, evoi, ids or vote, with parameters as in evoi:reduce=sum, gain:scale=5 or vote:rule=borda."""
    strategy_from: str | None = None
    """Import a strategy of your own, as in my_module.MyStrategy, and follow it (docs/adding-a-strategy.md)."""
    warmup_steps: int = 0
    """For the first steps follow the active head alone, so that the heads become diverse before they are compared."""
    before_learning: Literal["strategy", "uniform"] = "strategy"
    """How to act before the first update: by the strategy, or uniformly at random."""

    def __post_init__(self) -> None:
        strategy, origin = parse_strategy_from(self.strategy, self.strategy_from)
        object.__setattr__(self, "strategy", format_strategy(strategy))
        object.__setattr__(self, "strategy_from", origin)
        if self.warmup_steps < 0:
            raise ValueError(f"--warmup-steps must not be negative, got {self.warmup_steps}")


@dataclass(frozen=True)
class LearnerConfig:
    """How the Q-networks learn."""

    batch_size: int = 128
    """Transitions in one update."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    discount: float = 0.99
    """What a reward one step later is worth."""
    loss: LossKind = "squared"
    """Loss of a TD error; huber has delta 1."""
    learning_starts: int = 128
    """First update after this many transitions."""
    update_every: int = 1
    """Environment steps from one update to the next."""
    target_every: int | None = None
    """Environment steps from one copy into the target networks to the next (None: the size of the grid on DeepSea)."""
    engine: Engine = "auto"
    """What computes an update: the compiled kernel for discrete observations, PyTorch's autograd, or the fastest."""
    precision: Precision = "fp32"
    """bf16 multiplies in bfloat16 beside float32 master weights: faster where the processor has instructions for it."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "learning_starts", "update_every", "target_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
        for name, kind in (("loss", LossKind), ("engine", Engine), ("precision", Precision)):
            if getattr(self, name) not in get_args(kind):
                raise ValueError(f"--{name} must be one of {', '.join(get_args(kind))}; got {getattr(self, name)!r}")
        if not 0 < self.learning_rate < LARGEST_RATE:
            raise ValueError(f"--learning-rate must be positive and below 1e35, got {self.learning_rate}")
        if not 0 <= self.discount <= 1:
            raise ValueError(f"--discount must be in [0, 1], got {self.discount}")
