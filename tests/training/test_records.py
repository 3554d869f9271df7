"""What the records say is what happened in the loop."""

import itertools

import numpy as np
import pytest

from bootdqn.common.run_folder import RunFolder
from bootdqn.training.config import from_flat, resolve
from bootdqn.training.loop import make_parts, train
from bootdqn.training.run import run


def recorded_and_done(path, **settings):
    """Return the records of a run of 40 episodes, and the rounds of the same run by hand."""
    small = {"environment": "deep-sea", "size": 4, "num_heads": 4, "hidden_sizes": [8, 8], "max_episodes": 40}
    config = from_flat(small | {"stop_when_solved": False, "log_every": 11} | settings)
    run(config, path)
    resolved = resolve(config)
    rounds = list(itertools.islice(train(resolved, make_parts(resolved)), 160))
    return RunFolder(path), rounds


def test_the_error_in_an_update_record_is_the_mean_over_transitions_and_updates(tmp_path):
    folder, rounds = recorded_and_done(tmp_path / "run")
    errors = [update.td_error for round_ in rounds for update in round_.updates]
    expected = [np.concatenate(errors[start : start + 11]).mean() for start in (0, 11, 22)]
    assert [record["td_error"] for record in folder.read_metrics("update")] == pytest.approx(expected)


def test_a_bonus_is_recorded_beside_the_return_and_not_in_it(tmp_path):
    folder, rounds = recorded_and_done(tmp_path / "run", info_bonus=300.0, info_temperature=0.01)
    records = list(folder.read_metrics("episode"))
    true_returns = [episode.info["denoised_return"] for round_ in rounds for episode in round_.finished]
    assert [record["return"] for record in records] == pytest.approx(true_returns)
    assert max(record["bonus"] for record in records) > 0.1
