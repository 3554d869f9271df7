"""User code: imported because a flag or the user's program asks for it, never because a file does.

Imported modules are remembered, so that a run can record which it needs, and a run directory that needs others is
rejected.
"""

import importlib
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Annotated

from bootdqn.common.errors import UsageError
from bootdqn.common.fields import Pattern, check_value

_IMPORTED: dict[str, ModuleType] = {}
_MODULE = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
ModuleName = Annotated[str, Pattern(_MODULE, "the name of a module, as in my_environments")]


class UserCodeNotImportedError(ValueError):
    """A configuration needs user code that was not imported; `flags` import it."""

    def __init__(self, *flags: str) -> None:
        how = f"in Python import and register it first, on the command line add {' '.join(flags)}"
        super().__init__(f"needs user code, which is never imported because a file names it: {how}")
        self.flags = flags


def import_environments(module: str, directory: Path | None = None) -> None:
    """Import a module that registers Gymnasium environments, for `--import`, and remember it.

    Raises:
        ValueError: `module` is not the name of a module.
        UsageError: There is no such module, or it cannot be imported.
    """
    check_value("--import", ModuleName, module)
    _IMPORTED[module] = import_code(module, f"--import {module}", directory)


def imported_environments() -> tuple[str, ...]:
    """Return the modules that `import_environments` has imported, in order."""
    return tuple(_IMPORTED)


def import_code(module: str, flag: str, directory: Path | None = None) -> ModuleType:
    """Import `module`, installed or in `directory` (None: the current one), because `flag` asks for it.

    The directory comes last on the path, so that a file there replaces no other module.

    Raises:
        UsageError: There is no such module, or it cannot be imported.
    """
    directory = directory or Path.cwd()
    if str(directory) not in sys.path:
        sys.path.append(str(directory))
    importlib.invalidate_caches()  # a file may be newer than Python's cache of its directory
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise UsageError(f"{flag}: no module {error.name!r} is installed, or in {directory}") from error
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = "" if isinstance(error, SyntaxError) else f" ({frame.filename}, line {frame.lineno})"
        raise UsageError(f"{flag} cannot be imported: {type(error).__name__}: {error}{where}") from error


def is_module_name(text: str) -> bool:
    """Return whether `text` is of the form of a module's name."""
    return re.fullmatch(_MODULE, text, re.ASCII) is not None
