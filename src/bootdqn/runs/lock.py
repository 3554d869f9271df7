"""Lock of a run directory: one process at a time, on this host or on any that shares the directory.

The lock is a file that names its holder. On one host the kernel knows whether the holder is alive: it holds the file
with `flock`, which ends with the process however it ends. A holder on another host touches the file as a heartbeat; one
that has not done so for a while is treated as stale. Times are the file system's own, so clocks need not agree.
"""

import contextlib
import fcntl
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from bootdqn.common.errors import DamagedFileError, LockLostError, RunInUseError
from bootdqn.common.files import open_regular, read_regular

HEARTBEAT_SECONDS = 10.0
STALE_AFTER_SECONDS = 90.0
MAX_BYTES = 10_000
MAX_TEXT = 300
"""Characters of each text in a lock file."""


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock."""

    host: str
    boot_id: str
    pid: int
    since: str
    token: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class Lock:
    """A lock that this process holds, until another process breaks it as stale."""

    def __init__(self, path: Path, handle: int, holder: LockHolder) -> None:
        self._path, self._handle, self._holder = path, handle, holder
        self._done = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="lock heartbeat", daemon=True)
        self._heart.start()

    def check(self) -> None:
        """Raise a LockLostError if another process has taken the lock over, as after this one was suspended for long.

        A file that cannot be read is ignored: the next check tries again.
        """
        try:
            holder = _read(self._path)
        except FileNotFoundError:
            holder = None
        except OSError:
            return
        if holder is None or holder.token != self._holder.token:
            raise LockLostError(f"run directory {self._path.parent} was taken over by {holder or 'another process'}")

    def release(self) -> None:
        """Release the lock."""
        self._done.set()
        self._heart.join()
        with contextlib.suppress(OSError):
            if holder_of(self._path) == self._holder:
                self._path.unlink()
        os.close(self._handle)

    def _beat(self) -> None:
        while not self._done.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(self._handle)


@contextmanager
def locked(path: Path) -> Iterator[Lock]:
    """Hold the lock file `path`, and remove it afterwards.

    Raises:
        RunInUseError: Another process holds it.
    """
    lock = _acquire(path)
    try:
        yield lock
    finally:
        lock.release()


def holder_of(path: Path) -> LockHolder | None:
    """Return the holder that a lock file names, alive or not; None where it cannot be read."""
    try:
        return _read(path)
    except OSError:
        return None


def is_held(path: Path) -> bool:
    """Return whether a process that may be alive holds the lock file `path`, without writing anything.

    The age of another host's lock is by this host's clock, so with clocks that disagree the answer may be wrong.
    """
    try:
        handle = open_regular(path)
    except (OSError, DamagedFileError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        holder = holder_of(path)
        elsewhere = holder is not None and holder.boot_id != _boot_id()
        return elsewhere and _may_be_alive(time.time() - os.fstat(handle).st_mtime)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


def _may_be_alive(seconds_since_heartbeat: float) -> bool:
    """Return whether a holder on another host may be alive, by the time since its last heartbeat."""
    return -HEARTBEAT_SECONDS <= seconds_since_heartbeat < STALE_AFTER_SECONDS  # a future timestamp is not a heartbeat


def _read(path: Path) -> LockHolder | None:
    """Return the holder that a lock file names, or None where it is not a lock; an OSError where it cannot be read."""
    try:
        value = json.loads(read_regular(path, MAX_BYTES))
        named = {field.name: value[field.name] for field in fields(LockHolder)}
    except (DamagedFileError, ValueError, KeyError, TypeError, RecursionError):
        return None
    texts = [text for name, text in named.items() if name != "pid"]
    valid = all(isinstance(text, str) and text.isprintable() and len(text) <= MAX_TEXT for text in texts)
    return LockHolder(**named) if valid and type(named["pid"]) is int else None


def _acquire(path: Path) -> Lock:
    holder = LockHolder(
        platform.node(), _boot_id(), os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), uuid.uuid4().hex
    )
    while True:
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        except FileExistsError:
            _remove_if_stale(path, holder)
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(path, handle):
                os.write(handle, json.dumps(asdict(holder)).encode())
                return Lock(path, handle, holder)
        except BaseException:
            if _is_at(path, handle):
                path.unlink(missing_ok=True)
            os.close(handle)
            raise
        os.close(handle)


def _remove_if_stale(path: Path, me: LockHolder) -> None:
    """Remove a lock file that is stale: its holder has ended, or has sent no heartbeat for long.

    Raises:
        RunInUseError: The holder may be alive.
        DamagedFileError: It is not a regular file.
    """
    try:
        handle = open_regular(path, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held_here = False
        except BlockingIOError:
            held_here = True
        if not _is_at(path, handle):
            return  # removed or replaced meanwhile: try again
        holder = holder_of(path)
        same_kernel = holder is not None and holder.boot_id == me.boot_id
        age = _age(path)
        if held_here or (not same_kernel and _may_be_alive(age)):
            hint = "" if held_here else f"; if it is gone, try again in {STALE_AFTER_SECONDS - age:.0f} seconds"
            raise RunInUseError(
                f"run directory {path.parent} is in use by {holder or 'another process'}: wait for it, or choose "
                f"another run directory{hint}"
            )
        _move_away(path, holder)
    finally:
        os.close(handle)


def _move_away(path: Path, stale: LockHolder | None) -> None:
    """Remove the lock of the holder `stale`; a lock that another process made meanwhile is put back."""
    moved = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    with contextlib.suppress(FileNotFoundError):
        path.rename(moved)
        if holder_of(moved) != stale:
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(moved)
        moved.unlink()


def _is_at(path: Path, handle: int) -> bool:
    """Return whether the open file `handle` is the one that `path` names."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except OSError:
        return False


def _age(path: Path) -> float:
    """Return the seconds since `path` was touched, by the clock of the file system it is on."""
    now = path.with_name(f".now.{uuid.uuid4().hex}.part")
    try:
        now.touch(exist_ok=False)
        return now.stat().st_mtime - path.lstat().st_mtime
    except FileNotFoundError:
        return 0.0
    finally:
        now.unlink(missing_ok=True)


def _boot_id() -> str:
    """Return the random id of this boot of the kernel, or the host's name where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()
