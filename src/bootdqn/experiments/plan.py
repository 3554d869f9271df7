"""Which runs an experiment consists of.

The seed is the outermost axis: an experiment stopped early has the same seeds in every cell.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from bootdqn.training.config import TrainConfig, from_flat


@dataclass(frozen=True)
class PlannedRun:
    """One run of an experiment, in the folder `name` below the experiment's."""

    name: PurePosixPath
    config: TrainConfig[Any]


def deep_sea_race(
    strategies: Sequence[str], sizes: Sequence[int], num_seeds: int, max_episodes: int
) -> list[PlannedRun]:
    """Every strategy at every size with the same seeds; what is named twice is run once."""
    runs = {}
    for seed, size, strategy in itertools.product(range(num_seeds), sizes, strategies):
        settings = {"size": size, "strategy": strategy, "seed": seed, "max_episodes": max_episodes}
        config = from_flat({"environment": "deep-sea"} | settings)
        words = "-".join(re.findall(r"[a-z0-9.]+", config.actor.strategy))
        name = PurePosixPath(f"size-{size}", words, f"seed-{seed}")
        runs[name] = PlannedRun(name, config)
    return list(runs.values())
