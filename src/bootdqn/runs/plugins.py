"""All code of the user's own that this process has, so that other processes can be told to have the same."""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from bootdqn.common.user_code import import_environments, imported_environments
from bootdqn.exploration.registry import load_strategy, registered_modules, registered_origins


@dataclass(frozen=True)
class Plugins:
    """What to import for strategies and environments of the user's own."""

    strategies: tuple[str, ...] = ()
    """MODULE.CLASS each."""
    imports: tuple[str, ...] = ()
    """Modules that register environments."""
    folder: Path | None = None
    """Where to look beside the installed modules (None: in the current directory)."""

    def load(self) -> None:
        """Import it all; what this process has already it keeps.

        Raises:
            UsageError: Something cannot be imported, or is not what it should be.
        """
        for module in self.imports:
            import_environments(module, self.folder)
        for origin in self.strategies:
            if origin not in registered_origins():
                load_strategy(origin, self.folder)


def loaded_plugins() -> Plugins:
    """Return the plugins that this process has imported."""
    return Plugins(registered_origins(), imported_environments(), Path.cwd())


def digests() -> dict[str, str | None]:
    """Return the SHA-256 of the file of each module of the user's own; None for one without a file."""
    modules = {*imported_environments(), *registered_modules()}
    return {module: _digest(getattr(sys.modules.get(module), "__file__", None)) for module in sorted(modules)}


def _digest(file: str | None) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None
    except OSError:
        return None
