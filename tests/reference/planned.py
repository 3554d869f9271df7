"""Runs of a sweep that are over in a moment."""

from pathlib import PurePosixPath

from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.sweeps.sweep_file import PlannedRun

SMALL = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 4,
    "num_heads": 4,
    "hidden_sizes": [8, 8],
    "max_episodes": 40,
}
QUICK = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 4,
    "max_episodes": 30,
    "stop_when_solved": False,
    "strategy": "greedy",
}


def planned(name, **settings):
    """Return a run of this name; `settings` are what is different about it."""
    return PlannedRun(PurePosixPath(name), resolve(from_flat(SMALL | settings)))
