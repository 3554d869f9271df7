"""A faulty disk: the n-th write-like operation fails, after half of it has been done where it can be halved."""

import contextlib
import errno
import itertools
import json
import os
import resource
from pathlib import Path

import numpy as np

from bootdqn.runs.checkpoint import Checkpoints
from bootdqn.runs.directory import RunDirectory
from torture.legs import replaced


class Faults:
    """Counts the operations that write, and lets one of them fail."""

    def __init__(self):
        self.rearm(None)

    def rearm(self, place, error=errno.ENOSPC):
        """Count from 0 again, and let operation `place` fail with `error`; None lets none fail."""
        self._place, self._error = place, error
        self.operations = []

    @property
    def fired(self):
        """Whether the operation that was to fail has come."""
        return self._place is not None and len(self.operations) > self._place

    def meet(self, operation, half_of_it=lambda: None):
        """Note an operation; raise if it is the one to fail."""
        self.operations.append(operation)
        if len(self.operations) - 1 == self._place:
            half_of_it()
            raise OSError(self._error, os.strerror(self._error))


class _File:
    """A file that was opened to be written."""

    def __init__(self, file, faults):
        self._file, self._faults = file, faults

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, content):
        self._faults.meet("write", lambda: self._file.write(content[: len(content) // 2]))
        return self._file.write(content)

    def flush(self):
        self._faults.meet("flush")
        self._file.flush()

    def fileno(self):
        return self._file.fileno()


@contextlib.contextmanager
def faulty_disk():
    """Return the `Faults` of every file that this process writes meanwhile."""
    faults = Faults()
    open_, pwrite = Path.open, os.pwrite

    def faulty(operation, function):
        def meet_and_do(*arguments, **keywords):
            faults.meet(operation)
            return function(*arguments, **keywords)

        return meet_and_do

    def faulty_open(path, mode="r", *arguments, **keywords):
        if not set(mode) & set("wxa+"):
            return open_(path, mode, *arguments, **keywords)
        faults.meet("open")
        return _File(open_(path, mode, *arguments, **keywords), faults)

    def faulty_pwrite(handle, content, position):
        faults.meet("pwrite", lambda: pwrite(handle, content[: len(content) // 2], position))
        return pwrite(handle, content, position)

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(Path, "open", faulty_open))
        stack.enter_context(replaced(os, "pwrite", faulty_pwrite))
        stack.enter_context(replaced(os, "fsync", faulty("fsync", os.fsync)))
        for name in ("mkdir", "rename", "replace"):
            stack.enter_context(replaced(Path, name, faulty(name, getattr(Path, name))))
        yield faults


@contextlib.contextmanager
def every_other_checkpoint_failing(places, report):
    """Let the second, fourth, ... checkpoint fail at the first, second, ... of `places`, if it has so many operations.

    Whatever fails, the newest checkpoint is as it was before. `report` is written the places that were reached.
    """
    from bootdqn.training.trainer import Trainer

    save, left, reached, numbers = Trainer._save_checkpoint, list(places), [], itertools.count()
    checkpoints = RunDirectory(report.parent).checkpoints

    def newest():
        lines = []
        loaded = Checkpoints(checkpoints).load(lines.append)
        assert lines == []
        return loaded

    def save_or_fail(trainer):
        if next(numbers) % 2 == 0 or not left:
            return save(trainer)
        before = newest()
        place = left.pop(0)
        faults.rearm(place, errno.ENOSPC if len(left) % 2 else errno.EIO)
        record = save(trainer)
        if faults.fired:
            reached.append(place)
            assert record is None
            np.testing.assert_equal(newest(), before)
        faults.rearm(None)
        return record

    with faulty_disk() as faults, replaced(Trainer, "_save_checkpoint", save_or_fail):
        yield
    report.write_text(json.dumps({"reached": reached, "left": left}))


@contextlib.contextmanager
def files_limited(size, first_step, last_step):
    """Let writing files larger than `size` fail in the kernel from one step of the training on up to another."""
    from bootdqn.training import trainer

    original = trainer.train
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def train_under_a_limit(config, components):
        for result in original(config, components):
            limited = first_step <= result.step < last_step
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited[1]) if limited else unlimited)
            yield result

    with replaced(trainer, "train", train_under_a_limit):
        yield
