"""Flags of the actor, the learner, the networks and the replay buffer."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bootdqn.common.fields import NonNegativeInt, PositiveInt, Probability, Range, check_fields
from bootdqn.exploration.registry import format_strategy, parse_strategy_from
from bootdqn.exploration.strategies import Temperature

LossKind = Literal["squared", "huber"]
Engine = Literal["auto", "compiled", "autograd"]
Precision = Literal["fp32", "bf16"]
ReplaySampling = Literal["uniform", "prioritized"]


@dataclass(frozen=True)
class ActorConfig:
    """How actions are chosen."""

    strategy: str = "evoi"
    """greedy, ucb, gain, evoi, ids, vote, boltzmann; parameters as in evoi:reduce=sum, gain:scale=5, vote:rule=mean."""
    strategy_from: str | None = None
    """Import a strategy of your own, as in my_module.MyStrategy, and follow it (docs/adding-a-strategy.md)."""
    warmup_steps: NonNegativeInt = 0
    """For the first steps follow the active head alone, so that the heads become diverse before they are compared."""
    before_learning: Literal["strategy", "uniform"] = "strategy"
    """How to act before the first update: by the strategy, or uniformly at random."""
    epsilon: Probability = 0.0
    """Probability of a random action instead of the strategy's, with any strategy."""
    epsilon_end: Probability | None = None
    """Final value of --epsilon, reached after --epsilon-steps (None: it stays constant)."""
    epsilon_steps: PositiveInt | None = None
    """Environment steps over which --epsilon decreases linearly."""
    info_bonus: Annotated[float, Range(ge=0)] = 0.0
    """Add to each reward that is learned from this times the information gain of the state (Chen et al. 2017)."""
    info_temperature: Temperature = 1.0
    """Temperature of the heads' Boltzmann policies in that information gain."""

    def __post_init__(self) -> None:
        check_fields(self)
        strategy, class_path = parse_strategy_from(self.strategy, self.strategy_from)
        object.__setattr__(self, "strategy", format_strategy(strategy))
        object.__setattr__(self, "strategy_from", class_path)
        if (self.epsilon_end is None) != (self.epsilon_steps is None):
            raise ValueError("--epsilon-end and --epsilon-steps must be given together")
        if self.epsilon_end is not None and self.epsilon_end > self.epsilon:
            raise ValueError(
                f"--epsilon {self.epsilon} is below --epsilon-end {self.epsilon_end}, and epsilon only decreases; "
                "for a constant one add --epsilon-end None --epsilon-steps None"
            )
        if self.info_temperature != 1 and not self.info_bonus:
            raise ValueError("--info-temperature needs --info-bonus")

    def epsilon_at(self, step: int) -> float:
        """Return the probability of a random action after `step` environment steps."""
        if self.epsilon_end is None or self.epsilon_steps is None:
            return self.epsilon
        return self.epsilon + min(step / self.epsilon_steps, 1.0) * (self.epsilon_end - self.epsilon)


@dataclass(frozen=True)
class LearnerConfig:
    """How the Q-networks learn."""

    batch_size: PositiveInt = 128
    """Transitions in one update."""
    learning_rate: Annotated[float, Range(gt=0, lt=1e35)] = 1e-3  # single precision still holds Adam's first step
    """Step size of Adam."""
    discount: Probability = 0.99
    """Discount factor."""
    n_step: PositiveInt = 1
    """Rewards that are added up before the value of the state that follows is estimated."""
    loss: LossKind = "squared"
    """Loss of a TD error; huber has delta 1."""
    learning_starts: PositiveInt = 128
    """First update after this many transitions."""
    update_every: PositiveInt | None = None
    """Environment steps from one update to the next (None: the size of the grid on DeepSea, so one an episode)."""
    target_every: PositiveInt | None = None
    """Environment steps from one change of the target networks to the next (None: the size of the grid on DeepSea)."""
    target_rate: Annotated[float, Range(gt=0, le=1)] = 1.0
    """How far the target networks then move towards the online ones: 1 copies; try 0.005 with --target-every 1."""
    double_q: bool = True
    """Let the online network choose the action that the target network values (double DQN)."""
    engine: Engine = "auto"
    """Engine of the updates: a compiled kernel (discrete observations, images), PyTorch's autograd, or the fastest."""
    precision: Precision = "fp32"
    """bf16 multiplies in bfloat16 beside float32 master weights: faster where the processor has instructions for it."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.target_rate < 1 and self.precision == "bf16":
            raise ValueError("--target-rate below 1 needs --precision fp32: bfloat16 would round such small steps away")


@dataclass(frozen=True)
class NetworkConfig:
    """The ensemble of Q-networks."""

    num_heads: Annotated[int, Range(ge=1, le=10_000)] = 20
    """K, the number of heads."""
    ensemble: Literal["auto", "independent", "shared"] = "independent"
    """K whole networks, or K heads on a shared torso (all but the last hidden layer); auto shares it for images."""
    hidden_sizes: tuple[Annotated[int, Range(ge=1, le=1_000_000)], ...] = (50, 50)
    """Width of each hidden layer."""
    prior_scale: Annotated[float, Range(ge=0)] = 0.0
    """Add to each head a random network that never learns, times this (Osband et al. 2018; our experiments take 3)."""
    embedding_scale: Annotated[float, Range(gt=0)] | None = None
    """Largest initial weight of the layer that reads a discrete observation (None: 1/sqrt(number of observations), as
    PyTorch has it); 1 keeps initial Q-values diverse across states, independently of their number. Observations of
    other kinds have no such layer."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.hidden_sizes:
            raise ValueError("--hidden-sizes must be one or more widths, got none")


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer and its bootstrap masks."""

    replay_capacity: Annotated[int, Range(ge=1, le=10**9)] = 10_000
    """Transitions that are kept; the oldest are overwritten first."""
    mask_probability: Annotated[float, Range(gt=0, le=1)] = 0.5
    """Probability that a head may learn from a transition, sampled for each head when the transition is stored."""
    replay: ReplaySampling = "uniform"
    """How transitions are sampled: uniformly, or in proportion to the heads' last errors (Schaul et al. 2016)."""
    alpha: Probability = 0.6
    """Exponent of the errors in prioritized sampling: 0 is uniform, 1 in full proportion."""
    beta: Probability = 0.4
    """Exponent of the importance weights that correct for it in the loss: 0 not at all, 1 fully."""
    beta_steps: PositiveInt | None = None
    """Environment steps over which beta rises to 1 (None: it stays constant)."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.replay == "uniform" and (self.alpha, self.beta, self.beta_steps) != (0.6, 0.4, None):
            raise ValueError("--alpha, --beta and --beta-steps need --replay prioritized")

    def beta_at(self, step: int) -> float:
        """Return beta after `step` environment steps."""
        risen = 0.0 if self.beta_steps is None else min(step / self.beta_steps, 1.0)
        return self.beta + risen * (1 - self.beta)
