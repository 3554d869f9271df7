"""The paper's opening example: who found the long path."""

from bootdqn.reports import load_results
from reference.run_directories import write_run_dir
from reproduction.two_paths import first_finds, two_paths_table


def test_the_long_end_is_the_first_return_above_the_short_one(tmp_path):
    config = {"environment": "gym", "env_id": "bootdqn/TwoPaths-v0", "strategy": "gain", "total_steps": 90}
    config |= {"num_heads": 10, "prior_scale": 0.0}
    returns = {0: [1.0, 1.0, 10.0, 10.0], 1: [1.0, 0.0, 1.0]}
    for seed, values in returns.items():
        metrics = [{"kind": "episode", "step": 7 * at, "return": value} for at, value in enumerate(values, start=1)]
        write_run_dir(tmp_path / str(seed), config | {"seed": seed}, {"status": "finished"}, metrics)
    write_run_dir(tmp_path / "other", config | {"env_id": "CartPole-v1", "seed": 0}, {"status": "finished"})
    found = first_finds(load_results(tmp_path))
    columns = ["agent", "num_heads", "prior_scale", "seed", "budget", "found_at"]
    assert [tuple(row) for row in found[columns].fillna(-1).itertuples(index=False)] == [
        ("BootDQN-Gain", 10, 0.0, 0, 90, 21),
        ("BootDQN-Gain", 10, 0.0, 1, 90, -1),
    ]
    assert two_paths_table(found).rows == [("BootDQN-Gain", "0", "21", "-", "1 of 2")]
