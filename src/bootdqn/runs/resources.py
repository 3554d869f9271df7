"""Resources: the memory and disk that a run needs, and the memory and cores that this process may use."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bootdqn.common.errors import UsageError
from bootdqn.common.text import format_bytes
from bootdqn.runs.directory import RunDirectory

if TYPE_CHECKING:
    from bootdqn.agent.learner import Learner
    from bootdqn.common.specs import EnvSpec
    from bootdqn.replay.buffer import ReplayBuffer

PROCESS_BYTES = 600 * 2**20
"""Python, PyTorch and the libraries they load."""
ENVIRONMENT_BYTES = 30 * 2**20
"""An emulator and its buffers."""
METRICS_BYTES = 50 * 2**20
"""Metrics of a long run; most need far less."""
CUDA_BYTES = 500 * 2**20
"""GPU memory of CUDA and its libraries, assumed."""
SAVED_COPIES_OF_LEARNED, SAVED_COPIES_OF_PRIOR = 3 * 4 + 1, 3 + 1
"""Two checkpoints and one being written, of all but gradients, and the weights."""


class ResourceEstimate(NamedTuple):
    """Bytes that a run needs."""

    replay: int
    networks: int
    memory: int
    """All together."""
    disk: int
    weights: int = 0
    """Learned parameters and prior, once."""
    gpu: int = 0
    """Of the GPU's memory; 0 on the CPU."""

    def __str__(self) -> str:
        rest = self.memory - self.replay - self.networks
        on_gpu = f", {format_bytes(self.gpu)} of the GPU's memory" if self.gpu else ""
        return (
            f"{format_bytes(self.memory)} of memory (libraries and environment {format_bytes(rest)}, networks "
            f"{format_bytes(self.networks)}, replay {format_bytes(self.replay)}){on_gpu} and "
            f"{format_bytes(self.disk)} of disk"
        )


def estimate_resources(learner: "Learner", spec: "EnvSpec", replay: "ReplayBuffer", num_envs: int) -> ResourceEstimate:
    """Return the memory and disk that a run needs when its replay buffer is full.

    With the networks on a GPU, they are counted in this machine's memory all the same, where checkpoints are made.
    """
    online = learner.online
    learned = sum(parameter.nbytes for parameter in online.learned().values())
    prior = sum(parameter.nbytes for parameter in online.parameters()) - learned
    buffer, networks = replay.expected_nbytes(spec.num_actions), learner.memory(spec.observation)
    memory = buffer + networks + PROCESS_BYTES + num_envs * ENVIRONMENT_BYTES
    disk = buffer + SAVED_COPIES_OF_LEARNED * learned + SAVED_COPIES_OF_PRIOR * prior + METRICS_BYTES
    on_cpu = next(online.parameters()).device.type == "cpu"
    return ResourceEstimate(buffer, networks, memory, disk, learned + prior, 0 if on_cpu else networks + CUDA_BYTES)


def check_environments_fit(num_envs: int) -> None:
    """Raise a UsageError if so many environments need more memory than is available."""
    needed, available = num_envs * ENVIRONMENT_BYTES, available_memory()
    if available is not None and needed > available:
        raise UsageError(
            f"{num_envs:,} environments need {format_bytes(needed)} of memory, and {format_bytes(available)} are "
            "available; lower --num-envs"
        )


def check_memory_and_disk(needed: ResourceEstimate, run_dir: Path) -> None:
    """Raise a UsageError if a run needs more memory or disk than is available.

    The checkpoints and weights that a run already has in `run_dir` count as available.
    """
    available = available_memory()
    if available is not None and needed.memory > available:
        raise UsageError(
            f"this run needs {needed}; {format_bytes(available)} of memory are available; lower --replay-capacity"
        )
    existing = next(parent for parent in (run_dir, *run_dir.absolute().parents) if parent.exists())
    room = shutil.disk_usage(existing).free + _saved_bytes(RunDirectory(run_dir))
    if needed.disk > room:
        raise UsageError(
            f"this run needs {needed}; {run_dir} has room for {format_bytes(room)}; choose another run directory"
        )


def _saved_bytes(directory: RunDirectory) -> int:
    """Return the size of the checkpoints and weights in a run directory."""
    total = 0
    for file in (directory.weights, *directory.checkpoints.rglob("*")):
        with contextlib.suppress(OSError):  # missing, or just removed by a run that is under way
            total += file.stat().st_size if file.is_file() else 0
    return total


class _Files(NamedTuple):
    """The names of files in a version of Linux's control groups."""

    limit: str
    usage: str
    cache: str
    """Field of `memory.stat`: unused page cache of the group and its subgroups."""


_VERSION_1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = _Files("memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that this process can use without swapping, or None where that is not known.

    That is the memory available on the machine or, if it is less, what a control group of the process has left below
    its limit, where unused page cache counts as available. Linux has both in files below `root`.
    """
    known = [_left_on_machine(root), *_left_in_groups(root)]
    return min((left for left in known if left is not None), default=None)


def available_cores(root: Path = Path("/")) -> int:
    """Return the cores that this process may use: those of its affinity, or fewer by a control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([allowed, *_cores_of_groups(root)])))


def _cores_of_groups(root: Path) -> Iterator[float]:
    """Yield the limit of cores of each control group of this process, where it has one."""
    for version, directory in _groups(root, "cpu"):
        if version == 1:
            quota, period = (_number(directory / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        else:
            words = [*" ".join(_lines(directory / "cpu.max")).split(), "", ""]
            quota, period = (int(word) if word.isdecimal() else None for word in words[:2])
        if quota and period:
            yield quota / period


def _left_on_machine(root: Path) -> int | None:
    kibibytes = _fields(root / "proc/meminfo").get("MemAvailable")
    return None if kibibytes is None else kibibytes * 1024


def _left_in_groups(root: Path) -> Iterator[int | None]:
    for version, directory in _groups(root, "memory"):
        yield _left_in_group(directory, _VERSION_1 if version == 1 else _VERSION_2)


def _groups(root: Path, controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the version and the directory of each control group of this process with `controller`.

    A container may see only its own group and those below.
    """
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controller if controllers else "")
        group = Path(name.lstrip("/"))
        for parent in (group, *group.parents):
            yield 1 if controllers else 2, top / parent


def _left_in_group(directory: Path, files: _Files) -> int | None:
    limit, usage = (_number(directory / name) for name in (files.limit, files.usage))
    if limit is None or usage is None:
        return None
    return max(0, limit - usage + _fields(directory / "memory.stat").get(files.cache, 0))


def _number(path: Path) -> int | None:
    """Return the number in a file, or None where there is none, as without a limit."""
    text = "".join(_lines(path))
    return int(text) if text.isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """Return the numbers of a file with a name and a number per line."""
    words = (line.replace(":", " ").split() for line in _lines(path))
    return {name: int(number) for name, number, *_ in (line for line in words if len(line) > 1) if number.isdecimal()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):  # missing, or not a valid name
        return []
