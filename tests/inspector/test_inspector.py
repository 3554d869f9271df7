"""The inspector: every number it shows is the formulas' own, and the page answers to keys, clicks and filters."""

import html
import json
import re
import shutil

import numpy as np
import pytest

import bootdqn
from bootdqn.cli import run_command_line
from bootdqn.common.run_folder import RunFolder
from bootdqn.inspector.inspect import inspect_run
from bootdqn.inspector.page import DIGITS, page_data
from bootdqn.inspector.recording import METHODS, Player
from bootdqn.training.config import from_flat
from bootdqn.training.run import run
from reference.browser import opened
from reference.faults import WALK, Walk, disturbed, train

SMALL = {"num_heads": 5, "hidden_sizes": [16, 16], "snapshot_every": "log"}


@pytest.fixture(scope="module")
def deep_sea(tmp_path_factory):
    path = tmp_path_factory.mktemp("deep-sea") / "run"
    run(from_flat({"environment": "deep-sea", "size": 6, "max_episodes": 100} | SMALL), path)
    return path


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    path = tmp_path_factory.mktemp("game") / "<script>alert(1)<"
    settings = {"environment": "atari", "game": "Gravitar", "total_frames": 400, "eval_every_frames": None}
    run(from_flat(settings | {"num_heads": 4, "hidden_sizes": [16], "replay_capacity": 200, "threads": 1}), path)
    return path


def data_of(page):
    return json.loads(re.search(r'type="application/json">(.*?)</script>', page.read_text(), re.DOTALL).group(1))


@pytest.mark.parametrize(
    "strategy",
    ["greedy", "evoi:reduce=sum", "evoi", "evoi:scale=7", "gain", "gain:scale=5", "ucb", "ucb:scale=3", "ids"],
)
def test_the_numbers_shown_are_those_of_the_formulas_on_the_recorded_values(deep_sea, strategy):
    player = Player(deep_sea, strategy=strategy)
    recording = player.record(episodes=2, max_steps=100, seed=3, head=None)
    name, scale = strategy.split(":")[0], float([*strategy.split("scale="), "1"][1])
    reduce = "mean" if strategy in ("evoi", "evoi:scale=7") else "sum"
    assert len(recording.steps) == 12
    for step, shown in zip(recording.steps, page_data(recording, [])["steps"], strict=True):
        q, head = step.q, step.head
        assert np.allclose(shown["q"], q, atol=10**-DIGITS)
        assert np.allclose(shown["gain"], bootdqn.gain(q)[head] * (scale if name == "gain" else 1), atol=10**-DIGITS)
        of_all = bootdqn.evoi(q, reduce=reduce) * (scale if name == "evoi" else 1)
        assert np.allclose(shown["evoi"], of_all, atol=10**-DIGITS)
        assert shown["action"] == int(bootdqn.parse_strategy(strategy).select(q, head))
        compared = ("greedy", "ucb", "gain", f"evoi:reduce={reduce}")
        own = [strategy if one.split(":")[0] == name else one for one in compared]
        chosen = [int(bootdqn.parse_strategy(one).select(q, head)) for one in own]
        assert list(shown["choices"]) == [*chosen, int(bootdqn.vote(q))]
        assert (shown["flip"] is not None) == (shown["action"] != int(np.argmax(q[head])))


def test_a_flip_is_told_with_its_numbers(deep_sea):
    recording = Player(deep_sea).record(episodes=5, max_steps=100, seed=0, head=None)
    flips = [
        (step, shown)
        for step, shown in zip(recording.steps, page_data(recording, [])["steps"], strict=True)
        if shown["flip"]
    ]
    assert flips, "an agent this young is led by information"
    for step, shown in flips:
        bonus = bootdqn.evoi(step.q, reduce="sum")[step.action]
        assert f"Head {step.head} alone would do" in shown["flip"]
        assert f"EVOI adds {bonus:.3g} to it" in shown["flip"]


@pytest.mark.parametrize("strategy", ["gain:scale=20", "evoi:reduce=sum,scale=0.5"])
def test_the_numbers_of_a_flip_lead_to_what_was_done(deep_sea, strategy):
    recording = Player(deep_sea, strategy=strategy).record(episodes=20, max_steps=200, seed=0, head=None)
    sentences = [shown["flip"] for shown in page_data(recording, [])["steps"] if shown["flip"]]
    assert sentences
    for sentence in sentences:
        alone, done, added, to_the_other = (float(x) for x in re.findall(r"(?:Q|adds|and) (-?[\d.e-]*\d)", sentence))
        assert done + added >= alone + to_the_other - 2e-3 * abs(alone)


def test_a_flip_by_chance_is_told_with_its_probabilities_and_not_as_information(deep_sea, tmp_path):
    recording = Player(deep_sea, strategy="boltzmann:temperature=0.5").record(
        episodes=5, max_steps=100, seed=0, head=None
    )
    shown = page_data(recording, [])["steps"]
    assert any(one["flip"] for one in shown)
    for step, one in zip(recording.steps, shown, strict=True):
        own = step.q[step.head].astype(float)
        assert (one["flip"] is not None) == (step.action != int(np.argmax(own)))
        if one["flip"]:
            share = np.exp(own / 0.5) / np.exp(own / 0.5).sum()
            chances = f"drawn with probability {share[step.action]:.3g}, the other has {share[np.argmax(own)]:.3g}."
            assert one["flip"].endswith(chances)
    told = inspect_run(deep_sea, tmp_path / "page.html", strategy="boltzmann")
    assert "changed by the draw of an action" in told
    assert "changed by information" in inspect_run(deep_sea, tmp_path / "page.html", strategy="gain")


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


def test_a_snapshot_can_be_chosen_by_its_step(deep_sea, tmp_path, capsys):
    inspect_run(deep_sea, tmp_path / "page.html", checkpoint="200")
    assert data_of(tmp_path / "page.html")["weightsStep"] == 200
    assert run_command_line(["inspect", str(deep_sea), "--checkpoint", "201"]) == 2
    assert "there are 100, 200, 400" in capsys.readouterr().err


def test_a_game_is_shown_frame_by_frame_in_little_space(game, tmp_path):
    inspect_run(game, tmp_path / "page.html", max_steps=40)
    data = data_of(tmp_path / "page.html")
    assert len(data["steps"]) == 40
    assert all(step["frame"].startswith("data:image/png;base64,") for step in data["steps"])
    assert len({step["frame"] for step in data["steps"]}) > 5
    assert (tmp_path / "page.html").stat().st_size / 40 < 10_000, "1,000 steps stay below 10 MB"
    assert data["steps"][0]["names"][:2] == ["NOOP", "FIRE"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_one_step_becomes_the_papers_figure(deep_sea, game, tmp_path, suffix):
    for path in (deep_sea, game):
        inspect_run(path, tmp_path / "page.html", max_steps=5, figure=tmp_path / f"figure.{suffix}", step=3)
        assert (tmp_path / f"figure.{suffix}").stat().st_size > 5000
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "is not a run folder"),
        (["RUN", "--strategy", "evio"], "did you mean 'evoi'"),
        (["RUN", "--head", "5"], "--head must be in 0..4"),
        (["RUN", "--episodes", "0"], "episodes must be at least 1"),
        (["RUN", "--figure", "x.gif"], "must be a .png, .svg or .pdf"),
        (["RUN", "--figure", "x.png", "--step", "99"], "--step must be in 0..5"),
        (["RUN", "--out", "x.pdf"], "must be an .html file"),
        (["RUN", "--out", "x.html", "--figure", "x.png"], "leave out --out, or --figure"),
        (["RUN", "--step", "3"], "--step is which step --figure draws"),
        (["RUN", "--checkpoint", "²"], "no such file, and no snapshot after that step"),
    ],
)
def test_a_mistake_is_named(deep_sea, capsys, arguments, message):
    assert run_command_line(["inspect", *[str(deep_sea) if word == "RUN" else word for word in arguments]]) == 2
    assert message in capsys.readouterr().err


def raises(*_):
    raise ZeroDivisionError("boom")


@pytest.fixture
def walk(tmp_path):
    """A run on an environment that cannot be shown."""
    train({"total_steps": 50}, tmp_path / "walk")
    return tmp_path / "walk"


def test_an_environment_that_cannot_be_shown_is_inspected_without_its_picture(walk, tmp_path, capsys):
    told = inspect_run(walk, tmp_path / "page.html")
    assert told.endswith("It is not shown what the agent saw: NotImplementedError: .")
    assert all(step["frame"] is None for step in data_of(tmp_path / "page.html")["steps"])
    opened(tmp_path / "page.html", tmp_path / "profile")
    assert run_command_line(["inspect", str(walk), "--figure", str(tmp_path / "step.png")]) == 0
    assert (tmp_path / "step.png").exists()
    assert "NotImplementedError" in capsys.readouterr().out


def test_an_environment_that_takes_no_render_mode_is_inspected_all_the_same(walk, tmp_path, monkeypatch):
    monkeypatch.setattr(Walk, "__init__", lambda walk: vars(walk).update(number=0, steps=0, resets=0))
    told = inspect_run(walk, tmp_path / "page.html")
    assert told.endswith(
        f"It is not shown what the agent saw: --env-id {WALK} cannot be shown: it takes no render_mode."
    )


@pytest.mark.parametrize("method", ["step", "reset"])
def test_an_environment_that_raises_is_told_in_a_line(walk, tmp_path, monkeypatch, capsys, method):
    with disturbed(monkeypatch, **{method: raises}):
        assert run_command_line(["inspect", str(walk), "--out", str(tmp_path / "page.html")]) == 1
        assert run_command_line(["evaluate", str(walk)]) == 1
    line = "bootdqn: the environment raised ZeroDivisionError: boom"
    assert capsys.readouterr().err.splitlines() == [line, line]
    assert not (tmp_path / "page.html").exists()


def test_a_strategy_that_raises_is_told_in_a_line(walk, monkeypatch, capsys):
    monkeypatch.setattr(bootdqn.Gain, "scores", raises)
    assert run_command_line(["inspect", str(walk), "--strategy", "gain"]) == 1
    assert capsys.readouterr().err == "bootdqn: the strategy raised ZeroDivisionError: boom\n"


def test_a_snapshot_can_be_inspected_before_the_weights_are_saved(deep_sea, tmp_path):
    under_way = tmp_path / "run"
    shutil.copytree(deep_sea, under_way)
    RunFolder(under_way).weights.unlink()
    (RunFolder(under_way).snapshots / "step-old.safetensors").write_bytes(b"not one of ours")
    inspect_run(under_way, tmp_path / "page.html", checkpoint="200")
    assert [one["step"] for one in data_of(tmp_path / "page.html")["maps"]] == [100, 200, 400]


DRIVE = """
<script>
const told = {};
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
const step = () => Number(document.body.dataset.step);
press("ArrowRight"); press("ArrowRight"); told.right = step();
press("ArrowLeft"); told.left = step();
press("End"); told.end = step();
press("Home"); told.home = step();
press("n"); told.flip = step(); told.sentence = document.getElementById("flip").textContent;
press("n"); told.nextFlip = step();
press("p"); told.backAgain = step();
const box = document.getElementById("timeline").getBoundingClientRect();
const end = box.left + box.width * 0.999;
document.getElementById("timeline").dispatchEvent(new MouseEvent("click", { clientX: end, bubbles: true }));
told.clicked = step();
document.querySelector('[data-filter="rewards"]').click();
told.firstReward = step();
press("Home"); press("ArrowRight"); told.secondReward = step();
document.querySelector('[data-filter="all"]').click();
press("Home");
told.bars = [...document.querySelectorAll("[data-bar]")].map((bar) => [bar.dataset.bar, Number(bar.dataset.value)]);
told.choices = [...document.querySelectorAll("[data-choice]")].map((mark) => mark.dataset.choice);
told.maps = document.querySelectorAll("#maps svg").length;
const map = document.getElementById("map-scrub");
map.value = 0; map.dispatchEvent(new Event("input")); told.mapStep = document.getElementById("map-step").textContent;
document.body.setAttribute("data-told", JSON.stringify(told));
</script>
"""


def test_the_page_answers_to_keys_clicks_and_filters(deep_sea, tmp_path):
    inspect_run(deep_sea, tmp_path / "page.html", episodes=4)
    page = tmp_path / "driven.html"
    page.write_text((tmp_path / "page.html").read_text().replace("</body>", DRIVE + "</body>"))
    dom = opened(page, tmp_path / "profile")
    told = json.loads(html.unescape(re.search(r'data-told="(.*?)"', dom).group(1)))
    steps = data_of(tmp_path / "page.html")["steps"]
    flips = [number for number, step in enumerate(steps) if step["flip"]]
    rewards = [number for number, step in enumerate(steps) if step["reward"]]
    assert (told["right"], told["left"], told["end"], told["home"]) == (2, 1, len(steps) - 1, 0)
    expected = [number for number in flips if number > 0][:2]
    assert [told["flip"], told["nextFlip"], told["backAgain"]] == [expected[0], expected[1], expected[0]]
    assert told["sentence"] == steps[expected[0]]["flip"]
    assert told["clicked"] == len(steps) - 1
    assert told["firstReward"] == (told["clicked"] if told["clicked"] in rewards else rewards[0])
    assert told["secondReward"] == rewards[1]
    first = steps[0]
    shown = dict(told["bars"])
    assert shown == {f"{name}-{a}": first[name][a] for name in ("gain", "evoi") for a in (0, 1)}
    assert sorted(told["choices"]) == sorted(METHODS)
    assert told["maps"] == 3
    assert told["mapStep"] == "after 100 steps of training"


@pytest.mark.parametrize(("place", "step"), [("#4", 4), ("#6", 0), ("#x", 0)])
def test_the_address_says_which_step_is_shown(deep_sea, tmp_path, place, step):
    inspect_run(deep_sea, tmp_path / "page.html")
    assert f'data-step="{step}"' in opened(tmp_path / "page.html", tmp_path / "profile", place=place)


def test_a_page_about_a_game_opens_and_its_name_is_text(game, tmp_path):
    inspect_run(game, tmp_path / "page.html", max_steps=20)
    dom = opened(tmp_path / "page.html", tmp_path / "profile")
    assert html.escape("<script>alert(1)<", quote=False) in dom
    assert dom.count("<script") == 2, "the data and the program, nothing else"
    assert "http" not in (tmp_path / "page.html").read_text().replace("http://www.w3.org/2000/svg", "").replace(
        "http-equiv", ""
    )
