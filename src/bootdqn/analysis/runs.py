"""All the runs below a folder, whatever became of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.run_folder import RunFolder, find_runs


@dataclass(frozen=True)
class Run:
    """One run folder that can be read."""

    name: str
    """Its path below the folder that was asked for."""
    folder: RunFolder
    config: dict[str, Any]
    summary: dict[str, Any]
    """Empty where the run has not ended."""

    @property
    def status(self) -> str:
        """`finished`, `interrupted`, `failed`, or `under way` (or killed) where there is no summary."""
        return str(self.summary.get("status", "under way"))

    @property
    def kind(self) -> str:
        """The environment's kind."""
        return str(self.config.get("environment"))


@dataclass(frozen=True)
class Trouble:
    """A run that does not count, and why."""

    name: str
    problem: str


def read_runs(root: Path) -> tuple[list[Run], list[Trouble]]:
    """Return the runs at and below `root`, and those whose files cannot be read."""
    runs, troubles = [], []
    for folder in find_runs(root):
        name = str(folder.path.relative_to(root)) if folder.path != root else folder.path.name
        try:
            runs.append(Run(name, folder, folder.read_config(), folder.read_summary() or {}))
        except DamagedFileError as error:
            troubles.append(Trouble(name, f"damaged: {error}"))
    return runs, troubles
