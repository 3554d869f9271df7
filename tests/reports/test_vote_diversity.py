"""Vote diversity: four measures that are never taken for each other, over all evaluations."""

import pytest

from bootdqn.reports import paper
from bootdqn.reports.atari import evaluations_of, vote_diversity
from bootdqn.reports.report_data import load_report_data
from reference.run_directories import write_atari
from reference.tables import AtariRun
from reference.verdicts import verdicts_on_atari
from reproduction.evidence import CONTRADICTED, SUPPORTED

GROW = "BootDQN's votes begin alike and grow more diverse (Fig. 2b; by entropy, as meant)."
COMPARED = [
    "UCB's votes are the most diverse, except in Venture (by count variance, as printed).",
    "UCB's votes are the most diverse (by entropy, as meant).",
    "Gain's and EVOI's votes are at least as diverse as BootDQN's (by count variance, as printed).",
    "Gain's and EVOI's votes are at least as diverse as BootDQN's (by entropy, as meant).",
]


def in_every_game(strategy, **run):
    """Return as many runs as the paper's."""
    return [AtariRun(game, strategy, seed, **run) for game in paper.GAMES for seed in range(paper.SEEDS)]


def verdict(claim, runs):
    return verdicts_on_atari(runs)[claim]["here"]


def test_every_column_of_the_table_is_its_own_measure_over_all_evaluations(tmp_path):
    measured = {
        "count variance": ("vote_count_variance", (1.0, 4.0), (3.5,), "3.00"),
        "entropy (nats)": ("vote_entropy", (0.5, 0.1), (0.9,), "0.60"),
        "distinct actions": ("distinct_actions", (2.0, 5.0), (4.5,), "4.00"),
        "index variance": ("action_index_variance", (9.0, 8.0), (7.5,), "8.00"),
    }
    longer = {measure: series for measure, series, _, _ in measured.values()}
    shorter = {measure: series for measure, _, series, _ in measured.values()}
    write_atari(tmp_path / "longer", seed=0, scores=(1.0, 1.0), diversity=longer)
    write_atari(tmp_path / "shorter", seed=1, scores=(1.0,), diversity=shorter)
    table = vote_diversity(evaluations_of(load_report_data(tmp_path)))
    (row,) = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert {column: row[column] for column in measured} == {
        column: mean_of_the_runs for column, (*_, mean_of_the_runs) in measured.items()
    }


@pytest.mark.parametrize(
    ("entropies", "count_variances", "expected"),
    [((0.1, 0.9), (9.0, 1.0), SUPPORTED), ((0.9, 0.1), (1.0, 9.0), CONTRADICTED)],
)
def test_votes_grow_diverse_by_entropy_whatever_their_count_variance_does(entropies, count_variances, expected):
    diversity = {"vote_entropy": entropies, "vote_count_variance": count_variances}
    runs = in_every_game("greedy", scores=(1.0, 1.0), diversity=diversity)
    assert verdict(GROW, runs) == expected


@pytest.mark.parametrize("claim", COMPARED)
def test_votes_that_are_equally_diverse_in_every_game_are_as_diverse_as_claimed(claim):
    runs = [run for strategy in ("greedy", "ucb", "gain", "evoi") for run in in_every_game(strategy)]
    assert verdict(claim, runs) == SUPPORTED
