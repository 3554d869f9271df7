"""The scores on DoorKey, and that the runs behind them have the defaults of `train minigrid`."""

import json
from collections import defaultdict
from statistics import mean

import pytest

from bootdqn.cli.main import parse
from bootdqn.config.defaults import MINIGRID
from bootdqn.config.settings import to_flat
from bootdqn.config.train import resolve
from reproduction.archive import read_rows
from reproduction.minigrid import doorkey_table, scores_of_runs

DOORKEY = read_rows("minigrid-doorkey")


def returns_of(row):
    """Return the mean returns of a run's evaluations."""
    return [record["mean_return"] for record in row["metrics"] if record["kind"] == "evaluation"]


@pytest.mark.parametrize("run", DOORKEY, ids=lambda row: row["run"])
def test_the_committed_runs_have_the_defaults_of_the_command(run):
    words = ["--env-id", "MiniGrid-DoorKey-5x5-v0", "--total-steps", "50000", "--eval-every-steps", "2500"]
    command = parse(["train", "minigrid", *words, "--seed", str(run["config"]["seed"])])
    assert json.loads(json.dumps(to_flat(resolve(command.config)))) == run["config"]


def test_a_score_is_the_mean_of_the_last_four_evaluations():
    found = scores_of_runs("minigrid-doorkey").set_index("seed").score
    expected = {run["config"]["seed"]: mean(returns_of(run)[-4:]) for run in DOORKEY}
    assert expected
    assert dict(found) == pytest.approx(expected)


def test_the_settings_with_the_most_seeds_solved_come_first():
    rows = [line.split(" | ") for line in doorkey_table("minigrid-search").splitlines()[2:]]
    solved = [int(row[-2].split(" of ")[0]) for row in rows]
    assert solved == sorted(solved, reverse=True)
    assert rows[0][0].endswith("BootDQN + prior 3, masks p = 1, target_every=500, update every 4")


def test_the_defaults_won_the_second_search_by_its_rule():
    runs = defaultdict(list)
    for row in read_rows("minigrid-epsilon"):
        runs[row["run"].rpartition("/")[0]].append(row)
    assert {len(of_setting) for of_setting in runs.values()} == {3}

    def score(of_setting):
        scores = [mean(returns_of(run)[-4:]) for run in runs[of_setting]]
        return sum(each >= 0.8 for each in scores), mean(scores)

    winner = runs[max(runs, key=score)][0]["config"]
    searched = {"total_steps", "eval_every_steps", "seed"}
    defaults = json.loads(json.dumps(to_flat(MINIGRID)))
    assert {name: value for name, value in winner.items() if defaults[name] != value}.keys() <= searched
