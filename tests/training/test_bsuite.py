"""Runs on bsuite's experiments: when they stop, what their summary holds, and that they resume exactly."""

from dataclasses import asdict, replace

import pytest

from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.config.envs import DeepSeaConfig
from bootdqn.config.settings import from_flat
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.summary import describe_result
from bootdqn.training.loop import EpisodeResult, StepResult
from bootdqn.training.run import train_run
from bootdqn.training.stopping import BsuiteCounts, make_stopping_rule
from reference.faults import results, stopping_at

pytestmark = pytest.mark.usefixtures("one_thread")


def config(bsuite_id, **settings):
    small = {"num_heads": 3, "hidden_sizes": [8], "batch_size": 8, "learning_starts": 20, "strategy": "evoi"}
    return from_flat({"environment": "bsuite", "bsuite_id": bsuite_id} | small | settings)


def finish(rule, *bad):
    rule.add_step(StepResult(1, None, [EpisodeResult(0, 0, 1, 1.0, 0.0, {"bad_episode": one}) for one in bad], []))


@pytest.mark.parametrize(
    ("bsuite_id", "stop"), [("deep_sea/0", 43), ("deep_sea_stochastic/1", 55), ("cartpole_swingup/2", 250)]
)
def test_a_stopped_run_resumes_exactly(bsuite_id, stop, tmp_path, monkeypatch):
    settings = config(bsuite_id, max_episodes=2 if "cartpole" in bsuite_id else 12, stop_when_solved=False)
    train_run(settings, tmp_path / "unbroken")
    with stopping_at(monkeypatch, stop):
        assert train_run(settings, tmp_path / "run").summary["status"] == "interrupted"
    train_run(settings, tmp_path / "run")
    assert results(tmp_path / "run") == results(tmp_path / "unbroken")


def test_the_summary_counts_the_episodes_of_the_metrics(tmp_path):
    summary = train_run(config("deep_sea_stochastic/0", max_episodes=120), tmp_path / "run").summary
    counts = BsuiteCounts("deep_sea_stochastic")
    for record in RunDirectory(tmp_path / "run").read_metrics("episode"):
        counts.add_episode(record["return"], bad=record["bad"])
    assert summary == summary | asdict(counts)
    assert "of 120 episodes bad" in describe_result(summary)


def test_deep_sea_stops_once_its_score_is_known_and_swing_up_does_not():
    deep_sea, further, swing_up = (
        make_stopping_rule(one)
        for one in (
            BsuiteConfig("deep_sea/0"),
            BsuiteConfig("deep_sea/0", stop_when_solved=False),
            BsuiteConfig("cartpole_swingup/0"),
        )
    )
    for rule in (deep_sea, further, swing_up):
        finish(rule, False)
    assert deep_sea.done
    assert deep_sea.summary()["solved_at"] == 1
    assert not further.done
    assert further.summary()["solved_at"] == 1
    assert not swing_up.done
    assert swing_up.summary()["solved_at"] is None


def test_episodes_beyond_the_cap_count_only_with_a_larger_budget():
    rule = make_stopping_rule(BsuiteConfig("deep_sea/0", max_episodes=3))
    finish(rule, True, True)
    finish(rule, True, False)
    assert rule.done
    assert rule.completed == 1
    assert (rule.summary()["bad_episodes"], rule.position) == (3, "episode 3")
    larger = make_stopping_rule(BsuiteConfig("deep_sea/0", max_episodes=4))
    larger.set_state(rule.get_state())
    assert (larger.summary()["episodes"], larger.summary()["bad_episodes"]) == (4, 3)


@pytest.mark.parametrize("config", [BsuiteConfig("deep_sea/0"), DeepSeaConfig(size=5)], ids=lambda one: one.kind)
def test_no_episode_is_lost_where_the_cap_is_below_those_that_counted(config):
    rule = make_stopping_rule(replace(config, max_episodes=5))
    finish(rule, True, True, True, True)
    smaller = make_stopping_rule(replace(config, max_episodes=2))
    smaller.set_state(rule.get_state())
    finish(smaller, True, False)
    assert smaller.summary()["episodes"] == 4
    assert len(smaller.get_state()["beyond_the_cap"]) == 2
