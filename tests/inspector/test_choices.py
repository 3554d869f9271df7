"""The description of each choice: every number is that of the formulas, and every flip has its cause."""

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import entropy

import bootdqn
from bootdqn.inspector.figure import plot_step
from bootdqn.inspector.page import DIGITS, inspect_run, page_data
from bootdqn.inspector.recording import Recorder
from reference.browser import data_of


@pytest.mark.parametrize(
    "strategy",
    [
        *("greedy", "evoi:reduce=sum", "evoi", "evoi:scale=7", "gain", "gain:scale=5"),
        *("ucb", "ucb:scale=3", "ids", "vote", "vote:rule=borda"),
    ],
)
def test_the_numbers_shown_are_those_of_the_formulas_on_the_recorded_values(deep_sea, strategy):
    recorder = Recorder(deep_sea, strategy=strategy)
    recording = recorder.record(episodes=2, max_steps=100, seed=3, head=None)
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
        assert shown["vote_entropy"] == pytest.approx(entropy(np.bincount(q.argmax(axis=1))), abs=10**-DIGITS)
        alone = q.mean(axis=0) if name in ("ucb", "ids", "vote") else q[head]
        assert (shown["flip"] is not None) == (shown["action"] != int(np.argmax(alone)))
        assert np.allclose(shown["scores"], bootdqn.parse_strategy(strategy).scores(q, head), rtol=1e-5, atol=0)


@pytest.mark.parametrize("head", [0, 3])
def test_the_head_that_is_asked_for_is_the_active_one(deep_sea, head):
    recording = Recorder(deep_sea, strategy="greedy").record(episodes=4, max_steps=100, seed=0, head=head)
    assert {step.head for step in recording.steps} == {head}
    assert all(step.action == step.q[head].argmax() for step in recording.steps)


def test_actions_are_called_what_they_do(deep_sea):
    steps = Recorder(deep_sea, strategy="greedy").record(episodes=3, max_steps=100, seed=0, head=None).steps
    for step, following in pairwise(steps):
        if following.episode == step.episode:
            went_right = following.cell[1] > step.cell[1]
            assert step.names[step.action] == f"{step.action}: {'right' if went_right else 'left'}"


def test_the_bars_of_the_figure_are_the_active_heads_values_and_the_bonuses_on_top(deep_sea):
    recording = Recorder(deep_sea, strategy="greedy").record(episodes=1, max_steps=9, seed=0, head=2)
    step = recording.steps[1]
    tops = [bar.get_y() + bar.get_height() for bar in plot_step(recording, 1).axes[1].patches]
    own, gain, evoi = step.q[2], bootdqn.gain(step.q)[2], bootdqn.evoi(step.q, reduce="sum")
    assert np.reshape(tops, (4, 2)) == pytest.approx(np.stack([own, own + gain, own, own + evoi]), rel=1e-5)


def test_a_flip_is_described_with_its_numbers(deep_sea):
    recording = Recorder(deep_sea).record(episodes=5, max_steps=100, seed=0, head=None)
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
    recording = Recorder(deep_sea, strategy=strategy).record(episodes=20, max_steps=200, seed=0, head=None)
    sentences = [shown["flip"] for shown in page_data(recording, [])["steps"] if shown["flip"]]
    assert sentences
    for sentence in sentences:
        alone, done, added, to_the_other = (float(x) for x in re.findall(r"(?:Q|adds|and) (-?[\d.e-]*\d)", sentence))
        assert done + added >= alone + to_the_other - 2e-3 * abs(alone)


def test_a_flip_by_sampling_is_described_with_its_probabilities_and_not_as_information(deep_sea, tmp_path):
    recording = Recorder(deep_sea, strategy="boltzmann:temperature=0.5").record(
        episodes=5, max_steps=100, seed=0, head=None
    )
    shown = page_data(recording, [])["steps"]
    assert any(one["flip"] for one in shown)
    for step, one in zip(recording.steps, shown, strict=True):
        own = step.q[step.head].astype(float)
        assert (one["flip"] is not None) == (step.action != int(np.argmax(own)))
        if one["flip"]:
            share = np.exp(own / 0.5) / np.exp(own / 0.5).sum()
            chances = re.search(r"sampled with probability (\S+), the other has (\S+)\.$", one["flip"])
            mine, other = map(float, chances.groups())
            assert (mine, other) == pytest.approx((share[step.action], share[np.argmax(own)]), rel=0.005)
            assert mine < other, "equal numbers would explain nothing"
    message = inspect_run(deep_sea, tmp_path / "page.html", strategy="boltzmann")
    assert "changed by sampling the action" in message


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize("strategy", ["ucb", "ucb:scale=5", "ids", "vote", "vote:rule=borda", "barred"])
def test_flips_of_a_strategy_without_a_head_are_flips_from_the_mean_whichever_head_is_shown(deep_sea, strategy):
    recorder, seen, parted = Recorder(deep_sea, strategy=strategy), {}, False
    for seed in range(3):
        recording = recorder.record(episodes=8, max_steps=100, seed=seed, head=None)
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
    recording = Recorder(deep_sea, strategy=strategy).record(episodes=20, max_steps=200, seed=0, head=None)
    assert not any(recording.flip(step) for step in recording.steps)


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("gain", "changed by information from what the active head alone would do."),
        ("boltzmann", "changed by sampling the action from what the active head alone would do."),
        ("ids", "changed by information from what the ensemble's mean would do."),
        ("vote", "changed by the vote from what the ensemble's mean would do."),
        ("barred", "changed by the strategy barred from what the ensemble's mean would do."),
        ("opposed", "6 steps, 6 of them changed by the strategy opposed from what the active head alone would do."),
    ],
)
def test_the_summary_names_what_changed_the_choice_and_whose(deep_sea, tmp_path, strategy, words):
    message = inspect_run(deep_sea, tmp_path / "page.html", strategy=strategy)
    steps = data_of(tmp_path / "page.html")["steps"]
    assert message.startswith(f"6 steps, {sum(step['flip'] is not None for step in steps)} of them changed by")
    assert words in message


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize(
    ("strategy", "title"),
    [
        ("greedy", None),
        ("gain:scale=2", None),
        ("evoi", None),
        ("ucb:scale=5", "score of ucb:scale=5: the action with the highest is taken"),
        ("ids", "score of ids: the action with the highest is taken"),
        ("vote", "score of vote: the highest is taken, a tie goes to the higher mean"),
        ("boltzmann", "probability by boltzmann: an action is sampled"),
        ("barred", "score of barred: the action with the highest is taken"),
        ("opposed", "score of opposed: its own rule chooses by them"),
    ],
)
def test_scores_that_the_bars_do_not_show_have_a_row_and_the_figure_shows_the_same(deep_sea, strategy, title):
    recording = Recorder(deep_sea, strategy=strategy).record(episodes=1, max_steps=100, seed=0, head=None)
    step = recording.steps[2]
    assert page_data(recording, [])["scoreTitle"] == title
    axes = plot_step(recording, 2).axes
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
