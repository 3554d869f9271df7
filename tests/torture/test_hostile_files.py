"""Whatever a checkpoint contains, it is an error or trained from: no code in it is executed."""

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
    outcomes = FreshProcess(hostile.load_victims, settings, stopped, path, range(count), kinds).messages()
    assert [seed for seed, *_ in outcomes] == list(range(count)), "the process ended at the next one"
    assert not (path / "marker").exists()
    print(dict(Counter(f"{kinds[seed % len(kinds)].__name__} {outcome}" for seed, outcome, _ in outcomes)))
    return outcomes


def test_an_invalid_checkpoint_is_always_an_error(tmp_path, sized):
    outcomes = load_all(COMPILED, tmp_path, sized(36, 360), hostile.WRONG)
    assert [seed for seed, outcome, _ in outcomes if outcome != "refused"] == []


@pytest.mark.parametrize(
    ("settings", "small", "large"),
    [(COMPILED, 42, 420), (AUTOGRAD, 14, 140), (GRAVITAR, 7, 70), (CART_POLE, 14, 140)],
    ids=["compiled", "autograd", "Gravitar", "CartPole"],
)
def test_a_doubtful_checkpoint_is_an_error_or_trained_from(tmp_path, sized, settings, small, large):
    outcomes = load_all(settings, tmp_path, sized(small, large), hostile.DOUBTFUL)
    whys = " ".join(why for _, outcome, why in outcomes if outcome == "refused")
    assert "is damaged" in whys
    assert "is not a segment of this replay buffer" in whys or "is not one of this run" in whys, (
        "some get as far as that"
    )


def test_an_unchanged_checkpoint_that_is_signed_again_is_trained_from(tmp_path):
    ((_, outcome, why),) = load_all(COMPILED, tmp_path, 1, (hostile.unharmed,))
    assert (outcome, why) == ("accepted", "")
