"""The table of presets, against the summaries and an enumeration of all ranks."""

from itertools import combinations
from statistics import mean

import pytest

from reproduction.archive import read_rows
from reproduction.preset_comparison import preset_table

STUDIES = {
    "explorer-harm": ("env_id", {"CartPole-v1", "FrozenLake8x8-v1", "bootdqn/TwoPaths-v0"}),
    "explorer-harm-minatar": ("game", {"breakout", "space-invaders"}),
}
"""The setting that names the task, and the tasks, by study."""


def values_of(study, preset, task):
    """Return the last evaluations in the summaries, by seed."""
    setting, _ = STUDIES[study]
    runs = [row for row in read_rows(study) if row["config"][setting] == task]
    runs = [row for row in runs if row["config"]["preset"] == preset]
    return [row["summary"]["last_evaluation"] for row in sorted(runs, key=lambda row: row["config"]["seed"])]


def rows_of(table):
    """Return the cells of each row by its first."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def wins(ours, theirs):
    """Return how often one of ours is higher; a tie counts half."""
    return sum((one > other) + (one == other) / 2 for one in ours for other in theirs)


def p_value(ours, theirs):
    """Return the share of all ways to deal the values in which a group wins as unequally as here, or more."""
    values, size = [*ours, *theirs], len(ours)
    middle = size * len(theirs) / 2
    deals = [set(chosen) for chosen in combinations(range(len(values)), size)]
    dealt = [
        wins([values[i] for i in deal], [values[i] for i in range(len(values)) if i not in deal]) for deal in deals
    ]
    return mean(abs(number - middle) >= abs(wins(ours, theirs) - middle) for number in dealt)


@pytest.mark.parametrize("study", STUDIES)
def test_a_row_has_both_means_and_the_verdict_of_an_exact_test(study):
    rows = rows_of(preset_table(study))
    assert set(rows) == STUDIES[study][1]
    for task in rows:
        paper, explorer = values_of(study, "paper", task), values_of(study, "explorer", task)
        assert len(paper) == len(explorer) == 5
        first, second, *_, verdict = rows[task]
        for shown, values in ((first, paper), (second, explorer)):
            assert abs(float(shown.split("**")[1]) - mean(values)) < 1e-3 * mean(values)
        expected = "better" if mean(explorer) > mean(paper) else "worse"
        assert verdict == (expected if p_value(explorer, paper) < 0.05 else "no difference found")
