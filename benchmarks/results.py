"""The rows that every benchmark writes with `--json FILE`, and the table that `make bench` prints of all of them.

A file is `{"machine": {...}, "rows": [{"what", "peer", "value", "unit", "ratio", "limit"}, ...]}`: a measurement of
this program, what it is compared with, the ratio of the two, and the limit that the ratio should keep, as in `>= 4`.
"""

import json
import math
import os
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

PACKAGES = ("torch", "numpy", "numba", "gymnasium", "ale-py", "MinAtar", "stable_baselines3", "bsuite", "jax")


class Row(NamedTuple):
    """One measurement beside its peer."""

    what: str
    peer: str
    value: float
    unit: str
    ratio: float | None = None
    limit: str | None = None
    """`>= number` or `<= number`."""

    @property
    def met(self) -> bool | None:
        """Whether the ratio keeps the limit; None where there is none, or no ratio because the peer ended early."""
        if self.ratio is None or math.isnan(self.ratio) or self.limit is None:
            return None
        relation, number = self.limit.split()
        return self.ratio >= float(number) if relation == ">=" else self.ratio <= float(number)


def machine() -> dict[str, Any]:
    """Describe the processor, its instruction set and the versions of the packages that are compared."""
    import torch

    from bootdqn.runs.provenance import provenance

    here = provenance(threads=1, package="bootdqn")
    return {
        "processor": here["machine"]["processor"],
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "bf16": bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()),
        "cores": os.cpu_count(),
        "python": here["python"],
        "packages": {name: _version(name) for name in PACKAGES},
    }


def write(path: Path | None, rows: Iterable[Row]) -> None:
    """Write the rows and the machine to `path`, if there is one."""
    if path is not None:
        content = {"machine": machine(), "rows": [row._asdict() for row in rows]}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> list[Row]:
    """Return the rows of a file."""
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def show(title: str, rows: Iterable[Row]) -> None:
    """Print the rows as one table."""
    table = Table(title=title)
    for heading in ("what", "peer", "value", "ratio", "limit", "met"):
        table.add_column(heading, justify="left" if heading in ("what", "peer", "met") else "right", no_wrap=True)
    for row in rows:
        ratio, met = "" if row.ratio is None else f"{row.ratio:.2f}", {None: "", True: "yes", False: "no"}[row.met]
        table.add_row(row.what, row.peer, f"{row.value:,.4g} {row.unit}", ratio, row.limit or "", met)
    console = Console()
    console.width = max(console.width, 150)  # a table in a file or a narrow window is better wide than cut
    console.print(table)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
