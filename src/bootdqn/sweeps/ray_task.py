"""One run on a node of a Ray cluster: check the node, train, and check the node again if that failed."""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bootdqn.common.errors import RunInUseError, UsageError
from bootdqn.config.train import SavingConfig
from bootdqn.runs.lock import LOST_AFTER_SECONDS
from bootdqn.runs.plugins import Plugins
from bootdqn.sweeps.events import Ended, end_of
from bootdqn.sweeps.plan import PlannedRun

RECHECK_SECONDS = 5.0


class Orders(NamedTuple):
    """What every run of a sweep is trained with."""

    token: Path
    """A file in the output directory, by which a node shows that it sees that very directory."""
    extensions: Plugins
    saving: SavingConfig | None


class Attempt(NamedTuple):
    """How one attempt at a run ended, on whichever node Ray chose."""

    end: Ended
    warnings: list[str]
    node_problem: str | None = None
    """Why no run can be trained on this node; the run itself is not to blame."""


def attempt(planned: PlannedRun, orders: Orders) -> Attempt:
    """Train a run in the output directory, where this node can."""
    if problem := node_problem(orders):
        return Attempt(Ended(planned, None, problem), [], problem)
    end, warnings = _train(planned, orders)
    return Attempt(end, warnings, node_problem(orders) if end.error is not None else None)


def node_problem(orders: Orders) -> str | None:
    """Return why this node cannot train runs, and what to do about it, or None where it can."""
    out = orders.token.parent
    try:
        if not orders.token.exists():
            return f"it does not see {out}; choose an --out that all nodes share"
        with tempfile.NamedTemporaryFile(dir=out, prefix=".", suffix=".part"):
            pass
        orders.extensions.load()
    except OSError as error:
        return f"it cannot write to {out} ({error.strerror}); check the disk and its mount there"
    except UsageError as error:
        return f"{error}; install the module on every node, or start the sweep from a directory that all nodes share"
    return None


def wait_until_usable(orders: Orders) -> None:
    """Return once runs can be trained on this node."""
    while node_problem(orders):
        time.sleep(RECHECK_SECONDS)


def _train(planned: PlannedRun, orders: Orders) -> tuple[Ended, list[str]]:
    """Train one run, and return how it ended and what it warned of; the lock of a lost worker is waited for."""
    from bootdqn.training.callbacks import RunCallbacks
    from bootdqn.training.run import run

    deadline = time.monotonic() + 1.5 * LOST_AFTER_SECONDS
    while True:
        warnings: list[str] = []
        try:
            outcome = run(
                planned.config,
                orders.token.parent / planned.name,
                RunCallbacks(warn=warnings.append),
                saving=orders.saving,
            )
            return end_of(planned, outcome, warnings), warnings
        except RunInUseError as error:
            if time.monotonic() > deadline:
                return Ended(planned, None, str(error)), warnings
            time.sleep(LOST_AFTER_SECONDS / 20)
        except KeyboardInterrupt:
            return Ended(planned, None, "stopped at once"), warnings
        except Exception as error:
            return Ended(planned, None, f"{type(error).__name__}: {error}"), warnings
