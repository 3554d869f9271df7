"""What a process that was killed leaves in a run directory, removed by the next command that works on it."""

import contextlib
import os
import re
from pathlib import Path

from bootdqn.common.errors import UsageError
from bootdqn.common.files import is_present, list_directory, remove_files
from bootdqn.runs.checkpoint import Checkpoints
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import locked

_HALF_WRITTEN = re.compile(r"\.(config|provenance|summary)\.json\.[0-9a-f]{8}\.part|\.weights\.safetensors\.part")
_HALF_WRITTEN_SNAPSHOT = re.compile(r"\.step-[0-9]{12,18}\.safetensors\.part")
_OF_LOCKS = re.compile(r"\.(lock\.json|now)\.[0-9a-f]{32}\.part")


def remove_partial_files(folder: RunDirectory) -> None:
    """Remove the files that were being written when a process was killed; its directory is locked by this one."""
    remove_files(_real(folder), _HALF_WRITTEN)
    remove_files(folder.snapshots, _HALF_WRITTEN_SNAPSHOT)


def remove_leftovers(folder: RunDirectory) -> None:
    """Remove what the process of a finished run left behind because it was killed after it had written the summary.

    Nothing where another process is at work, or the directory cannot be written.
    """
    with contextlib.suppress(OSError, UsageError):
        if not _is_finished(folder) or not _has_left_overs(folder):
            return
        folder.check()
        with locked(folder.lock):
            if _is_finished(folder):  # still: nobody has begun it again meanwhile
                remove_partial_files(folder)
                remove_files(_real(folder), _OF_LOCKS)
                if _has_too_many(folder):
                    _remove_checkpoints(folder)


def _has_left_overs(folder: RunDirectory) -> bool:
    names = list_directory(_real(folder))
    return folder.lock.name in names or any(name.endswith(".part") for name in names) or _has_too_many(folder)


def _has_too_many(folder: RunDirectory) -> bool:
    """Return whether there are checkpoints to be removed; not where nobody knows whether the last is to be kept."""
    keep = folder.read_provenance().get("keep_checkpoint") if is_present(folder.checkpoints) else None
    return keep is False or (keep is True and Checkpoints(folder.checkpoints).count() > 1)


def _remove_checkpoints(folder: RunDirectory) -> None:
    """Remove the checkpoints, but the last one if it is to be kept."""
    checkpoints = Checkpoints(folder.checkpoints)
    if folder.read_provenance()["keep_checkpoint"]:
        checkpoints.load(lambda _: None)
        checkpoints.keep_last()
    else:
        checkpoints.remove()


def _is_finished(folder: RunDirectory) -> bool:
    return (folder.read_summary() or {}).get("status") == "finished"


def _real(folder: RunDirectory) -> Path:
    """Return the run directory where it really is: the path to it may be a link."""
    return Path(os.path.realpath(folder.path))
