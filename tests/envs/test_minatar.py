"""MinAtar's games: equal to MinAtar's own environment step by step, saved and restored, rendered in its colours."""

import copy
import json
import sys

import numpy as np
import pytest

from bootdqn.common.errors import UsageError
from bootdqn.config.envs import MINATAR_GAMES, MinAtarConfig
from bootdqn.envs.minatar import make_minatar, palette, render_grid
from bootdqn.runs.checkpoint import decode, encode

minatar_gym = pytest.importorskip("minatar.gym")


def play(env, actions, start=None):
    """Return everything that an environment gives, through as many episodes as the actions last."""
    seen = [] if start is None else [env.reset(seed=start)[0].tobytes()]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((observation.tobytes(), float(reward), terminated, truncated, info))
        if terminated:
            seen.append(env.reset()[0].tobytes())
    return seen


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("game", MINATAR_GAMES)
def test_a_game_is_minatars_own_step_by_step(game, full):
    ours = make_minatar(MinAtarConfig(game=game, sticky=0.3, full_action_space=full))
    theirs = minatar_gym.BaseEnv(game.replace("-", "_"), use_minimal_action_set=not full, sticky_action_prob=0.3)
    assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
    actions = np.random.default_rng(0).integers(ours.action_space.n, size=600).tolist()
    assert play(ours, actions, start=5) == play(theirs, actions, start=5)


@pytest.mark.parametrize("game", MINATAR_GAMES)
def test_a_restored_game_continues_as_the_saved_one_wherever_it_was_saved(game):
    config = MinAtarConfig(game=game, sticky=0.6)
    saved, rng = make_minatar(config), np.random.default_rng(1)
    ended, ends = False, 0
    saved.reset(seed=3)
    for step in range(900):
        if ended:
            ends += 1
            saved.reset()
        _, _, ended, _, _ = saved.step(int(rng.integers(saved.action_space.n)))
        if step % 60 == 0 or (ended and ends < 3):  # at an end: what sticks outlives the reset
            state = json.loads(json.dumps(encode(saved.get_state())))
            restored = make_minatar(config)
            restored.set_state(decode(state))
            actions = rng.integers(saved.action_space.n, size=80).tolist()
            assert play(restored, actions) == play(copy.deepcopy(saved), actions)
            assert json.dumps(encode(saved.get_state())) == json.dumps(state), "saving is not playing"


def test_a_seed_resets_the_sticky_action():
    game = make_minatar(MinAtarConfig(game="breakout", sticky=0.9))
    game.reset(seed=0)
    episodes = []
    for before in (1, 2):
        for _ in range(5):
            game.step(before)
        episodes.append(play(game, [0] * 5, start=7))
    assert episodes[0] == episodes[1]


def test_a_state_of_another_game_is_an_error():
    with pytest.raises(ValueError, match=r"the state is of breakout .* this game is freeway"):
        make_minatar(MinAtarConfig(game="freeway")).set_state(make_minatar(MinAtarConfig(game="breakout")).get_state())


def test_without_ramping_asterix_stays_as_easy_as_it_starts():
    speeds = {}
    for ramping in (False, True):
        game = make_minatar(MinAtarConfig(game="asterix", difficulty_ramping=ramping, sticky=0))
        game.reset(seed=0)
        for _ in range(400):
            if game.step(0)[2]:
                game.unwrapped.game.env.terminal = False
        speeds[ramping] = game.get_state()["objects"]["spawn_speed"]
    assert speeds == {False: 10, True: 7}


@pytest.mark.parametrize("channels", range(1, 12))
def test_the_colours_are_minatars(channels):
    seaborn = pytest.importorskip("seaborn")
    expected = np.array([(0, 0, 0), *seaborn.color_palette("cubehelix", channels)]) * 255
    np.testing.assert_allclose(palette(channels), expected, atol=0.5)


@pytest.mark.parametrize("game", ["seaquest", "space-invaders"])
def test_the_screen_is_minatars_enlarged(game):
    ours = make_minatar(MinAtarConfig(game=game), "rgb_array")
    theirs = minatar_gym.BaseEnv(game.replace("-", "_"), render_mode="rgb_array", use_minimal_action_set=True)
    actions = [3] * 40
    play(ours, actions, start=0)
    play(theirs, actions, start=0)
    image, expected = ours.render(), theirs.render() * 255
    assert (image.shape, image.dtype) == ((240, 240, 3), np.uint8)
    np.testing.assert_allclose(image[::24, ::24], expected, atol=0.5)
    np.testing.assert_allclose(image[23::24, 23::24], expected, atol=0.5)
    assert make_minatar(MinAtarConfig(game=game)).render() is None


def test_the_last_channel_is_rendered_on_top():
    grid = np.zeros((10, 10, 2), bool)
    grid[0, 0], grid[0, 1, 0] = True, True
    colours = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2]], np.uint8)
    assert render_grid(grid, colours)[0, :3, 0].tolist() == [2, 1, 0]


def test_actions_have_names():
    assert make_minatar(MinAtarConfig(game="breakout")).get_action_meanings() == ("NOOP", "LEFT", "RIGHT")
    full = make_minatar(MinAtarConfig(game="breakout", full_action_space=True))
    assert full.get_action_meanings() == ("NOOP", "LEFT", "UP", "RIGHT", "DOWN", "FIRE")


@pytest.mark.parametrize("name", ["space-invaders", "Space Invaders", "space_invaders", "SpaceInvaders"])
def test_every_spelling_of_a_game_is_the_same_game(name):
    assert MinAtarConfig(game=name) == MinAtarConfig(game="space-invaders")


def test_an_unknown_game_names_the_closest():
    with pytest.raises(ValueError, match=r"--game must be one of asterix, .*; did you mean 'breakout'"):
        MinAtarConfig(game="breakot")


def test_without_minatar_the_error_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "minatar.gym", None)
    with pytest.raises(UsageError, match=r"need MinAtar: .*pip install .*\.\[minatar\]"):
        make_minatar(MinAtarConfig())
