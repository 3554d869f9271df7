"""Cluster files: nodes, GPUs, speed, failures and storage of a cluster on which `sweep --dry-run` simulates a sweep."""

from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated

from bootdqn.common.errors import UsageError
from bootdqn.common.fields import NonNegativeInt, PositiveInt, Range, check_fields
from bootdqn.common.text import did_you_mean
from bootdqn.sweeps.sweep_file import read_definition

PositiveFloat = Annotated[float, Range(gt=0)]
NonNegativeFloat = Annotated[float, Range(ge=0)]


@dataclass(frozen=True)
class ClusterConfig:
    """A cluster of equal nodes. Frames are those of the emulator on Atari, and steps elsewhere."""

    cores: PositiveInt
    """Cores of a node."""
    memory_gib: PositiveFloat
    """Memory of a node in GiB."""
    nodes: PositiveInt = 1
    """Number of nodes."""
    gpus: NonNegativeInt = 0
    """GPUs of a node; with any, every run needs a share of one."""
    frames_per_second: PositiveFloat | None = None
    """Speed of a run that has its cores and its GPU to itself (None: measured on this machine)."""
    runs_per_gpu: PositiveInt = 1
    """Runs that share a GPU, as with `sweep --gpus-per-run 1/N`."""
    shared_frames_per_second: PositiveFloat | None = None
    """Speed of each of `runs_per_gpu` runs on one GPU (None: `frames_per_second` divided among them)."""
    evaluation_episode_frames: PositiveInt | None = None
    """Mean length of an evaluation episode (None: the longest that the configuration allows)."""
    startup_seconds: NonNegativeFloat = 10.0
    """From the assignment of a run to its first step: its process, imports and compilation."""
    storage_mib_per_second: PositiveFloat | None = None
    """Bandwidth of the storage that all nodes share, in MiB/s (None: checkpoints take no time)."""
    node_failures_per_hour: NonNegativeFloat = 0.0
    """Failures of each node in an hour: 0.001 is one in 42 days."""
    node_replacement_minutes: NonNegativeFloat = 30.0
    """From the failure of a node until another one joins in its place."""

    def __post_init__(self) -> None:
        check_fields(self, as_flags=False)
        if self.shared_frames_per_second is not None:
            if self.frames_per_second is None:
                raise ValueError("shared_frames_per_second needs frames_per_second, the speed of a run alone")
            if self.shared_frames_per_second > self.frames_per_second:
                raise ValueError(
                    f"shared_frames_per_second must be at most frames_per_second, {self.frames_per_second:g}, got "
                    f"{self.shared_frames_per_second:g}"
                )

    @property
    def shared_slowdown(self) -> float:
        """How many times as long a run takes when `runs_per_gpu` runs share its GPU."""
        if self.frames_per_second is None or self.shared_frames_per_second is None:
            return float(self.runs_per_gpu)
        return self.frames_per_second / self.shared_frames_per_second


def load_cluster(path: Path) -> ClusterConfig:
    """Return the cluster that a TOML file describes.

    Raises:
        UsageError: The file cannot be read, or a setting is unknown, missing or not valid.
    """
    content = read_definition(path)
    known = [field.name for field in fields(ClusterConfig)]
    for key in content:
        if key not in known:
            raise UsageError(f"{path}: unknown setting {key!r}{did_you_mean(str(key), known)}")
    for field in fields(ClusterConfig):
        if field.default is MISSING and field.name not in content:
            raise UsageError(f"{path}: {field.name} is missing")
    try:
        return ClusterConfig(**content)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
