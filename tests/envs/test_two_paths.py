"""TwoPaths: every transition, the two optimal policies by value iteration, and what a coin finds."""

import doctest
import json

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import bootdqn.envs.two_paths
from bootdqn.common.specs import DiscreteSpec, EnvSpec
from bootdqn.config.envs import GymConfig
from bootdqn.config.settings import from_flat
from bootdqn.envs.factory import make_environment, spec_of
from bootdqn.envs.two_paths import TwoPaths
from bootdqn.inspector.page import inspect_run
from bootdqn.training.run import train_run

SIZES = [(1, 10), (2, 10), (1, 1), (3, 2), (4, 7)]
of_every_size = pytest.mark.parametrize(("short", "long"), SIZES)


def arrive(env, actions):
    """Begin an episode and take `actions`; return what the last of them gave, and what the actions mean there."""
    observation, _ = env.reset(seed=0)
    outcome = observation, 0.0, False, False
    for action in actions:
        outcome = env.step(action)[:4]
    return outcome, env.get_action_meanings()


def model_of(env):
    """Return {(state, action): (next state, reward, terminated)} by walking every way from the fork once."""
    model, ways = {}, {0: []}
    frontier = [0]
    while frontier:
        state = frontier.pop()
        for action in (0, 1):
            (following, reward, terminated, _), _ = arrive(env, [*ways[state], action])
            model[state, action] = following, reward, terminated
            if not terminated and following not in ways:
                ways[following] = [*ways[state], action]
                frontier.append(following)
    return model, ways


def meant(env, way):
    """Return the actions whose meanings are the words of `way`."""
    actions = []
    for word in way:
        _, meanings = arrive(env, actions)
        actions.append(meanings.index(word))
    return actions


def value_iteration(model, discount):
    values = dict.fromkeys((state for state, _ in model), 0.0)
    for _ in range(500):
        values = {s: max(backup(model, values, s, a, discount) for a in (0, 1)) for s in values}
    policy = {s: max((0, 1), key=lambda a, s=s: backup(model, values, s, a, discount)) for s in values}
    return values, policy


def backup(model, values, state, action, discount):
    following, reward, terminated = model[state, action]
    return reward + (0.0 if terminated else discount * values[following])


# The paths


@of_every_size
def test_the_states_are_the_fork_and_two_chains_that_lead_back_to_it(short, long):
    env = TwoPaths(short, long)
    model, _ = model_of(env)
    ends = {short: 1.0, short + long: 10.0}
    expected = {state: {0, state + 1} for state in range(1, short + long) if state != short} | {0: {1, short + 1}}
    found = {state: {model[state, action][0] for action in (0, 1)} for state, _ in model}
    assert found == expected
    for following, reward, terminated in model.values():
        assert reward == ends.get(following, 0.0)
        assert terminated == (following in ends)
    assert env.observation_space.n == 1 + short + long


@of_every_size
def test_the_actions_do_what_they_mean(short, long):
    env = TwoPaths(short, long)
    for first, length, reward in (("short", short, 1.0), ("long", long, 10.0)):
        way = [first] + ["on"] * (length - 1)
        outcome, _ = arrive(env, meant(env, way))
        assert outcome[1:] == (reward, True, False)
        for turn in range(1, length):
            outcome, meanings = arrive(env, meant(env, [*way[:turn], "back"]))
            assert outcome == (0, 0.0, False, False)
            assert set(meanings) == {"short", "long"}


def test_the_meaning_of_actions_is_sampled_for_every_state_and_only_from_its_seed():
    def forward(seed, episode_seed):
        env = TwoPaths(2, 30, mapping_seed=seed)
        env.reset(seed=episode_seed)
        return meant(env, ["long"] + ["on"] * 29)

    assert forward(0, 0) == forward(0, 1)
    assert len({tuple(forward(seed, 0)) for seed in range(5)}) == 5
    assert 5 < sum(forward(0, 0)) < 25
    for action in (0, 1):
        env = TwoPaths()
        env.reset()
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        assert reward < 10, "no agent that always does the same is there"


# What is best


@of_every_size
def test_the_far_sighted_take_the_long_path_and_the_short_sighted_the_short_one(short, long):
    env = TwoPaths(short, long)
    model, ways = model_of(env)
    for discount in (0.99, 0.5):
        values, policy = value_iteration(model, discount)
        worth = {"short": discount ** (short - 1), "long": 10 * discount ** (long - 1)}
        best = max(worth, key=worth.get)
        assert values[0] == pytest.approx(worth[best])
        for state, way in ways.items():
            _, meanings = arrive(env, way)
            if state == 0:
                assert meanings[policy[0]] == best
            elif discount == 0.99:
                assert meanings[policy[state]] == ("on" if state > short else "back")


@pytest.mark.parametrize(("discount", "best"), [(0.77, "short"), (0.78, "long")])
def test_the_discount_at_which_the_long_path_becomes_the_better_one(discount, best):
    env = TwoPaths()
    model, _ = model_of(env)
    env.reset()
    assert env.get_action_meanings()[value_iteration(model, discount)[1][0]] == best


def test_who_knows_only_the_short_path_has_a_reason_to_turn_back():
    model, ways = model_of(TwoPaths())
    silent = {key: (s, min(reward, 1.0) * (s == 1), end) for key, (s, reward, end) in model.items()}
    values, policy = value_iteration(silent, 0.99)
    for state in set(ways) - {0}:
        assert values[state] == pytest.approx(0.99)
        assert silent[state, policy[state]][0] == 0


@pytest.mark.parametrize("long", [1, 2, 4])
def test_random_actions_find_the_long_end_with_the_expected_probability(long):
    rng, env, found = np.random.default_rng(0), TwoPaths(1, long), 0
    episodes = 4000
    for _ in range(episodes):
        env.reset()
        reward, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(int(rng.integers(2)))
            over = terminated or truncated
        found += reward == 10.0
    chance = 1 / (1 + 2 ** (long - 1))
    assert abs(found - episodes * chance) < 5 * np.sqrt(episodes * chance)


# Gymnasium


@pytest.mark.filterwarnings("error")
def test_gymnasium_finds_nothing_wrong_and_makes_it_by_its_name():
    for render_mode in (None, "ansi", "rgb_array"):
        env = gymnasium.make("bootdqn/TwoPaths-v0", short=2, long=5, render_mode=render_mode)
        check_env(env.unwrapped, skip_render_check=render_mode is None)
    assert spec_of(make_environment(GymConfig("bootdqn/TwoPaths-v0"))) == EnvSpec(DiscreteSpec(12), 2)


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.lists(st.integers(0, 1), max_size=44))
def test_an_episode_continues_from_its_state(seed, actions):
    env, again = (make_environment(GymConfig("bootdqn/TwoPaths-v0")) for _ in range(2))
    env.reset(seed=seed)
    over = False
    for action in actions:
        if over:
            env.reset()
        over = any(env.step(action)[2:4])
    again.set_state(json.loads(json.dumps(env.get_state())))
    for action in [] if over else [0, 1, 1, 0]:
        outcome = env.step(action)
        assert outcome == again.step(action)
        if any(outcome[2:4]):
            break


@pytest.mark.parametrize(("short", "long"), [(short, long) for short, long in SIZES if long > 1])
def test_an_episode_that_goes_nowhere_is_truncated(short, long):
    env = TwoPaths(short, long)
    enter, back = meant(env, ["long", "back"])
    env.reset()
    limit = 4 * (short + long)
    truncated = [env.step(back if step % 2 else enter)[2:4] for step in range(limit)]
    assert truncated == [(False, False)] * (limit - 1) + [(False, True)]


def test_invalid_arguments_are_an_error():
    for lengths in ((0, 3), (2, 0), (-1, 5)):
        with pytest.raises(ValueError, match="short and long are numbers of steps, at least 1; got"):
            TwoPaths(*lengths)
    with pytest.raises(TypeError):
        TwoPaths(1.5, 3)
    with pytest.raises(ValueError, match="render_mode must be None or one of"):
        TwoPaths(render_mode="human")
    env = TwoPaths()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset()
    with pytest.raises(ValueError, match="action must be 0 or 1; got 2"):
        env.step(2)
    env.step(env.get_action_meanings().index("short"))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


# Pictures


def test_the_text_shows_where_the_agent_is():
    env = TwoPaths(2, 3, render_mode="ansi")
    pictures = []
    for way in ([], ["short"], ["short", "on"], ["long", "on"], ["long", "on", "on"], ["long", "back"]):
        arrive(env, meant(env, way))
        pictures.append(env.render())
    assert pictures == [
        "+1 . @ . . +10",
        "+1 @ Y . . +10",
        "@ . Y . . +10",
        "+1 . Y . @ +10",
        "+1 . Y . . @",
        "+1 . @ . . +10",
    ]


def test_the_image_has_a_cell_for_every_state_and_another_for_the_agent():
    env = TwoPaths(2, 3, render_mode="rgb_array")
    pictures = []
    for way in ([], ["short"], ["long"], ["long", "on"], ["long", "on", "on"]):
        arrive(env, meant(env, way))
        pictures.append(env.render()[12, 12::24].tolist())
    assert all(len(picture) == 6 for picture in pictures)
    red = [picture.index([228, 74, 58]) for picture in pictures]
    assert red == [2, 1, 3, 4, 5]


def test_it_is_trained_on_and_inspected_by_the_names_of_its_actions(tmp_path):
    settings = {"environment": "gym", "env_id": "bootdqn/TwoPaths-v0", "total_steps": 100, "learning_starts": 32}
    train_run(from_flat(settings | {"eval_every_steps": None, "num_heads": 3, "hidden_sizes": [8]}), tmp_path / "run")
    inspect_run(tmp_path / "run", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '"names":["short","long"]' in page or '"names":["long","short"]' in page


def test_the_example_in_the_docstring_runs():
    assert doctest.testmod(bootdqn.envs.two_paths).failed == 0
