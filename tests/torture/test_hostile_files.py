"""Whatever stands in a checkpoint, it is refused with an error that says so, or trained from: nothing in it is run."""

import shutil
from collections import Counter

import pytest

from torture import hostile
from torture.legs import FreshProcess, stopping_at, train, with_segments_of
from torture.settings import ATARI, DEEP_SEA, GYM

SMALL_SEGMENTS = with_segments_of(hostile.SEGMENT_SLOTS)
COMPILED, AUTOGRAD = DEEP_SEA | {"engine": "compiled"}, DEEP_SEA | {"engine": "autograd"}
GRAVITAR, CART_POLE = ATARI | {"game": "Gravitar", "sticky": 0.25}, GYM | {"env_id": "CartPole-v1"}


def load_all(settings, path, count, kinds):
    """Return what became of `count` spoiled copies of one run; none may end the process or leave the marker."""
    stopped = path / "stopped"
    assert train(settings, stopped, SMALL_SEGMENTS, stopping_at(115)).exit_code == 143
    first, _ = sorted((stopped / "checkpoints").glob("step-*"))
    shutil.rmtree(first)
    told = FreshProcess(hostile.load_victims, settings, stopped, path, range(count), kinds).messages()
    assert [seed for seed, *_ in told] == list(range(count)), "the process ended at the next one"
    assert not (path / "marker").exists()
    print(dict(Counter(f"{kinds[seed % len(kinds)].__name__} {outcome}" for seed, outcome, _ in told)))
    return told


def test_what_cannot_be_right_is_always_refused(tmp_path, sized):
    told = load_all(COMPILED, tmp_path, sized(36, 360), hostile.WRONG)
    assert [seed for seed, outcome, _ in told if outcome != "refused"] == []


@pytest.mark.parametrize(
    ("settings", "small", "large"),
    [(COMPILED, 42, 420), (AUTOGRAD, 14, 140), (GRAVITAR, 7, 70), (CART_POLE, 14, 140)],
    ids=["compiled", "autograd", "Gravitar", "CartPole"],
)
def test_what_may_be_right_is_refused_or_trained_from(tmp_path, sized, settings, small, large):
    told = load_all(settings, tmp_path, sized(small, large), hostile.DOUBTFUL)
    whys = " ".join(why for _, outcome, why in told if outcome == "refused")
    assert "is damaged" in whys
    assert "is not a segment of this replay buffer" in whys or "is not one of this run" in whys, (
        "some get as far as that"
    )


def test_what_is_signed_as_it_was_is_trained_from(tmp_path):
    ((_, outcome, why),) = load_all(COMPILED, tmp_path, 1, (hostile.unharmed,))
    assert (outcome, why) == ("accepted", "")
