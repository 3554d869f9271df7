"""What a run will need, told before it begins; what cannot fit is refused before the first step."""

import contextlib
import shutil
from pathlib import Path
from typing import NamedTuple

from bootdqn.common.errors import UsageError
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.resources import available_memory
from bootdqn.training.loop import Components

PROCESS_BYTES = 600 * 2**20
"""Python, PyTorch and the libraries they load."""
ENVIRONMENT_BYTES = 30 * 2**20
"""An emulator and its buffers."""
RECORD_BYTES = 50 * 2**20
"""Records of a long run; most need far less."""
COPIES_OF_LEARNED, COPIES_OF_PRIOR = 5, 1
"""Online, target, Adam's two moments, and gradients; a prior is there once."""
SAVED_COPIES_OF_LEARNED, SAVED_COPIES_OF_PRIOR = 3 * 4 + 1, 3 + 1
"""Two checkpoints and one being written, of all but gradients, and the weights for looking at."""


MOST_OVER_ESTIMATE = 8
"""How many times the disk that a run is expected to need a checkpoint may take: frames may not compress at all."""


class Estimate(NamedTuple):
    """Bytes."""

    replay: int
    networks: int
    memory: int
    """All together."""
    disk: int

    def __str__(self) -> str:
        """Say it in a line, with every part of the memory."""
        rest = self.memory - self.replay - self.networks
        return (
            f"{gigabytes(self.memory)} of memory (libraries and environment {gigabytes(rest)}, networks "
            f"{gigabytes(self.networks)}, replay {gigabytes(self.replay)}) and {gigabytes(self.disk)} of disk"
        )


def estimate(components: Components) -> Estimate:
    """Estimate what a run of these components needs when its replay buffer is full."""
    online = components.learner.online
    learned = sum(parameter.nbytes for parameter in online.learned().values())
    prior = sum(parameter.nbytes for parameter in online.parameters()) - learned
    replay, networks = components.replay.expected_nbytes, COPIES_OF_LEARNED * learned + COPIES_OF_PRIOR * prior
    memory = replay + networks + PROCESS_BYTES + len(components.environments) * ENVIRONMENT_BYTES
    disk = replay + SAVED_COPIES_OF_LEARNED * learned + SAVED_COPIES_OF_PRIOR * prior + RECORD_BYTES
    return Estimate(replay, networks, memory, disk)


def check_environments_fit(num_envs: int) -> None:
    """Raise a UsageError if the machine has less memory than so many environments need, before they are made."""
    needed, available = num_envs * ENVIRONMENT_BYTES, available_memory()
    if available is not None and needed > available:
        raise UsageError(
            f"{num_envs:,} environments need {gigabytes(needed)} of memory, and {gigabytes(available)} are available; "
            "lower --num-envs"
        )


def check_memory_and_disk(needed: Estimate, path: Path) -> None:
    """Raise a UsageError if the machine has less memory, or the disk of `path` less room, than `needed`.

    What a run that goes on has in the folder `path` already is room, too.
    """
    available = available_memory()
    if available is not None and needed.memory > available:
        raise UsageError(
            f"this run needs {needed}; {gigabytes(available)} of memory are available; lower --replay-capacity"
        )
    free = shutil.disk_usage(next(parent for parent in (path, *path.absolute().parents) if parent.exists())).free
    room = free + saved_bytes(path)
    if needed.disk > room:
        raise UsageError(f"this run needs {needed}; {path} has room for {gigabytes(room)}; choose another folder")


def saved_bytes(path: Path) -> int:
    """Return how much the checkpoints and weights in the run folder `path` take."""
    folder, total = RunDirectory(path), 0
    for file in (folder.weights, *folder.checkpoints.rglob("*")):
        with contextlib.suppress(OSError):  # not there, or just removed by a run that is under way
            total += file.stat().st_size if file.is_file() else 0
    return total


def gigabytes(size: int) -> str:
    """Return a size as people read it."""
    if size >= 2**30:
        return f"{size / 2**30:.1f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 or not size else f"{size / 2**10:.0f} KiB"
