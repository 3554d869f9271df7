"""Where a run's numbers come from: versions, source, arguments, machine."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bootdqn.training.extensions import digests

PACKAGES = (
    *("bootdqn", "torch", "numpy", "numba", "scipy", "gymnasium", "array-api-compat", "lz4", "safetensors"),
    *("ale-py", "opencv-python-headless"),
)
MAX_DIFF_CHARACTERS = 200_000


def provenance(threads: int) -> dict[str, Any]:
    """Describe this process and the source it runs, ready for JSON."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": sys.argv,
        "python": platform.python_version(),
        "packages": {package: _version(package) for package in PACKAGES},
        "source": source_of(Path(__file__).parents[1]),
        "own_code": digests(),
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
        "threads": threads,
    }


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
    return {"commit": commit.strip(), "dirty": bool(changed), "changed": changed, "diff": shown}


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


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
