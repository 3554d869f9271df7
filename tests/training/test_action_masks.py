"""Action masks of an environment: a masked action is never taken, never bootstrapped from, and resuming is exact."""

from itertools import islice

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.taxi import TaxiEnv

from bootdqn.agent.autograd_learner import AutogradLearner
from bootdqn.agent.discrete_learner import DiscreteLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.common.errors import TrainingError
from bootdqn.common.specs import Batch, DiscreteSpec, EnvSpec
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.inspector.page import write_page
from bootdqn.inspector.recording import Recorder
from bootdqn.replay.buffer import ReplayBuffer
from bootdqn.training.evaluation import evaluate
from bootdqn.training.loop import make_components, train
from bootdqn.training.rollout import Rollout, legal_actions
from bootdqn.training.run import train_run
from reference.faults import results, stopping_at

pytestmark = pytest.mark.usefixtures("one_thread")
PLACES, ACTIONS = 6, 4
TAXI = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"


def legal_at(place):
    """Return the legal actions of a place: two of four, another pair in each."""
    return np.isin(np.arange(ACTIONS), [place % ACTIONS, (place + 1 + place % 2) % ACTIONS])


class Corridor(gymnasium.Env):
    """Places in a row with two legal actions each, on and stay; an illegal action raises."""

    observation_space = gymnasium.spaces.Discrete(PLACES)
    action_space = gymnasium.spaces.Discrete(ACTIONS)
    taken = []  # noqa: RUF012 - one list for all

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - as in gym.Env
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(2)), 0
        return self.place, self._info()

    def step(self, action):
        assert legal_at(self.place)[action], "an illegal action"
        self.taken.append((self.place, int(action)))
        self.place += int(action) == self.place % ACTIONS
        self.steps += 1
        over = self.place == PLACES - 1
        return self.place, float(over), over, self.steps >= 12 and not over, self._info()

    def _info(self):
        mask = np.zeros(ACTIONS, np.int8) if self.place == PLACES - 1 else legal_at(self.place).astype(np.int8)
        return {"action_mask": mask}


gymnasium.register("Corridor-v0", Corridor)


def config(**settings):
    small = {"total_steps": 300, "learning_starts": 60, "hidden_sizes": [8, 8], "num_heads": 3, "batch_size": 8}
    return resolve(from_flat({"environment": "gym", "env_id": "Corridor-v0"} | small | settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "evoi"},
        {"strategy": "ids", "epsilon": 0.5, "engine": "autograd"},
        {"strategy": "boltzmann", "num_envs": 3, "before_learning": "strategy", "n_step": 3},
        {"strategy": "vote", "replay": "prioritized", "info_bonus": 0.1},
    ],
    ids=lambda settings: settings["strategy"],
)
def test_a_masked_action_is_never_taken_in_training_or_evaluation(settings, tmp_path):
    Corridor.taken.clear()
    summary = train_run(config(eval_every_steps=100, eval_episodes=2, **settings), tmp_path / "run").summary
    assert summary["status"] == "finished"
    assert summary["evaluations"] == 3
    taken = set(Corridor.taken)
    assert taken <= {(place, action) for place in range(PLACES) for action in range(ACTIONS) if legal_at(place)[action]}
    assert len({action for place, action in taken if place == 1}) == 2, "both legal actions are explored"


def test_uniform_actions_are_uniform_over_the_legal_ones():
    components = make_components(config())
    legal = np.array([[True, False, True, True], [False, True, False, False]])
    q = np.zeros((2, 3, ACTIONS), np.float32)
    actions = np.array([components.actor.act(q, 0, learning=False, legal=legal) for _ in range(3000)])
    assert set(actions[:, 1]) == {1}
    assert np.bincount(actions[:, 0], minlength=4) == pytest.approx([1000, 0, 1000, 1000], abs=120)


@pytest.mark.parametrize("learner", [AutogradLearner, DiscreteLearner])
@pytest.mark.parametrize("double_q", [True, False])
def test_a_masked_action_is_never_bootstrapped_from(learner, double_q):
    """Two next states whose best action is masked in one of them: the target is that of the best legal action."""
    settings = LearnerConfig(double_q=double_q, learning_rate=1e-9)
    spec = EnvSpec(DiscreteSpec(PLACES), ACTIONS)
    network = NetworkConfig(num_heads=3, hidden_sizes=(8, 8))
    made = learner(settings, make_ensemble(network, spec, np.random.default_rng(0)))
    q = made.q_values(np.arange(PLACES))  # (places, heads, actions); the target networks are equal
    observation, following = np.array([0, 1, 2, 3]), np.array([4, 5, 4, 5])
    legal = np.array([[True] * 4, [False, True, False, True], [True, False, False, False], [True, True, False, True]])
    batch = Batch(
        observation=observation,
        action=np.array([0, 1, 2, 3]),
        reward=np.float32([0.0, 1.0, 2.0, 3.0]),
        discount=np.float32([0.9] * 4),
        next_observation=following,
        mask=np.ones((4, 3), np.bool_),
        weight=np.ones(4, np.float32),
        slot=np.arange(4),
        next_legal=legal,
    )
    best = np.where(legal[:, None], q[following], -np.inf).max(axis=-1)
    error = q[observation, :, batch.action] - (batch.reward[:, None] + 0.9 * best)
    assert made.update(batch).td_error == pytest.approx(np.abs(error).mean(axis=1), rel=1e-4)
    unmasked = np.abs(q[observation, :, batch.action] - (batch.reward[:, None] + 0.9 * q[following].max(axis=-1)))
    assert not np.allclose(unmasked.mean(axis=1), np.abs(error).mean(axis=1)), "the mask matters here"


def test_both_learners_learn_the_same_from_masked_transitions():
    errors = {}
    for engine in ("compiled", "autograd"):
        settings = config(engine=engine)
        components = make_components(settings)
        steps = train(settings, components)
        for _ in range(150):
            result = next(steps)
        errors[engine] = result.updates[-1].td_error
        assert components.replay.num_masked_actions == ACTIONS
    assert errors["compiled"] == pytest.approx(errors["autograd"], rel=1e-3)


@pytest.mark.parametrize("n_step", [1, 3])
def test_the_replay_gives_the_legal_actions_of_the_state_that_is_bootstrapped_from(n_step):
    replay = ReplayBuffer(DiscreteSpec(100), capacity=50, num_heads=1, discount=0.5, n_step=n_step)
    rng = np.random.default_rng(0)
    masks = rng.random((100, 5)) < 0.5
    step = 0
    replay.start_episode(0, step, masks[step])
    for step in range(1, 100):
        over = step % 7 == 0
        truncated = over and step % 2 == 0
        ends = {"terminated": over and not truncated, "truncated": truncated}
        replay.add(0, 0, 0.0, step, np.ones(1, np.bool_), **ends, next_legal=None if over else masks[step])
        if over:
            replay.start_episode(0, step, masks[step])
    batch = replay.sample(200, rng)
    lives = batch.discount > 0
    ended = (batch.next_observation % 14 == 0) & lives
    assert (batch.next_legal[lives & ~ended] == masks[batch.next_observation[lives & ~ended]]).all()
    assert batch.next_legal[ended].all(), "a final state without a mask has all actions"
    assert ended.any()


@pytest.mark.parametrize("engine", ["compiled", "autograd"])
def test_a_run_with_masks_resumes_exactly(engine, tmp_path, monkeypatch):
    settings = config(engine=engine, num_envs=2, eval_every_steps=100, eval_episodes=2)
    train_run(settings, tmp_path / "unbroken")
    with stopping_at(monkeypatch, 134):
        assert train_run(settings, tmp_path / "run").summary["status"] == "interrupted"
    train_run(settings, tmp_path / "run")
    assert results(tmp_path / "run") == results(tmp_path / "unbroken")


def test_the_vote_is_among_the_legal_actions():
    def q_values(observations):
        q = np.zeros((len(observations), 3, ACTIONS), np.float32)
        q[..., 3] = 1.0  # every head prefers an action that is rarely legal
        return q

    Corridor.taken.clear()
    evaluate(q_values, Corridor(), episodes=2, max_steps=50, rule="plurality", rng=np.random.default_rng(0))
    assert Corridor.taken
    assert all(legal_at(place)[action] for place, action in Corridor.taken)


def test_taxi_never_tries_what_has_no_effect_and_the_inspector_shows_the_legal_actions(tmp_path, monkeypatch):
    seen, original = [], TaxiEnv.step

    def step(self, action):
        seen.append(self.action_mask(self.s)[action])
        return original(self, action)

    monkeypatch.setattr(TaxiEnv, "step", step)
    train_run(config(env_id=TAXI, eval_every_steps=150, eval_episodes=1, eval_max_steps=50), tmp_path / "run")
    recorder = Recorder(tmp_path / "run")
    recording = recorder.record(episodes=1, max_steps=40, seed=0, head=None)
    write_page(recording, [], tmp_path / "inspect.html")
    assert len(seen) >= 390
    assert all(seen)
    assert all(len(one.names) < 6 for one in recording.steps)
    assert all(one.q.shape[1] == len(one.scores) == len(one.names) > one.action for one in recording.steps)


@pytest.mark.parametrize(
    ("mask", "message"),
    [([1, 0], r"action_mask of shape \(2,\), not \(4,\)"), ([0, 0, 0, 0], "rules out every action")],
)
def test_a_mask_of_the_wrong_shape_or_without_legal_actions_is_an_error(mask, message):
    with pytest.raises(TrainingError, match=message):
        legal_actions({"action_mask": np.array(mask)}, ACTIONS, "environment 0")


class DeadEnd(gymnasium.Env):
    """Three steps, and an end without a legal action: a termination, a truncation, or one that is not announced."""

    observation_space = gymnasium.spaces.Discrete(PLACES)
    action_space = gymnasium.spaces.Discrete(ACTIONS)

    def __init__(self, end):
        self.end = end

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - as in gym.Env
        super().reset(seed=seed)
        self.place = 0
        return 0, {"action_mask": np.ones(ACTIONS, np.int8)}

    def step(self, _action):
        self.place += 1
        last = self.place == 3
        mask = np.full(ACTIONS, not last, np.int8)
        return (
            self.place,
            1.0,
            last and self.end == "terminated",
            last and self.end == "truncated",
            {"action_mask": mask},
        )


gymnasium.register("DeadEnd-v0", DeadEnd, disable_env_checker=True)


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_an_end_without_a_legal_action_has_no_value_to_bootstrap_from(end, tmp_path):
    settings = config(env_id="DeadEnd-v0", env_options=[f"end={end}"], eval_every_steps=100, eval_episodes=2)
    assert train_run(settings, tmp_path / "run").summary["status"] == "finished"
    components = make_components(settings)
    steps = train(settings, components)
    episodes = [episode for _ in range(60) for episode in next(steps).finished]
    assert [episode.length for episode in episodes] == [3] * 20
    batch = components.replay.sample(200, np.random.default_rng(0))
    assert ((batch.discount == 0) == (batch.observation == 2)).all()
    assert (batch.discount == 0).any()


def test_a_state_without_a_legal_action_that_ends_nothing_is_an_error():
    settings = config(env_id="DeadEnd-v0", env_options=["end=none"])
    steps = train(settings, make_components(settings))
    with pytest.raises(TrainingError, match="environment 0 gave an action_mask that rules out every action"):
        list(islice(steps, 3))


class Malformed(gymnasium.Env):
    """An environment whose info is malformed after the first step."""

    observation_space = gymnasium.spaces.Discrete(PLACES)
    action_space = gymnasium.spaces.Discrete(ACTIONS)

    def __init__(self, ragged):
        self.info = {"action_mask": [[1], [1, 0]]} if ragged else None

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - as in gym.Env
        super().reset(seed=seed)
        return 0, {}

    def step(self, _action):
        return 1, 0.0, False, False, self.info


gymnasium.register("Malformed-v0", Malformed, disable_env_checker=True)


@pytest.mark.parametrize("ragged", [True, False])
def test_the_environment_is_blamed_for_a_malformed_info(ragged):
    settings = config(env_id="Malformed-v0", env_options=[f"ragged={str(ragged).lower()}"])
    with pytest.raises(TrainingError, match=r"environment 0 raised (ValueError|AttributeError) after step 0"):
        next(train(settings, make_components(settings)))
    rollout = Rollout(Malformed(ragged), "the environment", seed=0)
    rollout.step(0)
    with pytest.raises(TrainingError, match=r"the environment raised (ValueError|AttributeError)"):
        rollout.legal()


def test_without_masks_nothing_is_stored():
    settings = resolve(from_flat({"environment": "deep-sea", "update_every": 1, "size": 3, "num_heads": 2}))
    components = make_components(settings)
    next(train(settings, components))
    assert components.loop.legal is None
    assert components.replay.num_masked_actions is None
