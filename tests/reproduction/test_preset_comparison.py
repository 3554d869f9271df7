"""The table of presets, against the summaries and SciPy's own test."""

from statistics import mean

from scipy.stats import mannwhitneyu

from reproduction.archive import read_rows
from reproduction.preset_comparison import preset_table


def values_of(preset, task):
    """Return the last evaluations in the summaries, by seed."""
    runs = [row for row in read_rows("explorer-harm") if row["config"]["env_id"] == task]
    runs = [row for row in runs if row["config"]["preset"] == preset]
    return [row["summary"]["last_evaluation"] for row in sorted(runs, key=lambda row: row["config"]["seed"])]


def rows_of(table):
    """Return the cells of each row by its first."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def test_a_row_has_both_means_and_the_verdict_of_an_exact_test():
    rows = rows_of(preset_table("explorer-harm"))
    assert set(rows) == {"CartPole-v1", "FrozenLake8x8-v1", "bootdqn/TwoPaths-v0"}
    for task in rows:
        paper, explorer = values_of("paper", task), values_of("explorer", task)
        assert len(paper) == len(explorer) == 5
        first, second, *_, verdict = rows[task]
        for shown, values in ((first, paper), (second, explorer)):
            assert abs(float(shown.split("**")[1]) - mean(values)) < 1e-3 * mean(values)
        tied = len({*paper, *explorer}) < 10
        if not tied:  # SciPy's exact test knows no ties
            decided = mannwhitneyu(explorer, paper, method="exact").pvalue < 0.05
            expected = "better" if mean(explorer) > mean(paper) else "worse"
            assert verdict == (expected if decided else "no difference found")
