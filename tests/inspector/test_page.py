"""The page in a browser: it answers to keys, clicks and filters."""

import html
import itertools
import json
from collections import Counter
from decimal import Decimal

import pytest

from bootdqn.config.variants import algorithm
from bootdqn.inspector.page import inspect_run
from bootdqn.inspector.recording import METHODS
from reference.browser import data_of, driven, opened

DRIVE = """
<script>
const result = {};
const topAndBottom = (bar) => [bar.y.baseVal.value, bar.y.baseVal.value + bar.height.baseVal.value];
const captions = () => [...document.querySelectorAll("#maps h2, #maps h3")].map((title) => title.textContent);
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
const step = () => Number(document.body.dataset.step);
result.opened = step();
press("Home"); press("ArrowRight"); press("ArrowRight"); result.right = step();
press("ArrowLeft"); result.left = step();
press("End"); result.end = step();
press("Home"); result.home = step();
press("n"); result.flip = step(); result.sentence = document.getElementById("flip").textContent;
press("n"); result.nextFlip = step();
press("p"); result.backAgain = step();
const box = document.getElementById("timeline").getBoundingClientRect();
const end = box.left + box.width * 0.999;
document.getElementById("timeline").dispatchEvent(new MouseEvent("click", { clientX: end, bubbles: true }));
result.clicked = step();
document.querySelector('[data-filter="rewards"]').click();
result.firstReward = step();
press("Home"); press("ArrowRight"); result.secondReward = step();
document.querySelector('[data-filter="all"]').click();
press("Home");
result.bars = [...document.querySelectorAll("[data-bar]")].map((bar) => [bar.dataset.bar, Number(bar.dataset.value)]);
result.choices = [...document.querySelectorAll("[data-choice]")].map((mark) => mark.dataset.choice);
result.scores = document.querySelectorAll("[data-score]").length;
result.zeros = [];
for (let i = 0; i < steps.length; i++) {
  show(i);
  const zero = document.querySelector("#bars [data-zero]").y1.baseVal.value;
  const ends = [...document.querySelectorAll("[data-q]")].map(topAndBottom);
  result.zeros.push(ends.every((pair) => pair.some((end) => Math.abs(end - zero) < 1e-3)));
}
result.ticks = RANGES.map(([low, high]) => roundTicks(low, high).map((tick) => tick[1]));
result.shownTicks = [...document.querySelectorAll("#bars [data-tick]")].map((tick) => tick.dataset.tick);
result.mapsAtFirst = captions();
result.maps = document.querySelectorAll("#maps svg").length;
const map = document.getElementById("map-scrub");
map.value = 3; map.dispatchEvent(new Event("input")); result.mapsAtLast = captions();
document.body.setAttribute("data-result", JSON.stringify(result));
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


SCORES = """
<script>
const result = steps.map((_, i) => {
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
document.body.setAttribute("data-result", JSON.stringify(result));
</script>
"""


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize("strategy", ["barred", "boltzmann:temperature=0.5"])
def test_the_page_shows_the_scores_by_which_any_strategy_chose(deep_sea, tmp_path, strategy):
    inspect_run(deep_sea, tmp_path / "page.html", strategy=strategy)
    data = data_of(tmp_path / "page.html")
    label = algorithm(strategy).label
    for result, step in zip(driven(tmp_path, SCORES), data["steps"], strict=True):
        assert [float(score) for score in result["scores"]] == [float(score) for score in step["scores"]]
        assert result["begin"], "bars begin at the line of zero"
        assert [mark for mark in result["mark"] if mark[0] == label] == [[label, step["action"]]]
        assert sorted(name for name, _ in result["mark"]) == sorted([*METHODS, label])
        facts = dict(result["facts"])
        assert facts[f"★ {label}"] == step["names"][step["action"]]
        expected = {"active head": "none", "head of the bars": str(step["head"])}
        assert expected.items() <= facts.items() if strategy == "barred" else facts["active head"] == str(step["head"])
        assert ("head of the bars" in facts) == (strategy == "barred")
        assert result["title"] == data["scoreTitle"]


def test_the_page_answers_to_keys_clicks_and_filters(deep_sea, tmp_path):
    inspect_run(deep_sea, tmp_path / "page.html", episodes=4, weights="200")
    result = driven(tmp_path, DRIVE.replace("RANGES", json.dumps(RANGES)))
    steps = data_of(tmp_path / "page.html")["steps"]
    flips = [number for number, step in enumerate(steps) if step["flip"]]
    usual, _ = Counter(step["reward"] for step in steps).most_common(1)[0]
    rewards = [number for number, step in enumerate(steps) if step["reward"] != usual]
    assert result["opened"] == flips[0]
    assert (result["right"], result["left"], result["end"], result["home"]) == (2, 1, len(steps) - 1, 0)
    expected = [number for number in flips if number > 0][:2]
    assert [result["flip"], result["nextFlip"], result["backAgain"]] == [expected[0], expected[1], expected[0]]
    assert result["sentence"] == steps[expected[0]]["flip"]
    assert result["clicked"] == len(steps) - 1
    assert result["firstReward"] == (result["clicked"] if result["clicked"] in rewards else rewards[0])
    assert result["secondReward"] == rewards[1]
    first = steps[0]
    shown = dict(result["bars"])
    assert shown == {f"{name}-{a}": first[name][a] for name in ("gain", "evoi") for a in (0, 1)}
    assert sorted(result["choices"]) == sorted(METHODS)
    assert result["scores"] == 0, "the bars show them: Q and EVOI"
    assert all(result["zeros"]), "bars begin at the line of zero"
    assert 0 in map(float, result["shownTicks"])
    assert len(result["shownTicks"]) >= 3
    assert result["maps"] == 3
    assert (
        result["mapsAtFirst"][0] == "The grid from above, after 200 steps of training, with the weights inspected above"
    )
    assert result["mapsAtLast"][0] == "The grid from above, after 600 steps of training"
    for step, titles in ((200, result["mapsAtFirst"]), (600, result["mapsAtLast"])):
        assert titles[1] == f"visits, 200 episodes of the agent after {step} steps"
        assert titles[2].startswith(f"largest EVOI after {step} steps (strongest colour: ")
        assert titles[3] == f"heads after {step} steps that want right (green) or left (pink)"
    for (low, high), ticks in zip(RANGES, result["ticks"], strict=True):
        assert_round(low, high, ticks)


def first_flip_of(page):
    return next((number for number, step in enumerate(data_of(page)["steps"]) if step["flip"]), None)


@pytest.mark.parametrize(("place", "shown"), [("#4", 4), ("#0", 0), ("", "flip"), ("#6", "flip"), ("#x", "flip")])
def test_the_page_opens_at_the_first_flip_unless_its_address_names_a_step(deep_sea, tmp_path, place, shown):
    page = tmp_path / "page.html"
    for seed in range(30):
        inspect_run(deep_sea, page, weights="200", seed=seed)
        if first_flip_of(page):
            break
    assert first_flip_of(page), "it is not the first step"
    step = first_flip_of(page) if shown == "flip" else shown
    assert f'data-step="{step}"' in opened(page, tmp_path / "profile", place=place)


def test_a_page_without_flips_opens_at_its_first_step(deep_sea, tmp_path):
    page = tmp_path / "page.html"
    inspect_run(deep_sea, page, strategy="greedy")
    assert first_flip_of(page) is None
    assert 'data-step="0"' in opened(page, tmp_path / "profile")


def test_a_page_about_a_game_opens_and_its_name_is_text(game, tmp_path):
    inspect_run(game, tmp_path / "page.html", max_steps=20)
    dom = opened(tmp_path / "page.html", tmp_path / "profile")
    assert html.escape("<script>alert(1)<", quote=False) in dom
    assert dom.count("<script") == 2, "the data and the program, nothing else"
    assert "http" not in (tmp_path / "page.html").read_text().replace("http://www.w3.org/2000/svg", "").replace(
        "http-equiv", ""
    )
