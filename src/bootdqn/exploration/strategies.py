"""The strategies: frozen parameters and one formula each, from Q-values (..., K, A) to scores (..., A).

A new strategy is one function in `information` (or here), one frozen dataclass below, and one line in `STRATEGIES`.
`head` is the active head: an int, or an integer array (...) with one head for every state of q's leading axes.
"""

from dataclasses import Field, dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from bootdqn.common.fields import Range, check_fields
from bootdqn.exploration.arrays import AnyArray, device_of, holds_nan, namespace_of_q
from bootdqn.exploration.formulas import (
    Reduction,
    evoi,
    gain,
    ids,
    log_boltzmann,
    of_head,
    ucb,
)
from bootdqn.exploration.voting import VoteRule, tally, vote

Temperature = Annotated[float, Range(ge=1e-37, le=1e38)]
"""Single precision can divide by it."""


class Strategy(Protocol):
    """What the agent needs of a strategy. The parameters are the fields of a frozen dataclass."""

    name: ClassVar[str]
    """The word that stands for it on the command line."""
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return a score (..., A) for every action; the highest is chosen."""
        ...

    def select(self, q: AnyArray, head: int | AnyArray, rng: np.random.Generator | None = None) -> AnyArray:  # noqa: ARG002
        """Return the chosen actions (...): the highest score, the lowest index on a tie.

        A strategy that draws overrides this, and is the only kind to use `rng`.

        Raises:
            ValueError: A score is NaN. Scores that are traced, by `jax.jit` or `torch.compile`, are not looked at.
        """
        xp, scores = namespace_of_q(q), self.scores(q, head)
        _refuse_nan(self, scores, xp)
        return xp.argmax(scores, axis=-1)


@dataclass(frozen=True)
class Greedy(Strategy):
    """BootDQN: the active head's own Q-values, `q[h, a]`."""

    name: ClassVar[str] = "greedy"

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `q[h, a]`."""
        return of_head(q, head)


@dataclass(frozen=True)
class Ucb(Strategy):
    """BootDQN-UCB: mean and spread of the ensemble, `m(a) + scale * s(a)`; there is no active head."""

    name: ClassVar[str] = "ucb"
    scale: float = 1.0
    """How many standard deviations of optimism; 1 is the paper."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:  # noqa: ARG002 - the ensemble acts as one
        """Return `m(a) + scale * s(a)`."""
        return ucb(q, self.scale)


@dataclass(frozen=True)
class Gain(Strategy):
    """BootDQN-Gain: the active head's Q-values and its own gain, `q[h, a] + scale * gain[h, a]`."""

    name: ClassVar[str] = "gain"
    scale: float = 1.0
    """Weight of the gain; 1 is the paper."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `q[h, a] + scale * gain[h, a]`."""
        return of_head(q, head) + self.bonus(q, head)

    def bonus(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return what is added to the active head's Q-values (..., A)."""
        return self.scale * of_head(gain(q), head)


@dataclass(frozen=True)
class Evoi(Strategy):
    """BootDQN-EVOI: the active head's Q-values and the gain of all heads, `q[h, a] + scale * reduce_k gain[k, a]`."""

    name: ClassVar[str] = "evoi"
    reduce: Reduction = "mean"
    """How the heads' gains are put together; the paper takes the mean on Atari and the sum on DeepSea."""
    scale: float = 1.0
    """Weight of the EVOI; 1 is the paper."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `q[h, a] + scale * evoi(a)`."""
        return of_head(q, head) + self.bonus(q)

    def bonus(self, q: AnyArray) -> AnyArray:
        """Return what is added to the active head's Q-values (..., A)."""
        return self.scale * evoi(q, self.reduce)


@dataclass(frozen=True)
class Ids(Strategy):
    """DQN-IDS: the least squared regret per nat of information; there is no active head."""

    name: ClassVar[str] = "ids"
    regret_scale: float = 0.1
    """Width of the confidence interval in standard deviations (lambda of Nikolov et al.)."""
    noise_variance: Annotated[float, Range(gt=0)] = 1.0
    """Variance of the return that no data removes (rho squared of Nikolov et al.)."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:  # noqa: ARG002 - the ensemble acts as one
        """Return `-D(a)^2 / I(a)`."""
        return ids(q, self.regret_scale, self.noise_variance)


@dataclass(frozen=True)
class Vote(Strategy):
    """The heads vote at every step; there is no active head, and no exploration but their disagreement."""

    name: ClassVar[str] = "vote"
    rule: VoteRule = "plurality"
    """How ballots are counted."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:  # noqa: ARG002 - the ensemble acts as one
        """Return the tally."""
        return tally(q, self.rule)

    def select(self, q: AnyArray, head: int | AnyArray, rng: np.random.Generator | None = None) -> AnyArray:  # noqa: ARG002
        """Return what the heads choose together; a tie goes to the higher mean Q.

        Raises:
            ValueError: A Q-value is NaN: the tally does not show it.
        """
        _refuse_nan(self, q, namespace_of_q(q))
        return vote(q, self.rule)


@dataclass(frozen=True)
class Boltzmann(Strategy):
    """BootDQN-Boltzmann: the active head's Q-values, softened: an action drawn from `softmax(q[h] / temperature)`."""

    name: ClassVar[str] = "boltzmann"
    temperature: Temperature = 1.0
    """How far apart Q-values must be to count as different: a small one is greedy, a large one uniform."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `log softmax(q[h] / temperature)`, the log-probability of every action."""
        return log_boltzmann(of_head(q, head), self.temperature, namespace_of_q(q))

    def select(self, q: AnyArray, head: int | AnyArray, rng: np.random.Generator | None = None) -> AnyArray:
        """Return actions drawn with their probabilities: the highest score after Gumbel noise has been added to each.

        The noise is drawn by NumPy, whatever holds the Q-values: under `jax.jit` it would be drawn once and for all.

        Raises:
            ValueError: There is no `rng`, or a score is NaN.
        """
        xp, scores = namespace_of_q(q), self.scores(q, head)
        if rng is None:
            raise ValueError("boltzmann draws its actions: call select with rng=numpy.random.default_rng(seed)")
        _refuse_nan(self, scores, xp)
        noise = xp.asarray(rng.gumbel(size=tuple(scores.shape)), dtype=scores.dtype, device=device_of(scores))
        return xp.argmax(scores + noise, axis=-1)


STRATEGIES: tuple[type[Strategy], ...] = (Greedy, Ucb, Gain, Evoi, Ids, Vote, Boltzmann)


def follows_head(strategy: Strategy) -> bool:
    """Return whether the active head matters to `strategy`; if not, the ensemble acts as one, as in `ucb`.

    It is tried with every head on random Q-values of many sizes, so that strategies of users need not say it.
    """
    rng, num_heads = np.random.default_rng(0), 10
    sizes = 10 ** rng.uniform(-3, 3, size=(200, 1, 1))
    q = (sizes * rng.normal(size=(200, num_heads, 4))).astype(np.float32)

    def answers(head: int) -> tuple[AnyArray, AnyArray]:
        heads = np.full(len(q), head)
        return strategy.scores(q, heads), strategy.select(q, heads, np.random.default_rng(0))

    scores, actions = answers(0)
    others = (answers(head) for head in range(1, num_heads))
    return any(
        not np.array_equal(scores, other, equal_nan=True) or not np.array_equal(actions, chosen)
        for other, chosen in others
    )


def _refuse_nan(strategy: Strategy, scores: AnyArray, xp: Any) -> None:
    if holds_nan(scores, xp):
        causes = "q holds NaN, a state has no legal action, or a head is out of range"
        raise ValueError(f"{strategy.name} cannot rank actions by NaN: {causes}")
