"""The rule of PROTOCOL: solved at the first episode e with (bad episodes so far) / e < 0.9."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.envs.deep_sea import SolvedRule, describe_solved


def solved_by_the_book(bad: list[bool], minimum_good: int) -> int | None:
    for episode in range(1, len(bad) + 1):
        so_far = bad[:episode]
        if Fraction(sum(so_far), episode) < Fraction(9, 10) and so_far.count(False) >= minimum_good:
            return episode
    return None


@given(st.lists(st.sampled_from([True] * 9 + [False]), max_size=200))
def test_both_readings_agree_with_exact_arithmetic(bad):
    rule = SolvedRule()
    for is_bad in bad:
        rule.add_episode(bad=is_bad)
    assert rule.solved_at == solved_by_the_book(bad, minimum_good=0)
    assert rule.solved_at_strict == solved_by_the_book(bad, minimum_good=10)
    assert rule.good_episodes == bad.count(False)
    assert rule.bad_episodes == bad.count(True)
    assert rule.first_good_episode == (bad.index(False) + 1 if False in bad else None)
    assert rule.solved_by_both == (rule.solved_at is not None and rule.solved_at_strict is not None)


def test_one_good_episode_among_the_first_nine_is_enough_for_bsuite_and_not_for_us():
    rule = SolvedRule()
    for bad in [True] * 8 + [False]:
        rule.add_episode(bad=bad)
    assert rule.solved_at == 9
    assert rule.solved_at_strict is None


def test_exactly_nine_tenths_is_not_below_nine_tenths():
    for tens in range(1, 200):
        rule = SolvedRule()
        for _ in range(9 * tens):
            rule.add_episode(bad=True)
        for _ in range(tens):
            rule.add_episode(bad=False)
        assert rule.solved_at is None, tens


def test_the_running_regret_is_the_fraction_of_bad_episodes():
    rule = SolvedRule()
    assert rule.running_regret == 1.0
    for bad in (True, False, False, True):
        rule.add_episode(bad=bad)
    assert rule.running_regret == 0.5


@pytest.mark.parametrize(
    ("solved_at", "strict", "description"),
    [
        (57, 57, "solved at episode 57"),
        (None, None, "not solved yet"),
        (
            1053,
            2057,
            "solved at episode 2,057 (by bsuite's rule, which does not ask for 10 good ones, at episode 1,053)",
        ),
        (9, None, "not solved yet (by bsuite's rule, which does not ask for 10 good ones, at episode 9)"),
    ],
)
def test_both_definitions_of_solved_are_reported_where_they_differ(solved_at, strict, description):
    assert describe_solved(solved_at, strict, "not solved yet") == description
