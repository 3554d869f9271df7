"""The sum tree against plain lists, and prioritised sampling against its probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bootdqn.common.specs import DiscreteSpec
from bootdqn.config.agent import ReplayConfig
from bootdqn.replay.buffer import ReplayBuffer
from bootdqn.replay.prioritized import MIN_ERROR, Priorities, SumTree, importance_weights


class NaiveSums:
    """A list of numbers; a mass is found by adding them up from the left."""

    def __init__(self, size):
        self.values = [0] * size

    def find(self, mass):
        so_far = 0
        for index, value in enumerate(self.values):
            so_far += value
            if so_far > mass:
                return index
        raise AssertionError("beyond the total")


WHOLE = st.integers(0, 1000)
"""Whole numbers add up exactly, in whatever order."""


@settings(max_examples=200)
@given(st.integers(1, 40), st.data())
def test_a_tree_driven_by_random_operations_is_the_naive_one(size, data):
    tree, naive = SumTree(size), NaiveSums(size)
    index = st.integers(0, size - 1)
    for kind in data.draw(st.lists(st.sampled_from(["one", "many", "all", "find"]), min_size=1, max_size=25)):
        if kind == "one":
            at, value = data.draw(index), data.draw(WHOLE)
            tree.set(at, float(value))
            naive.values[at] = value
        elif kind == "many":
            pairs = data.draw(st.lists(st.tuples(index, WHOLE), max_size=10))
            tree.set_many(np.array([at for at, _ in pairs], np.int64), np.array([value for _, value in pairs], float))
            for at, value in pairs:
                naive.values[at] = value
        elif kind == "all":
            naive.values = data.draw(st.lists(WHOLE, min_size=size, max_size=size))
            tree.set_all(np.array(naive.values, float))
        elif sum(naive.values):
            masses = data.draw(st.lists(st.integers(0, sum(naive.values) - 1), max_size=10))
            found = tree.find(np.array([mass + 0.5 for mass in masses]))
            assert found.tolist() == [naive.find(mass + 0.5) for mass in masses]
            assert tree.find(np.array(masses, float)).tolist() == [naive.find(mass) for mass in masses]
        assert tree.total == sum(naive.values)
        assert tree.values.tolist() == naive.values


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.data())
def test_a_tree_does_not_remember_how_it_came_to_its_numbers(values, data):
    at_once, one_by_one = SumTree(len(values)), SumTree(len(values))
    at_once.set_all(np.array(values))
    one_by_one.set_all(np.array(values[::-1]))
    for index in data.draw(st.permutations(range(len(values)))):
        one_by_one.set(index, values[index])
    assert at_once.total == one_by_one.total
    mass = np.linspace(0, at_once.total, 30, endpoint=False)
    np.testing.assert_array_equal(at_once.find(mass), one_by_one.find(mass))


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=40).filter(any))
def test_a_number_that_is_zero_is_never_found_even_beyond_the_total(values):
    tree = SumTree(len(values))
    tree.set_all(np.array(values))
    found = tree.find(np.array([0.0, tree.total / 2, tree.total, np.nextafter(tree.total, np.inf), 2 * tree.total]))
    assert all(values[index] > 0 for index in found)


def test_the_values_of_a_tree_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        SumTree(3).values[0] = 1


# Priorities


def priorities_of(errors, alpha):
    priorities = Priorities(len(errors) + 2, alpha)
    for slot in range(len(errors)):
        priorities.insert(slot)
    priorities.update(np.arange(len(errors)), np.asarray(errors, np.float32))
    return priorities


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_sampling_frequencies_follow_the_formula(alpha):
    errors = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 8.0])
    priorities = priorities_of(errors, alpha)
    expected = (errors + MIN_ERROR) ** alpha
    expected /= expected.sum()
    rng = np.random.default_rng(0)
    counts = np.zeros(len(errors) + 2)
    for _ in range(4000):
        slot, probability = priorities.sample(1, rng)
        np.testing.assert_allclose(probability, expected[slot], rtol=1e-6)
        np.add.at(counts, slot, 1)
    assert not counts[len(errors) :].any()
    likely = expected * 4000 >= 5
    observed = np.append(counts[: len(errors)][likely], counts[: len(errors)][~likely].sum())
    wanted = np.append(expected[likely], expected[~likely].sum()) * 4000
    keep = wanted > 1e-9
    assert observed[~keep].sum() <= 1
    assert stats.chisquare(observed[keep], wanted[keep] * observed[keep].sum() / wanted[keep].sum()).pvalue > 1e-3


def test_a_batch_is_sampled_from_equal_parts_of_the_sum():
    priorities = priorities_of([1.0] * 64, 1.0)
    slot, _ = priorities.sample(64, np.random.default_rng(1))
    np.testing.assert_array_equal(slot, np.arange(64))


def test_a_new_transition_has_the_largest_priority_seen_and_a_dismissed_one_none():
    priorities = priorities_of([4.0, 1.0], 1.0)
    priorities.update(np.array([0]), np.array([0.5], np.float32))
    priorities.insert(2)
    values = priorities.get_state()["priorities"]
    np.testing.assert_allclose(values[:3], [0.5 + MIN_ERROR, 1 + MIN_ERROR, 4 + MIN_ERROR], rtol=1e-6)
    priorities.remove(2)
    priorities.update(np.array([2, 3]), np.array([9.0, 9.0], np.float32))
    assert not priorities.get_state()["priorities"][2:].any()


def test_importance_weights_correct_for_the_sampling_probabilities():
    probability = np.array([0.5, 0.25, 0.125, 0.125])
    values = np.array([3.0, -1.0, 2.0, 7.0])
    weight = importance_weights(probability, 4, 1.0).astype(float)
    assert weight.max() == 1
    np.testing.assert_allclose((probability * weight * values).sum() / (probability * weight).sum(), values.mean())
    np.testing.assert_array_equal(importance_weights(probability, 4, 0.0), 1)
    half = importance_weights(probability, 4, 0.5)
    np.testing.assert_allclose(half, np.sqrt(weight), rtol=1e-6)
    assert half.dtype == np.float32


# In the ring


def filled(alpha, steps, *, capacity=10, n_step=1):
    ring = ReplayBuffer(DiscreteSpec(1000), capacity=capacity, num_heads=2, discount=0.9, n_step=n_step, alpha=alpha)
    ring.start_episode(0, 0)
    for step in range(steps):
        ended = step % 7 == 6
        ring.add(0, step % 3, float(step), step + 1, np.ones(2, bool), terminated=ended, truncated=step % 11 == 10)
        if ended or step % 11 == 10:
            ring.start_episode(0, step + 1)
    return ring


def test_transitions_with_large_errors_are_sampled_more_often_and_weigh_less():
    ring = filled(1.0, 25)
    rng = np.random.default_rng(2)
    batch = ring.sample(200, rng, beta=1.0)
    assert set(np.unique(batch.slot)) == set(np.flatnonzero(ring.get_state()["priorities"]))
    surprising = batch.slot[0]
    slots = np.unique(batch.slot)
    ring.update_priorities(slots, np.where(slots == surprising, 9.0, 1.0).astype(np.float32))
    batch = ring.sample(1800, rng, beta=1.0)
    share = (batch.slot == surprising).mean()
    assert share == pytest.approx(9 / (8 + len(slots)), abs=1e-3)
    weight = {bool(which): weight for which, weight in zip(batch.slot == surprising, batch.weight, strict=True)}
    assert weight[False] == 1
    assert weight[True] == pytest.approx(1 / 9, rel=1e-5)


@pytest.mark.parametrize("steps", [1, 9, 10, 11, 40])
def test_only_transitions_that_are_there_have_a_priority(steps):
    ring, uniform = filled(0.6, steps), filled(None, steps)
    held = np.unpackbits(uniform.get_state()["sampleable"], count=11).astype(bool)
    np.testing.assert_array_equal(ring.get_state()["priorities"] > 0, held)
    assert len(ring) == held.sum()


def test_a_restored_ring_samples_the_same():
    ring = filled(0.6, 30)
    rng = np.random.default_rng(3)
    batch = ring.sample(16, rng)
    ring.update_priorities(batch.slot, rng.random(16).astype(np.float32))
    other = filled(0.6, 30)
    other.set_state(ring.get_state())
    one, two = (which.sample(64, np.random.default_rng(4), beta=0.4) for which in (ring, other))
    for found, expected in zip(two, one, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state["priorities"].fill(np.nan),
        lambda state: state["priorities"].fill(0),
        lambda state: state["priorities"].fill(1),
        lambda state: np.negative(state["priorities"], out=state["priorities"]),
        lambda state: state.update(largest_priority=np.asarray(np.inf)),
        lambda state: state.update(largest_priority=np.asarray(1e-9)),
        lambda state: state.update(priorities=state["priorities"][:-1]),
    ],
)
def test_invalid_priorities_are_an_error(spoil):
    ring = filled(0.6, 30)
    state = ring.get_state()
    spoil(state)
    with pytest.raises(ValueError, match="priorit"):
        filled(0.6, 30).set_state(state)


def test_uniform_sampling_ignores_errors():
    ring = filled(None, 25)
    before = ring.sample(50, np.random.default_rng(5), beta=1.0)
    ring.update_priorities(before.slot, np.arange(50, dtype=np.float32))
    after = ring.sample(50, np.random.default_rng(5), beta=1.0)
    np.testing.assert_array_equal(before.slot, after.slot)
    np.testing.assert_array_equal(after.weight, 1)


# The flags


def test_beta_rises_to_one():
    config = ReplayConfig(replay="prioritized", beta=0.4, beta_steps=100)
    assert [config.beta_at(step) for step in (0, 50, 100, 1000)] == pytest.approx([0.4, 0.7, 1.0, 1.0])
    assert ReplayConfig(replay="prioritized", beta=0.4).beta_at(10**9) == 0.4


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"replay": "prioritised"}, "--replay must be one of uniform, prioritized"),
        ({"replay": "prioritized", "alpha": -0.1}, "--alpha must be between 0 and 1"),
        ({"replay": "prioritized", "beta": 1.1}, "--beta must be between 0 and 1"),
        ({"replay": "prioritized", "beta_steps": 0}, "--beta-steps must be at least 1"),
        ({"alpha": 0.5}, "need --replay prioritized"),
        ({"beta": 0.5}, "need --replay prioritized"),
        ({"beta_steps": 5}, "need --replay prioritized"),
    ],
)
def test_flags_that_make_no_sense_are_an_error(settings_, message):
    with pytest.raises(ValueError, match=message):
        ReplayConfig(**settings_)
