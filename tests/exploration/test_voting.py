"""Votes and their diversity: hand-worked ballots, the slow reference, and the reference points of the protocol."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.exploration as reference
from bootdqn import Vote, VoteDiversity, parse_strategy, tally, vote, vote_diversity
from bootdqn.exploration.voting import vote_counts
from reference.q_values import BATCHES, assert_every_state, exact_q


def q_of_ballots(ballots, num_actions):
    """Return Q-values (K, A) whose heads vote for the given actions."""
    return np.eye(num_actions)[list(ballots)]


# Who wins


def test_most_votes_win_against_a_higher_mean():
    q = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 9.0]])  # votes 2, 0, 1; means 2/3, 0, 3
    assert vote(q) == 0
    assert vote(q, "mean") == 2


def test_a_tie_goes_to_the_tied_action_with_the_higher_mean():
    q = np.array([[2.0, 0.0, 1.5], [2.0, 1.0, 1.5], [0.0, 3.0, 2.5], [0.0, 3.0, 2.5]])  # votes 2, 2, 0
    np.testing.assert_array_equal(q.mean(axis=0), [1.0, 1.75, 2.0])
    assert vote(q) == 1  # not 0, the first of the tied, and not 2, the best mean without a vote
    assert vote(q, "mean") == 2


def test_a_tie_in_votes_and_mean_goes_to_the_lowest_index():
    q = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert vote(q) == 1
    assert vote(np.zeros((3, 4))) == 0
    assert vote(q, "mean") == 1


def test_a_tie_of_negative_means_stays_among_the_tied():
    q = np.array([[-9.0, -1.0, -8.0], [-9.0, -8.0, -2.0]])  # votes 0, 1, 1; means -9, -4.5, -5
    assert vote(q) == 1


def test_a_head_that_is_undecided_votes_for_the_lowest_index():
    q = np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    assert vote(q) == 1
    np.testing.assert_array_equal(vote_counts(q), [0, 2, 1])


def test_one_head_and_one_action_decide_alone():
    assert vote(np.array([[0.0, 2.0, 1.0]])) == 1
    assert vote(np.zeros((4, 1))) == 0
    assert vote(np.zeros((4, 1)), "mean") == 0


def test_only_an_action_with_votes_can_win_even_if_infinity_makes_the_means_equal():
    q = np.array([[0.0, 1.0, -np.inf], [0.0, -np.inf, 1.0]])
    assert vote(q) == 1


@given(exact_q(min_actions=1, batches=BATCHES))
def test_the_votes_are_those_of_the_reference(q):
    for actual, winner in ((vote(q), reference.plurality_vote), (vote(q, "mean"), reference.mean_vote)):
        assert actual.shape == q.shape[:-2]
        assert_every_state(actual, q, lambda state, _, winner=winner: winner(state))
    assert_every_state(vote_counts(q), q, lambda state, _: reference.vote_counts(state))


@given(st.data(), exact_q(min_actions=1))
def test_the_order_of_the_heads_does_not_matter(data, q):
    shuffled = q[data.draw(st.permutations(range(q.shape[0])))]
    assert vote(q) == vote(shuffled)
    assert vote(q, "mean") == vote(shuffled, "mean")
    counts = vote_diversity(q)
    for measure, again in zip(counts, vote_diversity(shuffled), strict=True):
        assert math.isclose(measure, again, rel_tol=1e-14)


@pytest.mark.parametrize("rule", ["majority", "Plurality", "", None, 0, ["mean"]])
def test_an_unknown_rule_is_an_error_that_lists_the_known_ones(rule):
    with pytest.raises(
        ValueError, match="rule must be one of plurality, mean, borda, approval, copeland, gap; got"
    ) as caught:
        vote(np.zeros((2, 2)), rule)
    assert repr(rule) in str(caught.value)


# Other rules

TALLIES = {
    "borda": reference.borda_tally,
    "approval": reference.approval_tally,
    "copeland": reference.copeland_tally,
    "gap": reference.gap_tally,
}


@pytest.mark.parametrize("rule", TALLIES)
@given(q=exact_q(min_actions=1, batches=BATCHES))
def test_every_rule_counts_and_chooses_as_the_reference(rule, q):
    assert_every_state(tally(q, rule), q, lambda state, _: TALLIES[rule](state))
    assert_every_state(vote(q, rule), q, lambda state, _: reference.tallied_vote(state, TALLIES[rule]))


def test_the_rules_differ_where_they_should():
    """Two heads love the first action; three put it last and are split; all can live with the third."""
    q = np.array([[9.0, 0, 1], [9.0, 0, 1], [0, 3.0, 2], [0, 3.0, 2], [0, 1.5, 2]])
    assert [int(vote(q, rule)) for rule in ("plurality", "mean", "gap")] == [0, 0, 0]
    assert [int(vote(q, rule)) for rule in ("borda", "approval", "copeland")] == [2, 2, 2]


@given(exact_q(min_actions=2, heads=(1, 2, 4)))
def test_an_action_that_beats_every_other_one_wins_by_copeland(q):
    ahead = (q[:, :, None] > q[:, None, :]).sum(axis=0)
    winners = [a for a in range(q.shape[1]) if all(ahead[a, b] > ahead[b, a] for b in range(q.shape[1]) if b != a)]
    if winners:
        assert vote(q, "copeland") == winners[0]


@pytest.mark.parametrize("rule", TALLIES)
def test_a_tie_goes_to_the_higher_mean_and_then_to_the_lowest_index(rule):
    assert vote(np.zeros((3, 4)), rule) == 0
    q = np.array([[2.0, 0.0, 0.0], [0.0, 2.5, 0.0], [0.0, 0.0, 0.0]])
    if rule in ("borda", "approval", "copeland"):
        assert vote(q, rule) == 1


def test_a_vote_is_a_strategy():
    strategy = parse_strategy("vote:rule=borda")
    q = np.random.default_rng(0).normal(size=(7, 5, 4))
    np.testing.assert_array_equal(strategy.select(q, np.zeros(7, int)), vote(q, "borda"))
    np.testing.assert_array_equal(strategy.scores(q, 0), tally(q, "borda"))
    with pytest.raises(ValueError, match="rule must be one of"):
        parse_strategy("vote:rule=bordo")
    with pytest.raises(ValueError, match="rule must be one of"):
        Vote("bordo")


# How diverse the votes are


def test_diversity_of_worked_ballots():
    measures = vote_diversity(q_of_ballots([0, 0, 3, 1], num_actions=4))  # counts 2, 1, 0, 1
    assert isinstance(measures, VoteDiversity)
    assert measures.vote_count_variance == 0.5
    assert measures.vote_entropy == pytest.approx(1.5 * math.log(2), rel=1e-14)
    assert measures.distinct_actions == 3
    assert measures.action_index_variance == 1.5


def test_the_measures_come_in_the_order_of_their_names():
    assert VoteDiversity._fields == (
        "vote_count_variance",
        "vote_entropy",
        "distinct_actions",
        "action_index_variance",
    )


@given(exact_q(min_actions=1, batches=BATCHES))
def test_diversity_is_the_reference(q):
    measures = vote_diversity(q)
    for name, values in measures._asdict().items():
        assert values.shape == q.shape[:-2]
        for index in np.ndindex(q.shape[:-2]):
            expected = getattr(reference, name)(q[index].tolist())
            assert math.isclose(values[index], expected, rel_tol=1e-13, abs_tol=1e-15), name


@pytest.mark.parametrize("action", range(18))
def test_unanimity_of_ten_heads_over_eighteen_actions(action):
    measures = vote_diversity(q_of_ballots([action] * 10, num_actions=18))
    assert measures.vote_count_variance == pytest.approx(5.25, abs=0.005)
    assert measures.vote_count_variance == pytest.approx(100 / 18 - (10 / 18) ** 2, rel=1e-14)
    assert measures.vote_entropy == 0
    assert measures.distinct_actions == 1
    assert measures.action_index_variance == 0


def test_ten_heads_that_all_differ_have_entropy_ln_10():
    measures = vote_diversity(q_of_ballots(range(3, 13), num_actions=18))
    assert measures.vote_entropy == pytest.approx(math.log(10), rel=1e-14)
    assert measures.distinct_actions == 10
    assert measures.vote_count_variance == pytest.approx(10 / 18 - (10 / 18) ** 2, rel=1e-14)
    assert measures.action_index_variance == pytest.approx(99 / 12, rel=1e-14)


def test_random_votes_of_ten_heads_over_eighteen_actions():
    q = np.random.default_rng(20250630).normal(size=(20_000, 10, 18))
    measures = vote_diversity(q)
    multinomial_variance = 10 * (1 / 18) * (17 / 18)  # of one count; the counts' mean is always 10 / 18
    assert multinomial_variance == pytest.approx(0.52, abs=0.005)
    for values, expectation in (
        (measures.vote_count_variance, multinomial_variance),
        (measures.distinct_actions, 18 * (1 - (17 / 18) ** 10)),
        (measures.action_index_variance, (18**2 - 1) / 12 * 9 / 10),
    ):
        standard_error = values.std() / math.sqrt(values.size)
        assert abs(values.mean() - expectation) < 4 * standard_error
    assert measures.vote_entropy.max() <= math.log(10) * (1 + 1e-14)


@given(st.lists(st.integers(0, 17), min_size=1, max_size=20))
def test_agreement_bounds_every_measure(ballots):
    measures = vote_diversity(q_of_ballots(ballots, num_actions=18))
    num_heads, distinct = len(ballots), len(set(ballots))
    assert measures.distinct_actions == distinct
    assert 0 <= measures.vote_entropy <= math.log(distinct) + 1e-14
    assert (measures.vote_entropy == 0) == (distinct == 1)
    assert measures.vote_count_variance <= num_heads**2 * 17 / 18**2 * (1 + 1e-14)
    assert (measures.action_index_variance == 0) == (distinct == 1)


@given(st.data(), st.lists(st.integers(0, 5), min_size=1, max_size=10))
def test_only_the_index_variance_depends_on_how_the_actions_are_numbered(data, ballots):
    renumbered = data.draw(st.permutations(range(6)))
    before = vote_diversity(q_of_ballots(ballots, 6))
    after = vote_diversity(q_of_ballots([renumbered[ballot] for ballot in ballots], 6))
    assert before.vote_count_variance == pytest.approx(after.vote_count_variance, rel=1e-13)
    assert before.vote_entropy == pytest.approx(after.vote_entropy, rel=1e-13)
    assert before.distinct_actions == after.distinct_actions
