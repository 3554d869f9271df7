"""How much memory a process can still have: on the machine, and in the containers or scheduled job that it is in."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class _Files(NamedTuple):
    """Where a version of Linux's control groups keeps a group, and how it calls things."""

    folder: str
    limit: str
    usage: str
    cache: str
    """Field of `memory.stat`: page cache that is not in use, of the group and those in it."""


_VERSION_1 = _Files("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = _Files("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that this process can have without swapping, or None where that is not known.

    That is what the machine has available or, if it is less, what a control group around the process has below its
    limit, where page cache that is not in use counts as available. Linux tells both in files below `root`.
    """
    known = [_left_on_machine(root), *_left_in_groups(root)]
    return min((left for left in known if left is not None), default=None)


def _left_on_machine(root: Path) -> int | None:
    kibibytes = _fields(root / "proc/meminfo").get("MemAvailable")
    return None if kibibytes is None else kibibytes * 1024


def _left_in_groups(root: Path) -> Iterator[int | None]:
    """Yield what each group around this process has left; a container may see them from its own group on only."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        files = _VERSION_1 if controllers else _VERSION_2
        group = Path(name.lstrip("/"))
        for folder in (group, *group.parents):
            yield _left_in_group(root / files.folder / folder, files)


def _left_in_group(folder: Path, files: _Files) -> int | None:
    limit, usage = (_number(folder / name) for name in (files.limit, files.usage))
    if limit is None or usage is None:
        return None
    return max(0, limit - usage + _fields(folder / "memory.stat").get(files.cache, 0))


def _number(path: Path) -> int | None:
    """Return the number in a file, or None where there is none, as in a group without a limit."""
    text = "".join(_lines(path))
    return int(text) if text.isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """Return the numbers of a file that has a name and a number a line."""
    words = (line.replace(":", " ").split() for line in _lines(path))
    return {name: int(number) for name, number, *_ in (line for line in words if len(line) > 1) if number.isdecimal()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):  # not there, or no name of a file
        return []
