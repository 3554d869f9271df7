"""MiniGrid's observations as planes: every code can be read back, and a saved environment continues exactly."""

import gymnasium
import numpy as np
import pytest

from bootdqn.cli.main import parse
from bootdqn.config.envs import GymConfig
from bootdqn.envs.factory import make_environment, spec_of
from bootdqn.envs.minigrid import COLOURS, OBJECTS, STATES, SymbolicPlanes, is_minigrid

DOOR_KEY = "MiniGrid-DoorKey-5x5-v0"


class Fake(gymnasium.Env):
    """A view like MiniGrid's: random codes."""

    action_space = gymnasium.spaces.Discrete(7)
    observation_space = gymnasium.spaces.Dict(
        {
            "image": gymnasium.spaces.Box(0, 255, (7, 7, 3), np.uint8),
            "direction": gymnasium.spaces.Discrete(4),
            "mission": gymnasium.spaces.Text(20),
        }
    )

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - as in gym.Env
        super().reset(seed=seed)
        return self.view(), {}

    def step(self, action):  # noqa: ARG002 - as in gym.Env
        return self.view(), 0.0, False, False, {}

    def view(self):
        image = self.np_random.integers([OBJECTS, COLOURS, STATES], size=(7, 7, 3)).astype(np.uint8)
        self.shown = {"image": image, "direction": int(self.np_random.integers(4)), "mission": "go"}
        return self.shown


gymnasium.register("MiniGrid-Fake-v0", Fake)


def read_back(planes):
    """Return image and direction by the one plane of each group that is on."""
    groups = np.split(planes, np.cumsum([OBJECTS, COLOURS, STATES]), axis=-1)
    assert all((group.sum(axis=-1) == 1).all() for group in groups)
    *codes, facing = (group.argmax(axis=-1) for group in groups)
    (direction,) = set(facing.ravel())
    return np.stack(codes, axis=-1), direction


def test_every_code_and_the_direction_can_be_read_back():
    env = SymbolicPlanes(Fake())
    planes, _ = env.reset(seed=0)
    for _ in range(20):
        image, direction = read_back(planes)
        np.testing.assert_array_equal(image, env.unwrapped.shown["image"])
        assert direction == env.unwrapped.shown["direction"]
        assert planes in env.observation_space
        planes, *_ = env.step(0)


def test_environments_of_minigrid_are_shown_as_planes_and_others_are_not():
    env = make_environment(GymConfig(env_id="MiniGrid-Fake-v0"))
    assert spec_of(env).observation.shape == (7, 7, 25)
    assert spec_of(env).observation.dtype == np.bool_
    assert not is_minigrid(gymnasium.make("CartPole-v1"))
    assert not is_minigrid(Fake())


def test_door_key_shows_a_door_and_a_key_and_continues_exactly_from_a_saved_state():
    pytest.importorskip("minigrid")
    env, other = (make_environment(GymConfig(env_id=DOOR_KEY)) for _ in range(2))
    env.reset(seed=3)
    objects = set()
    rng = np.random.default_rng(0)
    for _ in range(30):
        env.step(int(rng.integers(7)))
    other.set_state(env.get_state())
    for action in rng.integers(7, size=300):
        mine, theirs = env.step(int(action)), other.step(int(action))
        np.testing.assert_array_equal(mine[0], theirs[0])
        assert mine[1:4] == theirs[1:4]
        objects |= set(read_back(mine[0])[0][..., 0].ravel().tolist())
        if mine[2] or mine[3]:
            np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    assert objects >= {4, 5}, "the door and the key"


def test_the_command_for_minigrid_is_that_for_gymnasium_with_other_settings():
    command = parse(["train", "minigrid", "--env-id", "MiniGrid-Fake-v0", "--total-steps", "10"])
    assert (command.config.env.kind, command.config.env.env_id) == ("gym", "MiniGrid-Fake-v0")
    assert command.config.replay.replay == "prioritized"
