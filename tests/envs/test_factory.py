"""Any environment with discrete actions, and a clear error for the others."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from bootdqn.common.errors import UsageError
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.envs import AtariConfig, DeepSeaConfig, GymConfig, MinAtarConfig
from bootdqn.envs.factory import effective_settings, make_environment, spec_of


@pytest.mark.parametrize(
    ("config", "spec"),
    [
        (DeepSeaConfig(size=4, mapping_seed=0), EnvSpec(DiscreteSpec(16), 2)),
        (GymConfig(env_id="CartPole-v1"), EnvSpec(BoxSpec((4,), np.dtype("float32")), 2)),
        (GymConfig(env_id="FrozenLake-v1"), EnvSpec(DiscreteSpec(16), 4)),
        (MinAtarConfig(game="seaquest"), EnvSpec(BoxSpec((10, 10, 10), np.dtype("bool")), 6)),
        (MinAtarConfig(game="freeway"), EnvSpec(BoxSpec((10, 10, 7), np.dtype("bool")), 3)),
        (AtariConfig(game="Gravitar"), EnvSpec(BoxSpec((4, 84, 84), np.dtype("uint8"), stacked=True), 18)),
    ],
)
def test_the_spec_describes_observations_and_actions(config, spec):
    assert spec_of(make_environment(config)) == spec


@pytest.mark.parametrize(
    "config",
    [DeepSeaConfig(size=4, mapping_seed=0), AtariConfig(game="Pong", noop_max=0, max_episode_frames=203)],
)
def test_no_episode_exceeds_the_configured_length(config):
    env, steps, ended = make_environment(config), 0, False
    env.reset(seed=0)
    while not ended:
        _, _, terminated, truncated, _ = env.step(0)
        steps, ended = steps + 1, terminated or truncated
    assert steps == config.max_episode_steps


def test_the_flags_of_deep_sea_reach_it():
    plain = DeepSeaConfig(size=20, randomize_actions=False, unscaled_move_cost=0.5)
    calm, windy = (make_environment(replace(plain, deterministic=still)) for still in (True, False))
    for env in (calm, windy):
        env.reset(seed=0)
    downhill = [(21 * row, pytest.approx(-0.025)) for row in range(1, 20)]
    assert [calm.step(1)[:2] for _ in range(19)] == downhill, "action 1 goes right, for a twentieth of the cost"
    assert [windy.step(1)[:2] for _ in range(19)] != downhill


def test_a_continuous_action_space_is_a_clear_error():
    with pytest.raises(UsageError, match=r"needs actions 0, 1, .* this environment has Box"):
        spec_of(make_environment(GymConfig(env_id="Pendulum-v1")))


def test_a_misspelt_environment_is_named_with_the_closest_one():
    with pytest.raises(UsageError, match="did you mean 'CartPole-v1'"):
        make_environment(GymConfig(env_id="CartPol-v1"))


def test_options_reach_the_environment_with_their_types():
    config = GymConfig(env_id="bootdqn/TwoPaths-v0", env_options=("long=4", "short=2"))
    assert config.options == {"long": 4, "short": 2}
    assert spec_of(make_environment(config)).observation == DiscreteSpec(1 + (4 - 1) + (2 - 1) + 2)  # and the two ends
    lake = GymConfig(env_id="FrozenLake-v1", env_options=("is_slippery=false", "map_name=8x8"))
    assert lake.options == {"is_slippery": False, "map_name": "8x8"}
    for written in ("False", "FALSE"):  # as in Python; a text would be true
        assert GymConfig(env_id="FrozenLake-v1", env_options=(f"is_slippery={written}",)).options == {
            "is_slippery": False
        }
    assert spec_of(make_environment(lake)).observation == DiscreteSpec(64)


def test_options_that_an_environment_does_not_take_are_named():
    with pytest.raises(UsageError, match=r"has no option 'slippery'; did you mean 'is_slippery'"):
        make_environment(GymConfig(env_id="FrozenLake-v1", env_options=("slippery=false",)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("long",), "--env-options must be name=value"),
        (("=4",), "--env-options must be name=value"),
        (("a-b=4",), "--env-options must be name=value"),
        (("long=4", "long=5"), "has long twice"),
        (("render_mode=human",), "cannot set render_mode"),
        (("id=CartPole-v1",), "cannot set id"),
    ],
)
def test_options_that_make_no_sense_are_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        GymConfig(env_options=options)


@pytest.mark.parametrize("env_id", ["bootdqn/DeepSea-v0", "bootdqn/TwoPaths-v0"])
def test_our_own_environments_are_the_same_wherever_they_are_made(env_id):
    played = []
    for _ in range(5):
        env = make_environment(GymConfig(env_id=env_id))
        steps, ended = [env.reset(seed=0)], False
        while not ended and len(steps) < 9:
            steps.append(env.step(len(steps) % 2))
            ended = steps[-1][2]
        played.append(steps)
    assert played == [played[0]] * 5


@pytest.mark.parametrize("options", [("env_id=some_module:X-v0",), ('env_id="some_module:X-v0"',)])
def test_an_environment_that_would_wrap_one_of_a_module_imports_nothing(options):
    with pytest.raises(ValueError, match="would import a module"):
        GymConfig(env_id="Wrapping-v0", env_options=options)


def test_options_are_part_of_the_name():
    assert GymConfig(env_id="FrozenLake-v1", env_options=("map_name=8x8",)).label == "FrozenLake-v1 map_name=8x8"


class Plain(gymnasium.Env):
    """It cannot be shown, and is particular about one option."""

    action_space = observation_space = spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as in gym.Env

    def __init__(self, size=1):
        self.size = size + 0


def test_an_environment_that_cannot_be_shown_is_not_blamed_on_its_options():
    gymnasium.register("bootdqn-test/Plain-v0", entry_point=Plain, disable_env_checker=True)
    with pytest.raises(UsageError, match="cannot be shown: it takes no render_mode"):
        make_environment(GymConfig(env_id="bootdqn-test/Plain-v0"), "rgb_array")
    with pytest.raises(UsageError, match="does not take these --env-options"):
        make_environment(GymConfig(env_id="bootdqn-test/Plain-v0", env_options=("size=big",)))


class Pictures(gymnasium.Env):
    """Observations as MiniGrid gives them: an image, a direction and a sentence."""

    action_space = spaces.Discrete(3)
    observation_space = spaces.Dict(
        {"image": spaces.Box(0, 255, (7, 7, 3), np.uint8), "mission": spaces.Text(20), "direction": spaces.Discrete(4)}
    )

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        return {"image": np.full((7, 7, 3), 5, np.uint8), "mission": "go", "direction": 0}, {}

    def step(self, action):  # noqa: ARG002
        return {"image": np.full((7, 7, 3), 6, np.uint8), "mission": "go", "direction": 1}, 0.0, False, False, {}


def test_of_a_dictionary_the_image_is_taken():
    gymnasium.register("bootdqn-test/Pictures-v0", entry_point=Pictures, disable_env_checker=True)
    env = make_environment(GymConfig(env_id="bootdqn-test/Pictures-v0"))
    assert spec_of(env).observation == BoxSpec((7, 7, 3), np.dtype("uint8"))
    observation, _ = env.reset(seed=0)
    np.testing.assert_array_equal(observation, np.full((7, 7, 3), 5))


def test_only_atari_has_effective_settings_beyond_its_flags():
    assert effective_settings(DeepSeaConfig()) == {}
    assert effective_settings(AtariConfig(sticky=0.25))["sticky"] == 0.25
