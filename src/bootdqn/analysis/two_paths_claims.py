"""The judge of what the paper says about its opening example."""

from bootdqn.analysis.evidence import CONTRADICTED, ENOUGH_SEEDS, MIXED, OPEN, SUPPORTED, Evidence, Verdict
from bootdqn.analysis.two_paths import by_agent, finds
from bootdqn.common.algorithms import algorithm

EXPLORERS = tuple(algorithm(strategy).label for strategy in ("gain", "evoi"))


def explorers_find_the_long_path(evidence: Evidence) -> Verdict:
    """Judge whether Gain and EVOI find the long path in most of their runs, and a single head in fewer.

    Where neither finds it more often than a single head it is contradicted. Agents with a prior, which the paper has
    not, are told of and do not count.
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
    single, *explorers = (finds(plain[agent]) / len(plain[agent]) for agent in asked)
    if all(share > 0.5 and share > single for share in explorers):
        return Verdict(SUPPORTED, says, "two-paths")
    return Verdict(MIXED if max(explorers) > single else CONTRADICTED, says, "two-paths")
