"""Atari, MinAtar and Gymnasium, stopped within an episode: exact where the environment can be, reported where not."""

import json
import random

import pytest

from bootdqn.config.envs import MINATAR_GAMES
from bootdqn.runs.directory import RunDirectory
from torture.environments import MORTAL, RESENTFUL, RESTLESS
from torture.legs import results, stopping_at, train, train_unbroken, with_segments_of
from torture.settings import ATARI, GYM, MINATAR
from torture.settings import GAME_STEPS as STEPS

SMALL_SEGMENTS = with_segments_of(24)
GRAVITAR = ATARI | {"game": "Gravitar", "sticky": 0.25}
QBERT = ATARI | {"game": "Qbert"}
FOUR_OF_QBERT = QBERT | {"sticky": 0.25, "num_envs": 4}


def stops_within_episodes(settings, metrics, count, rng):
    """Return steps at which no episode has just ended."""
    ends = {json.loads(line)["step"] for line in metrics.read_text().splitlines() if '"kind": "episode"' in line}
    num_envs = settings.get("num_envs", 1)
    return rng.sample([step for step in range(num_envs, STEPS, num_envs) if step not in ends], count)


def different_when_stopped(settings, path, count):
    """Return the stops after which a run, resumed in a fresh process, differs from the unbroken one."""
    expected = train_unbroken(settings, path / "unbroken", SMALL_SEGMENTS)
    stops = stops_within_episodes(settings, path / "unbroken/metrics.jsonl", count, random.Random(str(settings)))
    different = []
    for stop in stops:
        directory = path / f"stopped-{stop}"
        stopped = train(settings, directory, SMALL_SEGMENTS, stopping_at(stop))
        assert (stopped.exit_code, stopped.error, stopped.warned) == (143, None, [])
        resumed = train(settings, directory, SMALL_SEGMENTS)
        assert (resumed.exit_code, resumed.error, resumed.warned) == (0, None, [])
        assert resumed.resumed_from == stop
        assert RunDirectory(directory).read_summary()["status"] == "finished"
        if results(directory) != expected:
            different.append(stop)
    print(f"{count - len(different)} of {count} stopped runs equal the unbroken one; stops: {stops}")
    return different


def test_gravitar_stopped_within_an_episode_has_the_results_of_a_run_never_stopped(tmp_path, sized):
    assert different_when_stopped(GRAVITAR, tmp_path, sized(1, 8)) == []


def test_qbert_stopped_within_an_episode_has_the_results_of_a_run_never_stopped(tmp_path, sized):
    for number, settings in enumerate(sized([FOUR_OF_QBERT], [FOUR_OF_QBERT, QBERT])):
        (tmp_path / str(number)).mkdir()
        assert different_when_stopped(settings, tmp_path / str(number), sized(1, 6)) == []


def test_minatar_stopped_within_an_episode_has_the_results_of_a_run_never_stopped(tmp_path, sized):
    games = [MINATAR | {"game": "breakout", "num_envs": 3}, *({"game": game} for game in MINATAR_GAMES)]
    for number, game in enumerate(sized(games[:1], games)):
        (tmp_path / str(number)).mkdir()
        assert different_when_stopped(MINATAR | game, tmp_path / str(number), sized(1, 4)) == []


def test_cart_pole_stopped_within_an_episode_has_the_results_of_a_run_never_stopped(tmp_path, sized):
    assert different_when_stopped(GYM | {"env_id": "CartPole-v1", "num_envs": 2}, tmp_path, sized(1, 5)) == []
    provenance = json.loads(next(tmp_path.glob("stopped-*/provenance.json")).read_text())
    assert provenance["exact"] is True
    assert [entry["not_exact"] for entry in provenance["resumed"]] == [[]]


def test_evaluations_after_a_stop_are_those_of_one_never_stopped_whatever_outlives_a_reset(tmp_path):
    settings = GYM | {
        "env_id": RESENTFUL,
        "imports": ["torture.environments"],
        "eval_every_steps": 20,
        "eval_max_steps": 10,
    }
    assert different_when_stopped(settings, tmp_path, 1) == []
    returns = [record["returns"] for record in RunDirectory(tmp_path / "unbroken").read_metrics("evaluation")]
    assert len(returns) == STEPS // 20
    assert min(map(min, returns)) >= 0, "no evaluation has a word on the next"


@pytest.mark.parametrize("env_id", [RESTLESS, MORTAL])
def test_an_episode_that_cannot_be_replayed_is_reported_and_abandoned_and_the_run_finishes(tmp_path, env_id):
    settings = GYM | {"env_id": env_id, "imports": ["torture.environments"]}
    assert train(settings, tmp_path / "run", stopping_at(56)).exit_code == 143
    resumed = train(settings, tmp_path / "run")
    assert (resumed.exit_code, resumed.error, resumed.resumed_from) == (0, None, 56)
    (line,) = resumed.warned
    assert "a new episode starts, and this run is no longer exact" in line
    provenance = json.loads((tmp_path / "run/provenance.json").read_text())
    assert provenance["exact"] is False
    assert [entry["not_exact"] for entry in provenance["resumed"]] == [[line]]
    summary = RunDirectory(tmp_path / "run").read_summary()
    assert (summary["status"], summary["steps"]) == ("finished", STEPS)
