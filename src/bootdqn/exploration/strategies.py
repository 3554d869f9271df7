"""The strategies: frozen parameters and one formula each, from Q-values (..., K, A) to scores (..., A).

A new strategy is one function in `formulas`, one frozen dataclass below, and one line in `STRATEGIES`.
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
    head_values,
    ids,
    log_boltzmann,
    ucb,
)
from bootdqn.exploration.voting import VoteRule, tally, vote

Temperature = Annotated[float, Range(ge=1e-37, le=1e38)]
"""A temperature that single precision can divide by."""


class Strategy(Protocol):
    """A strategy, which chooses actions. Its parameters are the fields of a frozen dataclass."""

    name: ClassVar[str]
    """Its name on the command line."""
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return a score (..., A) for every action; the highest is chosen."""
        ...

    def select(self, q: AnyArray, head: int | AnyArray, rng: np.random.Generator | None = None) -> AnyArray:  # noqa: ARG002
        """Return the chosen actions (...): the highest score, the lowest index on a tie.

        A strategy that samples actions overrides this; only such a strategy uses `rng`.

        Raises:
            ValueError: A score is NaN. Scores traced by `jax.jit` or `torch.compile` are not checked.
        """
        xp, scores = namespace_of_q(q), self.scores(q, head)
        _check_no_nan(self, scores, xp)
        return xp.argmax(scores, axis=-1)


@dataclass(frozen=True)
class Greedy(Strategy):
    """BootDQN: the active head's own Q-values, `q[h, a]`."""

    name: ClassVar[str] = "greedy"

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `q[h, a]`."""
        return head_values(q, head)


@dataclass(frozen=True)
class Ucb(Strategy):
    """BootDQN-UCB: mean and spread of the ensemble, `m(a) + scale * s(a)`; there is no active head."""

    name: ClassVar[str] = "ucb"
    scale: float = 1.0
    """Number of standard deviations above the mean; 1 in the paper."""

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
    """Weight of the gain; 1 in the paper."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `q[h, a] + scale * gain[h, a]`."""
        return head_values(q, head) + self.bonus(q, head)

    def bonus(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return the bonus (..., A), which is added to the active head's Q-values."""
        return self.scale * head_values(gain(q), head)


@dataclass(frozen=True)
class Evoi(Strategy):
    """BootDQN-EVOI: the active head's Q-values and the gain of all heads, `q[h, a] + scale * reduce_k gain[k, a]`."""

    name: ClassVar[str] = "evoi"
    reduce: Reduction = "mean"
    """Aggregation over heads; the paper takes the mean on Atari and the sum on DeepSea."""
    scale: float = 1.0
    """Weight of the EVOI; 1 in the paper."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `q[h, a] + scale * evoi(a)`."""
        return head_values(q, head) + self.bonus(q)

    def bonus(self, q: AnyArray) -> AnyArray:
        """Return the bonus (..., A), which is added to the active head's Q-values."""
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
    """How votes are counted, see `tally`."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:  # noqa: ARG002 - the ensemble acts as one
        """Return the tally."""
        return tally(q, self.rule)

    def select(self, q: AnyArray, head: int | AnyArray, rng: np.random.Generator | None = None) -> AnyArray:  # noqa: ARG002
        """Return the winner of the vote; a tie goes to the higher mean Q.

        Raises:
            ValueError: A Q-value is NaN, which a tally would hide.
        """
        _check_no_nan(self, q, namespace_of_q(q))
        return vote(q, self.rule)


@dataclass(frozen=True)
class Boltzmann(Strategy):
    """BootDQN-Boltzmann: an action sampled from the active head's policy, `softmax(q[h] / temperature)`."""

    name: ClassVar[str] = "boltzmann"
    temperature: Temperature = 1.0
    """Small values approach the greedy policy, large ones the uniform policy."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)

    def scores(self, q: AnyArray, head: int | AnyArray) -> AnyArray:
        """Return `log softmax(q[h] / temperature)`, the log-probability of every action."""
        return log_boltzmann(head_values(q, head), self.temperature, namespace_of_q(q))

    def select(self, q: AnyArray, head: int | AnyArray, rng: np.random.Generator | None = None) -> AnyArray:
        """Return actions sampled with their probabilities: the highest score plus Gumbel noise.

        The noise is sampled by NumPy, whatever the library of `q`: under `jax.jit` it would be sampled only once.

        Raises:
            ValueError: There is no `rng`, or a score is NaN.
        """
        xp, scores = namespace_of_q(q), self.scores(q, head)
        if rng is None:
            raise ValueError("boltzmann samples its actions: call select with rng=numpy.random.default_rng(seed)")
        _check_no_nan(self, scores, xp)
        noise = xp.asarray(rng.gumbel(size=tuple(scores.shape)), dtype=scores.dtype, device=device_of(scores))
        return xp.argmax(scores + noise, axis=-1)


STRATEGIES: tuple[type[Strategy], ...] = (Greedy, Ucb, Gain, Evoi, Ids, Vote, Boltzmann)


def follows_head(strategy: Strategy) -> bool:
    """Return whether `strategy` depends on the active head; if not, the ensemble acts as one, as in `ucb`.

    It is tested with every head on random Q-values of many scales, so that user strategies need not declare it.
    """
    rng, num_heads = np.random.default_rng(0), 10
    sizes = 10 ** rng.uniform(-3, 3, size=(200, 1, 1))
    q = (sizes * rng.normal(size=(200, num_heads, 4))).astype(np.float32)

    def results(head: int) -> tuple[AnyArray, AnyArray]:
        heads = np.full(len(q), head)
        return strategy.scores(q, heads), strategy.select(q, heads, np.random.default_rng(0))

    scores, actions = results(0)
    others = (results(head) for head in range(1, num_heads))
    return any(
        not np.array_equal(scores, other, equal_nan=True) or not np.array_equal(actions, chosen)
        for other, chosen in others
    )


def _check_no_nan(strategy: Strategy, scores: AnyArray, xp: Any) -> None:
    if holds_nan(scores, xp):
        causes = "q holds NaN, a state has no legal action, or a head is out of range"
        raise ValueError(f"{strategy.name} cannot rank actions by NaN: {causes}")
