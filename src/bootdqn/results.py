"""The results of the functions of the Python interface; in a notebook, each shows itself."""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bootdqn.common.specs import Array

if TYPE_CHECKING:
    import pandas as pd

MAX_TABLE_ROWS = 20
"""Rows of a table of runs in a notebook."""
_FRAME = "width: 100%; height: 40rem; border: 1px solid #8884"
_IMAGES = {".png": "image/png", ".svg": "image/svg+xml"}


@dataclass(frozen=True, eq=False)
class RunResult(Mapping[str, Any]):
    """The summary of a run, as a mapping, and its run directory."""

    run_dir: Path
    summary: dict[str, Any]
    """The content of `summary.json`."""

    def __getitem__(self, key: str) -> Any:
        return self.summary[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.summary)

    def __len__(self) -> int:
        return len(self.summary)

    def _repr_html_(self) -> str:
        from bootdqn.runs.summary import summary_line

        return f"<p><code>{escape(str(self.run_dir))}</code>: {escape(summary_line(self.summary))}</p>"


@dataclass(frozen=True)
class TrainedEnsemble:
    """The ensemble of a run, as it was last saved or at one of its snapshots."""

    config: dict[str, Any]
    """The complete configuration of the run, flat."""
    step: int
    """Environment steps before its weights were saved."""
    q_values: Callable[[Array], Array]
    """From observations (B, ...) to Q-values (B, K, A); a ValueError where they are not of the environment's form."""


@dataclass(frozen=True)
class SweepResult:
    """How the runs of a sweep ended."""

    out: Path
    """The directory of the sweep."""
    runs: "pd.DataFrame"
    """Its runs, finished or not, as `load_results` returns them."""
    failed: dict[str, str]
    """By the name of a run that failed, the reason."""

    def _repr_html_(self) -> str:
        columns = ["run", "task", "algorithm", "seed", "status", "steps", "solved_at_strict", "max_evaluation"]
        shown = self.runs[columns].dropna(axis="columns", how="all")
        finished = f"{(self.runs.status == 'finished').sum()} of {len(self.runs)} runs finished"
        failed = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in self.failed.items())
        listed = f"<p>{len(self.failed)} failed:</p><ul>{failed}</ul>" if failed else ""
        table = shown.to_html(index=False, max_rows=MAX_TABLE_ROWS, na_rep="", border=0)
        return f"<p>{finished} in <code>{escape(str(self.out))}</code></p>{listed}{table}"


@dataclass(frozen=True)
class Page:
    """A file to look at: the page of a report or of the inspector, or a figure."""

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        """Return the page in a frame: it is one file, and can neither leave the frame nor load anything."""
        link = f"<p><code>{escape(str(self.path))}</code></p>"
        if self.path.suffix == ".html":
            content = escape(self.path.read_text(encoding="utf-8"))
            return f'{link}<iframe sandbox="allow-scripts" style="{_FRAME}" srcdoc="{content}"></iframe>'
        if self.path.suffix in _IMAGES:
            data = base64.b64encode(self.path.read_bytes()).decode()
            return f'{link}<img src="data:{_IMAGES[self.path.suffix]};base64,{data}">'
        return link
