"""Heads that vote: one action from many opinions, and how far the opinions are apart."""

from typing import Literal, NamedTuple, get_args

from bootdqn.exploration.arrays import Array, namespace_of_q, one_hot, population_variance

VoteRule = Literal["plurality", "mean"]


class VoteDiversity(NamedTuple):
    """Four readings of "how different are the votes", each of shape (...)."""

    vote_count_variance: Array
    """Population variance over actions of the vote counts. High means agreement."""
    vote_entropy: Array
    """Entropy of the vote shares in nats. High means diversity."""
    distinct_actions: Array
    """How many actions received at least one vote, as a float. High means diversity."""
    action_index_variance: Array
    """Population variance over heads of the index each voted for. High means diversity, if indices mean anything."""


def vote(q: Array, rule: VoteRule = "plurality") -> Array:
    """Return the action that the heads choose together.

    Args:
        q: Q-values (..., K, A).
        rule: `"plurality"`: each head votes for its greedy action, most votes win, a tie goes to the tied action with
            the higher mean Q. `"mean"`: the action with the highest mean Q. The lowest index wins what is still tied.

    Returns:
        Action indices (...).
    """
    if rule not in get_args(VoteRule):
        raise ValueError(f"rule must be one of {', '.join(get_args(VoteRule))}; got {rule!r}")
    xp = namespace_of_q(q)
    mean = xp.mean(q, axis=-2)
    if rule == "mean":
        return xp.argmax(mean, axis=-1)
    votes = vote_counts(q)
    leads = votes == xp.max(votes, axis=-1, keepdims=True)
    highest = xp.max(xp.where(leads, mean, -xp.inf), axis=-1, keepdims=True)
    return xp.argmax(xp.astype(leads & (mean == highest), q.dtype), axis=-1)


def vote_counts(q: Array) -> Array:
    """Return how many heads of `q` (..., K, A) have each action as their greedy one: (..., A), of q's own type."""
    xp = namespace_of_q(q)
    ballots = one_hot(xp.argmax(q, axis=-1), q.shape[-1], xp)
    return xp.sum(xp.astype(ballots, q.dtype), axis=-2)


def vote_diversity(q: Array) -> VoteDiversity:
    """Measure how diverse the greedy actions of the heads of `q` (..., K, A) are; each measure is (...)."""
    xp = namespace_of_q(q)
    votes = vote_counts(q)
    share = votes / q.shape[-2]
    voted = votes > 0
    surprise = -xp.log(xp.where(voted, share, 1.0))
    index = xp.astype(xp.argmax(q, axis=-1), q.dtype)
    return VoteDiversity(
        vote_count_variance=population_variance(votes, -1, xp),
        vote_entropy=xp.sum(share * surprise, axis=-1),
        distinct_actions=xp.sum(xp.astype(voted, q.dtype), axis=-1),
        action_index_variance=population_variance(index, -1, xp),
    )
