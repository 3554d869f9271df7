"""Flags that several commands have."""

from dataclasses import dataclass
from typing import Annotated

from bootdqn.common.flags import Flag

Repeated = Annotated[tuple[str, ...], Flag(repeated=True)]


@dataclass(frozen=True)
class OwnCode:
    """Code of your own. A file never imports any by itself: give the flags again that a run was made with."""

    strategy_from: Repeated = ()
    """Import a strategy of your own, as in my_module.MyStrategy."""
    imports: Annotated[tuple[str, ...], Flag(name="import", repeated=True)] = ()
    """Import a module of your own that registers Gymnasium environments."""
