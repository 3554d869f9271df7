"""Voting of heads: one action from the Q-values of all heads, and the diversity of their votes."""

from typing import Any, Literal, NamedTuple, get_args

from bootdqn.exploration.arrays import AnyArray, clip, namespace_of_q, one_hot, population_variance

VoteRule = Literal["plurality", "mean", "borda", "approval", "copeland", "gap"]
_RULES = get_args(VoteRule)


class VoteDiversity(NamedTuple):
    """Four measures of the diversity of votes, each of shape (...)."""

    vote_count_variance: AnyArray
    """Population variance of the vote counts over the actions that are not ruled out. High means agreement."""
    vote_entropy: AnyArray
    """Entropy of the vote shares in nats. High means diversity."""
    distinct_actions: AnyArray
    """Number of actions with at least one vote, as a float. High means diversity."""
    action_index_variance: AnyArray
    """Population variance over heads of the index voted for. High means diversity, if indices are ordered."""


def vote(q: AnyArray, rule: VoteRule = "plurality") -> AnyArray:
    """Return the action with the highest tally by `rule`.

    A tie goes to the tied action with the higher mean Q, and then to the lowest index.

    Args:
        q: Q-values (..., K, A).
        rule: How votes are counted, see `tally`.

    Returns:
        Action indices (...).

    Raises:
        ValueError: There is no such rule.

    Example:
        >>> import numpy as np
        >>> vote(np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.5]]))
        np.int64(1)
    """
    check_rule(rule)
    xp = namespace_of_q(q)
    counted = _tally(q, rule, xp)
    mean = xp.mean(q, axis=-2)
    leads = counted == xp.max(counted, axis=-1, keepdims=True)
    # a leader with the mean -inf is still above all others
    return xp.argmax(xp.where(leads, clip(mean, xp.finfo(q.dtype).min, None, xp), -xp.inf), axis=-1)


def tally(q: AnyArray, rule: VoteRule = "plurality") -> AnyArray:
    """Count the votes for each action by `rule`.

    - `plurality`: the number of heads whose greedy action it is;
    - `mean`: its mean Q-value;
    - `borda`: the number of actions that it beats, a tie counting half, summed over heads;
    - `approval`: the number of heads that value it above their own mean over actions;
    - `copeland`: the number of actions that it beats by a majority of heads, a tie counting half, so that an action
      that beats every other one (the Condorcet winner) wins;
    - `gap`: plurality with each vote weighted by the gap between the best and the second best Q-value of the head.

    Args:
        q: Q-values (..., K, A). An action that is -inf in every head is ruled out: the others are counted without it.
        rule: How votes are counted.

    Returns:
        Tally (..., A), -inf for an action that is ruled out.

    Raises:
        ValueError: There is no such rule.

    Example:
        >>> import numpy as np
        >>> tally(np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.5]]), "gap")
        array([3. , 1.5])
    """
    check_rule(rule)
    return _tally(q, rule, namespace_of_q(q))


def _tally(q: AnyArray, rule: VoteRule, xp: Any) -> AnyArray:
    legal = _legal(q, xp)
    return xp.where(legal, _counted(q, rule, legal, xp), -xp.inf)


def check_rule(rule: str, name: str = "rule") -> None:
    """Raise a ValueError unless the setting `name`, `rule`, is one of `VoteRule`."""
    if rule not in _RULES:
        raise ValueError(f"{name} must be one of {', '.join(_RULES)}; got {rule!r}")


def _counted(q: AnyArray, rule: VoteRule, legal: AnyArray, xp: Any) -> AnyArray:
    """Return the tally (..., A) of the actions that are `legal` (..., A), and any number for the others."""
    if rule == "mean":
        return xp.mean(q, axis=-2)
    if rule == "plurality":
        return vote_counts(q)
    if rule == "approval":
        usual = _mean_where(legal[..., None, :], q, xp)
        return xp.sum(xp.astype(q > usual, q.dtype), axis=-2)
    if rule == "gap":
        return _gap_weighted(q, xp)
    beats = q[..., :, None] > q[..., None, :]  # (..., K, A, A): is the first above the second
    wins = xp.sum(xp.astype(beats, q.dtype), axis=-3)
    ahead = wins - xp.matrix_transpose(wins)  # (..., A, A): heads that value the first higher, less those the second
    ahead, draw = (ahead, q.shape[-2]) if rule == "borda" else (clip(ahead, -1, 1, xp), 1)
    points = xp.where(legal[..., None, :], ahead + draw, 0.0)  # twice the points of the first against the second
    return (xp.sum(points, axis=-1) - draw) / 2  # without the draw of each against itself


def _gap_weighted(q: AnyArray, xp: Any) -> AnyArray:
    if q.shape[-1] == 1:
        return vote_counts(q)
    ordered = xp.sort(q, axis=-1)
    best, second = ordered[..., -1:], ordered[..., -2:-1]
    only_one = xp.max(second, axis=-2, keepdims=True) == -xp.inf  # no head has a second best action
    return xp.sum(xp.where(q == best, xp.where(only_one, 1.0, best - second), 0.0), axis=-2)


def _legal(q: AnyArray, xp: Any) -> AnyArray:
    """Return whether each action (..., A) is legal: not -inf in every head of `q` (..., K, A)."""
    return xp.max(q, axis=-2) != -xp.inf


def _mean_where(which: AnyArray, x: AnyArray, xp: Any) -> AnyArray:
    """Return the mean (..., 1) over the last axis of `x` (..., A) where `which` (..., A) is true."""
    number = clip(xp.sum(xp.astype(which, x.dtype), axis=-1, keepdims=True), 1, None, xp)
    return xp.sum(xp.where(which, x, 0.0), axis=-1, keepdims=True) / number


def vote_counts(q: AnyArray) -> AnyArray:
    """Return the number of heads of `q` (..., K, A) whose greedy action is each action: (..., A), of q's type."""
    xp = namespace_of_q(q)
    ballots = one_hot(xp.argmax(q, axis=-1), q.shape[-1], xp)
    return xp.sum(xp.astype(ballots, q.dtype), axis=-2)


def vote_diversity(q: AnyArray) -> VoteDiversity:
    """Measure the diversity of the greedy actions of the heads of `q` (..., K, A); each measure is (...)."""
    xp = namespace_of_q(q)
    votes, legal = vote_counts(q), _legal(q, xp)
    distance = votes - _mean_where(legal, votes, xp)
    share = votes / q.shape[-2]
    voted = votes > 0
    surprise = -xp.log(xp.where(voted, share, 1.0))
    index = xp.astype(xp.argmax(q, axis=-1), q.dtype)
    return VoteDiversity(
        vote_count_variance=_mean_where(legal, distance * distance, xp)[..., 0],
        vote_entropy=xp.sum(share * surprise, axis=-1),
        distinct_actions=xp.sum(xp.astype(voted, q.dtype), axis=-1),
        action_index_variance=population_variance(index, -1, xp),
    )
