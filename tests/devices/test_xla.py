"""Learning on PyTorch/XLA's CPU device, whose kernels are not those of PyTorch's CPU: the same numbers up to rounding.

The tolerance comes from backward error analysis (Higham 2002, section 3.1): a sum of n products that was computed with
rounding is the exact sum for weights that are off by a factor 1 + e. The roundings are independent, so e is about
u sqrt(n), where u is the unit roundoff (Higham and Mary 2019). A third learner, on the CPU, computes each of its
gradients with weights that are off by such factors, at random. As far as it strays from the first one, so far may
another device.
"""

import numpy as np
import pytest
import torch
import torch_xla

from bootdqn.agent.autograd_learner import AutogradLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from reference.batches import random_batch
from reference.comparison import copy_of_state

HEADS, BATCH, UPDATES = 3, 8, 4
UNIT_ROUNDOFF = {"fp32": 2.0**-24, "bf16": 2.0**-8}
ROUNDINGS_OF_A_LAYER = 3
"""In bf16, where sums are added in float32 and then rounded: product, sum with the bias, and prior or gradient."""
FACTOR = 3 * np.sqrt(2)
"""Three standard deviations of the difference between two devices that both round."""
PARTS = ("online", "target", "first_moment", "second_moment")
MLP = EnvSpec(BoxSpec((3, 3), np.dtype(np.float32)), 3)
TABLE = EnvSpec(DiscreteSpec(9), 3)
ENSEMBLES = {
    "mlp": (MLP, "independent", (50, 50), 50),
    "shared-mlp": (MLP, "shared", (50, 50), 50),
    "table": (TABLE, "independent", (50, 50), 50),
    "shared-table": (TABLE, "shared", (50, 50), 50),
    "minatar": (EnvSpec(BoxSpec((10, 10, 4), np.dtype(np.bool_)), 3), "auto", (128,), 16 * 8 * 8),
    "atari": (EnvSpec(BoxSpec((4, 84, 84), np.dtype(np.uint8), stacked=True), 4), "auto", (512,), BATCH * 20 * 20),
}
"""Specification, kind, hidden sizes, and the longest sum of an update, over inputs or batch and pixels."""
VARIANTS = {
    "fp32": {"precision": "fp32", "loss": "squared", "target_rate": 0.25},
    "fp32-prior": {"precision": "fp32", "loss": "huber", "prior_scale": 2.0},
    # where two actions tie in bf16, double DQN may evaluate either; the maximum of DQN hardly depends on which it is
    "bf16": {"precision": "bf16", "loss": "squared", "double_q": False},
    "bf16-prior": {"precision": "bf16", "loss": "huber", "double_q": False, "prior_scale": 2.0},
}
torch_xla.device()  # before the first backward pass anywhere, at which autograd counts the devices


@pytest.fixture(params=ENSEMBLES)
def name(request):
    return request.param


class OnXla:
    """A learner on the XLA device, which traces operators: `sync` ends a trace, compiles and computes it."""

    def __init__(self, learner):
        self._learner = learner

    def __getattr__(self, name):
        def synchronised(*arguments):
            result = getattr(self._learner, name)(*arguments)
            torch_xla.sync()
            return result

        return synchronised


class Perturbed:
    """A learner that computes with weights off by factors 1 + e, where e is normal, and keeps the exact ones."""

    def __init__(self, learner, size):
        self._learner = learner
        self._size = size
        self._rng = np.random.default_rng(5)
        self.update_target, self.get_state = learner.update_target, learner.get_state

    def __getattr__(self, name):
        def off(*arguments):
            errors = {}
            state = copy_of_state(self._learner)
            for key in (key for key in state if key.startswith(("online", "target"))):
                errors[key] = self._size * self._rng.normal(size=state[key].shape) * state[key]
                state[key] = np.float32(state[key] + errors[key])
            self._learner.set_state(state)
            result = getattr(self._learner, name)(*arguments)
            state = copy_of_state(self._learner)
            self._learner.set_state(state | {key: np.float32(state[key] - error) for key, error in errors.items()})
            return result

        return off


def make(name, device="cpu", *, seed=0, prior_scale=0.0, **config):
    spec, kind, hidden_sizes, _ = ENSEMBLES[name]
    ensemble = make_ensemble(NetworkConfig(HEADS, kind, hidden_sizes, prior_scale), spec, np.random.default_rng(seed))
    learner = AutogradLearner(LearnerConfig(**config), ensemble, device)
    return OnXla(learner) if device == "xla" else learner


def perturbed(name, **config):
    precision = config["precision"]
    length = ROUNDINGS_OF_A_LAYER if precision == "bf16" else ENSEMBLES[name][-1]
    return Perturbed(make(name, **config), UNIT_ROUNDOFF[precision] * np.sqrt(length))


def batches(name, count=UPDATES):
    """Return batches with importance weights, and with illegal actions in the next states."""
    rng, spec = np.random.default_rng(1), ENSEMBLES[name][0]
    legal = rng.random((count, BATCH, spec.num_actions)) < 0.8
    legal[..., 0] = True
    return [random_batch(rng, spec, HEADS, BATCH)._replace(next_legal=legal[number]) for number in range(count)]


def learn(learner, name):
    """Return the results of some updates as vectors: Q-values, losses and TD errors on the way, and the state."""
    found = {"q_values": [], "head_loss": [], "td_error": []}
    for number, batch in enumerate(batches(name)):
        found["q_values"].append(learner.q_values(batch.observation))
        for field, value in learner.update(batch)._asdict().items():
            found[field].append(value)
        if number % 2:
            learner.update_target()
    state = learner.get_state()
    found |= {part: [state[key] for key in sorted(state) if key.startswith(f"{part}.")] for part in PARTS}
    return {field: np.concatenate([value.ravel() for value in values]) for field, values in found.items()}


def distances(found, expected):
    """Return the distance of every vector, relative to the expected one's norm."""
    norm = np.linalg.norm
    return {field: float(norm(found[field] - value) / norm(value)) for field, value in expected.items()}


@pytest.mark.parametrize("variant", VARIANTS)
def test_another_device_computes_what_the_cpu_computes(name, variant):
    config = VARIANTS[variant]
    here = learn(make(name, **config), name)
    found = distances(learn(make(name, "xla", **config), name), here)
    rounding = distances(learn(perturbed(name, **config), name), here)
    print(f"{name} {variant}")
    for field, distance in found.items():
        print(f"  {field:13} {distance:.1e} of {FACTOR * rounding[field]:.1e}")
    assert all(distance <= FACTOR * rounding[field] for field, distance in found.items())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_restored_learner_continues_bit_for_bit(name, precision):
    config = {"precision": precision, "prior_scale": 2.0}
    learner, resumed = make(name, "xla", **config), make(name, "xla", seed=9, **config)
    *before, last = batches(name, 4)
    for batch in before:
        learner.update(batch)
    learner.update_target()
    state = copy_of_state(learner)
    resumed.set_state(state)
    for one, other in zip(learner.update(last), resumed.update(last), strict=True):
        np.testing.assert_array_equal(one, other)
    for key, value in copy_of_state(learner).items():
        np.testing.assert_array_equal(resumed.get_state()[key], value, err_msg=key)
    assert not np.array_equal(state["online.heads.0.weight"], learner.get_state()["online.heads.0.weight"])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_checkpoint_moves_between_devices_unchanged(name, precision):
    config = {"precision": precision, "prior_scale": 2.0}
    here, there = make(name, **config), make(name, "xla", seed=9, **config)
    for batch in batches(name, 2):
        here.update(batch)
    there.set_state(copy_of_state(here))
    back = make(name, seed=5, **config)
    back.set_state(copy_of_state(there))
    for key, value in here.get_state().items():
        np.testing.assert_array_equal(back.get_state()[key], value, err_msg=key)


@pytest.mark.parametrize(
    "mistake",
    [
        {"precision": "bf16"},
        {"loss": "squared"},
        {"learning_rate": 1.001e-3},
        {"prior_scale": 2.001},
        {"target_rate": 0.99},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["mlp", "minatar"])
def test_the_tolerance_tells_a_small_mistake_from_rounding(name, mistake):
    config = VARIANTS["fp32-prior"] | {"learning_rate": 1e-3}
    right, wrong = (learn(make(name, **settings), name) for settings in (config, config | mistake))
    rounding = distances(learn(perturbed(name, **config), name), right)
    assert any(distance > FACTOR * rounding[field] for field, distance in distances(wrong, right).items())


def test_the_numbers_come_from_the_other_device():
    """Or the tests above would compare the CPU with itself."""
    assert torch.zeros(1, device="xla").device.type == "xla"
    learner = make("mlp", "xla")._learner
    assert {value.device.type for value in learner.online.state_dict().values()} == {"xla"}
