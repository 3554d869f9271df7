"""The executor with a scripted backend: which failures are retried, and which runs a stop skips."""

import pytest

from bootdqn.sweeps.executor import Ended, Fault, Started, execute
from reference.planned import planned

FINISHED = {"status": "finished"}


class Backend:
    """Ends each attempt at a run by the script for its name; the last entry is repeated."""

    def __init__(self, scripts, slots=1, stop_after=None):
        self.slots, self._scripts = slots, {name: list(ends) for name, ends in scripts.items()}
        self._queue, self.attempts, self.most, self.closed = [], [], 0, False
        self._stop_after, self.stopped = stop_after, False

    def start(self, run):
        self.attempts.append(str(run.name))
        self._queue.append(run)
        self.most = max(self.most, len(self._queue))

    def events(self):
        run = self._queue.pop(0)
        script = self._scripts[str(run.name)]
        summary, error, fault, started = script.pop(0) if len(script) > 1 else script[0]
        return [*([Started(run)] if started else []), Ended(run, summary, error, fault)]

    def is_stop_requested(self):
        return len(self.attempts) == self._stop_after

    def stop(self):
        self.stopped = True

    def close(self):
        self.closed = True


DONE = (FINISHED, None, Fault.RUN, True)
CRASH, USAGE, LOST = ((None, "failed", fault, True) for fault in (Fault.RUN, Fault.USAGE, Fault.EXTERNAL))
NEVER_STARTED = (None, "its task was cancelled", Fault.EXTERNAL, False)


def run(backend, names, retries):
    events = []
    runs = [planned(name) for name in names]
    ended = execute(runs, backend, events.append, backend.is_stop_requested, retries=retries)
    assert backend.closed
    return {str(end.run.name): end for end in ended}, events


@pytest.mark.parametrize(
    ("script", "attempts", "finished"),
    [
        ([CRASH, CRASH, DONE], 3, True),
        ([CRASH, CRASH, CRASH, DONE], 3, False),
        ([USAGE, DONE], 1, False),
        ([LOST] * 5 + [DONE], 6, True),
        ([NEVER_STARTED] * 5 + [CRASH, LOST, CRASH, DONE], 9, True),
    ],
)
def test_a_failure_is_retried_by_where_its_cause_lies(script, attempts, finished):
    backend = Backend({"one": script})
    ended, events = run(backend, ["one"], retries=2)
    assert len(backend.attempts) == attempts
    assert ended["one"].finished == finished
    reported = [event for event in events if isinstance(event, Ended)]
    assert [end.retrying for end in reported] == [True] * (len(reported) - 1) + [False]
    assert len(reported) == sum(started for *_, started in script[:attempts])


def test_a_run_is_retried_after_all_others_and_no_more_slots_are_used_than_there_are():
    backend = Backend({"bad": [CRASH, DONE], "b": [DONE], "c": [DONE], "d": [DONE]}, slots=2)
    run(backend, ["bad", "b", "c", "d"], retries=1)
    assert backend.attempts == ["bad", "b", "c", "d", "bad"]
    assert backend.most == 2


def test_after_a_stop_nothing_is_started_or_retried():
    backend = Backend({"a": [DONE], "b": [CRASH], "c": [DONE]}, stop_after=2)
    ended, events = run(backend, ["a", "b", "c"], retries=1)
    assert backend.attempts == ["a", "b"]
    assert backend.stopped
    assert {name: end.retrying for name, end in ended.items()} == {"a": False, "b": False}
    assert len(events) == 4


def test_a_run_that_a_stop_finds_queued_is_left_out():
    backend = Backend({"a": [DONE], "b": [NEVER_STARTED]}, slots=2, stop_after=2)
    ended, events = run(backend, ["a", "b"], retries=1)
    assert list(ended) == ["a"]
    assert [str(event.run.name) for event in events] == ["a", "a"]
