"""Evaluations of Atari runs with made-up numbers."""

from bootdqn.config.variants import Variant
from bootdqn.report import paper
from bootdqn.report.atari import MEASURES, Played


def played(game="Hero", strategy="evoi", seed=0, scores=(1.0,), **measures):
    """Return a run of the paper's length with these evaluations; `measures` are series of vote diversity, else ones."""
    count = len(scores)
    return Played(
        name=f"{game}-{strategy}-{seed}",
        game=game,
        variant=Variant(strategy),
        num_heads=10,
        seed=seed,
        frames=tuple(paper.FRAMES * number // count for number in range(1, count + 1)),
        scores=tuple(scores),
        diversity={measure: tuple(measures.get(measure, [1.0] * count)) for measure in MEASURES},
        status="finished",
        total_frames=paper.FRAMES,
        seconds=1.0,
    )
