"""Which runs an experiment consists of.

The seed is the outermost axis: an experiment stopped early has the same seeds in every cell.
"""

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
    """Every strategy at every size with the same seeds."""
    return [
        PlannedRun(
            PurePosixPath(f"size-{size}", strategy.replace(":", "-").replace("=", "-"), f"seed-{seed}"),
            from_flat(
                {
                    "environment": "deep-sea",
                    "size": size,
                    "strategy": strategy,
                    "seed": seed,
                    "max_episodes": max_episodes,
                }
            ),
        )
        for seed in range(num_seeds)
        for size in sizes
        for strategy in strategies
    ]
