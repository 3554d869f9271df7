"""Code of the user's own: imported because a flag or the user's program asks for it, never because a file does.

What was imported is remembered, so that a run can record what it needs, and a run folder that needs anything else can
be refused.
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
    """A configuration needs code of the user's own that nobody asked to import; `flags` are the way to ask."""

    def __init__(self, *flags: str) -> None:
        how = f"in Python import and register it first, on the command line add {' '.join(flags)}"
        super().__init__(f"needs code of your own, which no file imports by itself: {how}")
        self.flags = flags


def import_environments(module: str, folder: Path | None = None) -> None:
    """Import a module that registers Gymnasium environments, as `--import` asks, and remember it.

    Raises:
        ValueError: `module` cannot be the name of one.
        UsageError: There is no such module, or it cannot be imported.
    """
    check_value("--import", ModuleName, module)
    _IMPORTED[module] = import_code(module, f"--import {module}", folder)


def imported_environments() -> tuple[str, ...]:
    """Return the modules that `import_environments` has imported, in their order."""
    return tuple(_IMPORTED)


def import_code(module: str, asked_by: str, folder: Path | None = None) -> ModuleType:
    """Import `module`, be it installed or in `folder` (None: the current one), because the flag `asked_by` says so.

    The folder comes last on the path: a file there takes no other module's place.

    Raises:
        UsageError: There is no such module, or it cannot be imported.
    """
    folder = folder or Path.cwd()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()  # a file may be newer than what Python knows of its folder
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise UsageError(f"{asked_by}: no module {error.name!r} is installed, nor is one in {folder}") from error
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = "" if isinstance(error, SyntaxError) else f" ({frame.filename}, line {frame.lineno})"
        raise UsageError(f"{asked_by} cannot be imported: {type(error).__name__}: {error}{where}") from error


def is_module_name(text: str) -> bool:
    """Return whether `text` could be the name of a module."""
    return re.fullmatch(_MODULE, text, re.ASCII) is not None
