"""Episodes that are saved as their seed and their actions, and played again."""

import json
import warnings

import gymnasium
import numpy as np
import pytest

from bootdqn.config.envs import GymConfig
from bootdqn.envs.deep_sea import DeepSea
from bootdqn.envs.gymnasium_env import EpisodeNotReproducedError, SeededEpisodes, make_gymnasium_env


def cart_pole():
    return SeededEpisodes(gymnasium.make("CartPole-v1"))


def wind():
    return SeededEpisodes(DeepSea(size=6, deterministic=False, mapping_seed=4))


def play(env, actions):
    """Return all that is seen; where an episode ends the next one begins."""
    seen = []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append((np.asarray(observation).tobytes(), float(reward), terminated, truncated))
        if terminated or truncated:
            seen.append(np.asarray(env.reset()[0]).tobytes())
    return seen


def actions_of(seed, count):
    return np.random.default_rng(seed).integers(2, size=count).tolist()


def through_json(state):
    return json.loads(json.dumps(state))


@pytest.mark.parametrize("make", [cart_pole, wind])
def test_a_seed_and_the_actions_decide_everything(make):
    one, other, third = make(), make(), make()
    beginnings = [env.reset(seed=seed)[0] for env, seed in ((one, 5), (other, 5), (third, 6))]
    np.testing.assert_array_equal(beginnings[0], beginnings[1])
    actions = actions_of(1, 200)
    seen = play(one, actions)
    assert play(other, actions) == seen
    assert play(third, actions) != seen


def test_every_episode_has_a_seed_of_its_own():
    env = cart_pole()
    beginnings = [env.reset(seed=5)[0].tolist(), *(env.reset()[0].tolist() for _ in range(20))]
    assert len({tuple(beginning) for beginning in beginnings}) == 21
    assert env.reset(seed=5)[0].tolist() == beginnings[0]


@pytest.mark.parametrize("make", [cart_pole, wind])
@pytest.mark.parametrize("steps", [0, 1, 4, 37, 120])
def test_another_environment_goes_on_from_the_state(make, steps):
    one, other = make(), make()
    one.reset(seed=9)
    play(one, actions_of(2, steps))
    state = through_json(one.get_state())
    other.reset(seed=1)
    play(other, actions_of(3, 11))
    other.set_state(state)
    assert through_json(other.get_state()) == state
    actions = actions_of(4, 150)
    assert play(other, actions) == play(one, actions)


def test_a_state_from_before_the_first_episode_begins_with_the_same_one():
    one, other = cart_pole(), cart_pole()
    other.set_state(through_json(one.get_state()))
    np.testing.assert_array_equal(one.reset()[0], other.reset()[0])


def test_asking_for_the_state_changes_nothing():
    one, other = cart_pole(), cart_pole()
    for env in (one, other):
        env.reset(seed=3)
    state = one.get_state()
    kept = through_json(state)
    actions = actions_of(5, 80)
    assert play(one, actions) == play(other, actions)
    assert through_json(state) == kept


# Environments that cannot be played again


class Fickle(gymnasium.Env):
    """Lives the same life again and again, but for what is `wrong` in the third step of every one after the first."""

    observation_space = gymnasium.spaces.Discrete(10)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, wrong):
        self._wrong, self._life = wrong, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._life += 1
        self._step, self._over = 0, False
        return 0, {}

    def step(self, _action):
        assert not self._over, "the episode is over"
        self._step += 1
        wrong = self._wrong if self._life > 1 and self._step == 3 else None
        if wrong == "illegal":
            raise RuntimeError("that is not a legal move")
        self._over = wrong == "over"
        return int(wrong == "observation"), float(wrong == "reward"), self._over, False, {}


@pytest.mark.parametrize("num_actions", [3, 6])
@pytest.mark.parametrize("wrong", ["observation", "reward", "over", "illegal"])
def test_an_episode_that_comes_out_differently_is_found_out(wrong, num_actions):
    env = SeededEpisodes(Fickle(wrong))
    env.reset(seed=1)
    for _ in range(num_actions):
        env.step(0)
    state = through_json(env.get_state())
    with pytest.raises(EpisodeNotReproducedError, match="not a legal move" if wrong == "illegal" else "differently"):
        env.set_state(state)


def test_after_an_episode_that_could_not_be_played_again_the_next_seeds_are_the_same():
    def beginnings(env):
        seeds = []
        for _ in range(5):
            env.reset()
            seeds.append(env.get_state()["episode_seed"])
        return seeds

    env = SeededEpisodes(Fickle("over"))
    env.reset(seed=1)
    for _ in range(4):
        env.step(0)
    state = through_json(env.get_state())
    with pytest.raises(EpisodeNotReproducedError):
        env.set_state(state)
    expected = SeededEpisodes(Fickle(None))
    expected.reset(seed=1)
    assert beginnings(env) == beginnings(expected)


def test_an_episode_that_is_the_same_is_played_again_in_the_same_environment():
    env = SeededEpisodes(Fickle(None))
    env.reset(seed=1)
    for _ in range(5):
        env.step(1)
    state = through_json(env.get_state())
    env.set_state(state)
    assert through_json(env.get_state()) == state


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": None},
        {"seeds": {"bit_generator": "MT19937"}},
        {"episode_seed": "tomorrow"},
        {"actions": [0, "jump"]},
        {"actions": None},
        {"digest": ""},
        {"actions": [7]},
    ],
    ids=str,
)
def test_a_state_that_cannot_be_one_is_refused(change):
    env = cart_pole()
    env.reset(seed=1)
    env.step(1)
    with pytest.raises((ValueError, TypeError, KeyError, EpisodeNotReproducedError)):
        env.set_state(through_json(env.get_state()) | change)


def test_the_warning_of_a_name_without_version_appears_once():
    """Every evaluation makes an environment."""
    gymnasium.register("bootdqn-test/Unversioned-v3", lambda: DeepSea(size=4))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                make_gymnasium_env(GymConfig(env_id="bootdqn-test/Unversioned"))
    finally:
        del gymnasium.registry["bootdqn-test/Unversioned-v3"]
    assert sum("Unversioned-v3" in str(one.message) for one in caught) == 1
