"""Errors that have a message for the user rather than a traceback."""

import os
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class UsageError(Exception):
    """The request cannot be met; the message states why and what to do instead. The command line exits with 2."""


def install_command(extra: str) -> str:
    """Return how to install one of the package's extras: from its clone, since no index has the package."""
    return f"in the clone of bootdqn, pip install -c constraints.txt -e '.[{extra}]'"


class RunInUseError(UsageError):
    """The run directory is in use by another process."""


class RenderModeError(UsageError):
    """An environment cannot be rendered."""


class DamagedFileError(UsageError):
    """A file is not of its format."""


class WriteError(UsageError):
    """A file cannot be written: the disk is full or read-only, or its parent is no directory."""


def check_writable(path: Path, flag: str) -> None:
    """Raise a WriteError that names `flag` unless `path` can be written, whether it exists or not.

    To be called before long work, so that nothing is lost at its end.
    """
    existing = next(above for above in (path, *path.parents) if above.exists())
    if existing != path and not existing.is_dir():
        raise WriteError(f"{flag} {path} cannot be written: {existing} is not a directory; choose another")
    if not os.access(existing, os.W_OK):
        raise WriteError(f"{flag} {path} cannot be written: {existing} is read-only; choose another")


def check_file_writable(path: Path, flag: str) -> None:
    """Raise a WriteError that names `flag` unless `path` can be written as a file, whether it exists or not."""
    if path.is_dir():
        raise WriteError(f"{flag} {path} cannot be written: it is a directory; choose another")
    check_writable(path, flag)


def os_error_reason(error: OSError) -> str:
    """Return the reason of the operating system, without its number: `read-only file system`."""
    return error.strerror.lower() if error.strerror else str(error)


class TrainingError(Exception):
    """A run cannot continue: an environment raised, or a number is not finite. The command line exits with 1."""


class LockLostError(TrainingError):
    """Another process has taken the run directory over, because this one did not respond for too long."""


@contextmanager
def attribute_errors_to(source: str, when: str = "") -> Iterator[None]:
    """Turn any exception that is raised within into a TrainingError that names the `source`, such as an environment.

    A lack of memory is left as it is: the command line knows what to advise.
    """
    try:
        yield
    except (UsageError, TrainingError):
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise training_error_from(source, error, when) from error


def training_error_from(source: str, error: Exception, when: str = "") -> TrainingError:
    """Return an error that names the `source`, the exception that it raised and where, if that is known."""
    location = error_location(error)
    suffix = f" in {location}" if location else ""
    return TrainingError(f"{source} raised {type(error).__name__}{when}: {error}{suffix}")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out, here or on a GPU; PyTorch's error is known by its name, without an import."""
    if isinstance(error, RuntimeError):
        return type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error)
    return isinstance(error, MemoryError)


def error_location(error: BaseException) -> str:
    """Return the file and line outside the package that raised `error`; empty where all of its traceback is inside.

    The last frame of user code is preferred to those of the installed libraries that it called.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _below(frame, _PACKAGE)]
    user_code = [frame for frame in frames if not _below(frame, *_INSTALLED)]
    return "".join(f"{frame.filename}, line {frame.lineno}" for frame in (user_code or frames)[-1:])


def _below(frame: traceback.FrameSummary, *directories: Path) -> bool:
    return any(Path(frame.filename).is_relative_to(directory) for directory in directories)
