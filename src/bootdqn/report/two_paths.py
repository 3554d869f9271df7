"""The paper's opening example, `bootdqn/TwoPaths-v0`: when each run first came to the end of the long, silent path."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bootdqn.config.variants import algorithm, algorithm_order
from bootdqn.report.runs import Run
from bootdqn.report.tables import Table

SHORT_END = 1.0
"""Return of the path that looks better at first."""


@dataclass(frozen=True)
class Search:
    """One run on the two paths."""

    strategy: str
    num_heads: int
    prior_scale: float
    seed: int
    steps: int
    found_at: int | None
    """The step at which an episode first ended with more than the short path gives; None where none did."""

    @property
    def agent(self) -> str:
        """What searched, in words: a single head explores nothing."""
        return "one head" if self.num_heads == 1 else algorithm(self.strategy).label


def read_searches(runs: Iterable[Run]) -> list[Search]:
    """Return every run on the two paths."""
    return [_search(run) for run in runs if run.config.get("env_id") == "bootdqn/TwoPaths-v0"]


def _search(run: Run) -> Search:
    config = run.config
    ends = (record["step"] for record in run.folder.read_metrics("episode") if record["return"] > SHORT_END)
    return Search(
        strategy=config["strategy"],
        num_heads=config["num_heads"],
        prior_scale=config["prior_scale"],
        seed=config["seed"],
        steps=config["total_steps"],
        found_at=next(ends, None),
    )


def by_agent(searches: Iterable[Search]) -> dict[tuple[float, str], list[Search]]:
    """Return the searches by prior and agent, in the paper's order, a single head first; each group by seed."""
    groups: dict[tuple[float, str], list[Search]] = {}
    for one in sorted(searches, key=_order):
        groups.setdefault((one.prior_scale, one.agent), []).append(one)
    return groups


def _order(search: Search) -> tuple[float, bool, tuple[int, str], int]:
    return search.prior_scale, search.num_heads > 1, algorithm_order(search.strategy), search.seed


def finds(group: Sequence[Search]) -> int:
    """Return how many of the runs found the long path."""
    return sum(one.found_at is not None for one in group)


def table(searches: Sequence[Search]) -> Table:
    """Return the step at which each run first came to the long end, a row an agent."""
    seeds = sorted({one.seed for one in searches})
    rows = []
    for (prior, agent), group in by_agent(searches).items():
        steps = {one.seed: "-" if one.found_at is None else f"{one.found_at:,}" for one in group}
        rows.append((agent, f"{prior:g}", *(steps.get(seed, "") for seed in seeds), f"{finds(group)} of {len(group)}"))
    columns = ("agent", "`--prior-scale`", *(f"seed {seed}" for seed in seeds), "runs that found it")
    return Table("two-paths", "Two paths", columns, rows, text_columns=("agent",))
