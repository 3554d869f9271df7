"""The display of a sweep: the time left is estimated from the work of this sweep, not from runs finished before."""

from pathlib import PurePosixPath

import pytest
from rich.console import Console

from bootdqn.config.settings import from_flat
from bootdqn.sweeps.executor import Ended, Progressed, Started
from bootdqn.sweeps.progress import SweepDisplay, run_label
from bootdqn.sweeps.sweep_file import PlannedRun
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
    return Progressed(run, Progress(completed, "", "", None, ""))


def left(display):
    """Return the time left in the heading, if any."""
    return display.render().renderables[0].plain.partition(", at most ")[2].removesuffix(" left")


def test_time_left_is_that_of_the_work_left_at_the_pace_so_far(clock):
    first, second = planned("first"), planned("second")
    display = SweepDisplay([first, second], [], Console())
    assert left(display) == ""
    display.update(Started(first))
    display.update(at(first, 0.0))
    clock[0] = 60.0
    display.update(at(first, 0.5))
    assert left(display) == "3m 00s", "half of a run a minute, and one and a half are left"
    clock[0] = 120.0
    display.update(Ended(first, {"status": "finished", "episodes": 100, "steps": 400, "seconds": 9.0}, None))
    assert left(display) == "2m 00s"


def test_a_run_that_is_retried_keeps_its_earlier_progress(clock):
    first, second = planned("first"), planned("second")
    display = SweepDisplay([first, second], [], Console())
    for run, completed in ((first, 0.9), (second, 0.0)):
        display.update(Started(run))
        display.update(at(run, completed))
    clock[0] = 60.0
    display.update(at(second, 0.5))
    printed = left(display)
    assert printed == "1m 12s", "half a run a minute, and 0.6 of one is left"
    display.update(Ended(first, None, "lost", retrying=True))
    assert left(display) == printed
    display.update(Started(first))
    assert left(display) == printed


def test_what_a_run_had_done_before_is_not_taken_for_work_of_this_sweep(clock):
    run = planned("resumed")
    display = SweepDisplay([run], [], Console())
    display.update(Started(run))
    clock[0] = 1.0
    display.update(at(run, 0.9))
    assert left(display) == "", "nothing was seen to be done yet"
    clock[0] = 601.0
    display.update(at(run, 0.95))
    assert left(display) == "10m 01s"


def test_no_line_reaches_the_edge_where_a_terminal_would_wrap_the_echo_of_ctrl_c():
    console = Console(width=60, soft_wrap=True)
    run = planned("long")
    display = SweepDisplay([run], [], console)
    display.update(Started(run))
    display.update(Progressed(run, Progress(0.5, "1,000,000 steps", "1,234 steps/s", 9999.0, "a note" * 10)))
    lines = console.render_lines(display._narrow(), pad=False)
    assert len(lines) >= 2
    assert max(sum(segment.cell_length for segment in line) for line in lines) <= 60 - 4


def test_a_narrow_terminal_cuts_the_state_of_a_run_before_its_name():
    console = Console(width=70, soft_wrap=True)
    run = planned("long")
    display = SweepDisplay([run], [], console)
    display.update(Started(run))
    display.update(Progressed(run, Progress(0.5, "1,000,000 steps", "1,234 steps/s", 61.0, "a note" * 10)))
    lines = ["".join(segment.text for segment in line) for line in console.render_lines(display._narrow(), pad=False)]
    assert len(lines) == 2, "a row is one line"
    assert lines[1].startswith(f"{run_label(run)}   50 %  1,000,000 steps | ")
    assert lines[1].rstrip().endswith("…")
