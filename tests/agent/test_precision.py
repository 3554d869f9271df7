"""bfloat16 products beside float32 masters: close values, nothing lost in the masters, exact state."""

import numpy as np
import pytest
import torch

from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.learner import make_learner, precision_warning
from bootdqn.common.errors import UsageError
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from reference.batches import random_batch

SPECS = {
    "vector": EnvSpec(BoxSpec((6,), np.dtype(np.float32)), 3),
    "stack": EnvSpec(BoxSpec((4, 36, 36), np.dtype(np.uint8), stacked=True), 3),
    "number": EnvSpec(DiscreteSpec(9), 3),
}


def make(spec, precision, **config):
    network = NetworkConfig(num_heads=4, ensemble="auto", hidden_sizes=(16, 8))
    ensemble = make_ensemble(network, spec, np.random.default_rng(0))
    return make_learner(LearnerConfig(precision=precision, **config), ensemble, "cpu")


def batches(spec, count):
    rng = np.random.default_rng(1)
    return [random_batch(rng, spec, 4, 12) for _ in range(count)]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_values_are_those_of_fp32_up_to_a_few_roundings(spec):
    (batch,) = batches(spec, 1)
    exact, reduced = (make(spec, precision, engine="autograd") for precision in ("fp32", "bf16"))
    q, rounded = exact.q_values(batch.observation), reduced.q_values(batch.observation)
    assert rounded.dtype == np.float32
    assert not np.array_equal(q, rounded)
    np.testing.assert_allclose(rounded, q, atol=0.02 * np.abs(q).max())
    np.testing.assert_allclose(
        reduced.td_errors(batch).detach(), exact.td_errors(batch).detach(), atol=0.03 * np.abs(q).max()
    )


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_steps_too_small_for_bf16_add_up_in_the_masters(spec):
    """A weight of 0.1 in bf16 has neighbours 0.0005 away; a hundred steps of 1e-5 are twice that."""
    learner = make(spec, "bf16", learning_rate=1e-5)
    before = [parameter.detach().clone() for parameter in learner.online.parameters()]
    for batch in batches(spec, 5) * 20:
        learner.update(batch)
    moved = [(after - start).abs().max() for after, start in zip(learner.online.parameters(), before, strict=True)]
    assert all(distance > 1e-4 for distance in moved)
    assert all(parameter.dtype == torch.float32 for parameter in learner.online.parameters())


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_restored_bf16_learner_continues_bit_for_bit(spec):
    first, second = batches(spec, 6), batches(spec, 9)[6:]
    learner = make(spec, "bf16")
    for count, batch in enumerate(first):
        learner.update(batch)
        if count == 2:
            learner.update_target()
    state = {name: value.copy() for name, value in learner.get_state().items()}
    other = make(spec, "bf16")
    other.set_state(state)
    for batch in second:
        one, two = learner.update(batch), other.update(batch)
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert all(np.array_equal(value, other.get_state()[name]) for name, value in learner.get_state().items())


def test_the_compiled_kernel_has_no_bf16():
    with pytest.raises(UsageError, match="--precision fp32"):
        make(SPECS["number"], "bf16", engine="compiled")


def test_an_unknown_precision_is_an_error():
    with pytest.raises(ValueError, match="--precision must be one of fp32, bf16; got 'fp16'"):
        LearnerConfig(precision="fp16")


def test_a_cpu_without_bf16_is_a_warning(monkeypatch):
    assert precision_warning(LearnerConfig(), "cpu") == ""
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    assert "use --precision fp32" in precision_warning(LearnerConfig(precision="bf16"), "cpu")
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    assert precision_warning(LearnerConfig(precision="bf16"), "cpu") == ""


@pytest.mark.parametrize(("native", "advice"), [(True, ""), (False, "this cuda emulates bf16, many times slower")])
def test_a_gpu_that_only_emulates_bf16_is_a_warning(monkeypatch, native, advice):
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation=True: native or including_emulation)
    warning = precision_warning(LearnerConfig(precision="bf16"), "cuda")
    assert warning.startswith(advice)
    assert bool(warning) == bool(advice)
