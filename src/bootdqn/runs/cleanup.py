"""Removal of files from a run directory: of a run to be started again, and of a process that was killed."""

import contextlib
import os
import re
from pathlib import Path

from bootdqn.common.errors import UsageError
from bootdqn.common.files import is_present, list_directory, remove_directory, remove_file, remove_files
from bootdqn.runs.checkpoint import Checkpoints
from bootdqn.runs.directory import SNAPSHOT_NAME, RunDirectory
from bootdqn.runs.lock import locked
from bootdqn.runs.status import RunState, run_status

_PARTIAL_FILE = re.compile(r"\.(config|provenance|summary)\.json\.[0-9a-f]{8}\.part|\.weights\.safetensors\.part")
_PARTIAL_SNAPSHOT = re.compile(r"\.step-[0-9]{12,18}\.safetensors\.part")
_PARTIAL_LOCK = re.compile(r"\.(lock\.json|now)\.[0-9a-f]{32}\.part")
_TENSORBOARD_FILE = re.compile(r"events\.out\.tfevents\..*")


def clear_run(directory: RunDirectory) -> None:
    """Remove the files of a run that is to start again; the directory is locked by this process."""
    Checkpoints(directory.checkpoints).remove()
    remove_directory(directory.snapshots, SNAPSHOT_NAME)
    remove_files(directory.tensorboard, _TENSORBOARD_FILE)
    for file in (directory.summary, directory.weights, directory.metrics, directory.timing):
        remove_file(file)


def remove_partial_files(directory: RunDirectory) -> None:
    """Remove the files that a killed process was writing; the directory is locked by this process."""
    remove_files(_real_path(directory), _PARTIAL_FILE)
    remove_files(directory.snapshots, _PARTIAL_SNAPSHOT)


def remove_leftovers(directory: RunDirectory) -> None:
    """Remove the files that a process left because it was killed after it had written the summary of a finished run.

    Nothing is removed while another process uses the directory, or where it cannot be written.
    """
    with contextlib.suppress(OSError, UsageError):
        if not _is_finished(directory) or not _has_leftovers(directory):
            return
        directory.check()
        with locked(directory.lock):
            if _is_finished(directory):  # still: it may have been started again meanwhile
                remove_partial_files(directory)
                remove_files(_real_path(directory), _PARTIAL_LOCK)
                if _has_old_checkpoints(directory):
                    _remove_old_checkpoints(directory)


def _is_finished(directory: RunDirectory) -> bool:
    return run_status(directory).state is RunState.FINISHED


def _has_leftovers(directory: RunDirectory) -> bool:
    names = list_directory(_real_path(directory))
    return (
        directory.lock.name in names or any(name.endswith(".part") for name in names) or _has_old_checkpoints(directory)
    )


def _has_old_checkpoints(directory: RunDirectory) -> bool:
    """Return whether there are checkpoints to remove; none where it is not known whether the last is to be kept."""
    keep = directory.read_provenance().get("keep_checkpoint") if is_present(directory.checkpoints) else None
    return keep is False or (keep is True and Checkpoints(directory.checkpoints).count() > 1)


def _remove_old_checkpoints(directory: RunDirectory) -> None:
    """Remove the checkpoints, but for the last one if it is to be kept."""
    checkpoints = Checkpoints(directory.checkpoints)
    if directory.read_provenance()["keep_checkpoint"]:
        checkpoints.load(lambda _: None)
        checkpoints.keep_last()
    else:
        checkpoints.remove()


def _real_path(directory: RunDirectory) -> Path:
    """Return the path of the run directory itself, where the given one is a link to it."""
    return Path(os.path.realpath(directory.path))
