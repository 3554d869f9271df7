"""Measures ensembles while they learn DeepSea: do heads disagree more in rare states, and how sparse is gain?

    python -m reproduction.ensembles        writes reproduction/results/ensembles/deep-sea.json, in a quarter of an hour

Every ensemble is looked at in all states of the grid, after as many steps as `STEPS` says.
"""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bootdqn.common.specs import Array
from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.exploration.formulas import disagreement, evoi, gain
from bootdqn.runs.threads import pinned_threads
from bootdqn.training.loop import make_components, reset_environments, train

STRATEGIES = ("greedy", "gain", "evoi:reduce=sum")
SIZES = (10, 20)
PRIOR_SCALES = (0.0, 3.0)
SEEDS = range(5)
STEPS = (1_000, 10_000)
FILE = Path(__file__).parent / "results/ensembles/deep-sea.json"
MIN_GROUP = 3
"""States whose ranks say something: two are always in one order or the other."""


def rarity(q: Array, visits: Array) -> float:
    """Return the rank correlation of visits (S,) with the heads' disagreement about Q-values (S, K, A)."""
    return float(spearmanr(visits, disagreement(q)).statistic)


def rarity_within(groups: Array, q: Array, visits: Array) -> float:
    """Return the mean, over groups of states (S,), of the same among the states of each.

    A group counts once, however large; one of fewer than three states, or whose states were all visited equally often,
    is left out. Where none is left, it is NaN.
    """
    found = []
    for group in np.unique(groups):
        here = groups == group
        if here.sum() >= MIN_GROUP and len(np.unique(visits[here])) > 1:
            found.append(rarity(q[here], visits[here]))
    return float(np.mean(found)) if found else float("nan")


def densities_and_sizes(q: Array) -> dict[str, float]:
    """Return how many of the gains, and of the EVOIs, of Q-values (S, K, A) are positive, and how large those are."""
    found = {}
    for name, bonus in (("gain", gain(q)), ("evoi", evoi(q))):
        found[f"{name}_density"] = float((bonus > 0).mean())
        found[f"{name}_size"] = float(bonus[bonus > 0].mean()) if (bonus > 0).any() else 0.0
    return found


def measure(strategy: str, size: int, prior_scale: float, seed: int) -> Iterator[dict[str, Any]]:
    """Train one agent, and yield the measurements of its ensemble after each of `STEPS`.

    They are the settings, `step`, and rank correlations of visits with disagreement: `rarity` over all states,
    `rarity_among_visited` over those visited at all, `rarity_at_shallow_depths` and `rarity_at_deep_ones` among the
    states of one depth, on average over the depths of the upper and of the lower half of the grid. Then, over visited
    states, heads and actions, the share of positive gains (`gain_density`) and their mean (`gain_size`), and the same
    of EVOI, the mean over heads.
    """
    settings: dict[str, Any] = {"strategy": strategy, "size": size, "prior_scale": prior_scale, "seed": seed}
    config = resolve(from_flat({"environment": "deep-sea", "update_every": 1, **settings}))
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
            yield row | densities_and_sizes(q[seen])
        if result.step >= max(STEPS):
            return
        visits[components.loop.observations] += 1


def main() -> None:
    """Measure them all."""
    found: list[dict[str, Any]] = []
    with pinned_threads(1):
        for seed, size, prior_scale, strategy in product(SEEDS, SIZES, PRIOR_SCALES, STRATEGIES):
            found += measure(strategy, size, prior_scale, seed)
            print(f"{strategy}, N = {size}, prior {prior_scale:g}, seed {seed}", flush=True)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(FILE)


if __name__ == "__main__":
    main()
