"""The logged metrics agree with the loop."""

import itertools
import json
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.exploration as reference
from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.loop import StepActions, make_components, train
from bootdqn.training.metrics import ActionStatistics, is_record_due
from bootdqn.training.run import train_run
from reference.planned import SMALL


def recorded_and_done(path, **settings):
    """Return the records of a run of 40 episodes, and the rounds of the same run by hand."""
    config = from_flat(SMALL | {"stop_when_solved": False, "log_every": 11} | settings)
    train_run(config, path)
    resolved = resolve(config)
    rounds = list(itertools.islice(train(resolved, make_components(resolved)), 160 // resolved.run.num_envs))
    return RunDirectory(path), rounds


def test_the_error_in_an_update_record_is_the_mean_over_transitions_and_updates(tmp_path):
    directory, rounds = recorded_and_done(tmp_path / "run")
    errors = [update.td_error for result in rounds for update in result.updates]
    ends = [10, 11, 22, 33]
    expected = [np.concatenate(errors[start:end]).mean() for start, end in itertools.pairwise([0, *ends])]
    assert [record["updates"] for record in directory.read_metrics("update")] == ends
    assert [record["td_error"] for record in directory.read_metrics("update")] == pytest.approx(expected)


def test_records_are_dense_at_first_and_regular_from_the_first_interval_on():
    def due(log_every):
        return [updates for updates in range(1, 3001) if is_record_due(updates, log_every)]

    dense = [*range(10, 100, 10), *range(100, 1000, 100)]
    assert due(1000) == [*dense, 1000, 2000, 3000]
    assert due(250) == [*dense[:11], *range(250, 3001, 250)]
    assert due(7) == [*range(7, 3001, 7)]
    assert due(1) == [*range(1, 3001)]


@pytest.mark.parametrize("strategy", ["greedy", "ucb", "evoi:reduce=sum"])
@pytest.mark.parametrize("num_envs", [1, 3])
def test_an_update_record_describes_how_the_agent_acted_since_the_last_one(tmp_path, strategy, num_envs):
    directory, rounds = recorded_and_done(tmp_path / "run", strategy=strategy, num_envs=num_envs)
    steps = [(result.step, *step) for result in rounds for step in zip(*result.acting, strict=True)]
    window_start, overruled = 0, []
    acted = [record for record in directory.read_metrics("update") if record["overruled"] is not None]
    for record in acted:
        since = [(q.tolist(), head, action) for at, q, head, action in steps if window_start < at <= record["step"]]
        own = [reference.argmax(q[head]) for q, head, _ in since]
        overruled.append(mean(int(action != favourite) for (_, _, action), favourite in zip(since, own, strict=True)))
        worth = [float(reference.evoi(q, "mean")[action]) for q, _, action in since]
        assert record["evoi"] == pytest.approx(mean(worth), rel=1e-5)
        assert record["disagreement"] == pytest.approx(mean(reference.disagreement(q) for q, _, _ in since), rel=1e-5)
        window_start = record["step"]
    assert [record["overruled"] for record in acted] == pytest.approx(overruled)
    assert (max(overruled) > 0) == (strategy != "greedy")


def test_the_head_that_acted_is_recorded_and_not_the_one_sampled_for_the_next_episode(tmp_path):
    _, rounds = recorded_and_done(tmp_path / "run")
    for result in rounds:
        for episode in result.finished:
            assert result.acting.heads[0] == episode.head


@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=1, max_size=30))
def test_means_are_the_same_to_the_bit_wherever_a_run_was_stopped(seed, stops):
    rng = np.random.default_rng(seed)
    whole, broken = ActionStatistics(), ActionStatistics()
    for stopped in stops:
        q = rng.normal(size=(2, 3, 4)).astype(np.float32)
        acting = StepActions(q, rng.integers(3, size=2), rng.integers(4, size=2))
        whole.add(acting)
        broken.add(acting)
        if stopped:
            state = json.loads(json.dumps(broken.get_state(), allow_nan=False))
            broken = ActionStatistics()
            broken.set_state(state)
    assert broken.means_and_reset() == whole.means_and_reset()


def test_a_window_begins_where_the_last_one_ended():
    averages = ActionStatistics()
    first, second = (
        StepActions(np.array([[[value, 0.0]]], np.float32), *np.zeros((2, 1), int)) for value in (1.0, -1.0)
    )
    averages.add(first)
    assert averages.means_and_reset()["overruled"] == 0
    averages.add(second)
    assert averages.means_and_reset()["overruled"] == 1


def test_a_value_that_overflows_is_null_and_no_error(recwarn):
    averages = ActionStatistics()
    q = np.array([[[2.0**127, 0.0], [-(2.0**127), 0.0]]], np.float32)
    averages.add(StepActions(q, np.zeros(1, int), np.zeros(1, int)))
    averages.set_state(json.loads(json.dumps(averages.get_state(), allow_nan=False)))
    assert averages.means_and_reset() == {"overruled": 0.0, "evoi": 2.0**126, "disagreement": None}
    assert not recwarn.list


@pytest.mark.parametrize(("num_envs", "log_every"), [(3, 1), (4, 2), (3, 2)])
def test_of_several_records_of_one_round_the_first_describes_how_the_agent_acted(tmp_path, num_envs, log_every):
    directory, _ = recorded_and_done(tmp_path / "run", num_envs=num_envs, log_every=log_every)
    values_by_step = {}
    for record in directory.read_metrics("update"):
        values_by_step.setdefault(record["step"], []).append(
            [record[name] for name in ("overruled", "evoi", "disagreement")]
        )
    assert max(map(len, values_by_step.values())) > 1
    for first, *others in values_by_step.values():
        assert None not in first
        assert all(other == [None] * 3 for other in others)


def test_with_one_action_there_is_nothing_to_try():
    averages = ActionStatistics()
    averages.add(StepActions(np.array([[[1.0], [3.0]]], np.float32), np.zeros(1, int), np.zeros(1, int)))
    assert averages.means_and_reset() == {"overruled": 0.0, "evoi": 0.0, "disagreement": 1.0}


def test_a_bonus_is_recorded_beside_the_return_and_not_in_it(tmp_path):
    directory, rounds = recorded_and_done(tmp_path / "run", info_bonus=300.0, info_temperature=0.01)
    records = list(directory.read_metrics("episode"))
    true_returns = [episode.info["denoised_return"] for result in rounds for episode in result.finished]
    assert [record["return"] for record in records] == pytest.approx(true_returns)
    assert max(record["bonus"] for record in records) > 0.1
