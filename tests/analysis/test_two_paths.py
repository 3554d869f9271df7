"""The paper's opening example: who found the long path, and what that says."""

import pytest

from bootdqn.analysis.evidence import CONTRADICTED, OPEN, SUPPORTED, Evidence
from bootdqn.analysis.runs import read_runs
from bootdqn.analysis.two_paths import Search, read_searches, table
from reference.run_folders import DEFAULTS, write_folder
from reference.verdicts import verdicts

CLAIM = "Of two paths, a greedy learner keeps to the short one; one that explores efficiently finds the long one."


def searches(strategy, found, of=5, num_heads=10, prior_scale=0.0):
    return [
        Search(strategy, num_heads, prior_scale, seed, 3000, 40 * seed if seed < found else None) for seed in range(of)
    ]


def verdict(*groups):
    return verdicts(Evidence.among([], [], searches=[one for group in groups for one in group]))[CLAIM]


@pytest.mark.parametrize(
    ("single", "gain", "evoi", "expected"),
    [
        (0, 5, 4, SUPPORTED),
        (0, 5, 3, OPEN),
        (2, 3, 3, OPEN),
        (5, 5, 5, OPEN),
        (0, 0, 1, OPEN),
        (0, 0, 0, CONTRADICTED),
        (5, 0, 0, CONTRADICTED),
    ],
)
def test_it_takes_more_than_a_run_or_two_to_decide(single, gain, evoi, expected):
    groups = searches("greedy", single, num_heads=1), searches("gain", gain), searches("evoi", evoi)
    assert verdict(*groups)["here"] == expected
    with_priors = [searches(name, 5, prior_scale=3.0) for name in ("greedy", "gain", "evoi")]
    assert verdict(*groups, *with_priors)["here"] == expected, "the paper has no priors"


def test_what_each_found_is_told_in_order():
    found = verdict(
        searches("evoi", 1),
        searches("gain", 2, prior_scale=3.0),
        searches("gain", 0),
        searches("greedy", 4, num_heads=1),
    )
    assert found["what these runs say"] == (
        "runs that found it within 3,000 steps: one head 4/5, BootDQN-Gain 0/5, BootDQN-EVOI (mean) 1/5, "
        "BootDQN-Gain + prior 3 2/5"
    )


def test_few_seeds_leave_it_open():
    assert verdict(searches("greedy", 0, num_heads=1), searches("gain", 2, of=2), searches("evoi", 5))["here"] == OPEN
    assert verdict()["here"] == OPEN


def test_the_long_end_is_the_first_return_above_the_short_one(tmp_path):
    config = {"environment": "gym", "env_id": "bootdqn/TwoPaths-v0", "strategy": "gain", "total_steps": 90}
    config |= {"num_heads": 10, "prior_scale": 0.0}
    returns = {0: [1.0, 1.0, 10.0, 10.0], 1: [1.0, 0.0, 1.0]}
    for seed, values in returns.items():
        metrics = [{"kind": "episode", "step": 7 * at, "return": value} for at, value in enumerate(values, start=1)]
        write_folder(tmp_path / str(seed), config | {"seed": seed}, {"status": "finished"}, metrics)
    write_folder(tmp_path / "other", config | {"env_id": "CartPole-v1", "seed": 0}, {"status": "finished"})
    found = read_searches(read_runs(tmp_path, DEFAULTS)[0])
    assert found == [Search("gain", 10, 0.0, 0, 90, 21), Search("gain", 10, 0.0, 1, 90, None)]
    assert table(found).rows == [("BootDQN-Gain", "0", "21", "-", "1 of 2")]
