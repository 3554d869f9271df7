"""CartpoleSwingup against bsuite (recorded, and live where it is installed), and against itself resumed."""

import importlib.util
import json
import math
import random

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from bootdqn.envs import register_environments
from bootdqn.envs.cartpole_swingup import CartpoleSwingup
from envs.record_cartpole_swingup_vectors import VECTORS, record

needs_bsuite = pytest.mark.skipif(not importlib.util.find_spec("bsuite"), reason="bsuite is not installed")
RECORDED = json.loads(VECTORS.read_text(encoding="utf-8"))


@needs_bsuite
@pytest.mark.parametrize("n", [0, 7, 19])
def test_it_equals_bsuites_bit_for_bit_over_whole_episodes(n):
    settings = {"height_threshold": n / 20, "x_reward_threshold": 1 - n / 20}
    env = CartpoleSwingup(**settings)
    expected, seed = record(settings, 11 * n, 4, random.Random(n)), 11 * n
    for step in expected:
        if step["action"] is None:
            observation, _ = env.reset(seed=seed)
            seed = None
            assert not step["last"]
        else:
            observation, reward, terminated, truncated, _ = env.step(step["action"])
            assert (reward, terminated, truncated) == (step["reward"], step["last"], False)
        assert observation.tolist() == step["observation"]
        assert env.get_state()["motion"] == step["motion"]
    assert sum(step["last"] for step in expected) == 4


@pytest.mark.parametrize("run", RECORDED, ids=lambda run: f"height {run['settings']['height_threshold']}")
def test_each_recorded_step_of_bsuite_is_the_same_here(run):
    env = CartpoleSwingup(**run["settings"])
    seed = run["seed"]
    rewarded = 0
    for step in run["steps"]:
        if step["action"] is None:
            observation, _ = env.reset(seed=seed)
            seed = None
        else:
            env.set_state(env.get_state() | {"motion": step["before"], "over": False})
            observation, reward, terminated, _, _ = env.step(step["action"])
            assert (reward, terminated) == (step["reward"], step["last"])
            rewarded += reward > 0.5
        assert env.get_state()["motion"] == pytest.approx(step["motion"], rel=1e-12, abs=1e-12)
        assert observation.tolist() == pytest.approx(step["observation"], rel=1e-6, abs=1e-6)
    assert rewarded, "the reward for a pole that is up is among them"


def controlled(observation):
    """Return the action of a controller: pump energy into the pole, then balance it and keep the cart in the middle."""
    (x, velocity), (sin, cos, spin) = 3 * observation[:2], observation[2:5]
    energy = spin**2 / 3 + 9.8 * (cos - 1)  # of the pole, 0 at rest upright
    if cos > 0.85 and abs(spin) < 4:
        push, threshold = 30 * math.atan2(sin, cos) + 6 * spin + x + 2 * velocity, 0.6
    elif abs(energy) < 0.3:
        push, threshold = -0.5 * x - 0.4 * velocity, 0.3
    else:
        push, threshold = math.copysign(1, energy * spin * cos) - 0.25 * x - 0.15 * velocity, 0.3
    return 1 + (push > threshold) - (push < -threshold)


@pytest.mark.parametrize(("n", "least"), [(0, 700), (10, 650), (19, 50)])
def test_a_controller_swings_the_pole_up_and_keeps_it_there(n, least):
    """Of the 1,001 steps it is rewarded in most: the task can be solved, the hardest setting in part."""
    env = CartpoleSwingup(height_threshold=n / 20, x_reward_threshold=1 - n / 20)
    observation, _ = env.reset(seed=0)
    total, over = 0.0, False
    while not over:
        observation, reward, over, _, _ = env.step(controlled(observation))
        total += reward
    assert total > least


def test_an_episode_in_which_nothing_is_done_ends_after_1001_steps_and_costs_nothing():
    env = CartpoleSwingup(height_threshold=0.9)
    env.reset(seed=3)
    rewards = []
    terminated = False
    while not terminated:
        _, reward, terminated, _, _ = env.step(1)
        rewards.append(reward)
    assert len(rewards) == 1001
    assert set(rewards) == {0.0}
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(1)


def test_pushes_to_one_side_leave_the_track_and_cost_a_tenth_each():
    env = CartpoleSwingup()
    env.reset(seed=0)
    total, steps, terminated = 0.0, 0, False
    while not terminated:
        observation, reward, terminated, _, _ = env.step(2)
        total, steps = total + reward, steps + 1
    assert observation[0] > 1
    assert steps < 1001
    assert total == pytest.approx(-0.1 * steps)


def test_a_restored_environment_continues_exactly_also_after_the_next_reset():
    env, other = CartpoleSwingup(), CartpoleSwingup()
    env.reset(seed=5)
    for action in (0, 2, 2, 1):
        env.step(action)
    other.set_state(json.loads(json.dumps(env.get_state())))
    for one in (env, other):
        one.trace = [one.step(0)[0].tolist(), one.reset()[0].tolist(), one.reset()[0].tolist()]
    assert env.trace == other.trace


@pytest.mark.filterwarnings("ignore:.*Box observation space")  # its velocities have no bound
def test_it_passes_gymnasiums_check_and_is_registered():
    check_env(CartpoleSwingup(), skip_render_check=True)
    register_environments()
    assert gymnasium.make("bootdqn/CartpoleSwingup-v0", height_threshold=0.2).observation_space.shape == (8,)


def test_the_image_shows_the_pole_below_the_cart_at_first_and_the_rewarded_part_of_the_track():
    env = CartpoleSwingup(x_reward_threshold=0.5, render_mode="rgb_array")
    env.reset(seed=0)
    image = env.render()
    red = np.argwhere((image == (228, 74, 58)).all(axis=-1))
    assert red[:, 0].min() > image.shape[0] // 2 - 20
    assert len(red) > 100
    assert (image[5] == (226, 240, 226)).all(axis=-1).mean() == pytest.approx(1 / 7, abs=0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"height_threshold": float("nan")}, "height_threshold"), ({"render_mode": "human"}, "render_mode")],
)
def test_settings_that_make_no_sense_are_an_error(settings, message):
    with pytest.raises(ValueError, match=message):
        CartpoleSwingup(**settings)


def test_an_action_that_does_not_exist_is_an_error():
    env = CartpoleSwingup()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must be 0, 1 or 2"):
        env.step(3)
