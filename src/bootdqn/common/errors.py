"""Errors that have a message for the user rather than a traceback."""

import os
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OURS = Path(__file__).parents[1]
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class UsageError(Exception):
    """What was asked for cannot be done; the message says why and what to do instead. The command line exits with 2."""


def how_to_install(extra: str) -> str:
    """Say how to install one of the package's extras: from its clone, since no index has the package."""
    return f"in the clone of bootdqn, pip install -c constraints.txt -e '.[{extra}]'"


class RunInUseError(UsageError):
    """Another process holds the folder."""


class RenderModeError(UsageError):
    """An environment has no picture of itself."""


class DamagedFileError(UsageError):
    """A file cannot be read as what it should be."""


class WriteError(UsageError):
    """There is no writing where something was to go: it is full, read-only, or no folder."""


def check_writable(path: Path, flag: str) -> None:
    """Raise a NotWrittenError that names `flag` unless `path` can be written, be it there already or still to be made.

    Checked before long work, so that nothing is lost at its end.
    """
    existing = next(above for above in (path, *path.parents) if above.exists())
    if existing != path and not existing.is_dir():
        raise WriteError(f"{flag} {path} cannot be written: {existing} is not a directory; choose another")
    if not os.access(existing, os.W_OK):
        raise WriteError(f"{flag} {path} cannot be written: {existing} is read-only; choose another")


def reason_of(error: OSError) -> str:
    """Return why the operating system refused, without its number: `read-only file system`."""
    return error.strerror.lower() if error.strerror else str(error)


class TrainingError(Exception):
    """A run cannot go on: an environment raised, or a number is not finite. The command line exits with 1."""


class RunLostError(TrainingError):
    """Another process has taken the folder over, because this one was silent for too long."""


@contextmanager
def blamed_on(culprit: str, when: str = "") -> Iterator[None]:
    """Turn whatever is raised within, by code that is not ours, into a TrainingError that says by whom.

    A lack of memory is nobody's fault, and is left as it is: the command line knows what to advise.
    """
    try:
        yield
    except (UsageError, TrainingError):
        raise
    except Exception as error:
        if is_lack_of_memory(error):
            raise
        raise TrainingError(f"{culprit} raised {type(error).__name__}{when}: {error}") from error


def is_lack_of_memory(error: Exception) -> bool:
    """Return whether `error` says that memory ran out, here or on a GPU. PyTorch, not imported for it, has its own."""
    if isinstance(error, RuntimeError):
        return type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error)
    return isinstance(error, MemoryError)


def raised_in(error: BaseException) -> str:
    """Return the file and the line of the code that is not ours which raised `error`, or nothing where all of it is.

    Of that code the last that was not installed counts, if there is any: what a user wrote, not the library it called.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _below(frame, _OURS)]
    own = [frame for frame in frames if not _below(frame, *_INSTALLED)]
    return "".join(f"{frame.filename}, line {frame.lineno}" for frame in (own or frames)[-1:])


def _below(frame: traceback.FrameSummary, *folders: Path) -> bool:
    return any(Path(frame.filename).is_relative_to(folder) for folder in folders)
