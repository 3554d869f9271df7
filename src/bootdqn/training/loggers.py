"""Where records go besides `metrics.jsonl`: TensorBoard and Weights & Biases, both optional."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bootdqn.common.errors import UsageError, how_to_install

POSITIONS = ("step", "frames", "episode", "updates")
"""Fields that say when, not what."""


class Logger(Protocol):
    """Takes in records as they are made."""

    name: ClassVar[str]
    """What people call it."""

    def write(self, record: dict[str, Any]) -> None:
        """Take in one record."""
        ...

    def close(self) -> None:
        """Finish."""
        ...


def check_loggers_installed(*names: str) -> None:
    """Raise a UsageError if the package behind one of the sinks `names` is not installed."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"--{name} needs a package that is not installed: {how_to_install(name)}")


@contextmanager
def logger_errors(name: str) -> Iterator[None]:
    """Turn whatever the package behind the sink `name` raises within into a UsageError that says how to do without."""
    try:
        yield
    except Exception as error:  # packages of others raise anything
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"--{name} could not be opened ({reason}): mend that, or leave out --{name}") from error


class Loggers:
    """Several open sinks, none of which can stop a run: one that fails is named once and told no more."""

    def __init__(self, sinks: Sequence[Logger], warn: Callable[[str], None]) -> None:
        self._sinks, self._warn = list(sinks), warn

    def write(self, record: dict[str, Any]) -> None:
        """Let every sink take in one record."""
        for sink in tuple(self._sinks):
            self._try(sink, partial(sink.write, record))

    def close(self) -> None:
        """Finish with every sink."""
        for sink in tuple(self._sinks):
            self._try(sink, sink.close)

    def _try(self, sink: Logger, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # packages of others raise anything
            self._sinks.remove(sink)
            reason = f"{type(error).__name__}: {error}"
            self._warn(f"{sink.name} failed ({reason}) and is told no more of this run; training goes on")


class TensorBoardLogger:
    """Event files in a folder."""

    name: ClassVar[str] = "TensorBoard"

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        """Write on, from the first record on; what an earlier process wrote from `first_step` on is not shown."""
        self._folder, self._first_step = folder, first_step
        self._writer: Any = None

    def write(self, record: dict[str, Any]) -> None:
        """Add the numbers of a record as scalars."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=self._first_step or None)
        for name, value in scalars(record):
            self._writer.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Flush and close the event file, if there is one."""
        if self._writer is not None:
            self._writer.close()


class WandbLogger:
    """A run of Weights & Biases, online or (WANDB_MODE=offline) in the run folder's `wandb`."""

    name: ClassVar[str] = "Weights & Biases"

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
