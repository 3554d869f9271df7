"""What `update` records hold: means over the updates since the last one, and over the steps taken meanwhile."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bootdqn.common.specs import Array
from bootdqn.exploration.information import disagreement, evoi
from bootdqn.training.loop import Acting, Round

ROUNDS_MEASURED_TOGETHER = 256


class ActingAverages:
    """Means over steps: how often the active head was overruled, what trying was worth, how far heads were apart.

    Rounds wait to be measured together, which costs a fraction of one by one. When that happens changes no bit of the
    sums: each step is measured by itself, and they are added up in their order.
    """

    def __init__(self) -> None:
        self._waiting: list[Acting] = []
        self._steps = 0
        self._sums = {"overruled": 0.0, "evoi": 0.0, "disagreement": 0.0}

    def add(self, acting: Acting) -> None:
        """Take in the steps of one round."""
        self._waiting.append(acting)
        if len(self._waiting) == ROUNDS_MEASURED_TOGETHER:
            self._measure()

    def take(self) -> dict[str, float | None]:
        """Return the means since the last time; null where Q-values were too large to tell, or no step was taken."""
        self._measure()
        means = {name: total / self._steps if self._steps else math.nan for name, total in self._sums.items()}
        self._steps, self._sums = 0, dict.fromkeys(self._sums, 0.0)
        return {name: value if math.isfinite(value) else None for name, value in means.items()}

    def get_state(self) -> dict[str, Any]:
        """Return the sums, ready for JSON, as text: it has no infinity."""
        self._measure()
        return {"steps": self._steps} | {name: repr(total) for name, total in self._sums.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on adding up."""
        self._waiting.clear()
        self._steps = int(state["steps"])
        self._sums = {name: float(state[name]) for name in self._sums}

    def _measure(self) -> None:
        if not self._waiting:
            return
        acting = Acting(*(np.concatenate(arrays) for arrays in zip(*self._waiting, strict=True)))
        self._waiting.clear()
        self._steps += len(acting.actions)
        for name, measured in _measures(acting).items():
            for value in measured.tolist():
                self._sums[name] += value


def _measures(acting: Acting) -> dict[str, Array]:
    """Return what is averaged, of each of S steps (S,)."""
    q, (steps, _, num_actions) = acting.q, acting.q.shape
    each = np.arange(steps)
    with np.errstate(all="ignore"):  # what is infinite is told as such
        worth = evoi(q)[each, acting.actions] if num_actions > 1 else np.zeros(steps)
        apart: Array = disagreement(q)
    overruled = acting.actions != q[each, acting.heads].argmax(axis=-1)
    return {"overruled": overruled, "evoi": worth, "disagreement": apart}


class UpdateAverages:
    """Means over the updates since the last `update` record."""

    def __init__(self, log_every: int) -> None:
        self._log_every = log_every
        self.updates = 0
        self._averaged = 0
        self._loss = 0.0
        self._td_error = 0.0
        self._acting = ActingAverages()

    def add(self, round_: Round) -> Iterator[dict[str, Any]]:
        """Take in one round; yield the records that are due."""
        self._acting.add(round_.acting)
        for update in round_.updates:
            self.updates += 1
            self._averaged += 1
            self._loss += float(update.head_loss.mean())
            self._td_error += float(update.td_error.mean())
            if is_record_due(self.updates, self._log_every):
                yield self._record(round_.step)

    def get_state(self) -> dict[str, Any]:
        """Return the sums, ready for JSON."""
        sums = {"updates": self.updates, "averaged": self._averaged, "loss": self._loss, "td_error": self._td_error}
        return sums | {"acting": self._acting.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on adding up."""
        self.updates, self._averaged = int(state["updates"]), int(state["averaged"])
        if not 0 <= self._averaged <= self.updates:
            raise ValueError(f"it averages over {self._averaged:,} of {self.updates:,} updates")
        self._loss, self._td_error = float(state["loss"]), float(state["td_error"])
        self._acting.set_state(state["acting"])

    def _record(self, step: int) -> dict[str, Any]:
        means = {"loss": self._loss / self._averaged, "td_error": self._td_error / self._averaged}
        self._averaged, self._loss, self._td_error = 0, 0.0, 0.0
        return {"kind": "update", "step": step, "updates": self.updates} | means | self._acting.take()


def is_record_due(updates: int, log_every: int) -> bool:
    """Return whether an `update` record is due after so many updates.

    One is due every `log_every` updates, and before the first of these after 10, 20, ..., 90, 100, 200, ... updates: a
    short run has its records as well, and a long one only a few more.
    """
    power_of_ten = 10 ** max(1, len(str(updates)) - 1)
    return updates % (power_of_ten if updates < log_every else log_every) == 0
