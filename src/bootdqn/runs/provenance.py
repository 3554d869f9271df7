"""Provenance of a run's numbers: versions, source, arguments, machine."""

import os
import platform
import re
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from bootdqn.common.files import write_json_atomically
from bootdqn.common.text import escape_unprintable
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.source import source_of
from bootdqn.runs.user_code_imports import user_code_digests

PACKAGES = (
    *("bootdqn", "torch", "numpy", "numba", "scipy", "gymnasium", "array-api-compat", "lz4", "safetensors"),
    *("ale-py", "opencv-python-headless"),
)
COMPARED = ("bootdqn", "torch", "numpy", "numba", "gymnasium")
"""Packages whose versions the numbers of every run depend on, beside that of its environment."""
PYTORCH_LIMITS = ("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
"""Environment variables that limit the instructions of PyTorch's matrix products and convolutions."""
SAME_KERNELS = {"Zen": "Haswell"}
"""OpenBLAS's names of processors that share their kernels."""
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Provenance:
    """The provenance of a run: the process that started it, and each that resumed it."""

    directory: RunDirectory
    content: dict[str, Any]
    """The content of `provenance.json`: at least an id, where the file was removed."""

    @classmethod
    def start(cls, directory: RunDirectory, threads: int, environment: dict[str, Any], package: str) -> "Provenance":
        """Return the provenance of a run that starts in this process; nothing is written yet.

        Args:
            directory: The run directory.
            threads: The threads of PyTorch and BLAS.
            environment: The effective settings of the environment.
            package: The package that the environment comes from.
        """
        return cls(directory, {"id": _new_id()} | provenance(threads, package) | {"environment": environment})

    @classmethod
    def read(cls, directory: RunDirectory) -> "Provenance":
        """Return the provenance of a run that was started before.

        Raises:
            DamagedFileError: The file cannot be read.
        """
        content = directory.read_provenance()
        return cls(directory, content if _ID.fullmatch(str(content.get("id"))) else content | {"id": _new_id()})

    @property
    def identity(self) -> str:
        """The run's random id, which stays when its directory is moved or renamed."""
        return str(self.content["id"])

    @property
    def keeps_checkpoint(self) -> bool:
        """Whether the last checkpoint of the run is kept when it is finished."""
        return self.content.get("keep_checkpoint") is True

    def with_keep_checkpoint(self, keep: bool | None) -> "Provenance":
        """Return a copy with `keep_checkpoint` set; None keeps the current value."""
        return replace(
            self, content=self.content | {"keep_checkpoint": self.keeps_checkpoint if keep is None else keep}
        )

    def write(self) -> None:
        """Write it to the run directory."""
        write_json_atomically(self.directory.provenance, self.content)

    def changes_of_user_code(self) -> list[str]:
        """Return a warning for each module of user code that has changed."""
        before, now = self.content.get("user_code"), user_code_digests()
        return [
            f"module {module} has changed since this run was started, so it is no longer exact"
            for module, digest in (before.items() if isinstance(before, dict) else [])
            if module in now and now[module] != digest
        ]

    def changes_of_arithmetic(self, *, compiled: bool) -> list[str]:
        """Return a warning if the libraries that this run uses add up numbers in another way.

        Args:
            compiled: Whether the run learns with the compiled kernel, and so without PyTorch.
        """
        machine, now = self.content.get("machine"), arithmetic()
        before = machine.get("arithmetic") if isinstance(machine, dict) else None
        if not isinstance(before, dict):
            return []
        used = [name for name in sorted({*before, *now}) if not compiled or name == "numpy"]
        if all(before.get(name) == now.get(name) for name in used):
            return []
        old, new = _listed(before, used), _listed(now, used)
        return [
            f"this run was started with other instructions ({old}) than it is resumed with ({new}), which may round "
            "differently, so it is no longer exact; see docs/reliability.md to limit them"
        ]

    def changes_of_packages(self, package: str) -> list[str]:
        """Return a warning if a package that the numbers depend on has changed; `package` is the environment's."""
        before = self.content.get("packages")
        before, now = before if isinstance(before, dict) else {}, versions(package)
        changed = [name for name in dict.fromkeys((*COMPARED, package)) if name in before and before[name] != now[name]]
        if not changed:
            return []
        old, new = _listed(before, changed), _listed(now, changed)
        return [f"this run was started with {old} and is resumed with {new}, so it is no longer exact"]

    def changes_of_gpu(self) -> list[str]:
        """Return a warning if the GPU, CUDA or cuDNN has changed, for a run that uses a GPU."""
        machine, now = self.content.get("machine"), gpu() or {}
        before = machine.get("gpu") if isinstance(machine, dict) else None
        if not isinstance(before, dict) or before == now:
            return []
        old, new = (_listed(gpus, sorted({*before, *now})) for gpus in (before, now))
        return [f"this run was started on another GPU ({old}) than it is resumed on ({new}), so it is no longer exact"]

    def write_resumption(self, step: int, threads: int, package: str, inexact_reasons: list[str]) -> None:
        """Write that this process resumes the run at `step`, and the reasons why that is not exact, if any."""
        before = self.content.get("resumed")
        entry = {"step": step, "not_exact": inexact_reasons, **provenance(threads, package)}
        resumed = [*(before if isinstance(before, list) else []), entry]
        exact = self.content.get("exact", True) and not inexact_reasons
        write_json_atomically(self.directory.provenance, self.content | {"exact": exact, "resumed": resumed})


def provenance(threads: int, package: str) -> dict[str, Any]:
    """Describe this process and the source it runs, ready for JSON; `package` is the environment's."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": [escape_unprintable(word) for word in sys.argv],
        "python": platform.python_version(),
        "packages": versions(package),
        "source": source_of(Path(__file__).parents[1]),
        "user_code": user_code_digests(),
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
    """Return the versions of the packages that a run may use, and of `package`; None where it is not installed."""
    return {name: _version(name) for name in (*PACKAGES, package)}


def gpu() -> dict[str, Any] | None:
    """Return the GPUs of this machine and the versions of CUDA and cuDNN; None where there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        return None
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return {"names": names, "cuda": torch.version.cuda, "cudnn": cudnn}


def _listed(values: dict[str, Any], names: Sequence[str]) -> str:
    """Return the values of some names, in a line."""
    return ", ".join(f"{name} {escape_unprintable(str(values.get(name)))[:100]}" for name in names)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def arithmetic() -> dict[str, Any]:
    """Return the instruction sets of this process's libraries: wider ones give sums other last bits.

    Of PyTorch's matrix products only the limits are known.
    """
    import torch
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library.get("architecture")]
    own = ("numpy.libs", "scipy.libs")  # other packages may have loaded theirs
    bundled = [library for library in libraries if Path(library["filepath"]).parent.name in own]
    blas = {library["architecture"] for library in bundled or libraries}
    asked = {name: os.environ[name] for name in PYTORCH_LIMITS if name in os.environ}
    return {
        "blas": sorted({SAME_KERNELS.get(name, name) for name in blas}),
        "numpy": _numpy_instructions(),
        "pytorch": torch.backends.cpu.get_cpu_capability(),
    } | asked


def _numpy_instructions() -> list[str]:
    """Return the instruction sets that NumPy uses where it has several."""
    introspect = getattr(np.lib, "introspect", None)  # missing in the oldest NumPy supported
    if introspect is None:
        return []
    functions = introspect.opt_func_info(func_name="^(exp|log|log1p)$", signature="float32")
    return sorted({form["current"] for forms in functions.values() for form in forms.values()})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
