"""The tables of CartPole swing-up and of the frontier on DeepSea, against the committed files."""

from statistics import mean

from reproduction.archive import read_rows
from reproduction.frontier import frontier_runs
from reproduction.swing_up import swing_up_table


def test_every_hundred_episodes_have_the_mean_of_their_lines():
    metrics = {str(row["config"]["seed"]): row["metrics"] for row in read_rows("bsuite-swingup")}
    for line in swing_up_table("bsuite-swingup").splitlines()[2:]:
        seed, *shown, best, score = (cell.strip() for cell in line.strip("|").split("|"))
        returns = [record["return"] for record in metrics[seed] if record["kind"] == "episode"]
        assert len(returns) == 1000
        assert shown == [f"{mean(returns[start : start + 100]):.0f}" for start in range(0, 1000, 100)]
        assert best == f"{max(returns):.0f}"
        assert score == f"{(mean(returns) / 700 + 1) / 2:.2f}", "bsuite's: half by the mean, half for a good episode"


def test_the_frontier_has_every_run_of_explorer_under_one_name():
    committed = [*read_rows("deep-sea-explorer"), *read_rows("deep-sea-large")]
    explorer = [variant for variant in frontier_runs().variant if variant["preset"] == "explorer"]
    assert len(explorer) == len(committed) > 0
    assert len(set(explorer)) == 1
