"""The table of presets, against the summaries and SciPy's own test."""

import json
from statistics import mean

from scipy.stats import mannwhitneyu

from reproduction.preset_comparison import preset_table
from reproduction.studies import RESULTS


def values_of(preset, task):
    """Return the last evaluations in the summaries, by seed."""
    runs = sorted((RESULTS / f"explorer-harm/preset-{preset}/{task}").glob("*/seed-*"))
    return [json.loads((run / "summary.json").read_text())["last_evaluation"] for run in runs]


def rows_of(table):
    """Return the cells of each row by its first."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def test_a_row_has_both_means_and_the_verdict_of_an_exact_test():
    rows = rows_of(preset_table("explorer-harm"))
    tasks = {
        "CartPole-v1": "cartpole-v1",
        "FrozenLake8x8-v1": "frozenlake8x8-v1",
        "bootdqn/TwoPaths-v0": "bootdqn-twopaths-v0",
    }
    assert set(rows) == set(tasks)
    for task, directory in tasks.items():
        paper, explorer = values_of("paper", directory), values_of("explorer", directory)
        assert len(paper) == len(explorer) == 5
        first, second, *_, verdict = rows[task]
        for shown, values in ((first, paper), (second, explorer)):
            assert abs(float(shown.split("**")[1]) - mean(values)) < 1e-3 * mean(values)
        tied = len({*paper, *explorer}) < 10
        if not tied:  # SciPy's exact test knows no ties
            decided = mannwhitneyu(explorer, paper, method="exact").pvalue < 0.05
            expected = "better" if mean(explorer) > mean(paper) else "worse"
            assert verdict == (expected if decided else "no difference found")
