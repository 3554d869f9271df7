"""Measures ensembles while they learn DeepSea: do heads disagree more in rare states, and how sparse is gain?

    python -m reproduction.ensembles        writes reproduction/results/ensembles/deep-sea.json, in a quarter of an hour

Every ensemble is looked at in all states of the grid, after as many steps as `STEPS` says.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bootdqn.config.train import from_flat, resolve
from bootdqn.report.ensembles import Measured, densities_and_sizes, rarity, rarity_within
from bootdqn.runs.threads import pinned_threads
from bootdqn.training.loop import make_components, reset_environments, train

STRATEGIES = ("greedy", "gain", "evoi:reduce=sum")
SIZES = (10, 20)
PRIOR_SCALES = (0.0, 3.0)
SEEDS = range(5)
STEPS = (1_000, 10_000)
FILE = Path(__file__).parent / "results/ensembles/deep-sea.json"


def measure(strategy: str, size: int, prior_scale: float, seed: int) -> Iterator[Measured]:
    """Train one agent, and yield what its ensemble is like after each of `STEPS`."""
    settings: dict[str, Any] = {"strategy": strategy, "size": size, "prior_scale": prior_scale, "seed": seed}
    config = resolve(from_flat({"environment": "deep-sea", **settings}))
    components = make_components(config)
    states = np.flatnonzero(np.tri(size))
    depth = states // size
    shallow = depth < size / 2
    visits = np.zeros(size * size, np.int64)
    reset_environments(components)
    visits[components.loop.observations] += 1
    for result in train(config, components):
        if result.step in STEPS:
            q, seen = components.learner.q_values(states), visits[states] > 0
            row = settings | {
                "step": result.step,
                "rarity": rarity(q, visits[states]),
                "rarity_among_visited": rarity(q[seen], visits[states][seen]),
                "rarity_at_shallow_depths": rarity_within(depth[shallow], q[shallow], visits[states][shallow]),
                "rarity_at_deep_ones": rarity_within(depth[~shallow], q[~shallow], visits[states][~shallow]),
            }
            yield Measured(**row | densities_and_sizes(q[seen]))
        if result.step >= max(STEPS):
            return
        visits[components.loop.observations] += 1


def main() -> None:
    """Measure them all."""
    found = []
    with pinned_threads(1):
        for seed, size, prior_scale, strategy in product(SEEDS, SIZES, PRIOR_SCALES, STRATEGIES):
            found += [asdict(one) for one in measure(strategy, size, prior_scale, seed)]
            print(f"{strategy}, N = {size}, prior {prior_scale:g}, seed {seed}", flush=True)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(FILE)


if __name__ == "__main__":
    main()
