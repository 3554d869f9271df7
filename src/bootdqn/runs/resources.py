"""What a process can have of its machine, and of the containers or scheduled job that it is in: memory and cores."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class _Files(NamedTuple):
    """How a version of Linux's control groups calls things."""

    limit: str
    usage: str
    cache: str
    """Field of `memory.stat`: page cache that is not in use, of the group and those in it."""


_VERSION_1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = _Files("memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that this process can have without swapping, or None where that is not known.

    That is what the machine has available or, if it is less, what a control group around the process has below its
    limit, where page cache that is not in use counts as available. Linux tells both in files below `root`.
    """
    known = [_left_on_machine(root), *_left_in_groups(root)]
    return min((left for left in known if left is not None), default=None)


def available_cores(root: Path = Path("/")) -> int:
    """Return the cores that this process may keep busy: those it may run on, or fewer if a control group says so."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([allowed, *_cores_of_groups(root)])))


def _cores_of_groups(root: Path) -> Iterator[float]:
    """Yield how many cores' time each group around this process may take, where it has a limit."""
    for version, folder in _groups(root, "cpu"):
        if version == 1:
            quota, period = (_number(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        else:
            words = [*" ".join(_lines(folder / "cpu.max")).split(), "", ""]
            quota, period = (int(word) if word.isdecimal() else None for word in words[:2])
        if quota and period:
            yield quota / period


def _left_on_machine(root: Path) -> int | None:
    kibibytes = _fields(root / "proc/meminfo").get("MemAvailable")
    return None if kibibytes is None else kibibytes * 1024


def _left_in_groups(root: Path) -> Iterator[int | None]:
    for version, folder in _groups(root, "memory"):
        yield _left_in_group(folder, _VERSION_1 if version == 1 else _VERSION_2)


def _groups(root: Path, controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the version and the folder of each group around this process that has to do with `controller`.

    A container may see them from its own group on only.
    """
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controller if controllers else "")
        group = Path(name.lstrip("/"))
        for folder in (group, *group.parents):
            yield 1 if controllers else 2, top / folder


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
