"""Evaluation: votes, limits, and streams of its own."""

import re
import time
import tomllib
from importlib import metadata

import gymnasium
import numpy as np
import pytest

import bootdqn
from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.config.envs import AtariConfig
from bootdqn.config.settings import from_flat
from bootdqn.envs.deep_sea import DeepSea
from bootdqn.envs.factory import evaluation_config
from bootdqn.exploration.voting import VoteDiversity, vote_diversity
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.display import status_line
from bootdqn.training.evaluation import evaluate, evaluate_saved_run
from bootdqn.training.run import train_run
from reference.documents import ROOT


class Corridor(gymnasium.Env):
    """Counts its steps; ends after `length` of them. Action 1 pays 5."""

    observation_space = gymnasium.spaces.Discrete(100)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, length):
        self.length, self.seeds, self.actions = length, [], []

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        self.seeds.append(seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.actions.append(action)
        self.at += 1
        return self.at, 5.0 * (action == 1), self.at == self.length, False, {}


def heads_that_want(*actions):
    """Q-values (1, K, 3) of heads that each want one action."""
    q = np.zeros((1, len(actions), 3), np.float32)
    for head, action in enumerate(actions):
        q[0, head, action] = 1 + head / 10
    return lambda _: q


def play(q_values, env, episodes=2, max_steps=1000, rule="plurality", **options):
    return evaluate(
        q_values,
        env,
        episodes=episodes,
        max_steps=max_steps,
        rule=rule,
        rng=np.random.default_rng(0),
        **options,
    )


def test_the_plurality_decides_and_scores_are_raw():
    env = Corridor(4)
    found = play(heads_that_want(1, 1, 2), env)
    assert found.returns == [20.0, 20.0]
    assert found.lengths == [4, 4]
    assert set(env.actions) == {1}
    assert not found.cut


def test_another_rule_decides_otherwise():
    env = Corridor(4)
    q = np.array([[[0, 1, 0], [0, 1, 0], [0, 0, 9]]], np.float32)
    play(lambda _: q, env, rule="mean")
    assert set(env.actions) == {2}


def test_the_environment_is_seeded_once():
    env = Corridor(3)
    play(heads_that_want(0), env, episodes=3)
    assert env.seeds[0] is not None
    assert env.seeds[1:] == [None, None], "no episode begins that nobody plays"


@pytest.mark.parametrize(("episodes", "max_steps"), [(2, 1000), (9, 6)])
def test_what_is_shown_are_the_episodes_played_and_no_more(episodes, max_steps):
    env, shown = Corridor(3), []
    play(heads_that_want(0), env, episodes, max_steps, on_step=lambda episode: shown.append((episode, env.at)))
    assert shown == [(episode, at) for episode in (1, 2) for at in range(4)]


def test_an_episode_cut_by_the_limit_counts_only_if_it_is_the_only_one():
    cut = play(heads_that_want(1), Corridor(10), max_steps=4)
    assert (cut.returns, cut.lengths, cut.cut) == ([20.0], [4], True)
    whole = play(heads_that_want(1), Corridor(10), max_steps=14)
    assert (whole.returns, whole.lengths, whole.cut) == ([50.0], [10], False)


def test_the_diversity_is_the_mean_over_the_steps():
    rng = np.random.default_rng(3)
    qs = [rng.normal(size=(1, 5, 3)).astype(np.float32) for _ in range(6)]
    replies = iter(qs)
    found = play(lambda _: next(replies), Corridor(6), episodes=1)
    expected = np.mean([[measure[0] for measure in vote_diversity(q)] for q in qs], axis=0)
    assert tuple(found.diversity) == VoteDiversity._fields
    np.testing.assert_allclose(list(found.diversity.values()), expected, rtol=1e-6)


def test_what_the_networks_have_no_row_for_is_not_shown_to_them():
    """The corridor is longer than the observations that it promised."""
    asked = []

    def q_values(observation):
        asked.append(int(observation[0]))
        return heads_that_want(0, 0)(observation)

    with pytest.raises(
        TrainingError, match=r"environment of the evaluation gave the observation 100, not one of 0\.\.99"
    ):
        play(q_values, Corridor(200))
    assert asked == list(range(100))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float64"])
def test_the_networks_get_observations_of_the_type_that_they_were_trained_with(dtype):
    class Odd(Corridor):
        def step(self, action):
            observation, *rest = super().step(action)
            return np.dtype(dtype).type(observation), *rest

    asked = []
    play(lambda observation: asked.append(observation) or heads_that_want(0)(observation), Odd(3), episodes=1)
    assert [one.tolist() for one in asked] == [[0], [1], [2]]
    assert {one.dtype for one in asked} == {np.dtype(np.int64)}


def test_an_evaluation_can_be_abandoned():
    calls = iter([False, False, True])
    assert play(heads_that_want(1), Corridor(10), stop=lambda: next(calls)) is None


def config(**settings):
    small = {"environment": "gym", "env_id": "FrozenLake-v1", "total_steps": 600, "learning_starts": 50}
    return from_flat(small | {"num_heads": 3, "hidden_sizes": [8, 8], "eval_episodes": 2} | settings)


def episodes_and_updates(path):
    return [record for record in RunDirectory(path).read_metrics() if record["kind"] != "evaluation"]


def test_training_is_the_same_with_and_without_evaluation(tmp_path):
    train_run(config(eval_every_steps=100), tmp_path / "with")
    train_run(config(eval_every_steps=None), tmp_path / "without")
    assert episodes_and_updates(tmp_path / "with") == episodes_and_updates(tmp_path / "without")
    evaluations = list(RunDirectory(tmp_path / "with").read_metrics("evaluation"))
    assert [record["frames"] for record in evaluations] == [100, 200, 300, 400, 500, 600]
    summary = RunDirectory(tmp_path / "with").read_summary()
    assert summary["evaluations"] == 6
    assert summary["max_evaluation"] == max(record["mean_return"] for record in evaluations)
    assert summary["last_evaluation"] == evaluations[-1]["mean_return"]
    assert RunDirectory(tmp_path / "without").read_summary()["max_evaluation"] is None


def test_a_run_whose_last_evaluation_was_abandoned_is_not_finished(tmp_path, monkeypatch):
    monkeypatch.setattr("bootdqn.training.evaluation.evaluate", lambda *_, **__: None)
    summary = train_run(config(eval_every_steps=600), tmp_path / "run").summary
    assert summary["status"] == "interrupted"


def test_atari_is_scored_by_whole_games_whatever_ends_an_episode_of_learning():
    assert not evaluation_config(AtariConfig(terminal_on_life_loss=True)).terminal_on_life_loss


def test_several_environments_change_the_speed_and_not_the_amount_of_learning(tmp_path):
    for count in (1, 3, 8):
        train_run(config(num_envs=count, eval_every_steps=None, update_every=4), tmp_path / str(count))
    updates = {count: RunDirectory(tmp_path / str(count)).read_summary()["updates"] for count in (1, 3, 8)}
    assert updates[1] == 600 // 4 - 50 // 4
    assert abs(updates[3] - updates[1]) <= 1
    assert abs(updates[8] - updates[1]) <= 2


def test_a_run_is_evaluated_from_its_directory(tmp_path):
    solved = {"environment": "deep-sea", "update_every": 1, "size": 4, "max_episodes": 400, "seed": 1}
    train_run(from_flat(solved), tmp_path / "run")
    found, step, rule = evaluate_saved_run(
        tmp_path / "run", episodes=3, max_steps=100, rule="plurality", seed=0, video=tmp_path / "play.gif"
    )
    assert step == RunDirectory(tmp_path / "run").read_summary()["steps"]
    assert rule == "plurality"
    assert found.returns == pytest.approx([DeepSea(size=4).optimal_return] * 3)
    assert (tmp_path / "play.gif").stat().st_size > 500


def test_settings_that_are_not_given_are_those_of_the_runs_own_evaluations(tmp_path):
    train_run(config(eval_episodes=3, eval_max_steps=7, vote="borda", total_steps=60), tmp_path / "run")
    seen = []

    def voted(q_values, environment, **options):
        seen.append((options["episodes"], options["max_steps"], options["rule"]))
        return evaluate(q_values, environment, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bootdqn.training.evaluation.evaluate", voted)
        untold = {"episodes": None, "max_steps": None, "rule": None, "seed": 0, "video": None}
        assert evaluate_saved_run(tmp_path / "run", **untold).rule == "borda"
        assert (
            evaluate_saved_run(tmp_path / "run", **untold | {"episodes": 1, "max_steps": 5, "rule": "gap"}).rule
            == "gap"
        )
        bootdqn.evaluate(tmp_path / "run")
    assert seen == [(3, 7, "borda"), (1, 5, "gap"), (3, 7, "borda")]


def test_an_evaluation_reports_its_progress(tmp_path):
    train_run(from_flat({"environment": "deep-sea", "update_every": 1, "size": 3, "max_episodes": 2}), tmp_path / "run")
    messages = []
    evaluate_saved_run(tmp_path / "run", episodes=2, max_steps=100, rule=None, seed=0, show=messages.append)
    assert messages[:2] == ["episode 1 of at most 2, 0 steps", "episode 1 of at most 2, 1 step"]
    assert messages[-1] == "episode 2 of at most 2, 6 steps"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_as_text_without_markup(monkeypatch, capsys, terminal):
    monkeypatch.setattr("bootdqn.training.display.PLAIN_LINE_EVERY_SECONDS", 0.0)
    monkeypatch.setattr("bootdqn.training.display.can_redraw", lambda _: terminal)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    with status_line("runs/[/a]") as show:
        show("episode [1]")
        time.sleep(0.2)
    assert ("runs/[/a]" if terminal else "runs/[/a]: episode [1]\n") in capsys.readouterr().err


@pytest.fixture
def trained(tmp_path):
    path = tmp_path / "run"
    train_run(from_flat({"environment": "deep-sea", "update_every": 1, "size": 3, "max_episodes": 2}), path)
    return path


@pytest.mark.parametrize("method", ["reset", "step", "render"])
def test_an_environment_that_raises_while_it_is_filmed_is_blamed(trained, tmp_path, monkeypatch, method):
    def fail(*_arguments, **_options):
        raise OSError("the camera is gone")

    monkeypatch.setattr(DeepSea, method, fail)
    with pytest.raises(TrainingError, match=r"the environment .*raised OSError: the camera is gone"):
        evaluate_saved_run(trained, episodes=1, max_steps=10, rule=None, seed=0, video=tmp_path / "play.gif")


def test_a_full_disk_is_not_blamed_on_the_environment(trained, tmp_path, monkeypatch, capsys):
    class FullDisk:
        def append_data(self, _frame):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("imageio.v2.get_writer", lambda *_arguments, **_options: FullDisk())
    assert run_command_line(["evaluate", str(trained), "--video", str(tmp_path / "play.gif")]) == 2
    assert capsys.readouterr().err == "bootdqn: no space left on device\n"


def test_what_the_display_raises_is_not_blamed_on_the_environment(trained):
    def show(_words):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        evaluate_saved_run(trained, episodes=1, max_steps=10, rule=None, seed=0, show=show)


def test_a_video_that_needs_another_package_is_an_error_that_names_how_to_install_it(tmp_path, monkeypatch):
    def fail_to_render(_):
        raise gymnasium.error.DependencyNotInstalled("pygame is not installed, run `pip install pygame`")

    train_run(config(total_steps=10), tmp_path / "run")
    monkeypatch.setattr("gymnasium.envs.toy_text.frozen_lake.FrozenLakeEnv.render", fail_to_render)
    with pytest.raises(UsageError, match=r"--video: pygame is not installed.* -e '\.\[video\]'"):
        evaluate_saved_run(tmp_path / "run", episodes=1, max_steps=5, rule=None, seed=0, video=tmp_path / "play.gif")


def test_the_video_extra_has_the_rendering_packages_of_gymnasium_in_pinned_versions():
    with (ROOT / "pyproject.toml").open("rb") as file:
        video = tomllib.load(file)["project"]["optional-dependencies"]["video"]
    assert any(one.startswith("gymnasium[classic-control,toy-text]") for one in video)
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    if metadata.version("gymnasium") != pinned["gymnasium"]:
        return  # another version may render with another package
    needed = [one for one in metadata.requires("gymnasium") if re.search("classic-control|toy-text", one)]
    rendering_packages = {re.match(r"[\w-]+", one)[0] for one in needed} - {"gymnasium"}
    assert rendering_packages
    assert rendering_packages <= pinned.keys()


def test_a_run_directory_without_weights_is_an_error_that_names_when_they_are_saved(tmp_path):
    train_run(from_flat({"environment": "deep-sea", "update_every": 1, "size": 3, "max_episodes": 2}), tmp_path / "run")
    weights = RunDirectory(tmp_path / "run").weights
    options = {"episodes": 1, "max_steps": 10, "rule": "plurality", "seed": 0, "video": None}
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UsageError, match="does not hold the networks"):
        evaluate_saved_run(tmp_path / "run", **options)
    weights.unlink()
    with pytest.raises(
        UsageError, match=r"weights\.safetensors is missing: a run saves its weights with each checkpoint"
    ):
        evaluate_saved_run(tmp_path / "run", **options)
    with pytest.raises(UsageError, match=r"has no config\.json"):
        evaluate_saved_run(tmp_path, **options)
