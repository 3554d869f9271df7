"""Inspecting any snapshot, game or environment; problems are errors of one line."""

import itertools
import shutil

import gymnasium
import numpy as np
import pytest
import torch

import bootdqn
from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import TrainingError
from bootdqn.envs.deep_sea import DeepSea
from bootdqn.inspector.maps import deep_sea_maps
from bootdqn.inspector.page import inspect_run
from bootdqn.inspector.recording import Recorder
from bootdqn.runs.directory import RunDirectory
from reference.browser import data_of, opened
from reference.faults import WALK, Walk, disturbed, train
from reference.threads import torch_threads


def test_maps_show_every_snapshot_and_count_the_visits(deep_sea, tmp_path):
    inspect_run(deep_sea, tmp_path / "page.html")
    maps = data_of(tmp_path / "page.html")["maps"]
    assert [one["step"] for one in maps] == [100, 200, 400, 600]
    for one in maps:
        visits = np.array(one["visits"])
        assert visits[0, 0] == 200
        assert (visits.sum(axis=1) == 200).all(), "every episode comes by every row once"
        assert np.triu(visits, 1).sum() == 0
        assert ((np.array(one["votes"]) >= 0) & (np.array(one["votes"]) <= 1)).all()


def test_an_environment_that_raises_while_the_maps_are_made_is_an_error_in_one_line(
    deep_sea, tmp_path, monkeypatch, capsys
):
    """The episodes recorded all have a seed; of those that the maps count only the first has one."""
    original_reset = DeepSea.reset

    def jammed(env, *, seed=None):
        return raises() if seed is None else original_reset(env, seed=seed)

    monkeypatch.setattr(DeepSea, "reset", jammed)
    assert run_command_line(["inspect", str(deep_sea), "--out", str(tmp_path / "page.html")]) == 1
    assert capsys.readouterr().err == f"bootdqn: the environment {RAISED}\n"


def test_a_strategy_that_raises_while_the_maps_are_made_is_an_error_in_one_line(deep_sea, monkeypatch):
    recorder = Recorder(deep_sea)
    monkeypatch.setattr(type(recorder.strategy), "scores", raises)
    with pytest.raises(TrainingError) as caught:
        deep_sea_maps(recorder, deep_sea, seed=0, weights=None)
    assert str(caught.value) == f"strategy {recorder.strategy_text} {RAISED}"


def test_the_maps_are_made_with_the_threads_of_the_run(deep_sea, monkeypatch):
    recorder, seen = Recorder(deep_sea), set()
    own = recorder.config.run.threads
    select = type(recorder.strategy).select
    watched = lambda *given: seen.add(torch.get_num_threads()) or select(*given)  # noqa: E731
    monkeypatch.setattr(type(recorder.strategy), "select", watched)
    with torch_threads(own + 1):
        deep_sea_maps(recorder, deep_sea, seed=0, weights=None)
    assert seen == {own}


def test_maps_are_those_of_the_networks(deep_sea):
    recorder = Recorder(deep_sea)
    q = recorder.run.q_values(np.arange(36)).reshape(6, 6, 5, 2)
    cells = itertools.product(range(6), repeat=2)
    wanting_right = [(q[cell].argmax(axis=-1) == recorder.environment.optimal_action(*cell)).mean() for cell in cells]
    last = deep_sea_maps(recorder, deep_sea, seed=0, weights=None)[-1]
    assert last.votes.ravel() == pytest.approx(wanting_right)
    assert last.evoi == pytest.approx(bootdqn.evoi(q, reduce="sum").max(axis=-1), rel=1e-5)


def test_a_directory_named_like_a_part_of_the_page_is_only_a_name(deep_sea, tmp_path):
    named = tmp_path / "%DATA% %SCRIPT% %TITLE%"
    shutil.copytree(deep_sea, named)
    inspect_run(named, tmp_path / "page.html")
    assert f"<title>{named.name}, deep-sea 6: why" in (tmp_path / "page.html").read_text()
    assert data_of(tmp_path / "page.html")["title"] == f"{named.name}, deep-sea 6"


def test_a_snapshot_can_be_chosen_by_its_step(deep_sea, tmp_path, capsys):
    inspect_run(deep_sea, tmp_path / "page.html", weights="200")
    assert data_of(tmp_path / "page.html")["weightsStep"] == 200
    assert run_command_line(["inspect", str(deep_sea), "--weights", "201"]) == 2
    assert "there are 100, 200, 400" in capsys.readouterr().err


def test_a_game_is_shown_frame_by_frame_in_little_space(game, tmp_path):
    inspect_run(game, tmp_path / "page.html", max_steps=40)
    data = data_of(tmp_path / "page.html")
    assert len(data["steps"]) == 40
    assert all(step["frame"].startswith("data:image/png;base64,") for step in data["steps"])
    assert len({step["frame"] for step in data["steps"]}) > 5
    assert (tmp_path / "page.html").stat().st_size / 40 < 10_000, "1,000 steps stay below 10 MB"
    assert data["steps"][0]["names"][:2] == ["NOOP", "FIRE"]


def test_the_figure_is_of_the_first_flip_unless_a_step_is_given(deep_sea, tmp_path):
    def flips(seed):
        recording = Recorder(deep_sea, "200").record(episodes=1, max_steps=1000, seed=seed, head=None)
        return [number for number, step in enumerate(recording.steps) if recording.flip(step)]

    figure = tmp_path / "figure.png"
    seed, first = next((seed, first) for seed in range(30) for first in flips(seed)[:1] if first)
    for step, shown in ((None, first), (0, 0), (5, 5)):
        message = inspect_run(deep_sea, tmp_path / "page.html", weights="200", seed=seed, figure=figure, step=step)
        assert message == f"Open {figure}, which is of step {shown}."
    message = inspect_run(deep_sea, tmp_path / "page.html", strategy="greedy", figure=figure)
    assert message.endswith("of step 0."), "there is no flip"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_one_step_becomes_the_papers_figure(deep_sea, game, tmp_path, suffix):
    for path in (deep_sea, game):
        inspect_run(path, tmp_path / "page.html", max_steps=5, figure=tmp_path / f"figure.{suffix}", step=3)
        assert (tmp_path / f"figure.{suffix}").stat().st_size > 5000
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere does not exist"),
        (["RUN", "--strategy", "evio"], "did you mean 'evoi'"),
        (["RUN", "--head", "5"], "--head must be in 0..4"),
        (["RUN", "--strategy", "ids", "--head", "1"], "--head: ids follows no head"),
        (["RUN", "--episodes", "0"], "episodes must be at least 1"),
        (["RUN", "--figure", "x.gif"], "must be a .png, .svg or .pdf"),
        (["RUN", "--figure", "x.png", "--step", "99"], "--step must be in 0..5"),
        (["RUN", "--out", "x.pdf"], "must be an .html file"),
        (["RUN", "--out", "x.html", "--figure", "x.png"], "leave out --out, or --figure"),
        (["RUN", "--step", "3"], "--step needs --figure"),
        (["RUN", "--weights", "²"], "no such file, and no snapshot after that step"),
    ],
)
def test_a_mistake_is_named(deep_sea, capsys, arguments, message):
    assert run_command_line(["inspect", *[str(deep_sea) if word == "RUN" else word for word in arguments]]) == 2
    assert message in capsys.readouterr().err


def raises(*_):
    raise ZeroDivisionError("boom")


RAISED = f"raised ZeroDivisionError: boom in {__file__}, line {raises.__code__.co_firstlineno + 1}"


@pytest.fixture
def walk(tmp_path):
    """A run on an environment that cannot be shown."""
    train({"total_steps": 50}, tmp_path / "walk")
    return tmp_path / "walk"


def test_an_environment_that_cannot_be_shown_is_inspected_without_its_picture(walk, tmp_path, capsys):
    message = inspect_run(walk, tmp_path / "page.html")
    assert message.endswith("What the agent saw is not shown: NotImplementedError: .")
    assert all(step["frame"] is None for step in data_of(tmp_path / "page.html")["steps"])
    opened(tmp_path / "page.html", tmp_path / "profile")
    assert run_command_line(["inspect", str(walk), "--figure", str(tmp_path / "step.png")]) == 0
    assert (tmp_path / "step.png").exists()
    assert "NotImplementedError" in capsys.readouterr().out


def test_an_environment_that_takes_no_render_mode_is_inspected_all_the_same(walk, tmp_path, monkeypatch):
    monkeypatch.setattr(Walk, "__init__", lambda walk: vars(walk).update(number=0, steps=0, resets=0))
    message = inspect_run(walk, tmp_path / "page.html")
    assert message.endswith(
        f"What the agent saw is not shown: --env-id {WALK} cannot be shown: it takes no render_mode."
    )


@pytest.mark.parametrize("method", ["step", "reset"])
def test_an_environment_that_raises_is_an_error_in_one_line(walk, tmp_path, monkeypatch, capsys, method):
    with disturbed(monkeypatch, **{method: raises}):
        assert run_command_line(["inspect", str(walk), "--out", str(tmp_path / "page.html")]) == 1
        assert run_command_line(["evaluate", str(walk)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"bootdqn: the environment {RAISED}",
        f"bootdqn: the environment of the evaluation {RAISED}",
    ]
    assert not (tmp_path / "page.html").exists()


def test_a_strategy_that_raises_is_an_error_in_one_line(walk, monkeypatch, capsys):
    monkeypatch.setattr(bootdqn.Gain, "scores", raises)
    assert run_command_line(["inspect", str(walk), "--strategy", "gain"]) == 1
    assert capsys.readouterr().err == f"bootdqn: strategy gain {RAISED}\n"


class Chute(Walk):
    """A walk with one action, where there is nothing to choose."""

    action_space = gymnasium.spaces.Discrete(1)


class Alley(Walk):
    """A walk with two actions, of which one is legal in every state, and which never ends."""

    def step(self, action):  # noqa: ARG002 - as in gym.Env
        return 4, 0.0, False, False, {"action_mask": np.array([0, 1], np.int8)}

    def reset(self, **options):
        return super().reset(**options)[0], {"action_mask": np.array([0, 1], np.int8)}


gymnasium.register("bootdqn-test/Chute-v0", entry_point=Chute, disable_env_checker=True)
gymnasium.register("bootdqn-test/Alley-v0", entry_point=Alley, disable_env_checker=True)


@pytest.mark.parametrize("name", ["Chute", "Alley"])
@pytest.mark.parametrize("output", ["--out page.html", "--figure step.png"], ids=["page", "figure"])
def test_a_run_without_choices_has_nothing_to_show(tmp_path, monkeypatch, capsys, name, output):
    monkeypatch.chdir(tmp_path)
    train({"total_steps": 50, "env_id": f"bootdqn-test/{name}-v0", "strategy": "greedy"}, tmp_path / "run")
    capsys.readouterr()
    assert run_command_line(["inspect", "run", "--max-steps", "3", *output.split()]) == 2
    assert capsys.readouterr().err == "bootdqn: no choice to show: a single action was legal in each of 3 steps\n"


def test_a_snapshot_can_be_inspected_before_the_weights_are_saved(deep_sea, tmp_path):
    under_way = tmp_path / "run"
    shutil.copytree(deep_sea, under_way)
    RunDirectory(under_way).weights.unlink()
    (RunDirectory(under_way).snapshots / "step-old.safetensors").write_bytes(b"not one of ours")
    inspect_run(under_way, tmp_path / "page.html", weights="200")
    assert [one["step"] for one in data_of(tmp_path / "page.html")["maps"]] == [100, 200, 400]
