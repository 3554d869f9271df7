"""The page in a browser: the relative view, the filter of rewards, the list of flips and the help."""

import re
from dataclasses import replace

import numpy as np
import pytest

import bootdqn
from bootdqn.inspector.figure import plot_step
from bootdqn.inspector.page import inspect_run, write_page
from bootdqn.inspector.recording import Recorder
from reference.browser import Browser, data_of, driven, opened

RELATIVE = """
<script>
const pressed = () => document.getElementById("relative").getAttribute("aria-pressed");
const look = () => ({
  pressed: pressed(),
  scale: document.querySelector("[data-scale]").textContent,
  zero: document.querySelector("#bars [data-zero]").y1.baseVal.value,
  tops: [...document.querySelectorAll("[data-q]")].map((bar) => [Number(bar.dataset.q), bar.y.baseVal.value]),
  bonuses: [...document.querySelectorAll("[data-bar]")].map((bar) => [bar.dataset.bar, bar.height.baseVal.value]),
  below: [...document.querySelectorAll("[data-below]")].map((mark) => Number(mark.dataset.below)),
});
const press = (key, more) => document.dispatchEvent(new KeyboardEvent("keydown", { key, ...more }));
show(0);
const result = { opened: look() };
document.getElementById("relative").click(); result.clicked = look();
press("r"); result.key = pressed();
press("r", { ctrlKey: true }); result.reload = pressed();
document.body.setAttribute("data-result", JSON.stringify(result));
</script>
"""


def with_q_values(recording, *tables):
    """Return the recording with one step for each table of Q-values (K, A); head 0 acts by EVOI."""
    actions = [int(bootdqn.Evoi(reduce="sum").select(np.array(q), 0)) for q in tables]
    steps = [
        replace(recording.steps[0], head=0, q=np.array(q), action=action, names=tuple("abcd"), cell=None)
        for q, action in zip(tables, actions, strict=True)
    ]
    return replace(recording, steps=steps)


def test_a_bonus_too_small_for_the_scale_of_q_is_seen_in_the_relative_view_which_is_chosen(deep_sea, tmp_path):
    """Two actions are about as good, and two far worse: gain and EVOI matter, and are 1 % of the axis."""
    q = [[6.02, 5.98, 0.0, -1.0], [5.90, 6.00, 0.1, -1.2], [5.94, 6.00, 0.0, -0.9]]
    recording = with_q_values(Recorder(deep_sea).record(episodes=1, max_steps=1, seed=0, head=None), q, q)
    write_page(recording, [], tmp_path / "page.html")
    result = driven(tmp_path, RELATIVE)
    opened, clicked = result["opened"], result["clicked"]
    assert (opened["pressed"], clicked["pressed"], result["key"], result["reload"]) == ("true", "false", "true", "true")
    assert (opened["scale"], clicked["scale"]) == ("Q less the value of the state, 5.993", "Q")
    own, value, gain, evoi = (
        q[0],
        np.mean(q, axis=0).max(),
        bootdqn.gain(np.array(q))[0],
        bootdqn.evoi(np.array(q), "sum"),
    )
    assert (opened["below"], clicked["below"]) == ([2, 3], [])
    tops, bonuses = dict(opened["tops"]), dict(opened["bonuses"])
    pixels = (tops[1] - tops[0]) / (own[0] - own[1])
    assert [opened["zero"] - tops[a] for a in (0, 1)] == pytest.approx(
        [(own[a] - value) * pixels for a in (0, 1)], abs=0.01
    )
    for name, bonus in (("gain", gain), ("evoi", evoi)):
        for a in (0, 1):
            assert bonuses[f"{name}-{a}"] == pytest.approx(max(0.5, bonus[a] * pixels), abs=0.01)
    assert max(bonuses.values()) > 15 > 5 > max(dict(clicked["bonuses"]).values())


def test_the_figure_chooses_the_relative_view_too(deep_sea):
    q = np.array([[6.02, 5.98, 0.0, -1.0], [5.90, 6.00, 0.1, -1.2], [5.94, 6.00, 0.0, -0.9]])
    recording = with_q_values(Recorder(deep_sea).record(episodes=1, max_steps=1, seed=0, head=None), q)
    axes = plot_step(recording, 0).axes[1]
    tops = np.reshape([bar.get_y() + bar.get_height() for bar in axes.patches], (4, 4))
    own, gain, evoi = q[0] - q.mean(axis=0).max(), bootdqn.gain(q)[0], bootdqn.evoi(q, reduce="sum")
    assert tops == pytest.approx(np.stack([own, own + gain, own, own + evoi]))
    low, high = axes.get_ylim()
    assert max(gain.max(), evoi.max()) > 0.05 * (high - low), "the largest bonus is seen"
    assert axes.get_ylabel() == "Q less the value of the state, 5.99"
    assert [text.get_text() for text in axes.texts] == ["▼ -6", "▼ -7"]


def test_the_absolute_view_is_chosen_where_bonuses_are_seen(deep_sea, tmp_path):
    inspect_run(deep_sea, tmp_path / "page.html")
    assert data_of(tmp_path / "page.html")["relative"] is False


TOGGLES = """
<script>
const press = (key, target = document) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const now = () => Number(document.body.dataset.step);
const numbers = (name) => [...document.querySelectorAll(`[data-${name}]`)].map((mark) => Number(mark.dataset[name]));
function walk() {
  const seen = [];
  press("Home");
  for (const _ of steps) { if (seen.at(-1) !== now()) seen.push(now()); press("ArrowRight"); }
  return seen;
}
const result = { rules: {}, flips: [], marks: numbers("reward") };
const rule = document.getElementById("reward-rule");
for (const option of [...rule.options]) {
  rule.value = option.value; rule.dispatchEvent(new Event("change"));
  result.rules[option.value] = [option.textContent, walk()];
}
press("Home", rule); result.ignored = now();
document.querySelector('[data-filter="all"]').click();
for (const entry of document.querySelectorAll("#flip-list button")) {
  entry.click();
  const current = document.querySelectorAll("#flip-list [aria-current]");
  result.flips.push([entry.textContent, now(), current.length === 1 && current[0] === entry]);
}
const help = document.getElementById("help");
press("?"); result.help = help.open; result.keys = [...help.querySelectorAll("kbd")].map((key) => key.textContent);
const before = now(); press("Home"); result.still = now() === before;
help.querySelector("button").click(); result.closed = !help.open;
document.getElementById("help-button").click(); result.again = help.open;
document.body.setAttribute("data-result", JSON.stringify(result));
</script>
"""


def test_rewards_are_filtered_by_rules_flips_are_listed_and_keys_are_explained(deep_sea, tmp_path):
    recording = Recorder(deep_sea, 200).record(episodes=4, max_steps=100, seed=0, head=None)
    rewards = [(1.0, -2.0, 1.0, 5.0, 1.0, 3.0)[number % 6] for number in range(len(recording.steps))]
    steps = [replace(step, reward=reward, cell=None) for step, reward in zip(recording.steps, rewards, strict=True)]
    write_page(replace(recording, steps=steps), [], tmp_path / "page.html")
    result = driven(tmp_path, TOGGLES)
    rules = {
        "other": ("reward other than 1", lambda r: r != 1),
        "above": ("reward above 1", lambda r: r > 1),
        "below": ("reward below 1", lambda r: r < 1),
        "highest": ("highest reward, 5", lambda r: r == 5),
    }
    for name, (label, holds) in rules.items():
        expected = [number for number, reward in enumerate(rewards) if holds(reward)]
        assert result["rules"][name] == [f"{label} ({len(expected)})", expected]
    assert result["marks"] == [number for number, reward in enumerate(rewards) if reward != 1]
    assert result["ignored"] != 0, "a menu has its own use for the key"
    flips = [(number, step) for number, step in enumerate(steps) if recording.flip(step)]
    assert result["flips"] == [
        [
            f"{number}{step.names[step.q[step.head].argmax()]} → {step.names[step.action]}, episode {step.episode + 1}",
            number,
            True,
        ]
        for number, step in flips
    ]
    assert result["flips"]
    assert [result[name] for name in ("help", "still", "closed", "again")] == [True] * 4
    assert result["keys"] == ["→", "←", "n", "p", "Home", "End", "space", "r", "?"]


def test_a_task_with_the_same_reward_at_every_step_has_none_to_filter(deep_sea, tmp_path):
    recording = Recorder(deep_sea).record(episodes=1, max_steps=100, seed=0, head=None)
    write_page(
        replace(recording, steps=[replace(step, reward=1.0, cell=None) for step in recording.steps]),
        [],
        tmp_path / "page.html",
    )
    dom = opened(tmp_path / "page.html", tmp_path / "profile")
    assert re.search(r'<button data-filter="rewards"[^>]*disabled=""[^>]*>rewards \(0\)<', dom)
    assert 'title="every reward is 1"' in dom
    assert "reward-rule" not in dom.split("<script")[0]
    assert "data-reward=" not in dom.split("<script")[0]


def test_the_page_works_in_the_frame_of_a_notebook(deep_sea, tmp_path):
    """A frame without an origin can neither keep an address nor reach its parent; it posts what it shows."""
    page = bootdqn.inspect(deep_sea, out=tmp_path / "page.html", progress=False)
    report = "<script>parent.postMessage(document.body.dataset.step + ' of ' + steps.length, '*')</script></body>"
    (tmp_path / "page.html").write_text((tmp_path / "page.html").read_text().replace("</body>", report))
    listen = "<script>onmessage = (event) => { document.body.dataset.result = event.data; };</script>"
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><body>{listen}{page._repr_html_()}</body>")
    with Browser(tmp_path / "profile") as browser:
        browser.open((tmp_path / "notebook.html").as_uri())
        browser.wait_for("/^\\d+ of 6$/.test(document.body?.dataset.result)")
