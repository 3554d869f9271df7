"""Flags that several commands have."""

from dataclasses import dataclass
from typing import Annotated, TypeVar

import tyro

Part = TypeVar("Part")
Flat = Annotated[tyro.conf.OmitArgPrefixes[Part], tyro.conf.arg(name="")]
"""Flags of a part, without the part's name before them."""
Repeated = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


@dataclass(frozen=True)
class OwnCode:
    """Code of your own. A file never imports any by itself: give the flags again that a run was made with."""

    strategy_from: Repeated = ()
    """Import a strategy of your own, as in my_module.MyStrategy."""
    imports: Annotated[Repeated, tyro.conf.arg(name="import")] = ()
    """Import a module of your own that registers Gymnasium environments."""
