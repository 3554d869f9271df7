"""Where a run's numbers come from: versions, source, arguments, machine."""

import os
import platform
import re
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from bootdqn.common.files import write_json_atomically
from bootdqn.common.text import printable
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.plugins import digests

PACKAGES = (
    *("bootdqn", "torch", "numpy", "numba", "scipy", "gymnasium", "array-api-compat", "lz4", "safetensors"),
    *("ale-py", "opencv-python-headless"),
)
COMPARED = ("torch", "numpy", "numba", "gymnasium")
"""Packages whose versions the numbers of every run depend on, beside that of its environment."""
MAX_DIFF_CHARACTERS = 200_000
KEEP_PYTORCH_TO = ("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
"""Variables that say which instructions PyTorch's matrix products and convolutions may use."""
SAME_KERNELS = {"Zen": "Haswell"}
"""OpenBLAS's names for processors that it has the same kernels for."""
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Provenance:
    """What is known of how the run in a folder came about: its beginning, and each process that took it up since."""

    folder: RunDirectory
    known: dict[str, Any]
    """What `provenance.json` holds, or will hold: an id at least, where somebody has removed the file."""

    @classmethod
    def begin(cls, folder: RunDirectory, threads: int, environment: dict[str, Any], package: str) -> "Provenance":
        """Return that of a run which begins in this process; nothing is written yet.

        Args:
            folder: Where it begins.
            threads: Those of PyTorch and BLAS.
            environment: What the environment really does.
            package: The package that the environment comes from.
        """
        return cls(folder, {"id": _new_id()} | provenance(threads, package) | {"environment": environment})

    @classmethod
    def read(cls, folder: RunDirectory) -> "Provenance":
        """Return that of a run which has begun.

        Raises:
            DamagedFileError: The file is there and cannot be read.
        """
        known = folder.read_provenance()
        return cls(folder, known if _ID.fullmatch(str(known.get("id"))) else known | {"id": _new_id()})

    @property
    def identity(self) -> str:
        """The run's id: drawn when it began, and its own wherever its directory is moved or however it is renamed."""
        return str(self.known["id"])

    @property
    def keeps_checkpoint(self) -> bool:
        """Whether the last checkpoint of the run is kept when it is finished."""
        return self.known.get("keep_checkpoint") is True

    def keeping_checkpoint(self, keep: bool | None) -> "Provenance":
        """Return it with another word on whether the last checkpoint is kept; None leaves it as it is."""
        return replace(self, known=self.known | {"keep_checkpoint": self.keeps_checkpoint if keep is None else keep})

    def write(self) -> None:
        """Write it into the folder."""
        write_json_atomically(self.folder.provenance, self.known)

    def changes_of_user_code(self) -> list[str]:
        """Return a line for each module of the user's own that is no longer what the run began with."""
        before, now = self.known.get("user_code"), digests()
        return [
            f"{module} has changed since this run began, which is no longer exact"
            for module, digest in (before.items() if isinstance(before, dict) else [])
            if module in now and now[module] != digest
        ]

    def changes_of_arithmetic(self, *, compiled: bool) -> list[str]:
        """Return a line if the libraries that this run uses add numbers up otherwise than where it began.

        Args:
            compiled: Whether it learns with the compiled kernel, and so without PyTorch.
        """
        machine, now = self.known.get("machine"), arithmetic()
        before = machine.get("arithmetic") if isinstance(machine, dict) else None
        if not isinstance(before, dict):
            return []
        used = [name for name in sorted({*before, *now}) if not compiled or name in ("blas", "numpy")]
        if all(before.get(name) == now.get(name) for name in used):
            return []
        then, here = (_listed(found, used) for found in (before, now))
        return [
            f"this run began with other instructions ({then}) than it goes on with ({here}), which may round "
            "differently, so it is no longer exact; docs/reliability.md says how to ask for the former"
        ]

    def changes_of_packages(self, package: str) -> list[str]:
        """Return a line if a package that the numbers depend on, such as the environment's `package`, has changed."""
        before = self.known.get("packages")
        before, now = before if isinstance(before, dict) else {}, versions(package)
        changed = [name for name in (*COMPARED, package) if name in before and before[name] != now[name]]
        if not changed:
            return []
        then, here = (_listed(found, changed) for found in (before, now))
        return [f"this run began with {then} and goes on with {here}, so it is no longer exact"]

    def changes_of_gpu(self) -> list[str]:
        """Return a line if the GPU, CUDA or cuDNN is another one; only for a run that uses a GPU."""
        machine, now = self.known.get("machine"), gpu() or {}
        before = machine.get("gpu") if isinstance(machine, dict) else None
        if not isinstance(before, dict) or before == now:
            return []
        then, here = (_listed(found, sorted({*before, *now})) for found in (before, now))
        return [f"this run began on another GPU ({then}) than it goes on with ({here}), so it is no longer exact"]

    def note_resumption(self, step: int, threads: int, package: str, not_exact: list[str]) -> None:
        """Write down that this process took the run up at `step`, and why that was not exact, if it was not."""
        before = self.known.get("resumed")
        entry = {"step": step, "not_exact": not_exact, **provenance(threads, package)}
        resumed = [*(before if isinstance(before, list) else []), entry]
        exact = self.known.get("exact", True) and not not_exact
        write_json_atomically(self.folder.provenance, self.known | {"exact": exact, "resumed": resumed})


def provenance(threads: int, package: str) -> dict[str, Any]:
    """Describe this process and the source it runs, ready for JSON; `package` is the environment's."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": [printable(word) for word in sys.argv],
        "python": platform.python_version(),
        "packages": versions(package),
        "source": source_of(Path(__file__).parents[1]),
        "user_code": digests(),
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "processor": _processor(),
            "arithmetic": arithmetic(),
            "gpu": gpu(),
            "cores": os.cpu_count(),
        },
        "threads": threads,
    }


def _new_id() -> str:
    return secrets.token_hex(8)


def versions(package: str) -> dict[str, str | None]:
    """Return the versions of what a run may use, `package` among it; None for what is not installed."""
    return {name: _version(name) for name in (*PACKAGES, package)}


def gpu() -> dict[str, Any] | None:
    """Return the GPUs of this machine and what computes on them; None where there is none."""
    import torch

    if not torch.cuda.is_available():
        return None
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return {"names": names, "cuda": torch.version.cuda, "cudnn": cudnn}


def _listed(found: dict[str, Any], names: Sequence[str]) -> str:
    """Return some of what was found, in a line."""
    return ", ".join(f"{name} {printable(str(found.get(name)))[:100]}" for name in names)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def source_of(folder: Path) -> dict[str, Any]:
    """Return commit and uncommitted changes, where the package runs from a git checkout that holds it."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None or not _git(folder, "ls-files", "."):
        return {"commit": None, "dirty": None, "changed": None, "diff": None}
    changed = (_git(folder, "status", "--porcelain", "--", ".") or "").splitlines()
    diff = _git(folder, "diff", "HEAD", "--", ".") or ""
    shown = diff if len(diff) <= MAX_DIFF_CHARACTERS else diff[:MAX_DIFF_CHARACTERS] + "\n... (cut)\n"
    return {"commit": commit.strip(), "dirty": bool(changed), "changed": changed, "diff": shown.replace("\0", "")}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None


def arithmetic() -> dict[str, Any]:
    """Return which instructions the libraries of this process use: with wider ones sums have other last bits.

    PyTorch's matrix products do not tell theirs, only what they were asked to keep to.
    """
    import torch
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library.get("architecture")]
    ours = [library for library in libraries if Path(library["filepath"]).parent.name in ("numpy.libs", "scipy.libs")]
    blas = {library["architecture"] for library in ours or libraries}  # other packages may have loaded theirs
    asked = {name: os.environ[name] for name in KEEP_PYTORCH_TO if name in os.environ}
    return {
        "blas": sorted({SAME_KERNELS.get(name, name) for name in blas}),
        "numpy": _numpy_instructions(),
        "pytorch": torch.backends.cpu.get_cpu_capability(),
    } | asked


def _numpy_instructions() -> list[str]:
    """Return those that NumPy uses for functions which it has in several forms."""
    introspect = getattr(np.lib, "introspect", None)  # not in the oldest NumPy that will do
    if introspect is None:
        return []
    found = introspect.opt_func_info(func_name="^(exp|log|log1p)$", signature="float32")
    return sorted({form["current"] for forms in found.values() for form in forms.values()})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
