"""The paper's numbers agree with each other as far as they do, and we know where they do not."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from bootdqn.reports import paper


@pytest.mark.parametrize("strategy", paper.MEAN_NORMALISED)
def test_table_2_follows_from_table_1(strategy):
    assert paper.mean_normalised(strategy) == pytest.approx(paper.MEAN_NORMALISED[strategy], abs=0.01)


def test_the_truncated_rows_are_those_that_rounding_would_print_differently():
    rounded = {name: round(paper.mean_normalised(name), 2) for name in paper.MEAN_NORMALISED}
    differ = {name for name, value in rounded.items() if value != paper.MEAN_NORMALISED[name]}
    assert differ == set(paper.TRUNCATED)


def test_the_differences_that_the_paper_mentions():
    lead = {name: paper.MEAN_NORMALISED["evoi"] - value for name, value in paper.MEAN_NORMALISED.items()}
    assert lead["greedy"] == pytest.approx(9.38)
    assert lead["ids"] == pytest.approx(19.16)
    assert lead["ucb"] == pytest.approx(16.45)


def test_evoi_is_best_in_four_games():
    best = {game: max((s for s in row if row[s]), key=lambda s: row[s]) for game, row in paper.MAXIMAL_SCORE.items()}
    assert {game for game, name in best.items() if name == "evoi"} == {"Gravitar", "Solaris", "Venture", "Hero"}


def test_the_growth_of_the_runtime_follows_from_the_runtimes():
    heads = list(paper.RUNTIME_MINUTES)
    for before, after in pairwise(heads):
        growth = 100 * (paper.RUNTIME_MINUTES[after] / paper.RUNTIME_MINUTES[before] - 1)
        assert growth == pytest.approx(paper.RUNTIME_GROWTH[after], abs=0.6)


def test_the_growth_of_the_runtime_is_written_once():
    root = Path(__file__).parents[2]
    files = [path for directory in ("src", "benchmarks", "reproduction") for path in (root / directory).rglob("*.py")]
    growth = r"\b" + r"\b.{1,15}\b".join(map(str, paper.RUNTIME_GROWTH.values())) + r"\b"
    assert [path.name for path in files if re.search(growth, path.read_text())] == ["paper.py"]


def test_every_table_is_about_the_same_games():
    tables = (paper.RANDOM_SCORE, paper.HUMAN_SCORE, paper.MAXIMAL_SCORE, paper.VOTE_VARIANCE)
    assert all(set(table) == set(paper.GAMES) for table in tables)


@pytest.mark.parametrize(
    ("game", "printed"),
    [
        ("Gravitar", (2, 2.15, 1.96, 2)),
        ("Venture", (2.24, 2.62, 3.15, 2.52)),
        ("Solaris", (1.14, 1.52, 1.25, 1.32)),
        ("PrivateEye", (1.12, 1.43, 1.16, 1.12)),
        ("Alien", (1.72, 1.82, 1.78, 1.76)),
        ("Hero", (1.14, 1.67, 1.38, 1.43)),
    ],
)
def test_table_3_is_as_printed(game, printed):
    assert paper.VOTE_VARIANCE[game] == dict(zip(("greedy", "ucb", "gain", "evoi"), printed, strict=True))
