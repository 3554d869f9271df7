"""The actor: active heads, warm-up, acting before learning, and a strategy for several environments at once."""

import numpy as np
import pytest
from scipy import stats

from bootdqn.agent.actor import Actor
from bootdqn.common.errors import TrainingError
from bootdqn.config.agent import ActorConfig
from bootdqn.exploration.registry import parse_strategy

# Head h prefers action h; the ensemble as a whole, as in ucb, prefers action 2.
DISAGREEING = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 20.0]])


def make_actor(strategy="greedy", *, num_envs=1, num_heads=3, seed=0, **config):
    return Actor(ActorConfig(strategy, **config), num_envs, num_heads, np.random.default_rng(seed))


def frequencies_are_uniform(samples, num_values):
    return stats.chisquare(np.bincount(samples, minlength=num_values)).pvalue > 0.01


# Heads


def test_heads_are_sampled_uniformly_and_independently():
    actor = make_actor(num_heads=7)
    samples = []
    for _ in range(7000):
        actor.sample_head(0)
        samples.append(int(actor.heads[0]))
    samples = np.array(samples)
    assert frequencies_are_uniform(samples, 7)
    assert frequencies_are_uniform(samples[::2] * 7 + samples[1::2], 49)


def test_sampling_a_head_for_one_environment_does_not_change_the_others():
    actor = make_actor(num_envs=4, num_heads=1000)
    for env in (2, 0, 2, 3):
        before = actor.heads.copy()
        actor.sample_head(env)
        assert [int(e) for e in np.flatnonzero(actor.heads != before)] == [env]


def test_one_head_is_always_the_active_one():
    actor = make_actor(num_heads=1)
    actor.sample_head(0)
    assert actor.heads.tolist() == [0]


def test_the_same_stream_samples_the_same_heads_and_actions():
    actors = [make_actor(num_envs=3, seed=5, before_learning="uniform") for _ in range(2)]
    q = np.zeros((3, 3, 9))
    for step in range(20):
        for actor in actors:
            actor.sample_head(step % 3)
        np.testing.assert_array_equal(actors[0].heads, actors[1].heads)
        actions = [actor.act(q, step, learning=step > 10) for actor in actors]
        np.testing.assert_array_equal(*actions)


# Actions


def test_every_environment_follows_its_own_head_on_its_own_values():
    actor = make_actor(num_envs=3, num_heads=2)
    actor.heads[:] = [1, 0, 1]
    q = np.zeros((3, 2, 4))
    for env, head, action in ((0, 0, 1), (0, 1, 2), (1, 0, 3), (1, 1, 0), (2, 0, 2), (2, 1, 1)):
        q[env, head, action] = 1
    assert actor.act(q, 0, learning=True).tolist() == [2, 3, 1]


@pytest.mark.parametrize("num_envs", [1, 2, 20])
@pytest.mark.parametrize("strategy", ["greedy", "ucb", "gain", "evoi", "evoi:reduce=sum", "ids"])
def test_actions_are_those_of_the_strategy_state_by_state(strategy, num_envs):
    rng = np.random.default_rng(1)
    actor = make_actor(strategy, num_envs=num_envs, num_heads=5)
    for _ in range(10):
        q = rng.normal(size=(num_envs, 5, 4)).astype(np.float32)
        for env in range(num_envs):
            actor.sample_head(env)
        actions = actor.act(q, 0, learning=True)
        alone = [int(parse_strategy(strategy).select(q[env], int(actor.heads[env]))) for env in range(num_envs)]
        assert actions.tolist() == alone
        assert actions.dtype == np.int64


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_strategy_samples_from_the_actors_stream(num_envs):
    q = np.zeros((num_envs, 2, 6))
    actions = []
    for _ in range(2):
        actor = make_actor("boltzmann", num_envs=num_envs, num_heads=2)
        actions.append(np.concatenate([actor.act(q, step, learning=True) for step in range(2000)]))
    np.testing.assert_array_equal(*actions)
    assert frequencies_are_uniform(actions[0], 6)


@pytest.mark.parametrize("learning", [False, True])
def test_the_strategy_acts_from_the_first_step_by_default(learning):
    actor = make_actor("ucb")
    assert actor.act(DISAGREEING[None], 0, learning=learning).tolist() == [2]


def test_warm_up_follows_the_active_head_and_ends_on_time():
    actor = make_actor("ucb", num_envs=2, warmup_steps=10)
    actor.heads[:] = [0, 1]
    q = np.stack([DISAGREEING] * 2)
    for step in (0, 5, 9):
        assert actor.act(q, step, learning=True).tolist() == [0, 1]
    for step in (10, 11, 1000):
        assert actor.act(q, step, learning=True).tolist() == [2, 2]


def test_before_learning_uniform_actions_ignore_the_values():
    actor = make_actor("greedy", num_envs=5, before_learning="uniform", warmup_steps=3)
    q = np.broadcast_to(np.arange(6.0), (5, 3, 6))
    actions = np.concatenate([actor.act(q, step, learning=False) for step in range(1200)])
    assert frequencies_are_uniform(actions, 6)
    columns = actions.reshape(-1, 5)
    assert frequencies_are_uniform(columns[:, 0] * 6 + columns[:, 1], 36)


def test_uniform_acting_stops_when_learning_starts():
    actor = make_actor("greedy", num_envs=5, before_learning="uniform")
    q = np.broadcast_to(np.arange(6.0), (5, 3, 6))
    assert all((actor.act(q, step, learning=True) == 5).all() for step in range(50))


def test_a_strategy_that_does_not_sample_leaves_the_stream_unchanged():
    rng = np.random.default_rng(2)
    actor = Actor(ActorConfig("evoi"), 1, 3, rng)
    before = rng.bit_generator.state
    actor.act(DISAGREEING[None], 0, learning=True)
    assert rng.bit_generator.state == before


# Random actions with any strategy


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("strategy", ["greedy", "evoi", "vote"])
def test_epsilon_is_the_share_of_random_actions(strategy, num_envs):
    actor = make_actor(strategy, num_envs=num_envs, epsilon=0.4)
    best = make_actor(strategy, num_envs=num_envs).act(np.stack([DISAGREEING] * num_envs), 0, learning=True)
    q = np.stack([DISAGREEING] * num_envs)
    actions = np.concatenate([actor.act(q, step, learning=True) for step in range(6000 // num_envs)])
    counts = np.bincount(actions, minlength=3)
    expected = np.full(3, 0.4 / 3) + 0.6 * (np.arange(3) == best[0])
    assert stats.chisquare(counts, expected * len(actions)).pvalue > 0.01


def test_each_environment_samples_its_random_actions_independently():
    actor = make_actor(num_envs=2, num_heads=1, epsilon=0.5)
    q = np.zeros((2, 1, 100))
    q[..., 0] = 1
    at_random = np.array([actor.act(q, step, learning=True) != 0 for step in range(2000)])
    assert abs(np.corrcoef(at_random, rowvar=False)[0, 1]) < 0.1


def test_epsilon_changes_linearly_and_then_stays_constant():
    config = ActorConfig(epsilon=1.0, epsilon_end=0.1, epsilon_steps=90)
    assert [config.epsilon_at(step) for step in (0, 30, 45, 90, 1000)] == pytest.approx([1.0, 0.7, 0.55, 0.1, 0.1])
    assert ActorConfig(epsilon=0.3).epsilon_at(10**9) == 0.3
    assert ActorConfig(epsilon=1.0, epsilon_end=0.0, epsilon_steps=4).epsilon_at(1) == 0.75


def test_without_epsilon_the_stream_is_unchanged():
    rng = np.random.default_rng(3)
    actor = Actor(ActorConfig("evoi", epsilon=0.5, epsilon_end=0.0, epsilon_steps=10), 1, 3, rng)
    before = rng.bit_generator.state
    expected = parse_strategy("evoi").select(DISAGREEING, 0)
    assert actor.act(DISAGREEING[None], 10, learning=True).tolist() == [expected]
    assert rng.bit_generator.state == before
    actor.act(DISAGREEING[None], 9, learning=True)
    assert rng.bit_generator.state != before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -0.1}, "--epsilon must be between 0 and 1"),
        ({"epsilon": 1.5}, "--epsilon must be between 0 and 1"),
        ({"epsilon": 1.0, "epsilon_end": 2.0, "epsilon_steps": 5}, "--epsilon-end must be between 0 and 1"),
        ({"epsilon": 1.0, "epsilon_end": 0.1}, "must be given together"),
        ({"epsilon": 0.0, "epsilon_end": 0.1, "epsilon_steps": 5}, "--epsilon 0.0 is below --epsilon-end 0.1"),
        ({"epsilon": 1.0, "epsilon_steps": 5}, "must be given together"),
        ({"epsilon": 1.0, "epsilon_end": 0.1, "epsilon_steps": 0}, "--epsilon-steps must be at least 1"),
        ({"info_bonus": -1.0}, "--info-bonus must be at least 0"),
        ({"info_bonus": float("inf")}, "--info-bonus must be finite"),
        ({"info_bonus": 1.0, "info_temperature": 0.0}, "--info-temperature must be between"),
        ({"info_bonus": 1.0, "info_temperature": 1e-40}, "--info-temperature must be between"),
        ({"info_bonus": 1.0, "info_temperature": 1e39}, "--info-temperature must be between"),
        ({"info_bonus": 1.0, "info_temperature": float("nan")}, "--info-temperature must be finite"),
        ({"info_temperature": 2.0}, "--info-temperature needs --info-bonus"),
    ],
)
def test_settings_that_make_no_sense_are_an_error(settings, message):
    with pytest.raises(ValueError, match=message):
        ActorConfig("greedy", **settings)


# The bonus for information


def test_the_bonus_is_the_information_gain_of_each_state_times_the_scale():
    q = np.stack([DISAGREEING, np.zeros((3, 3)), np.random.default_rng(4).normal(size=(3, 3))])
    found = make_actor(num_envs=3, info_bonus=2.5, info_temperature=0.5).bonuses(q)
    expected = []
    for state in q:
        policies = np.exp(2 * state) / np.exp(2 * state).sum(axis=1, keepdims=True)
        average = policies.mean(axis=0)
        divergences = [sum(p * np.log(p / m) for p, m in zip(policy, average, strict=True)) for policy in policies]
        expected.append(2.5 * np.mean(divergences))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert found[1] == 0
    assert found[0] > 1
    assert make_actor(num_envs=3).bonuses(q).tolist() == [0, 0, 0]


# Strategies that answer wrongly


class Answering:
    """A strategy that returns the actions it was given."""

    name = "answering"

    def __init__(self, *answers):
        self._answers = answers

    def select(self, q, head, rng=None):  # noqa: ARG002
        return self._answers[0] if q.ndim == 2 else np.asarray(self._answers)


@pytest.mark.parametrize("answers", [(3,), (-1,), (np.array([0, 1]),), (0.5,), (0, 3), (0, -1), (0.0, 1.0)])
def test_an_invalid_action_is_blamed_on_the_strategy(answers):
    actor = make_actor(num_envs=len(answers))
    actor._strategy = Answering(*answers)
    with pytest.raises(TrainingError, match=r"strategy greedy must return one action in 0\.\.2 per state, returned"):
        actor.act(np.stack([DISAGREEING] * len(answers)), 0, learning=True)


def test_a_strategy_that_raises_is_named():
    actor = make_actor()
    actor._strategy = Answering()
    with pytest.raises(TrainingError, match="strategy greedy raised IndexError"):
        actor.act(DISAGREEING[None], 0, learning=True)


class Writing:
    """A strategy that writes into its inputs."""

    name = "writing"

    def __init__(self, which):
        self._which = which

    def select(self, q, head, rng=None):  # noqa: ARG002
        (q if self._which == "q" else head)[0] = 0


@pytest.mark.parametrize(("which", "num_envs"), [("q", 1), ("q", 2), ("heads", 2)])
def test_a_strategy_cannot_write_into_what_it_is_given(which, num_envs):
    actor = make_actor(num_envs=num_envs)
    actor._strategy = Writing(which)
    q = np.stack([DISAGREEING] * num_envs)
    with pytest.raises(TrainingError, match="strategy greedy raised ValueError: assignment destination is read-only"):
        actor.act(q, 0, learning=True)
    q[0] = 1
    actor.heads[0] = 1


@pytest.mark.parametrize("num_envs", [1, 2])
def test_nan_q_values_are_an_error_that_names_the_head(num_envs):
    actor = make_actor("evoi:reduce=sum", num_envs=num_envs)
    q = np.stack([DISAGREEING] * num_envs)
    q[-1, 1, 1] = np.nan
    with pytest.raises(TrainingError, match="a Q-value of head 1 is NaN: lower --learning-rate"):
        actor.act(q, 0, learning=True)
