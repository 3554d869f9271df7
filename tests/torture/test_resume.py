"""DeepSea, stopped anywhere and resumed in a fresh process, has the results of a run never stopped, bit for bit."""

import random

import pytest

from bootdqn.runs.directory import RunDirectory
from torture.legs import results, stopping_at, train, train_unbroken, with_segments_of
from torture.settings import BEYOND_THE_PAPER, CAPACITY, DEEP_SEA, EVALUATION_EVERY, LEARNING_STARTS
from torture.settings import DEEP_SEA_STEPS as STEPS

SMALL_SEGMENTS = with_segments_of(24)
MOMENTS = (
    range(1, LEARNING_STARTS),
    range(CAPACITY + 10, STEPS),
    range(LEARNING_STARTS, LEARNING_STARTS + 3),
    range(LEARNING_STARTS, CAPACITY),
    range(EVALUATION_EVERY, STEPS, EVALUATION_EVERY),
)
"""Before the first update, when the replay has wrapped, at the first updates, between them, with an evaluation due."""


def stop_and_resume(settings, path, *steps):
    """Train in one process for each stop and a last one to the end; return the results."""
    resumed_from = None
    for step in steps:
        leg = train(settings, path, SMALL_SEGMENTS, stopping_at(step))
        assert (leg.exit_code, leg.error, leg.warned) == (143, None, [])
        assert leg.resumed_from == resumed_from
        resumed_from = step
        assert RunDirectory(path).read_summary()["status"] == "interrupted"
    leg = train(settings, path, SMALL_SEGMENTS)
    assert (leg.exit_code, leg.error, leg.warned) == (0, None, [])
    assert leg.resumed_from == resumed_from
    return results(path)


@pytest.mark.parametrize("engine", ["compiled", "autograd"])
def test_a_run_stopped_at_any_step_has_the_results_of_one_never_stopped(tmp_path, sized, engine):
    settings, rng = DEEP_SEA | {"engine": engine}, random.Random(engine)
    expected = train_unbroken(settings, tmp_path / "unbroken", SMALL_SEGMENTS)
    stops = [rng.choice(MOMENTS[number % len(MOMENTS)]) for number in range(sized(2, 25))]
    different = [stop for number, stop in enumerate(stops)
                 if stop_and_resume(settings, tmp_path / f"stopped-{number}", stop) != expected]  # fmt: skip
    print(
        f"{engine}: {len(stops) - len(different)} of {len(stops)} stopped runs equal the unbroken one; stops: {stops}"
    )
    assert different == []


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "compiled", "snapshot_every": 64},
        {"engine": "autograd", "num_envs": 3, "snapshot_every": "log"},
        {"engine": "compiled", "snapshot_every": 64} | BEYOND_THE_PAPER,
        {"engine": "autograd", "num_envs": 2, "snapshot_every": 64} | BEYOND_THE_PAPER,
    ],
    ids=["compiled", "autograd", "compiled-beyond", "autograd-beyond"],
)
def test_a_run_stopped_repeatedly_has_the_results_of_one_never_stopped(tmp_path, sized, changes):
    settings, rng, num_envs = DEEP_SEA | changes, random.Random(str(changes)), changes.get("num_envs", 1)
    expected = train_unbroken(settings, tmp_path / "unbroken", SMALL_SEGMENTS)
    assert len(expected) > 4, "there are snapshots among it"
    for number in range(sized(1, 4)):
        rounds = range(1, STEPS // num_envs - 1)
        chosen = rng.sample(rounds, sized(2, 4))
        stops = sorted({num_envs * one for one in (*chosen, chosen[0] + 1)})
        assert stop_and_resume(settings, tmp_path / f"stopped-{number}", *stops) == expected, stops


def test_a_run_stopped_at_its_last_step_still_makes_the_evaluation_that_is_due(tmp_path):
    assert STEPS % EVALUATION_EVERY == 0
    expected = train_unbroken(DEEP_SEA, tmp_path / "unbroken", SMALL_SEGMENTS)
    assert stop_and_resume(DEEP_SEA, tmp_path / "stopped", STEPS) == expected
