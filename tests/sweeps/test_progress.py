"""Many runs in a terminal: what is left is reckoned from what this sweep has worked, not from what it found done."""

from pathlib import PurePosixPath

import pytest
from rich.console import Console

from bootdqn.config.train import from_flat
from bootdqn.sweeps.events import Ended, Started, Underway
from bootdqn.sweeps.plan import PlannedRun
from bootdqn.sweeps.progress import Display
from bootdqn.training.callbacks import Progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr("bootdqn.sweeps.progress.time.monotonic", lambda: now[0])
    return now


def planned(name, episodes=100):
    config = from_flat({"environment": "deep-sea", "size": 4, "max_episodes": episodes})
    return PlannedRun(PurePosixPath(name), config)


def at(run, completed):
    return Underway(run, Progress(0, completed, "", "", None, ""))


def left(display):
    """What the heading says of the time left, if anything."""
    return display.picture().renderables[0].plain.partition(", about ")[2].removesuffix(" left at most")


def test_time_left_is_that_of_the_work_left_at_the_pace_so_far(clock):
    first, second = planned("first"), planned("second")
    display = Display([first, second], [], Console())
    assert left(display) == ""
    display.show(Started(first))
    display.show(at(first, 0.0))
    clock[0] = 60.0
    display.show(at(first, 0.5))
    assert left(display) == "3m 00s", "half of a run a minute, and one and a half are left"
    clock[0] = 120.0
    display.show(Ended(first, {"status": "finished", "episodes": 100, "steps": 400, "seconds": 9.0}, None))
    assert left(display) == "2m 00s"


def test_a_run_that_is_tried_again_has_not_lost_what_it_had_done(clock):
    first, second = planned("first"), planned("second")
    display = Display([first, second], [], Console())
    for run, completed in ((first, 0.9), (second, 0.0)):
        display.show(Started(run))
        display.show(at(run, completed))
    clock[0] = 60.0
    display.show(at(second, 0.5))
    told = left(display)
    assert told == "1m 12s", "half a run a minute, and 0.6 of one is left"
    display.show(Ended(first, None, "lost", retrying=True))
    assert left(display) == told
    display.show(Started(first))
    assert left(display) == told


def test_what_a_run_had_done_before_is_not_taken_for_work_of_this_sweep(clock):
    run = planned("resumed")
    display = Display([run], [], Console())
    display.show(Started(run))
    clock[0] = 1.0
    display.show(at(run, 0.9))
    assert left(display) == "", "nothing was seen to be done yet"
    clock[0] = 601.0
    display.show(at(run, 0.95))
    assert left(display) == "10m 01s"
