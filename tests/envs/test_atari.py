"""The Atari games: names, screens, no-ops, sticky actions, ends of episodes, and an exact saved state."""

import hashlib
import itertools
import json
import pickle
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from ale_py import roms
from gymnasium.utils import seeding
from gymnasium.wrappers import FrameStackObservation

from bootdqn.common.errors import UsageError
from bootdqn.config.envs import GAMES, AtariConfig
from bootdqn.envs.atari import effective_settings, make_atari

PAPER_GAMES = ["Gravitar", "Solaris", "Private Eye", "Venture", "Alien", "Hero"]


class SlowGame:
    """The raw emulator, stepped frame by frame: what Gymnasium's wrappers are compared with."""

    def __init__(self, rom, seed, sticky, merge=True):
        numpy_seed, emulator_seed = np.random.SeedSequence(seed).generate_state(2)
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", sticky)
        self.ale.setInt("random_seed", emulator_seed.astype(np.int32))
        self.ale.loadROM(roms.get_rom_path(rom))
        self.actions = self.ale.getMinimalActionSet()
        self.generator = seeding.np_random(int(numpy_seed))[0]
        self.merge = merge

    def reset(self):
        self.ale.reset_game()
        for _ in range(self.generator.integers(1, 31)):
            self.ale.act(self.actions[0])
        return self._small(self.ale.getScreenGrayscale())

    def step(self, action):
        reward, screens = 0, []
        for _ in range(4):
            reward += self.ale.act(self.actions[action])
            screens.append(self.ale.getScreenGrayscale())
        merged = np.maximum(screens[-2], screens[-1]) if self.merge else screens[-1]
        return self._small(merged), reward, self.ale.game_over()

    @staticmethod
    def _small(screen):
        return cv2.resize(screen, (84, 84), interpolation=cv2.INTER_AREA)


def play(env, seed, steps):
    """Play steps with actions sampled from `seed`, across episodes; return a digest of all results."""
    rng, digest, ends = np.random.default_rng(seed), hashlib.sha256(), 0
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(rng.integers(env.action_space.n))
        digest.update(observation.tobytes() + repr((float(reward), terminated, truncated, info["lives"])).encode())
        if terminated or truncated:
            ends += 1
            digest.update(env.reset()[0].tobytes())
    return digest.hexdigest(), ends


# Names and settings


@pytest.mark.parametrize("name", ["Private Eye", "private_eye", "PrivateEye", "privateeye", "ALE/PrivateEye-v5"])
def test_a_game_has_one_name_however_it_is_spelled(name):
    assert AtariConfig(name).game == "PrivateEye"


def test_the_names_of_the_paper_and_of_the_boxes_are_known():
    assert [AtariConfig(name).game for name in PAPER_GAMES] == [name.replace(" ", "") for name in PAPER_GAMES]
    assert [AtariConfig(name).game for name in ("H.E.R.O.", "Q*bert", "Ms. Pac-Man")] == ["Hero", "Qbert", "MsPacman"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Gravitr", "did you mean 'Gravitar'"), ("ALE/Hero-v4", "did you mean 'Hero'"), ("xyzzy", "for example Gravitar")],
)
def test_an_unknown_game_is_an_error_that_suggests_the_closest_one(name, hint):
    with pytest.raises(ValueError, match=f"^--game must be .*, got '{name}'; {hint}"):
        AtariConfig(name)


def test_the_games_are_those_that_ale_registers():
    registered = [spec.name for spec in gymnasium.registry.values() if spec.namespace == "ALE" and spec.version == 5]
    assert sorted(registered) == list(GAMES)


@pytest.mark.parametrize(
    ("field", "value", "demand"),
    [
        *[("sticky", value, "at least 0 and below 1") for value in (1.5, 1.0, -0.1)],
        ("sticky", float("nan"), "finite"),
        *[(field, 0, "at least 1") for field in ("frame_skip", "total_frames")],
        ("screen_size", 0, "at least 36"),
        *[("frame_stack", value, "between 1 and 256") for value in (0, 257)],
        ("noop_max", -1, "at least 0"),
        ("max_episode_frames", 33, "at least 34, the no-ops and one step"),
    ],
)
def test_impossible_settings_are_an_error_that_names_the_flag(field, value, demand):
    message = f"--{field.replace('_', '-')} must be {demand}, got {value}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        AtariConfig(**{field: value})


def test_the_flags_need_neither_emulator_nor_network():
    code = "import sys, bootdqn.config.envs; print(sorted({'ale_py', 'cv2', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("module", ["ale_py", "cv2"])
def test_a_missing_package_is_an_error_with_the_command_that_installs_it(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r"in the clone of bootdqn, pip install .*'\.\[atari\]'.*" + module):
        make_atari(AtariConfig())


def test_a_game_without_a_no_op_in_its_minimal_actions_is_an_error_that_names_the_remedy():
    with pytest.raises(UsageError, match="add --full-action-space, or --noop-max 0"):
        make_atari(AtariConfig("Backgammon"))
    assert make_atari(AtariConfig("Backgammon", noop_max=0)).action_space.n == 3
    assert make_atari(AtariConfig("Backgammon", full_action_space=True)).action_space.n == 18


@pytest.mark.parametrize("game", PAPER_GAMES)
def test_the_minimal_action_set_of_the_paper_s_games_is_the_full_one(game):
    assert make_atari(AtariConfig(game)).action_space.n == 18


def test_effective_settings_describe_the_environment():
    config = AtariConfig("Pong", sticky=0.25)
    settings = effective_settings(config)
    assert settings == json.loads(json.dumps(settings))
    assert [settings.pop(name) for name in ("action_set", "num_actions", "noop_min")] == ["minimal", 6, 1]
    assert settings == {name: getattr(config, name) for name in settings}
    assert set(asdict(config)) - set(settings) == {"eval_every_frames", "full_action_space", "total_frames"}
    other = effective_settings(AtariConfig("Pong", frame_skip=1, full_action_space=True, noop_max=0))
    assert (other["action_set"], other["num_actions"]) == ("full", 18)
    assert (other["noop_min"], other["max_over_frames"]) == (0, False)  # one frame has nothing to be merged with


# Screens


def test_observations_are_a_stack_of_small_grey_screens_filled_with_the_first():
    env = make_atari(AtariConfig("Gravitar"))
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    assert isinstance(env, FrameStackObservation)
    first, _ = env.reset(seed=3)
    assert first in env.observation_space
    assert first.any()
    assert (first == first[0]).all()
    second = env.step(2)[0]
    third = env.step(3)[0]
    np.testing.assert_array_equal(second[:3], first[1:])  # the newest is last
    np.testing.assert_array_equal(third[:3], second[1:])
    np.testing.assert_array_equal(env.reset()[0].std(axis=0), 0)  # nothing of the last episode is left


@pytest.mark.parametrize("skip", [1, 4, 5])
def test_a_step_is_frame_skip_frames_of_the_emulator(skip):
    env = make_atari(AtariConfig("Gravitar", frame_skip=skip, screen_size=42, frame_stack=2))
    observation, info = env.reset(seed=1)
    assert observation.shape == (2, 42, 42)
    for step in range(1, 11):
        env.step(1)
        assert env.unwrapped.ale.getEpisodeFrameNumber() == info["episode_frame_number"] + skip * step


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("rom", "sticky"), [("space_invaders", 0.0), ("gravitar", 0.25)])
def test_every_pixel_and_reward_is_that_of_the_raw_emulator(rom, sticky, merge):
    env, slow = make_atari(AtariConfig(rom, sticky=sticky, max_over_frames=merge)), SlowGame(rom, 7, sticky, merge)
    np.testing.assert_array_equal(env.reset(seed=7)[0][-1], slow.reset())
    rng, rewards = np.random.default_rng(0), set()
    for _ in range(120):
        action = int(rng.integers(env.action_space.n))
        observation, reward, terminated, truncated, _ = env.step(action)
        screen, slow_reward, over = slow.step(action)
        rewards.add(reward)
        np.testing.assert_array_equal(observation[-1], screen)
        assert (reward, terminated, truncated) == (slow_reward, False, False)
        assert not over
    assert rom != "space_invaders" or max(rewards) > 1  # raw, not clipped


# Beginnings


def test_an_episode_starts_with_one_to_thirty_no_ops():
    env = make_atari(AtariConfig("Pong"))
    env.reset(seed=0)
    counts = [env.reset()[1]["episode_frame_number"] for _ in range(160)]
    assert set(counts) == set(range(1, 31))
    without = make_atari(AtariConfig("Pong", noop_max=0))
    assert [without.reset()[1]["episode_frame_number"] for _ in range(5)] == [0] * 5


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_a_seed_repeats_everything(sticky):
    config = AtariConfig("Gravitar", sticky=sticky, max_episode_frames=200)
    traces = []
    for env in [make_atari(config)] * 2 + [make_atari(config)]:  # again in the same environment, and in another one
        env.reset(seed=11)
        traces.append(play(env, seed=1, steps=120))
    assert traces[0] == traces[1] == traces[2]
    assert traces[0][1] >= 2


def test_only_sticky_actions_make_the_emulator_random():
    def after(sticky, seed):
        env = make_atari(AtariConfig("Gravitar", sticky=sticky, noop_max=0))
        env.reset(seed=seed)
        return play(env, seed=1, steps=60)

    assert after(0.0, seed=0) == after(0.0, seed=1)
    assert after(0.25, seed=0) == after(0.25, seed=0)
    assert len({after(0.0, seed=0), after(0.25, seed=0), after(0.25, seed=1)}) == 3


# Ends


@pytest.mark.parametrize("limit", range(200, 204))
def test_an_episode_is_truncated_not_terminated_before_it_has_too_many_frames(limit):
    env = make_atari(AtariConfig("Pong", max_episode_frames=limit))
    noops = env.reset(seed=0)[1]["episode_frame_number"]
    terminated = truncated = False
    while not (terminated or truncated):
        _, _, terminated, truncated, info = env.step(0)
    assert (terminated, truncated) == (False, True)
    assert info["episode_frame_number"] == limit - (limit - noops) % 4


def test_the_last_observation_before_a_truncation_is_a_new_one():
    env, longer = (make_atari(AtariConfig("Gravitar", max_episode_frames=limit)) for limit in (101, 1000))
    env.reset(seed=2), longer.reset(seed=2)
    truncated = False
    while not truncated:
        observation, _, _, truncated, _ = env.step(1)
        expected = longer.step(1)[0]
    np.testing.assert_array_equal(observation, expected)


def test_a_game_that_ends_is_terminated():
    limit = 108_000
    for _ in range(2):  # and again with no more frames than the game has: that end is still no cut
        env = make_atari(AtariConfig("Qbert", max_episode_frames=limit))
        env.reset(seed=0)
        terminated = truncated = False
        while not (terminated or truncated):
            _, _, terminated, truncated, info = env.step(5)  # off the pyramid
        assert (terminated, truncated, info["lives"]) == (True, False, 0)
        limit = info["episode_frame_number"] + 3


def test_losing_a_life_ends_the_episode_only_on_request():
    def steps_and_lives(terminal_on_life_loss):
        env = make_atari(AtariConfig("Breakout", terminal_on_life_loss=terminal_on_life_loss))
        lives = [env.reset(seed=0)[1]["lives"]]
        for step in range(200):
            _, _, terminated, _, info = env.step(1 if step % 10 == 0 else 0)  # serve, and stand still
            lives.append(info["lives"])
            if terminated:
                return lives, env.reset()[1]["lives"]
        return lives, None

    kept_on, _ = steps_and_lives(False)
    assert kept_on[0] == 5
    assert kept_on[-1] < 4
    ended, new_game = steps_and_lives(True)
    assert ended == kept_on[: len(ended)]
    assert ended[-2:] == [5, 4]
    assert new_game == 5


# The state

RESUME = """
import pickle, sys
from pathlib import Path
from test_atari import make_atari, play

for config, state in pickle.loads(Path(sys.argv[1]).read_bytes()):
    env = make_atari(config)
    env.set_state(state)
    print(*play(env, seed=9, steps=300))
"""


@pytest.fixture(scope="module")
def stopped_games():
    """Games stopped at random steps, (config, state, what comes next), in turn two kinds of episodes.

    The first one, which begins with a seed, and a later one, which begins with what the one before left behind.
    """
    games, rng = [], np.random.default_rng(4)
    for game, sticky in itertools.product(("Gravitar", "Qbert", "Pong"), (0.0, 0.25)):
        config = AtariConfig(game, sticky=sticky, max_episode_frames=500)
        env = make_atari(config)
        env.reset(seed=21)
        for _ in range(2):
            play(env, seed=1, steps=rng.integers(10, 60))
            games.append((config, env.get_state(), play(env, seed=9, steps=300)))
    return games


def test_a_saved_game_continues_exactly_in_a_new_process(stopped_games, tmp_path):
    path = tmp_path / "states.pickle"
    path.write_bytes(pickle.dumps([(config, state) for config, state, _ in stopped_games]))
    command = [sys.executable, "-c", RESUME, str(path)]
    resumed = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=True, text=True)
    expected = [f"{digest} {ends}" for _, _, (digest, ends) in stopped_games]
    assert resumed.stdout.splitlines() == expected
    assert all(ends >= 2 for _, _, (_, ends) in stopped_games)  # through new episodes and their no-ops


def test_a_saved_game_continues_exactly_in_an_environment_already_in_use(stopped_games):
    for config, state, expected in stopped_games[1::2]:
        env = make_atari(config)
        env.reset(seed=5)
        play(env, seed=6, steps=7)
        env.set_state(state)
        assert env.get_state() == state
        assert play(env, seed=9, steps=300) == expected


def test_the_state_is_small_and_made_of_json_values_and_bytes(stopped_games):
    for _, state, _ in stopped_games:
        assert len(pickle.dumps(state)) < 20_000
        as_text = json.dumps(state, default=bytes.hex)
        assert json.loads(as_text)["actions"] == state["actions"].hex()


def test_a_game_saved_before_or_after_an_episode_continues_exactly():
    config = AtariConfig("Gravitar", sticky=0.25, max_episode_frames=100)
    env = make_atari(config)

    def copy_of(env):
        other = make_atari(config)
        other.set_state(env.get_state())
        return other

    other = copy_of(env)  # before the first reset, without a seed
    with pytest.raises(gymnasium.error.ResetNeeded):
        other.step(0)
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    other = copy_of(env)  # after a reset, before a step
    assert play(env, seed=1, steps=10) == play(other, seed=1, steps=10)
    while not env.step(0)[3]:
        pass
    other = copy_of(env)  # over, and not started again
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    assert play(env, seed=1, steps=30) == play(other, seed=1, steps=30)


def test_a_state_of_other_settings_is_an_error(stopped_games):
    config, state, _ = stopped_games[0]
    with pytest.raises(ValueError, match="make the environment with the settings it was saved with"):
        make_atari(replace(config, frame_skip=3)).set_state(state)
    make_atari(replace(config, clip_rewards=False, total_frames=1)).set_state(state)  # the same game


def test_an_episode_that_is_not_reproduced_is_reported_with_the_versions_it_needs(stopped_games):
    config, state, _ = stopped_games[1]
    with pytest.raises(UsageError, match=f"came out differently: install .*ale_py {ale_py.__version__}"):
        make_atari(config).set_state(state | {"actions": state["actions"][:-1]})
