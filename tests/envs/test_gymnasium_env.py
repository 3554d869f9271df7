"""Episodes that are saved as their seed and their actions, and replayed."""

import json

import gymnasium
import numpy as np
import pytest

from bootdqn.common.errors import UsageError
from bootdqn.config.envs import GymConfig
from bootdqn.config.settings import from_flat, to_flat
from bootdqn.envs.deep_sea import DeepSea
from bootdqn.envs.gymnasium_env import EpisodeNotReproducedError, SeededEpisodes, make_gymnasium_env
from bootdqn.envs.registration import versioned_id
from bootdqn.training.callbacks import NO_CALLBACKS
from bootdqn.training.run import default_run_dir, train_run


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
def test_another_environment_continues_from_the_state(make, steps):
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


def test_a_state_from_before_the_first_episode_starts_with_the_same_episode():
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
def test_an_episode_that_is_not_reproduced_is_detected(wrong, num_actions):
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
def test_an_invalid_state_is_an_error(change):
    env = cart_pole()
    env.reset(seed=1)
    env.step(1)
    with pytest.raises((ValueError, TypeError, KeyError, EpisodeNotReproducedError)):
        env.set_state(through_json(env.get_state()) | change)


@pytest.fixture
def three_versions():
    """Three versions of an environment that differ in the size of the grid."""
    names = [f"bootdqn-test/Unversioned-v{version}" for version in (2, 10, 3)]
    for name, size in zip(names, (4, 5, 6), strict=True):
        gymnasium.register(name, lambda size=size: DeepSea(size=size))
    yield "bootdqn-test/Unversioned"
    for name in names:
        del gymnasium.registry[name]


def test_a_name_without_version_is_the_latest_of_that_name(three_versions):
    made = make_gymnasium_env(GymConfig(env_id=three_versions))
    assert made.spec.id == "bootdqn-test/Unversioned-v10"
    assert made.observation_space.n == 25
    assert versioned_id("CartPole-v0") == "CartPole-v0"
    assert versioned_id("bootdqn-test/Unknown") == "bootdqn-test/Unknown"


def test_a_run_records_the_version_and_resumes_by_either_name(three_versions, tmp_path):
    small = {"environment": "gym", "total_steps": 30, "learning_starts": 10, "hidden_sizes": [4], "num_heads": 2}
    messages = []
    callbacks = NO_CALLBACKS._replace(info=messages.append)
    train_run(from_flat(small | {"env_id": three_versions}), tmp_path / "run", callbacks)
    assert json.loads((tmp_path / "run/config.json").read_text())["env_id"] == f"{three_versions}-v10"
    assert f"{three_versions} is {three_versions}-v10, its latest version" in messages
    for same in (three_versions, f"{three_versions}-v10"):
        assert train_run(from_flat(small | {"env_id": same}), tmp_path / "run").already_finished
    with pytest.raises(UsageError, match="holds another configuration"):
        train_run(from_flat(small | {"env_id": f"{three_versions}-v3"}), tmp_path / "run")
    names = [default_run_dir(from_flat(small | {"env_id": f"{three_versions}{end}"})).name for end in ("", "-v10")]
    assert names[0] == names[1]


def test_a_run_that_an_earlier_version_recorded_without_a_version_is_the_same_run(three_versions, tmp_path):
    small = {"environment": "gym", "total_steps": 30, "learning_starts": 10, "hidden_sizes": [4], "num_heads": 2}
    config = from_flat(small | {"env_id": three_versions})
    train_run(config, tmp_path / "run")
    (tmp_path / "run/config.json").write_text(json.dumps(to_flat(config)))
    assert train_run(config, tmp_path / "run").already_finished
