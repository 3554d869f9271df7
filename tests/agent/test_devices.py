"""Another device than the CPU, without having one: the meta device under a GPU's rules (`reference.devices`).

Nothing is computed there, but the code takes the ways that it takes on a GPU: operators that would mix devices are
found, and operations that would wait for a GPU are counted.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from bootdqn.agent import autograd_learner
from bootdqn.agent.autograd_learner import AutogradLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.optimizer import Adam
from bootdqn.agent.transfers import Staging
from bootdqn.common.specs import ALL_LEGAL, BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.common.text import format_bytes
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from bootdqn.replay.buffer import ReplayBuffer
from bootdqn.runs.resources import CUDA_BYTES, estimate_resources
from reference.batches import random_batch
from reference.devices import DeviceRules, PeakMemory

pytestmark = pytest.mark.filterwarnings("ignore:.*from a non-meta parameter in the checkpoint to a meta parameter")
BATCH_FIELDS = autograd_learner._DeviceBatch._fields
ADDED_BY_PYTORCH = {"slice_backward", "clone"} if torch.__version__ < (2, 13) else set()
"""Operators outside the bounds: 2.7 pads gradients of whole slices, and up to 2.9 meta convolutions need a copy."""


@dataclass(frozen=True)
class Kind:
    """An ensemble, and the numbers of operators that one action and one update may take in fp32 and in bf16."""

    spec: EnvSpec
    ensemble: str
    hidden_sizes: tuple[int, ...]
    act: dict[str, int]
    update: dict[str, int]

    def make(self, *, device="meta", prior_scale=0.0, **config):
        network = NetworkConfig(3, self.ensemble, self.hidden_sizes, prior_scale)
        ensemble = make_ensemble(network, self.spec, np.random.default_rng(0))
        return AutogradLearner(LearnerConfig(**config), ensemble, device)

    def batch(self):
        rng = np.random.default_rng(0)
        return random_batch(rng, self.spec, 3, 12)._replace(next_legal=rng.random((12, self.spec.num_actions)) < 0.9)


def bounds(fp32, bf16):
    return {"fp32": fp32, "bf16": bf16}


VECTOR, NUMBER = EnvSpec(BoxSpec((6,), np.dtype(np.float32)), 3), EnvSpec(DiscreteSpec(9), 3)
MINATAR = EnvSpec(BoxSpec((10, 10, 4), np.dtype(np.bool_)), 6)
ATARI = EnvSpec(BoxSpec((4, 84, 84), np.dtype(np.uint8), stacked=True), 18)
KINDS = {
    "mlp": Kind(VECTOR, "independent", (8, 8), bounds(5, 7), bounds(77, 87)),
    "shared mlp": Kind(VECTOR, "shared", (8, 8), bounds(5, 7), bounds(76, 86)),
    "table": Kind(NUMBER, "independent", (8, 8), bounds(6, 7), bounds(81, 88)),
    "shared table": Kind(NUMBER, "shared", (8, 8), bounds(6, 7), bounds(80, 87)),
    "minatar": Kind(MINATAR, "auto", (16,), bounds(6, 7), bounds(79, 86)),
    "atari": Kind(ATARI, "auto", (16,), bounds(11, 13), bounds(101, 111)),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
each_precision = pytest.mark.parametrize("precision", ["fp32", "bf16"])


@each_kind
@pytest.mark.parametrize("prior_scale", [0.0, 2.0])
@pytest.mark.parametrize("rules", [{}, {"double_q": False, "target_rate": 0.5}, {"loss": "huber", "precision": "bf16"}])
def test_nothing_mixes_devices(kind, prior_scale, rules):
    learner, batch = kind.make(prior_scale=prior_scale, **rules), kind.batch()
    with DeviceRules():
        for _ in range(2):
            assert learner.q_values(batch.observation).shape == (12, 3, kind.spec.num_actions)
            result = learner.update(batch)
            assert (len(result.head_loss), len(result.td_error)) == (3, 12)
            learner.update_target()
            learner.set_state(learner.get_state())
    assert {value.device.type for value in learner.online.state_dict().values()} == {"meta"}


@each_kind
def test_importance_weights_of_prioritised_replay_reach_the_device(kind):
    rng = np.random.default_rng(0)
    replay = ReplayBuffer(kind.spec.observation, capacity=20, num_heads=3, discount=0.9, alpha=0.6)
    observations = random_batch(rng, kind.spec, 3, 20).observation
    replay.start_episode(0, observations[0])
    for observation in observations[1:]:
        replay.add(0, 1, 1.0, observation, np.ones(3, np.bool_), terminated=False, truncated=False)
    replay.update_priorities(np.arange(4), np.arange(1.0, 5.0))
    batch = replay.sample(12, rng, beta=0.4)
    assert len(set(batch.weight.tolist())) > 1
    learner = kind.make()
    with DeviceRules() as device:
        replay.update_priorities(batch.slot, learner.update(batch).td_error)
    assert (device.uploads, device.synchronisations) == (1, 1)


@pytest.mark.parametrize("forgotten", BATCH_FIELDS)
@pytest.mark.parametrize("kind", [KINDS["table"], KINDS["minatar"]], ids=["table", "minatar"])
def test_an_array_that_stays_on_the_host_is_found(kind, forgotten, monkeypatch):
    """The tests above would notice a missing `.to(device)`."""

    def forget_one(staging, *arrays):
        tensors = to_device(staging, *arrays)
        index = BATCH_FIELDS.index(forgotten)
        tensors[index] = torch.from_numpy(arrays[index])
        return tensors

    to_device, learner = Staging.to_device, kind.make(prior_scale=2.0)
    monkeypatch.setattr(Staging, "to_device", forget_one)
    with DeviceRules(), pytest.raises(RuntimeError, match="two devices"):
        learner.update(kind.batch())
    if forgotten == "observation":
        with DeviceRules(), pytest.raises(RuntimeError, match="two devices"):
            learner.q_values(kind.batch().observation)


def on_host(tensors):
    return {name: torch.zeros(value.shape) for name, value in tensors.items()}


FORGOTTEN = {
    "online networks": lambda learner: learner.online.to_empty(device="cpu"),
    "target networks": lambda learner: learner._target.to_empty(device="cpu"),
    "prior": lambda learner: learner.online.prior.to_empty(device="cpu"),
    "first moment": lambda learner: learner._adam.first_moment.update(on_host(learner._adam.first_moment)),
    "second moment": lambda learner: learner._adam.second_moment.update(on_host(learner._adam.second_moment)),
    "steps of Adam": lambda learner: setattr(learner._adam, "steps", torch.zeros(())),
    "a loaded state": lambda learner: learner.online.load_state_dict(on_host(learner.online.state_dict()), assign=True),
}


@pytest.mark.parametrize("forget", FORGOTTEN.values(), ids=FORGOTTEN)
@pytest.mark.parametrize("kind", [KINDS["table"], KINDS["minatar"]], ids=["table", "minatar"])
def test_a_part_of_the_learner_that_stays_on_the_host_is_found(kind, forget):
    learner = kind.make(prior_scale=2.0)
    forget(learner)
    with DeviceRules(), pytest.raises(RuntimeError, match="two devices"):
        learner.update(kind.batch())


def test_the_meta_device_alone_would_not_find_a_moment_of_adam_on_the_host():
    """Why it takes rules of our own."""
    learner, batch = KINDS["mlp"].make(), KINDS["mlp"].batch()
    inputs = learner._to_device(batch)
    FORGOTTEN["first moment"](learner)
    learner._update_on_device(inputs)
    with DeviceRules(), pytest.raises(RuntimeError, match="aten::_fused_adam_ was given tensors of two devices"):
        learner._update_on_device(inputs)


@each_kind
@each_precision
@pytest.mark.parametrize("prior_scale", [0.0, 2.0])
def test_an_action_and_an_update_wait_for_the_device_once(kind, precision, prior_scale):
    learner, batch = kind.make(precision=precision, prior_scale=prior_scale), kind.batch()
    waits = {lambda: learner.q_values(batch.observation): 1, lambda: learner.update(batch): 1, learner.update_target: 0}
    for step, once in waits.items():
        with DeviceRules() as device:
            step()
        assert (device.uploads, device.synchronisations) == (once, once)


@pytest.mark.parametrize("read", [lambda x: x.sum().item(), lambda x: x.tolist(), lambda x: bool(x[0]), torch.nonzero])
def test_a_number_that_the_host_reads_is_counted(read):
    with DeviceRules() as device:
        read(torch.zeros(1, device="meta"))
    assert device.synchronisations == 1


@each_kind
@each_precision
def test_the_part_of_an_update_on_the_device_decides_nothing_on_the_host(kind, precision):
    """What a CUDA graph needs: no copy, no number read, and the same operators every time."""
    learner = kind.make(precision=precision, prior_scale=2.0)
    inputs, found = learner._to_device(kind.batch()), []
    for _ in range(3):
        with DeviceRules() as device:
            learner._update_on_device(inputs)
        assert (device.uploads, device.synchronisations) == (0, 0)
        found.append(device.kernels)
    assert found[0] == found[1] == found[2]


@each_kind
@each_precision
def test_the_number_of_operators_stays_within_its_bound(kind, precision):
    learner, batch = kind.make(precision=precision), kind.batch()._replace(next_legal=ALL_LEGAL)
    steps = {
        lambda: learner.q_values(batch.observation[:1]): kind.act[precision],
        lambda: learner.update(batch): kind.update[precision],
        learner.update_target: 1,
    }
    for step, bound in steps.items():
        with DeviceRules() as device:
            step()
        assert sum(name not in ADDED_BY_PYTORCH for name in device.kernels) <= bound, device.counts


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_of_adam_takes_as_many_operators_for_many_parameters_as_for_one(dtype):
    found = []
    for number in (1, 20):
        parameters = {str(index): torch.zeros(3, 4, device="meta") for index in range(number)}
        adam = Adam(parameters, 1e-3)
        gradients = {name: value.to(dtype) for name, value in parameters.items()}
        with DeviceRules() as device:
            adam.step(gradients, skip=torch.zeros((), device="meta"))
        found.append(device.kernels)
    assert found[0] == found[1]


@each_kind
@each_precision
@pytest.mark.parametrize("prior_scale", [0.0, 2.0])
def test_the_memory_estimate_is_the_sum_of_all_tensors(kind, precision, prior_scale):
    hidden_sizes = (50, 50) if len(kind.hidden_sizes) == 2 else (128,)
    with PeakMemory() as memory:
        learner = replace(kind, hidden_sizes=hidden_sizes).make(
            precision=precision, prior_scale=prior_scale, batch_size=32
        )
        batch = random_batch(np.random.default_rng(0), kind.spec, 3, 32)
        for _ in range(2):
            learner._update_on_device(learner._to_device(batch))
    assert memory.peak <= learner.memory(kind.spec.observation) <= 1.35 * memory.peak


@each_kind
def test_a_run_reports_the_memory_of_its_gpu(kind):
    replay = ReplayBuffer(kind.spec.observation, capacity=9, num_heads=3, discount=0.9)
    here, there = (estimate_resources(kind.make(device=name), kind.spec, replay, 1) for name in ("cpu", "meta"))
    assert (here.gpu, there.gpu) == (0, CUDA_BYTES + kind.make().memory(kind.spec.observation))
    assert "GPU" not in str(here)
    assert f"{format_bytes(there.gpu)} of the GPU's memory and" in str(there)
