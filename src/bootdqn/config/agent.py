"""The flags of the actor, the learner, the networks and the replay buffer."""

from dataclasses import dataclass
from typing import Literal, get_args

from bootdqn.exploration.registry import format_strategy, parse_strategy_from
from bootdqn.exploration.strategies import LARGEST_TEMPERATURE, SMALLEST_TEMPERATURE

LossKind = Literal["squared", "huber"]
Engine = Literal["auto", "fused", "autograd"]
Precision = Literal["fp32", "bf16"]
MAX_LEARNING_RATE = 1e35
"""What single precision can still hold after Adam's first step."""


@dataclass(frozen=True)
class ActorConfig:
    """How actions are chosen."""

    strategy: str = "evoi"
    """greedy, ucb, gain, evoi, ids, vote, boltzmann; parameters as in evoi:reduce=sum, gain:scale=5, vote:rule=mean."""
    strategy_from: str | None = None
    """Import a strategy of your own, as in my_module.MyStrategy, and follow it (docs/adding-a-strategy.md)."""
    warmup_steps: int = 0
    """For the first steps follow the active head alone, so that the heads become diverse before they are compared."""
    before_learning: Literal["strategy", "uniform"] = "strategy"
    """How to act before the first update: by the strategy, or uniformly at random."""
    epsilon: float = 0.0
    """Chance of a random action instead of the strategy's, with any strategy."""
    epsilon_end: float | None = None
    """What that chance changes to over --epsilon-steps (None: it stays)."""
    epsilon_steps: int | None = None
    """Environment steps over which it changes, in a straight line."""
    info_bonus: float = 0.0
    """Add to each reward that is learned from this times the information gain of the state (Chen et al. 2017)."""
    info_temperature: float = 1.0
    """Temperature of the heads' Boltzmann policies in that information gain."""

    def __post_init__(self) -> None:
        strategy, origin = parse_strategy_from(self.strategy, self.strategy_from)
        object.__setattr__(self, "strategy", format_strategy(strategy))
        object.__setattr__(self, "strategy_from", origin)
        if self.warmup_steps < 0:
            raise ValueError(f"--warmup-steps must not be negative, got {self.warmup_steps}")
        for name in ("epsilon", "epsilon_end"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"--{name.replace('_', '-')} must be in [0, 1], got {value}")
        if (self.epsilon_end is None) != (self.epsilon_steps is None):
            raise ValueError("--epsilon-end and --epsilon-steps go together: where epsilon ends, and how soon")
        if self.epsilon_steps is not None and self.epsilon_steps < 1:
            raise ValueError(f"--epsilon-steps must be at least 1, got {self.epsilon_steps}")
        if not 0 <= self.info_bonus < float("inf"):
            raise ValueError(f"--info-bonus must be finite and not negative, got {self.info_bonus}")
        if not SMALLEST_TEMPERATURE <= self.info_temperature <= LARGEST_TEMPERATURE:
            raise ValueError(f"--info-temperature must be between 1e-37 and 1e38, got {self.info_temperature}")
        if self.info_temperature != 1 and not self.info_bonus:
            raise ValueError("--info-temperature belongs to --info-bonus")

    def epsilon_at(self, step: int) -> float:
        """Return the chance of a random action after `step` environment steps."""
        if self.epsilon_end is None or self.epsilon_steps is None:
            return self.epsilon
        return self.epsilon + min(step / self.epsilon_steps, 1.0) * (self.epsilon_end - self.epsilon)


@dataclass(frozen=True)
class LearnerConfig:
    """How the Q-networks learn."""

    batch_size: int = 128
    """Transitions in one update."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    discount: float = 0.99
    """What a reward one step later is worth."""
    n_step: int = 1
    """The most rewards that are added up before the value of what follows is estimated."""
    loss: LossKind = "squared"
    """Loss of a TD error; huber has delta 1."""
    learning_starts: int = 128
    """First update after this many transitions."""
    update_every: int = 1
    """Environment steps from one update to the next."""
    target_every: int | None = None
    """Environment steps from one change of the target networks to the next (None: the size of the grid on DeepSea)."""
    target_rate: float = 1.0
    """How far the target networks then move towards the online ones: 1 copies; try 0.005 with --target-every 1."""
    double_q: bool = True
    """Let the online network choose the action that the target network values (double DQN)."""
    engine: Engine = "auto"
    """What computes an update: the compiled kernel for discrete observations, PyTorch's autograd, or the fastest."""
    precision: Precision = "fp32"
    """bf16 multiplies in bfloat16 beside float32 master weights: faster where the processor has instructions for it."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "learning_starts", "update_every", "target_every", "n_step"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
        for name, kind in (("loss", LossKind), ("engine", Engine), ("precision", Precision)):
            if getattr(self, name) not in get_args(kind):
                raise ValueError(f"--{name} must be one of {', '.join(get_args(kind))}; got {getattr(self, name)!r}")
        if not 0 < self.learning_rate < MAX_LEARNING_RATE:
            raise ValueError(f"--learning-rate must be positive and below 1e35, got {self.learning_rate}")
        if not 0 <= self.discount <= 1:
            raise ValueError(f"--discount must be in [0, 1], got {self.discount}")
        if not 0 < self.target_rate <= 1:
            raise ValueError(f"--target-rate must be in (0, 1], got {self.target_rate}")
        if self.target_rate < 1 and self.precision == "bf16":
            raise ValueError("--target-rate below 1 needs --precision fp32: bfloat16 would round such small steps away")


MAX_HEADS, MAX_WIDTH = 10_000, 1_000_000


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
        if not 1 <= self.num_heads <= MAX_HEADS:
            raise ValueError(f"--num-heads must be in 1..{MAX_HEADS}, got {self.num_heads}")
        if not self.hidden_sizes or not all(1 <= width <= MAX_WIDTH for width in self.hidden_sizes):
            raise ValueError(f"--hidden-sizes must be one or more widths in 1..{MAX_WIDTH}, got {self.hidden_sizes}")
        if not 0 <= self.prior_scale < float("inf"):
            raise ValueError(f"--prior-scale must be finite and not negative, got {self.prior_scale}")


MAX_CAPACITY = 10**9
ReplaySampling = Literal["uniform", "prioritized"]


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer and its bootstrap masks."""

    replay_capacity: int = 10_000
    """How many transitions are kept; the oldest go first."""
    mask_probability: float = 0.5
    """Chance that a head may learn from a transition, drawn for each head when the transition is stored."""
    replay: ReplaySampling = "uniform"
    """How transitions are drawn: all alike, or in proportion to the heads' last errors (Schaul et al. 2016)."""
    alpha: float = 0.6
    """How much the errors tell in prioritized drawing: 0 is uniform, 1 in full proportion."""
    beta: float = 0.4
    """How far importance weights undo that in the loss: 0 not at all, 1 fully."""
    beta_steps: int | None = None
    """Environment steps over which beta rises to 1 (None: it stays)."""

    def __post_init__(self) -> None:
        if not 1 <= self.replay_capacity <= MAX_CAPACITY:
            raise ValueError(f"--replay-capacity must be in 1..{MAX_CAPACITY}, got {self.replay_capacity}")
        if not 0 < self.mask_probability <= 1:
            raise ValueError(f"--mask-probability must be in (0, 1], got {self.mask_probability}")
        if self.replay not in get_args(ReplaySampling):
            raise ValueError(f"--replay must be one of {', '.join(get_args(ReplaySampling))}; got {self.replay!r}")
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
