"""The scores on DoorKey, and that the runs behind them have the defaults of `train minigrid`."""

import json
from collections import defaultdict
from statistics import mean

import pytest

from bootdqn.cli.main import parse
from bootdqn.config.train import MINIGRID, resolve, to_flat
from reproduction.minigrid import doorkey_table, scores_of_runs
from reproduction.studies import RESULTS

DOORKEY = sorted((RESULTS / "minigrid-doorkey").glob("seed-*"))


def returns_of(run):
    """Return the mean returns of a run's evaluations, read line by line."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["mean_return"] for line in lines]


@pytest.mark.parametrize("run", DOORKEY, ids=lambda run: run.name)
def test_the_committed_runs_have_the_defaults_of_the_command(run):
    words = ["--env-id", "MiniGrid-DoorKey-5x5-v0", "--total-steps", "50000", "--eval-every-steps", "2500"]
    command = parse(["train", "minigrid", *words, "--seed", run.name.removeprefix("seed-")])
    settings = json.loads((run / "config.json").read_text())
    assert json.loads(json.dumps(to_flat(resolve(command.config)))) == settings


def test_a_score_is_the_mean_of_the_last_four_evaluations():
    found = scores_of_runs("minigrid-doorkey").set_index("seed").score
    expected = {int(run.name.removeprefix("seed-")): mean(returns_of(run)[-4:]) for run in DOORKEY}
    assert expected
    assert dict(found) == pytest.approx(expected)


def test_the_settings_with_the_most_seeds_solved_come_first():
    rows = [line.split(" | ") for line in doorkey_table("minigrid-search").splitlines()[2:]]
    solved = [int(row[-2].split(" of ")[0]) for row in rows]
    assert solved == sorted(solved, reverse=True)
    assert rows[0][0].endswith("BootDQN + prior 3, masks p = 1, target_every=500, update every 4")


def test_the_defaults_won_the_second_search_by_its_rule():
    runs = defaultdict(list)
    for run in (RESULTS / "minigrid-epsilon").glob("**/seed-*"):
        runs[run.parent].append(run)
    assert {len(of_setting) for of_setting in runs.values()} == {3}

    def score(of_setting):
        scores = [mean(returns_of(run)[-4:]) for run in runs[of_setting]]
        return sum(each >= 0.8 for each in scores), mean(scores)

    winner = json.loads((max(runs, key=score) / "seed-100/config.json").read_text())
    searched = {"total_steps", "eval_every_steps", "seed"}
    defaults = json.loads(json.dumps(to_flat(MINIGRID)))
    assert {name: value for name, value in winner.items() if defaults[name] != value}.keys() <= searched
