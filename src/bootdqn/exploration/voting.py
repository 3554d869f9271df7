"""Heads that vote: one action from many opinions, and how far the opinions are apart."""

from typing import Any, Literal, NamedTuple, get_args

from bootdqn.exploration.arrays import AnyArray, namespace_of_q, one_hot, population_variance

VoteRule = Literal["plurality", "mean", "borda", "approval", "copeland", "gap"]


class VoteDiversity(NamedTuple):
    """Four readings of "how different are the votes", each of shape (...)."""

    vote_count_variance: AnyArray
    """Population variance over actions, but for those ruled out, of the vote counts. High means agreement."""
    vote_entropy: AnyArray
    """Entropy of the vote shares in nats. High means diversity."""
    distinct_actions: AnyArray
    """How many actions received at least one vote, as a float. High means diversity."""
    action_index_variance: AnyArray
    """Population variance over heads of the index each voted for. High means diversity, if indices mean anything."""


def vote(q: AnyArray, rule: VoteRule = "plurality") -> AnyArray:
    """Return the action that the heads choose together: the highest tally by `rule`.

    A tie goes to the tied action with the higher mean Q, and then to the lowest index.

    Args:
        q: Q-values (..., K, A).
        rule: How ballots are counted, see `tally`.

    Returns:
        Action indices (...).
    """
    xp = namespace_of_q(q)
    counted = tally(q, rule)
    mean = xp.mean(q, axis=-2)
    leads = counted == xp.max(counted, axis=-1, keepdims=True)
    highest = xp.max(xp.where(leads, mean, -xp.inf), axis=-1, keepdims=True)
    return xp.argmax(xp.astype(leads & (mean == highest), q.dtype), axis=-1)


def tally(q: AnyArray, rule: VoteRule = "plurality") -> AnyArray:
    """Return what each action gets (..., A) from the ballots of the heads of `q` (..., K, A).

    - `plurality`: the heads that have it as their greedy action;
    - `mean`: its mean Q-value;
    - `borda`: from each head the number of actions that it beats, a tie counting half;
    - `approval`: the heads that value it above their own mean over actions;
    - `copeland`: the other actions that it beats by a majority of heads, a tie counting half, so that an action which
      beats every other one (Condorcet's winner) wins;
    - `gap`: plurality, each head's vote weighing as much as its best action is ahead of its second.

    An action that every head rules out, by a Q-value of -inf, gets -inf, and the others what they get without it.
    """
    check_rule(rule)
    xp = namespace_of_q(q)
    legal = _legal(q, xp)
    return xp.where(legal, _counted(q, rule, legal, xp), -xp.inf)


def check_rule(rule: str, name: str = "rule") -> None:
    """Raise a ValueError, which calls it by `name`, unless `rule` is one of `VoteRule`."""
    if rule not in get_args(VoteRule):
        raise ValueError(f"{name} must be one of {', '.join(get_args(VoteRule))}; got {rule!r}")


def _counted(q: AnyArray, rule: VoteRule, legal: AnyArray, xp: Any) -> AnyArray:
    """Return the tally (..., A) of the actions that are `legal` (..., A), and anything for the others."""
    if rule == "mean":
        return xp.mean(q, axis=-2)
    if rule == "plurality":
        return vote_counts(q)
    if rule == "approval":
        usual = _mean_where(legal[..., None, :], q, xp)
        return xp.sum(xp.astype(q > usual, q.dtype), axis=-2)
    if rule == "gap":
        return _gap_weighted(q, legal, xp)
    beats = xp.astype(q[..., :, None] > q[..., None, :], q.dtype)  # (..., K, A, A): is the first above the second
    lead = beats - xp.matrix_transpose(beats)
    opponent = xp.astype(legal, q.dtype)[..., None, :]
    if rule == "borda":
        won = (lead + 1) / 2 * opponent[..., None, :, :]
        return xp.sum(won, axis=(-3, -1)) - q.shape[-2] / 2  # less the half that each has against itself
    ahead = xp.sum(lead, axis=-3)
    won, drawn = xp.astype(ahead > 0, q.dtype), xp.astype(ahead == 0, q.dtype)
    return xp.sum((won + drawn / 2) * opponent, axis=-1) - 0.5


def _gap_weighted(q: AnyArray, legal: AnyArray, xp: Any) -> AnyArray:
    ballots = one_hot(xp.argmax(q, axis=-1), q.shape[-1], xp)
    second = xp.max(xp.where(ballots, -xp.inf, q), axis=-1, keepdims=True)
    gap = xp.max(q, axis=-1, keepdims=True) - second
    only_one = xp.sum(xp.astype(legal, q.dtype), axis=-1)[..., None, None] == 1
    return xp.sum(xp.where(ballots, xp.where(only_one, 1.0, gap), 0.0), axis=-2)


def _legal(q: AnyArray, xp: Any) -> AnyArray:
    """Return which actions (..., A) not every head of `q` (..., K, A) rules out by -inf."""
    return xp.max(q, axis=-2) != -xp.inf


def _mean_where(which: AnyArray, x: AnyArray, xp: Any) -> AnyArray:
    """Return the mean (..., 1) over the last axis of those `x` (..., A) that `which` (..., A) names."""
    number = xp.clip(xp.sum(xp.astype(which, x.dtype), axis=-1, keepdims=True), 1, None)
    return xp.sum(xp.where(which, x, 0.0), axis=-1, keepdims=True) / number


def vote_counts(q: AnyArray) -> AnyArray:
    """Return how many heads of `q` (..., K, A) have each action as their greedy one: (..., A), of q's own type."""
    xp = namespace_of_q(q)
    ballots = one_hot(xp.argmax(q, axis=-1), q.shape[-1], xp)
    return xp.sum(xp.astype(ballots, q.dtype), axis=-2)


def vote_diversity(q: AnyArray) -> VoteDiversity:
    """Measure how diverse the greedy actions of the heads of `q` (..., K, A) are; each measure is (...)."""
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
