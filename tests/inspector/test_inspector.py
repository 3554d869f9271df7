"""The inspector: every number it shows is the formulas' own, and the page answers to keys, clicks and filters."""

import html
import itertools
import json
import re
import shutil
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pytest

import bootdqn
from bootdqn.cli import run_command_line
from bootdqn.common.algorithms import algorithm
from bootdqn.common.run_folder import RunFolder
from bootdqn.inspector.figure import draw_step
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
    [
        *("greedy", "evoi:reduce=sum", "evoi", "evoi:scale=7", "gain", "gain:scale=5"),
        *("ucb", "ucb:scale=3", "ids", "vote", "vote:rule=borda"),
    ],
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
        played = [step.action] if strategy in ("ids", "vote:rule=borda") else []
        assert list(shown["choices"]) == [*chosen, int(bootdqn.vote(q)), *played]
        alone = q.mean(axis=0) if name in ("ucb", "ids", "vote") else q[head]
        assert (shown["flip"] is not None) == (shown["action"] != int(np.argmax(alone)))
        assert np.allclose(shown["scores"], bootdqn.parse_strategy(strategy).scores(q, head), rtol=1e-5, atol=0)


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


@dataclass(frozen=True)
class Barred(bootdqn.Strategy):
    """The most hopeful head's smallest numbers; action 0 is never done."""

    name: ClassVar[str] = "barred"

    def scores(self, q, head):  # noqa: ARG002
        return np.where(np.arange(q.shape[-1]) == 0, -np.inf, 1e-9 * q.max(axis=-2))


@dataclass(frozen=True)
class Opposed(bootdqn.Strategy):
    """The opposite of the active head, by a rule of its own."""

    name: ClassVar[str] = "opposed"

    def scores(self, q, head):
        return bootdqn.of_head(q, head)

    def select(self, q, head, rng=None):  # noqa: ARG002
        return np.argmin(self.scores(q, head), axis=-1)


@pytest.fixture
def own_strategies(own_code):  # noqa: ARG001 - it forgets them
    for strategy in (Barred, Opposed):
        bootdqn.register_strategy(strategy)


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize("strategy", ["ucb", "ucb:scale=5", "ids", "vote", "vote:rule=borda", "barred"])
def test_flips_of_a_strategy_without_a_head_are_flips_from_the_mean_whichever_head_is_shown(deep_sea, strategy):
    player, seen, parted = Player(deep_sea, strategy=strategy), {}, False
    for seed in range(3):
        recording = player.record(episodes=8, max_steps=100, seed=seed, head=None)
        for step, shown in zip(recording.steps, page_data(recording, [])["steps"], strict=True):
            best = int(np.argmax(step.q.mean(axis=0)))
            parted |= best != int(np.argmax(step.q[step.head]))
            assert (shown["flip"] is not None) == (step.action != best)
            assert seen.setdefault(step.cell, shown["flip"]) == shown["flip"], "the head makes no difference"
            if shown["flip"]:
                scores, mean = bootdqn.parse_strategy(strategy).scores(step.q, 0), step.q.mean(axis=0)
                assert shown["flip"] == (
                    f"The ensemble's mean would do {step.names[best]} (Q {mean[best]:.3g}). "
                    f"The strategy did {step.names[step.action]} (Q {mean[step.action]:.3g}): "
                    f"its score is {scores[step.action]:.3g}, the other's {scores[best]:.3g}."
                )
    assert parted, "some head wants something else than the mean, so that the test can tell them apart"


@pytest.mark.parametrize("strategy", ["vote:rule=mean", "ucb:scale=0"])
def test_a_strategy_that_is_the_mean_never_flips(deep_sea, strategy):
    recording = Player(deep_sea, strategy=strategy).record(episodes=20, max_steps=200, seed=0, head=None)
    assert not any(recording.flip(step) for step in recording.steps)


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("gain", "changed by information from what the active head alone would do."),
        ("boltzmann", "changed by the draw of an action from what the active head alone would do."),
        ("ids", "changed by information from what the ensemble's mean would do."),
        ("vote", "changed by the vote from what the ensemble's mean would do."),
        ("barred", "changed by the strategy barred from what the ensemble's mean would do."),
        ("opposed", "6 steps, 6 of them changed by the strategy opposed from what the active head alone would do."),
    ],
)
def test_it_is_told_what_changed_the_choice_and_whose(deep_sea, tmp_path, strategy, words):
    told = inspect_run(deep_sea, tmp_path / "page.html", strategy=strategy)
    steps = data_of(tmp_path / "page.html")["steps"]
    assert told.startswith(f"6 steps, {sum(step['flip'] is not None for step in steps)} of them changed by")
    assert words in told


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize(
    ("strategy", "title"),
    [
        ("greedy", None),
        ("gain:scale=2", None),
        ("evoi", None),
        ("ucb:scale=5", "score of ucb:scale=5: the action with the highest is done"),
        ("ids", "score of ids: the action with the highest is done"),
        ("vote", "score of vote: the highest is done, a tie goes to the higher mean"),
        ("boltzmann", "probability by boltzmann: an action is drawn"),
        ("barred", "score of barred: the action with the highest is done"),
        ("opposed", "score of opposed: its own rule chooses by them"),
    ],
)
def test_scores_that_the_bars_do_not_show_have_a_row_and_the_figure_says_the_same(deep_sea, strategy, title):
    recording = Player(deep_sea, strategy=strategy).record(episodes=1, max_steps=100, seed=0, head=None)
    step = recording.steps[2]
    assert page_data(recording, [])["scoreTitle"] == title
    axes = draw_step(recording, 2).axes
    followed = strategy not in ("ucb:scale=5", "ids", "vote", "barred")
    who = f"head {step.head}" if followed else strategy
    assert axes[1].get_title() == f"{who} did {step.names[step.action]}"
    assert len(axes) == (2 if title is None else 3)
    if title is None:
        return
    assert axes[2].get_title() == title
    numbers = bootdqn.parse_strategy(strategy).scores(step.q, step.head)
    numbers = np.exp(numbers) if strategy == "boltzmann" else numbers
    tops = [bar.get_y() + bar.get_height() for bar in axes[2].patches]
    assert np.allclose(tops, np.where(np.isinf(numbers), 0, numbers), rtol=1e-5, atol=0)
    assert [text.get_text() for text in axes[2].texts] == [f"{number:.3g}" for number in numbers]


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
        (["RUN", "--strategy", "ids", "--head", "1"], "--head: ids follows no head"),
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
    raised = "raised ZeroDivisionError: boom"
    assert capsys.readouterr().err.splitlines() == [
        f"bootdqn: the environment {raised}",
        f"bootdqn: the environment of the evaluation {raised}",
    ]
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
const topAndBottom = (bar) => [bar.y.baseVal.value, bar.y.baseVal.value + bar.height.baseVal.value];
const captions = () => [...document.querySelectorAll("#maps h2, #maps h3")].map((title) => title.textContent);
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
told.scores = document.querySelectorAll("[data-score]").length;
told.zeros = [];
for (let i = 0; i < steps.length; i++) {
  show(i);
  const zero = document.querySelector("#bars [data-zero]").y1.baseVal.value;
  const ends = [...document.querySelectorAll("[data-q]")].map(topAndBottom);
  told.zeros.push(ends.every((pair) => pair.some((end) => Math.abs(end - zero) < 1e-3)));
}
told.ticks = RANGES.map(([low, high]) => roundTicks(low, high).map((tick) => tick[1]));
told.shownTicks = [...document.querySelectorAll("#bars [data-tick]")].map((tick) => tick.dataset.tick);
told.mapsAtFirst = captions();
told.maps = document.querySelectorAll("#maps svg").length;
const map = document.getElementById("map-scrub");
map.value = 3; map.dispatchEvent(new Event("input")); told.mapsAtLast = captions();
document.body.setAttribute("data-told", JSON.stringify(told));
</script>
"""


RANGES = [(-0.08, 0.243), (0, 1), (-1, 3), (-8.143, 0.4), (1e-7, 3e-7), (98, 101.5), (-2e8, 7e8), (-0.0299, 0.0001)]
RANGES += [(-1.06 * 10**k, 0.37 * 10**k) for k in (-3, -1, 0, 2, 4)]


def assert_round(low, high, ticks):
    """Ticks are the multiples, from low to high, of 1, 2 or 5 times a power of ten, and they are not few or many."""
    values = [Decimal(tick) for tick in ticks]
    assert 3 <= len(values) <= 9
    (unit,) = {b - a for a, b in itertools.pairwise(values)}
    assert unit.normalize().as_tuple().digits in {(1,), (2,), (5,)}
    assert all(value % unit == 0 for value in values)
    assert float(values[0] - unit) < low <= float(values[0])
    assert float(values[-1]) <= high < float(values[-1] + unit)


def driven(folder, script):
    """Return what `script` tells of the page in `folder`."""
    page = folder / "driven.html"
    page.write_text((folder / "page.html").read_text().replace("</body>", script + "</body>"))
    dom = opened(page, folder / "profile")
    return json.loads(html.unescape(re.search(r'data-told="(.*?)"', dom).group(1)))


SCORES = """
<script>
const told = steps.map((_, i) => {
  show(i);
  const bars = [...document.querySelectorAll("[data-score]")];
  const zero = document.querySelector("#scores [data-zero]").y1.baseVal.value;
  const marks = [...document.querySelectorAll("[data-choice]")];
  return {
    scores: bars.map((bar) => bar.dataset.value),
    begin: bars.every((bar) => Math.abs(bar.y.baseVal.value + bar.height.baseVal.value - zero) < 1e-3),
    mark: marks.map((mark) => [mark.dataset.choice, Number(mark.dataset.action)]),
    facts: [...document.querySelectorAll("#facts tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
    title: document.getElementById("score-title").textContent,
  };
});
document.body.setAttribute("data-told", JSON.stringify(told));
</script>
"""


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize("strategy", ["barred", "boltzmann:temperature=0.5"])
def test_the_page_shows_the_scores_by_which_any_strategy_chose(deep_sea, tmp_path, strategy):
    inspect_run(deep_sea, tmp_path / "page.html", strategy=strategy)
    data = data_of(tmp_path / "page.html")
    label = algorithm(strategy).label
    for told, step in zip(driven(tmp_path, SCORES), data["steps"], strict=True):
        assert [float(score) for score in told["scores"]] == [float(score) for score in step["scores"]]
        assert told["begin"], "bars begin at the line of zero"
        assert [mark for mark in told["mark"] if mark[0] == label] == [[label, step["action"]]]
        assert sorted(name for name, _ in told["mark"]) == sorted([*METHODS, label])
        facts = dict(told["facts"])
        assert facts[f"★ {label}"] == step["names"][step["action"]]
        expected = {"active head": "none", "head of the bars": str(step["head"])}
        assert expected.items() <= facts.items() if strategy == "barred" else facts["active head"] == str(step["head"])
        assert ("head of the bars" in facts) == (strategy == "barred")
        assert told["title"] == data["scoreTitle"]


def test_the_page_answers_to_keys_clicks_and_filters(deep_sea, tmp_path):
    inspect_run(deep_sea, tmp_path / "page.html", episodes=4, checkpoint="200")
    told = driven(tmp_path, DRIVE.replace("RANGES", json.dumps(RANGES)))
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
    assert told["scores"] == 0, "the bars show them: Q and EVOI"
    assert all(told["zeros"]), "bars begin at the line of zero"
    assert 0 in map(float, told["shownTicks"])
    assert len(told["shownTicks"]) >= 3
    assert told["maps"] == 3
    assert (
        told["mapsAtFirst"][0] == "The grid from above, after 200 steps of training, with the weights inspected above"
    )
    assert told["mapsAtLast"][0] == "The grid from above, after 600 steps of training"
    for step, titles in ((200, told["mapsAtFirst"]), (600, told["mapsAtLast"])):
        assert titles[1] == f"visits, 200 episodes of the agent after {step} steps"
        assert titles[2].startswith(f"largest EVOI after {step} steps (darkest: ")
        assert titles[3] == f"heads after {step} steps that want right (green) or left (pink)"
    for (low, high), ticks in zip(RANGES, told["ticks"], strict=True):
        assert_round(low, high, ticks)


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
