"""The score that bsuite gives an agent on DeepSea, by its own reading of "solved".

bsuite plays 21 sizes, one run each and 10,000 episodes long, and scores the fraction of them that the agent solved
sooner than random play would have: before episode 2^N + 100. With several seeds a size counts with the fraction of its
seeds. Two things differ: bsuite's runs all have one action map (seed 42), and it looks for the first solved episode
among the ones that it logs, which become rarer, where these runs look at every one.
"""

from collections.abc import Sequence

import numpy as np

from bootdqn.config.variants import Variant, label, variant_order
from bootdqn.report.deep_sea import Cell, Result, cells
from bootdqn.report.tables import Table

SIZES = tuple(range(10, 51, 2))
EPISODES = 10_000
FORGIVENESS = 100
FEWEST_SIZES = 5
"""On fewer of the sizes a score says nothing."""


def beats_random_play(result: Result) -> bool:
    """Whether bsuite would count the run: solved within its episodes, and sooner than random play."""
    solved_at = result.solved_at
    return solved_at is not None and solved_at <= EPISODES and solved_at < 2**result.size + FORGIVENESS


def scored(results: list[Result]) -> dict[Variant, list[Cell]]:
    """Return for each variant its cells at bsuite's sizes, where they are enough and ran for as long as bsuite's."""
    usable = [result for result in results if result.size in SIZES and result.cap >= EPISODES]
    groups: dict[Variant, list[Cell]] = {}
    for cell in cells(usable):
        groups.setdefault(cell.variant, []).append(cell)
    enough = [variant for variant, mine in groups.items() if len(mine) >= FEWEST_SIZES]
    return {variant: groups[variant] for variant in sorted(enough, key=variant_order)}


def score(groups: Sequence[Cell]) -> float:
    """Return the mean over sizes of the fraction of seeds that beat random play."""
    return float(np.mean([np.mean([beats_random_play(result) for result in cell.results]) for cell in groups]))


def frontier(groups: Sequence[Cell]) -> int | None:
    """Return the largest N that at least half of the seeds solved, by the stricter reading; None where none."""
    return max((cell.size for cell in groups if 2 * cell.solved >= len(cell.results)), default=None)


def score_table(results: list[Result], name: str) -> Table | None:
    """Return the scores; None where no variant has enough of the sizes."""
    rows = []
    for variant, groups in scored(results).items():
        found, missing = score(groups), len(SIZES) - len(groups)
        seeds = sorted({len(cell.results) for cell in groups})
        low = found * len(groups) / len(SIZES)
        largest = frontier(groups)
        rows.append(
            (
                label(variant),
                f"{found:.3f}" if not missing else "",
                f"{found:.3f} on {len(groups)} sizes" if missing else "",
                f"{low:.3f} to {low + missing / len(SIZES):.3f}" if missing else "",
                f"{len(groups)} of {len(SIZES)}",
                f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}",
                "none" if largest is None else str(largest),
            )
        )
    if not rows:
        return None
    columns = (
        "algorithm", "score", "score on a part", "so the score is within", "sizes", "seeds", "largest N solved by half",
    )  # fmt: skip
    return Table(
        name,
        "bsuite's score",
        columns,
        rows,
        f"The fraction of N = {SIZES[0]}, {SIZES[1]}, ..., {SIZES[-1]} solved within {EPISODES:,} episodes and before "
        f"episode 2^N + {FORGIVENESS}, by bsuite's rule, averaged over seeds. There is no score where sizes are "
        "missing: beside what the others give stand the least and the most that all of them can. Here each seed has an "
        "action map of its own and every episode is looked at; in bsuite all runs have one map, and it looks at fewer "
        "and fewer episodes. The largest N is by the stricter reading of the other tables.",
        text_columns=("algorithm",),
    )
