"""User code that this process has imported, for other processes to import as well."""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from bootdqn.common.user_code import import_environments, imported_environments
from bootdqn.exploration.registry import load_strategy, registered_class_paths, registered_modules


@dataclass(frozen=True)
class UserCodeImports:
    """The strategies and modules of environments to import."""

    strategies: tuple[str, ...] = ()
    """As MODULE.CLASS."""
    imports: tuple[str, ...] = ()
    """Modules that register environments."""
    directory: Path | None = None
    """Searched besides the installed modules (None: the current directory)."""

    def load(self) -> None:
        """Import all that this process has not imported yet.

        Raises:
            UsageError: A module cannot be imported, or a class is not a strategy.
        """
        for module in self.imports:
            import_environments(module, self.directory)
        for class_path in self.strategies:
            if class_path not in registered_class_paths():
                load_strategy(class_path, self.directory)


def imported_user_code() -> UserCodeImports:
    """Return the user code that this process has imported."""
    return UserCodeImports(registered_class_paths(), imported_environments(), Path.cwd())


def user_code_digests() -> dict[str, str | None]:
    """Return the SHA-256 of the file of each module of user code; None for one without a file."""
    modules = {*imported_environments(), *registered_modules()}
    return {module: _digest(getattr(sys.modules.get(module), "__file__", None)) for module in sorted(modules)}


def _digest(file: str | None) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None
    except OSError:
        return None
