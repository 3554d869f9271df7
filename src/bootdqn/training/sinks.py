"""Where records go besides `metrics.jsonl`: TensorBoard and Weights & Biases, both optional."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from bootdqn.common.errors import UsageError, how_to_install

POSITIONS = ("step", "frames", "episode", "updates")
"""Fields that say when, not what."""


class Sink(Protocol):
    """Takes in records as they are made."""

    def write(self, record: dict[str, Any]) -> None:
        """Take in one record."""
        ...

    def close(self) -> None:
        """Finish."""
        ...


def refuse_missing_sinks(*names: str) -> None:
    """Raise a UsageError if the package behind one of the sinks `names` is not installed."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"--{name} needs a package that is not installed: {how_to_install(name)}")


class TensorBoardSink:
    """Event files in the run folder's `tensorboard`."""

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        """Write on; what an earlier process of this run wrote from `first_step` on is not shown."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_step or None)

    def write(self, record: dict[str, Any]) -> None:
        """Add the numbers of a record as scalars."""
        for name, value in scalars(record):
            self._writer.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()


class WandbSink:
    """A run of Weights & Biases, online or (WANDB_MODE=offline) in the run folder's `wandb`."""

    def __init__(self, folder: Path, config: dict[str, Any], identity: str) -> None:
        """Begin, or go on with, the run that `identity` stands for."""
        import wandb

        self._run = wandb.init(
            project="bootdqn", name=folder.name, dir=str(folder), config=config, id=identity, resume="allow"
        )

    def write(self, record: dict[str, Any]) -> None:
        """Log the numbers of a record."""
        self._run.log(dict(scalars(record)) | {"step": record["step"]})

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


def scalars(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield what a record measures, by name: `episode/return`, `update/loss`, `evaluation/mean_return`, ..."""
    for name, value in record.items():
        if name not in POSITIONS and isinstance(value, int | float):
            yield f"{record['kind']}/{name}", float(value)
