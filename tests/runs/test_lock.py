"""The lock of a directory: who acquires it, who gets an error, and which locks are stale."""

import errno
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from bootdqn.common.errors import DamagedFileError, RunInUseError, TrainingError
from bootdqn.runs import lock
from bootdqn.runs.lock import STALE_AFTER_SECONDS, is_held, locked

IN_ANOTHER_PROCESS = """
import sys, time
from pathlib import Path
from bootdqn.common.errors import RunInUseError
from bootdqn.runs.lock import locked

print("ready", flush=True)
for order in sys.stdin:
    path, start = order.split()
    while time.monotonic() < float(start):
        pass
    try:
        with locked(Path(path)):
            print("holds it", flush=True)
            sys.stdin.readline()
        print("gave it back", flush=True)
    except RunInUseError as error:
        print(error, flush=True)
"""


class AnotherProcess:
    """A process that takes locks on request."""

    def __init__(self):
        command = [sys.executable, "-c", IN_ANOTHER_PROCESS]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        assert self.read_line() == "ready"

    def write_line(self, line):
        print(line, file=self._process.stdin, flush=True)

    def read_line(self):
        return self._process.stdout.readline().strip()

    def take(self, path, start=0.0):
        self.write_line(f"{path} {start}")

    def release(self):
        self.write_line("")
        assert self.read_line() == "gave it back"

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@contextmanager
def other_processes(count):
    processes = [AnotherProcess() for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()


@pytest.fixture(scope="module")
def another_process():
    with other_processes(1) as (process,):
        yield process


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "lock.json"


@pytest.fixture(autouse=True)
def nothing_else_is_left_in_the_directory(path):
    path.parent.mkdir()
    yield
    assert {left.name for left in path.parent.iterdir()} <= {"lock.json"}


def name_a_holder_elsewhere(path, seconds_silent=0.0, **changes):
    holder = {"host": "faraway", "boot_id": "another kernel", "pid": 7, "since": "2024-05-06T07:08:09+00:00"}
    path.write_text(json.dumps(holder | {"token": "theirs"} | changes))
    age(path, seconds_silent)


def age(path, seconds):
    touched = time.time() - seconds
    os.utime(path, (touched, touched))


def assert_free(path):
    with locked(path) as held:
        assert json.loads(path.read_text())["pid"] == os.getpid()
        held.check()
    assert not path.exists()


def test_the_file_names_its_holder_and_is_gone_afterwards(path):
    with locked(path):
        holder = json.loads(path.read_text())
        assert (holder["host"], holder["pid"]) == (platform.node(), os.getpid())
    assert not path.exists()


def test_the_lock_is_released_whatever_happens_inside(path):
    with pytest.raises(ZeroDivisionError), locked(path):
        raise ZeroDivisionError
    assert_free(path)


def test_locks_of_two_directories_are_independent(path, tmp_path):
    with locked(path), locked(tmp_path / "other.json"):
        pass


# Asked


def test_whether_a_living_process_holds_the_lock_can_be_read_without_changing_it(path, another_process):
    assert not is_held(path)
    with locked(path):
        before = path.stat()
        assert is_held(path)
        assert path.stat() == before
    another_process.take(path)
    assert another_process.read_line() == "holds it"
    assert is_held(path)
    another_process.release()
    assert not is_held(path)


def test_the_lock_of_a_killed_process_is_held_by_nobody(path):
    with other_processes(1) as (process,):
        process.take(path)
        assert process.read_line() == "holds it"
        process.kill()
    assert path.exists()
    assert not is_held(path)


@pytest.mark.parametrize(("silent", "held"), [(0, True), (STALE_AFTER_SECONDS + 1, False)])
def test_a_process_on_another_host_holds_the_lock_while_its_heartbeat_continues(path, silent, held):
    name_a_holder_elsewhere(path, silent)
    assert is_held(path) == held


def test_a_file_that_is_no_lock_is_held_by_nobody(path):
    path.write_text("{")
    assert not is_held(path)
    path.unlink()
    os.mkfifo(path)
    assert not is_held(path)


# Errors


def test_a_second_holder_in_this_process_gets_an_error_that_names_the_holder_and_since_when(path):
    with locked(path) as held:
        since = json.loads(path.read_text())["since"]
        with pytest.raises(RunInUseError) as caught, locked(path):
            pass
        message = str(caught.value)
        assert message.startswith(
            f"run directory {path.parent} is in use by process {os.getpid()} on {platform.node()}, "
        )
        assert f"since {since}: wait for it, or choose another run directory" in message
        held.check()
    assert_free(path)


def test_an_error_names_the_holder_in_another_process(path, another_process):
    another_process.take(path)
    assert another_process.read_line() == "holds it"
    with pytest.raises(RunInUseError, match=f"process {another_process.pid} on {platform.node()}, since 2"):
        assert_free(path)
    another_process.release()
    assert_free(path)


def test_another_process_gets_an_error_that_names_this_one(path, another_process):
    with locked(path):
        another_process.take(path)
        assert f"in use by process {os.getpid()} on {platform.node()}, since 2" in another_process.read_line()


def test_a_lock_with_a_recent_heartbeat_from_another_host_is_respected(path):
    name_a_holder_elsewhere(path)
    before = path.read_bytes()
    with pytest.raises(RunInUseError, match="in use by process 7 on faraway, since 2024-05-06T07:08:09") as caught:
        assert_free(path)
    assert re.search(r"if it is gone, try again in (90|8\d) seconds", str(caught.value))
    assert path.read_bytes() == before


def test_the_time_to_wait_is_what_remains_until_the_heartbeat_expires(path):
    name_a_holder_elsewhere(path, seconds_silent=60)
    with pytest.raises(RunInUseError, match=r"try again in (30|2\d) seconds"):
        assert_free(path)


def test_a_holder_with_the_name_of_this_host_and_another_kernel_is_elsewhere(path):
    name_a_holder_elsewhere(path, host=platform.node())
    with pytest.raises(RunInUseError, match="in use by process 7"):
        assert_free(path)


# No obstacle


def test_the_lock_of_a_killed_process_can_be_acquired(path):
    with other_processes(1) as (process,):
        process.take(path)
        assert process.read_line() == "holds it"
        process.kill()
    assert json.loads(path.read_text())["pid"] == process.pid
    assert_free(path)


def test_a_holder_on_another_host_without_heartbeat_is_considered_lost(path):
    name_a_holder_elsewhere(path, seconds_silent=STALE_AFTER_SECONDS + 1)
    assert_free(path)


UNREADABLE = {
    "empty": b"",
    "half written": b'{"host": "far',
    "not text": bytes(range(256)),
    "a list": b"[1, 2]",
    "a number": b"7",
    "nothing": b"null",
    "an object without its keys": b'{"pid": 7}',
    "a process that is no number": b'{"host": "a", "boot_id": "b", "pid": "seven", "since": "c", "token": "d"}',
    "an infinite process": b'{"host": "a", "boot_id": "b", "pid": 1e999, "since": "c", "token": "d"}',
    "deep": b"[" * 100_000,
    "long": b" " * 100_000,
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_file_is_respected_while_it_is_fresh_and_lost_when_it_is_old(path, content):
    path.write_bytes(content)
    with pytest.raises(RunInUseError, match=r"in use by another process: .* try again in (90|8\d) seconds"):
        assert_free(path)
    assert path.read_bytes() == content
    age(path, STALE_AFTER_SECONDS + 1)
    assert_free(path)


# Taken over


def test_a_holder_notices_that_another_one_took_over_and_leaves_that_ones_file_alone(path):
    with locked(path) as held:
        held.check()
        path.unlink()
        name_a_holder_elsewhere(path)
        with pytest.raises(TrainingError, match=f"{path.parent} was taken over by process 7 on faraway, since 2024"):
            held.check()
    assert json.loads(path.read_text())["token"] == "theirs"


def test_a_holder_notices_that_its_file_is_gone(path):
    with locked(path) as held:
        path.unlink()
        with pytest.raises(TrainingError, match="taken over by another process"):
            held.check()
    assert not path.exists()


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EMFILE, errno.EACCES])
def test_storage_that_does_not_answer_once_is_no_takeover(path, monkeypatch, code):
    def fail(_path):
        raise OSError(code, os.strerror(code))

    with locked(path) as held:
        with monkeypatch.context() as patch:
            patch.setattr(lock.Path, "read_bytes", fail)
            held.check()
        held.check()
        path.unlink()
        name_a_holder_elsewhere(path)
        with pytest.raises(TrainingError, match="taken over"):
            held.check()


def test_the_heartbeat_touches_the_file_as_long_as_it_is_held(path, monkeypatch):
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.001)
    with locked(path):
        for _ in range(3):
            os.utime(path, (0, 0))
            wait_until(lambda: path.stat().st_mtime > 0)


def test_a_heartbeat_never_keeps_the_lock_of_another_holder_fresh(path, monkeypatch):
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.001)
    with locked(path):
        ours = path.with_name("aside")
        path.rename(ours)
        name_a_holder_elsewhere(path, seconds_silent=50)
        theirs = path.stat().st_mtime
        os.utime(ours, (0, 0))
        wait_until(lambda: ours.stat().st_mtime > 0)
        assert path.stat().st_mtime == theirs
        ours.unlink()


# Races and refusals of the file system


@pytest.mark.parametrize("elsewhere", [False, True])
def test_of_two_processes_that_find_one_lost_lock_exactly_one_gets_it(tmp_path, elsewhere):
    with other_processes(2) as processes:
        for number in range(40):
            path = tmp_path / f"{number}.json"
            kernel = {} if elsewhere else {"boot_id": lock._boot_id()}
            name_a_holder_elsewhere(path, seconds_silent=STALE_AFTER_SECONDS + 1, **kernel)
            start = time.monotonic() + 0.01
            for process in processes:
                process.take(path, start)
            answers = [process.read_line() for process in processes]
            winners = [process for process, answer in zip(processes, answers, strict=True) if answer == "holds it"]
            assert len(winners) == 1, answers
            winners[0].release()
            assert not path.exists()


def test_a_lock_that_another_process_took_over_meanwhile_is_not_taken_from_it(path, monkeypatch):
    name_a_holder_elsewhere(path, boot_id=lock._boot_id())
    taken = []

    def open_slowly(file, flags, *mode):
        handle = os_open(file, flags, *mode)
        if file == path and not flags & os.O_EXCL and not taken:
            taken.append(None)
            path.unlink()
            taken.append(lock._acquire(path))
        return handle

    os_open = os.open
    monkeypatch.setattr(os, "open", open_slowly)
    with pytest.raises(RunInUseError, match=f"in use by process {os.getpid()}"):
        assert_free(path)
    _, first = taken
    first.check()
    first.release()


@pytest.mark.parametrize("refusing", ["write", "flock"])
def test_a_file_system_that_fails_leaves_no_lock_behind(path, monkeypatch, refusing):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(lock.os if refusing == "write" else lock.fcntl, refusing, fail)
        with pytest.raises(OSError, match="No space left"), locked(path):
            pass
    assert_free(path)


def test_a_dangling_link_is_an_error_and_not_an_endless_loop(path):
    path.symlink_to("nowhere")
    with pytest.raises(DamagedFileError, match="symbolic link"):
        assert_free(path)
    path.unlink()


@pytest.mark.parametrize(("make", "kind"), [(os.mkfifo, "a named pipe"), (os.mkdir, "a directory")])
def test_a_path_that_is_no_regular_file_is_an_error_without_blocking(path, make, kind):
    make(path)
    assert lock.holder_of(path) is None
    with pytest.raises(DamagedFileError, match=f"lock.json is {kind}, not a file"):
        assert_free(path)


@pytest.mark.parametrize("seconds", [60, 24 * 3600, 10**9])
def test_a_lock_dated_in_the_future_is_lost(path, seconds):
    name_a_holder_elsewhere(path, seconds_silent=-seconds)
    assert_free(path)


@pytest.mark.parametrize("host", ["two\nlines", "\x1b[2J", "x" * 1000, ["a", "list"], None])
def test_a_holder_that_cannot_be_shown_is_named_by_nobody(path, host):
    name_a_holder_elsewhere(path, host=host)
    assert lock.holder_of(path) is None
    with pytest.raises(RunInUseError, match="in use by another process"):
        assert_free(path)


def wait_until(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)
