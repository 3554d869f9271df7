"""The commit that the package runs from, and what was changed since."""

import subprocess
from pathlib import Path
from typing import Any

MAX_DIFF_CHARACTERS = 200_000


def source_of(directory: Path) -> dict[str, Any]:
    """Return commit and uncommitted changes, where the package runs from a git checkout that holds it."""
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None or not _git(directory, "ls-files", "."):
        return {"commit": None, "dirty": None, "changed": None, "diff": None}
    changed = (_git(directory, "status", "--porcelain", "--", ".") or "").splitlines()
    diff = _git(directory, "diff", "HEAD", "--", ".") or ""
    kept_diff = diff if len(diff) <= MAX_DIFF_CHARACTERS else diff[:MAX_DIFF_CHARACTERS] + "\n... (cut)\n"
    return {"commit": commit.strip(), "dirty": bool(changed), "changed": changed, "diff": kept_diff.replace("\0", "")}


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None
