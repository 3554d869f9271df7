"""The one-file example against the library: environment, scores, updates; and it solves DeepSea."""

import copy
import dataclasses
import re
import runpy
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import given

import bootdqn
from reference.batches import choose, grid_walk, random_batch
from reference.comparison import KINDS, assert_same_update
from reference.documents import ROOT
from reference.q_values import exact_q_with_heads

FILE = ROOT / "examples/minimal_bootdqn.py"
SIZE, HEADS = 6, 5
ROUNDING = 2e-6
"""How far rounding in single precision may carry a weight in twenty updates; Adam moves one by 1e-3 in each."""
example = runpy.run_path(str(FILE))


def batch_of_example(batch):
    """Return the library's batch as the example's, in double precision."""
    reward = torch.from_numpy(batch.reward).double()
    ended, mask = (torch.from_numpy(array) for array in (batch.discount == 0, batch.mask))
    state, action, following = (torch.from_numpy(x) for x in (batch.observation, batch.action, batch.next_observation))
    return example["Batch"](state, action, reward, ended, following, mask)


class ExampleLearner:
    """The example's networks, update and optimizer behind the interface of `SlowLearner`, in double precision."""

    def __init__(self, state):
        num_heads, num_states, hidden_size = state["online.heads.0.weight"].shape
        num_actions = state["online.heads.2.weight"].shape[-1]
        self.online = example["Ensemble"](num_heads, num_states, hidden_size, num_actions).double()
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=example["Config"]().learning_rate)
        self.set_state(state)

    def update(self, batch):
        own, discount = batch_of_example(batch), float(batch.discount.max())
        with torch.no_grad():
            error = example["td_errors"](self.online, self.target, own, discount)
        losses = example["update"](self.online, self.target, self.optimizer, own, discount)
        owners = batch.mask.sum(axis=1)
        return losses.numpy(), (error.abs().numpy() * batch.mask).sum(axis=1) / np.maximum(owners, 1)

    def named(self, ensemble):
        """Yield the library's name of each parameter, and the parameter."""
        for kind, parameters in (("weight", ensemble.weights), ("bias", ensemble.biases)):
            for layer, parameter in enumerate(parameters):
                yield f"heads.{layer}.{kind}", parameter

    def set_state(self, state):
        def values(part, name, like):
            return torch.tensor(state[f"{part}.{name}"]).double().reshape(like.shape)

        with torch.no_grad():
            for part, ensemble in (("online", self.online), ("target", self.target)):
                for name, parameter in self.named(ensemble):
                    parameter.copy_(values(part, name, parameter))
        for name, parameter in self.named(self.online):
            first, second = (values(part, name, parameter) for part in ("first_moment", "second_moment"))
            steps = torch.tensor(float(state["adam_steps"]))
            self.optimizer.state[parameter] = {"step": steps, "exp_avg": first, "exp_avg_sq": second}

    def get_state(self):
        state = {}
        for name, parameter in self.named(self.online):
            kept = self.optimizer.state[parameter]
            state |= {f"first_moment.{name}": kept["exp_avg"], f"second_moment.{name}": kept["exp_avg_sq"]}
            state |= {f"online.{name}": parameter.detach(), "adam_steps": kept["step"]}
        state |= {f"target.{name}": parameter.detach() for name, parameter in self.named(self.target)}
        return {name: _library_shape(name, value.numpy()) for name, value in state.items()}


def _library_shape(name, array):
    return array[:, 0] if name.endswith("bias") else array


def test_it_can_be_read_in_one_sitting():
    lines = FILE.read_text().splitlines()
    assert len(lines) <= 200
    assert not [line for line in lines if re.match(r"\s*(import|from) bootdqn", line)]


def test_the_settings_are_those_of_the_library(tmp_path):
    bootdqn.train({"environment": "deep-sea", "size": 3, "max_episodes": 1}, tmp_path / "run")
    library = bootdqn.load_run(tmp_path / "run").config
    example_config = dataclasses.asdict(example["Config"]())
    assert library["hidden_sizes"] == [example_config.pop("hidden_size")] * 2
    assert library["strategy"] == f"{example_config.pop('strategy')}:reduce={example_config.pop('reduce')}"
    for period in ("update_every", "target_every"):
        assert library[period] == library["size"]
        assert example_config.pop(period) is None
    assert example_config.pop("max_episodes") == 100_000
    assert example_config.pop("size") == 10
    assert example_config == {name: library[name] for name in example_config}
    expected = {"loss": "squared", "double_q": True, "n_step": 1, "target_rate": 1.0, "ensemble": "independent"}
    assert expected == {name: library[name] for name in expected}


@pytest.mark.parametrize("seed", range(5))
def test_its_deep_sea_is_the_environment_of_the_library(seed):
    size = 3 + seed
    ours, theirs = example["DeepSea"](size, seed), gymnasium.make("bootdqn/DeepSea-v0", size=size, mapping_seed=seed)
    rng = np.random.default_rng(seed)
    right_way = theirs.unwrapped.action_mapping.diagonal()
    for actions in (right_way, *rng.integers(2, size=(50, size))):
        assert ours.reset()[0] == theirs.reset()[0]
        for action in actions.tolist():
            one, other = ours.step(action), theirs.step(action)
            assert one[:4] == other[:4]
            assert one[4]["bad_episode"] == other[4]["bad_episode"]
    assert ours.observation_space == theirs.observation_space


@given(exact_q_with_heads())
def test_its_scores_are_those_of_the_library(q_and_head):
    q, head = q_and_head[0], int(q_and_head[1])
    tensor = torch.from_numpy(q)
    np.testing.assert_array_equal(example["gain"](tensor), bootdqn.gain(q))
    for reduce in ("mean", "sum"):
        np.testing.assert_array_equal(example["evoi"](tensor, reduce), bootdqn.evoi(q, reduce))
    for strategy in (bootdqn.Greedy(), bootdqn.Gain(), bootdqn.Evoi(reduce="sum"), bootdqn.Evoi(reduce="mean")):
        scores = example["scores"](tensor, head, strategy.name, getattr(strategy, "reduce", "mean"))
        np.testing.assert_array_equal(scores, strategy.scores(q, head))
    upper = example["scores"](tensor, head, "ucb", "mean")
    np.testing.assert_allclose(upper, bootdqn.ucb(q), rtol=1e-15, atol=1e-14)


@pytest.mark.parametrize("learner", ["tabular", "independent-discrete"])
def test_each_update_is_that_of_the_library(learner):
    kind, rng = KINDS[learner], np.random.default_rng(0)
    spec = kind.spec(SIZE * SIZE, 2)
    library = kind.make(spec, num_heads=HEADS, hidden_sizes=(50, 50))
    mine = ExampleLearner(library.get_state())
    for step in range(6):
        batch = random_batch(rng, spec, HEADS, 32, discount=0.99, owned=0.5)
        assert_same_update(library, mine, batch._replace(weight=np.ones(32, np.float32)))
        if step in (1, 3):
            library.update_target()


@pytest.mark.parametrize("learner", ["tabular", "independent-discrete"])
def test_twenty_updates_and_target_copies_are_those_of_the_library(learner):
    kind, rng = KINDS[learner], np.random.default_rng(0)
    library = kind.make(kind.spec(SIZE * SIZE, 2), num_heads=HEADS, hidden_sizes=(50, 50))
    mine, walk = ExampleLearner(library.get_state()), grid_walk(rng, SIZE, 500, HEADS)
    for step in range(20):
        batch = choose(walk, rng.integers(500, size=128))
        found, (head_loss, _) = library.update(batch), mine.update(batch)
        np.testing.assert_allclose(found.head_loss, head_loss, rtol=1e-5)
        if step % 6 == 5:
            library.update_target()
            mine.target.load_state_dict(mine.online.state_dict())
    found, expected = library.get_state(), mine.get_state()
    for name in (name for name in expected if name.startswith(("online", "target"))):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=ROUNDING, err_msg=name)


def test_it_solves_deep_sea_with_evoi():
    command = [sys.executable, FILE, "--strategy", "evoi", "--size", "10", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^solved at episode \d+$", done.stdout, flags=re.MULTILINE), done.stdout


@pytest.mark.parametrize("strategy", ["greedy", "ucb", "gain", "evoi"])
def test_every_strategy_trains(strategy, capsys):
    config = example["Config"](strategy=strategy, size=4, update_every=1, max_episodes=50, replay_capacity=100)
    solved_at = example["train"](config)
    assert solved_at is None or 10 <= solved_at <= 50
    assert solved_at or "episode 50:" in capsys.readouterr().out
