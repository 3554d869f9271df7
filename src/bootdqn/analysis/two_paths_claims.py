"""The judge of what the paper says about its opening example."""

import numpy as np
from scipy.stats import binomtest, fisher_exact

from bootdqn.analysis.evidence import CONTRADICTED, ENOUGH_SEEDS, OPEN, SUPPORTED, Evidence, Verdict
from bootdqn.analysis.two_paths import Search, by_agent, finds
from bootdqn.common.algorithms import algorithm

EXPLORERS = tuple(algorithm(strategy).label for strategy in ("gain", "evoi"))
LEVEL = 0.05


def explorers_find_the_long_path(evidence: Evidence) -> Verdict:
    """Judge whether Gain and EVOI find the long path more often than a single head, or in a minority of runs only.

    Supported where Fisher's exact test tells both from a single head; contradicted where the 95 % intervals (Wilson's)
    of both shares are below one half. Agents with a prior, which the paper has not, are told of and do not count.
    """
    groups = by_agent(evidence.searches)
    plain = {agent: group for (prior, agent), group in groups.items() if not prior}
    asked = ("one head", *EXPLORERS)
    if any(len(plain.get(agent, ())) < ENOUGH_SEEDS for agent in asked):
        return Verdict(OPEN, "run folders of it are in results/two-paths of the repository")
    told = ", ".join(
        f"{agent}{f' + prior {prior:g}' if prior else ''} {finds(group)}/{len(group)}"
        for (prior, agent), group in groups.items()
    )
    says = f"runs that found it within {max(one.steps for one in evidence.searches):,} steps: {told}"
    single, *explorers = (plain[agent] for agent in asked)
    if all(_more_often(explorer, single) for explorer in explorers):
        return Verdict(SUPPORTED, says, "two-paths")
    return Verdict(CONTRADICTED if all(map(_in_a_minority, explorers)) else OPEN, says, "two-paths")


def _more_often(one: list[Search], other: list[Search]) -> bool:
    table = np.array([[finds(group), len(group) - finds(group)] for group in (one, other)])
    return bool(fisher_exact(table, alternative="greater").pvalue < LEVEL)


def _in_a_minority(group: list[Search]) -> bool:
    interval = binomtest(finds(group), len(group)).proportion_ci(1 - LEVEL, method="wilson")
    return bool(interval.high < 0.5)
