"""Random streams by name: independent of each other and of the order of use, saved and restored exactly."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bootdqn.common.random_streams import RandomStreams, random_stream

PURPOSES = ("networks", "masks", "acting", "replay", "environment/0", "environment/1", "environment/10", "")


def sample_everything(rng):
    """Sample in several ways, including those that buffer a part of a sample."""
    halves = rng.integers(0, 100, 3, dtype=np.uint32)
    return [*rng.random(3), *rng.normal(size=3), *halves, *rng.permutation(5)]


# Independence


def test_a_stream_depends_on_seed_and_purpose_alone():
    assert sample_everything(random_stream(3, "masks")) == sample_everything(random_stream(3, "masks"))
    samples = [tuple(random_stream(seed, purpose).random(4)) for seed in range(20) for purpose in PURPOSES]
    assert len(set(samples)) == len(samples)
    assert len({sample[0] for sample in samples}) == len(samples)


def test_streams_of_neighbouring_seeds_and_purposes_are_uncorrelated():
    streams = [random_stream(seed, purpose).random(20_000) for seed in (0, 1) for purpose in PURPOSES]
    correlation = np.corrcoef(streams) - np.eye(len(streams))
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000)


def test_first_samples_over_many_seeds_are_uniform():
    first = [random_stream(seed, "masks").random() for seed in range(2000)]
    assert stats.kstest(first, "uniform").pvalue > 0.01


def test_large_seeds_are_streams_of_their_own():
    samples = {random_stream(seed, "masks").random() for seed in (0, 1, 2**32, 2**32 + 1, 2**64, 2**100)}
    assert len(samples) == 6


def test_no_global_generator_is_touched():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002 - that it stays is the point
    RandomStreams(3)["masks"].random(10)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize(
    ("seed", "purpose", "samples"),
    [
        (0, "networks", [10090115296030593817, 11465419819068978064]),
        (7, "environment/0", [14774703618841748173, 5785115972902744319]),
    ],
)
def test_the_samples_of_a_stream_never_change(seed, purpose, samples):
    assert random_stream(seed, purpose).bit_generator.random_raw(2).tolist() == samples


# Streams of one run


@given(st.permutations(PURPOSES), st.lists(st.sampled_from(PURPOSES), max_size=30))
def test_neither_the_order_of_first_use_nor_other_samples_change_a_stream(order, samples):
    streams = RandomStreams(5)
    for purpose in order:
        streams[purpose]
    count = dict.fromkeys(PURPOSES, 0)
    for purpose in samples:
        streams[purpose].random()
        count[purpose] += 1
    for purpose in PURPOSES:
        alone = random_stream(5, purpose)
        alone.random(count[purpose])
        assert streams[purpose].random() == alone.random()


def test_a_stream_is_one_object_that_stays():
    streams = RandomStreams(1)
    masks = streams["masks"]
    assert streams["masks"] is masks
    streams.set_state(streams.get_state())
    assert streams["masks"] is masks


# Save and restore


def test_streams_restored_through_json_continue_exactly():
    streams = RandomStreams(11)
    for purpose in PURPOSES:
        sample_everything(streams[purpose])
    text = json.dumps(streams.get_state())
    resumed = RandomStreams(11)
    resumed.set_state(json.loads(text))
    for purpose in (*PURPOSES, "first used after"):
        assert sample_everything(resumed[purpose]) == sample_everything(streams[purpose])


def test_restoring_goes_back_for_every_stream_also_one_first_used_later():
    streams = RandomStreams(2)
    streams["masks"].random()
    state = streams.get_state()
    expected = {purpose: sample_everything(streams[purpose]) for purpose in ("masks", "replay")}
    streams.set_state(state)
    assert {purpose: sample_everything(streams[purpose]) for purpose in ("masks", "replay")} == expected


def test_a_saved_state_is_not_changed_by_later_samples():
    streams = RandomStreams(2)
    streams["masks"].integers(10, dtype=np.uint32)
    state = streams.get_state()
    kept = json.loads(json.dumps(state))
    sample_everything(streams["masks"])
    assert state == kept


def test_a_state_names_the_streams_in_order_whatever_the_order_of_use():
    streams = RandomStreams(2)
    for purpose in ("replay", "acting", "masks"):
        streams[purpose].random()
    assert list(streams.get_state()) == ["acting", "masks", "replay"]


def test_a_negative_seed_is_an_error():
    with pytest.raises(ValueError, match="non-negative"):
        random_stream(-1, "masks")
