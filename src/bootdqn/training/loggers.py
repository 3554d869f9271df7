"""Optional loggers of metrics besides `metrics.jsonl`: TensorBoard and Weights & Biases."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bootdqn.common.errors import UsageError, install_command

POSITIONS = ("step", "frames", "episode", "updates")
"""Fields that say when something was measured."""


class Logger(Protocol):
    """Logs the records of `metrics.jsonl`."""

    name: ClassVar[str]
    """Its name in messages."""

    def write(self, record: dict[str, Any]) -> None:
        """Log one record."""
        ...

    def close(self) -> None:
        """Finish."""
        ...


def check_loggers_installed(*names: str) -> None:
    """Raise a UsageError if the package behind one of the loggers `names` is not installed."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"--{name} needs a package that is not installed: {install_command(name)}")


@contextmanager
def logger_errors(name: str) -> Iterator[None]:
    """Turn any error of the logger `name` into a UsageError."""
    try:
        yield
    except Exception as error:  # other packages may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"--{name} could not be opened ({reason}); fix that, or leave out --{name}") from error


class Loggers:
    """Several loggers, none of which can stop a run: one that fails is dropped with a warning."""

    def __init__(self, loggers: Sequence[Logger], warn: Callable[[str], None]) -> None:
        self._loggers, self._warn = list(loggers), warn

    def write(self, record: dict[str, Any]) -> None:
        """Log one record with every logger."""
        for logger in tuple(self._loggers):
            self._try(logger, partial(logger.write, record))

    def close(self) -> None:
        """Close every logger."""
        for logger in tuple(self._loggers):
            self._try(logger, logger.close)

    def _try(self, logger: Logger, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # other packages may raise anything
            self._loggers.remove(logger)
            reason = f"{type(error).__name__}: {error}"
            self._warn(f"{logger.name} failed ({reason}) and is no longer used; training continues")


class TensorBoardLogger:
    """Event files in a directory."""

    name: ClassVar[str] = "TensorBoard"

    def __init__(self, directory: Path, first_step: int = 0) -> None:
        """Log to `directory`, from the first record on; earlier records from `first_step` on are hidden."""
        self._directory, self._first_step = directory, first_step
        self._writer: Any = None

    def write(self, record: dict[str, Any]) -> None:
        """Add the numbers of a record as scalars."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._directory), purge_step=self._first_step or None)
        for name, value in scalars(record):
            self._writer.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Flush and close the event file, if there is one."""
        if self._writer is not None:
            self._writer.close()


class WandbLogger:
    """A run of Weights & Biases, online or (WANDB_MODE=offline) in the run directory's `wandb`."""

    name: ClassVar[str] = "Weights & Biases"

    def __init__(self, run_dir: Path, config: dict[str, Any], identity: str, sweep: Path | None = None) -> None:
        """Start or resume the run that `identity` names; with `sweep`, the directory of its sweep, in that group."""
        import wandb

        self._run = wandb.init(
            project="bootdqn",
            name=run_dir.name if sweep is None else run_dir.relative_to(sweep).as_posix(),
            group=None if sweep is None else sweep.resolve().name,
            dir=str(run_dir),
            config=config,
            id=identity,
            resume="allow",
        )

    def write(self, record: dict[str, Any]) -> None:
        """Log the numbers of a record."""
        self._run.log(dict(scalars(record)) | {"step": record["step"]})

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


def scalars(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the measurements of a record by name: `episode/return`, `update/loss`, `evaluation/mean_return`, ..."""
    for name, value in record.items():
        if name not in POSITIONS and isinstance(value, int | float):
            yield f"{record['kind']}/{name}", float(value)
