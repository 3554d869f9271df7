"""Learning on a GPU, for machines that have one; these tests were never run.

Updates are the slow learner's, bit for bit the same twice and resumed, and wait for nothing.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bootdqn.agent.transfers import Staging
from reference.batches import random_batch
from reference.comparison import KINDS, assert_same_update, copy_of_state, slow_learner

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]
ON_A_GPU = {name: replace(kind, device="cuda") for name, kind in KINDS.items() if name != "tabular"}
CONFIGS = [{}, {"loss": "huber"}, {"double_q": False}]


@pytest.fixture(params=ON_A_GPU)
def kind(request):
    return ON_A_GPU[request.param]


def batches_for(spec, count):
    rng = np.random.default_rng(0)
    return [random_batch(rng, spec, 3, 16) for _ in range(count)]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_updates_are_those_of_the_slow_learner(kind, config):
    spec = kind.spec()
    learner = kind.make(spec, **config)
    slow = slow_learner(learner, spec, config)
    for batch in batches_for(spec, 5):
        assert_same_update(learner, slow, batch)
        learner.update_target()


@pytest.mark.parametrize("prior_scale", [0.0, 2.0])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_two_learners_and_a_restored_one_agree_bit_for_bit(kind, precision, prior_scale):
    spec = kind.spec()
    one, two, restored = (
        kind.make(spec, seed=seed, precision=precision, prior_scale=prior_scale) for seed in (0, 0, 9)
    )
    *before, last = batches_for(spec, 8)
    for learner in (one, two):
        for batch in before:
            learner.update(batch)
        learner.update_target()
    restored.set_state(copy_of_state(one))
    results = [learner.update(last) for learner in (one, two, restored)]
    for result in results[1:]:
        np.testing.assert_array_equal(result.head_loss, results[0].head_loss)
    for learner in (two, restored):
        for name, value in copy_of_state(one).items():
            np.testing.assert_array_equal(learner.get_state()[name], value, err_msg=name)


def test_the_q_values_that_the_agent_acts_by_are_those_on_the_cpu(kind):
    spec = kind.spec()
    observation = random_batch(np.random.default_rng(1), spec, 3, 6).observation
    here, there = (one.make(spec).q_values(observation) for one in (replace(kind, device="cpu"), kind))
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


def test_arrays_reach_the_gpu_whole_however_fast_they_follow_each_other():
    rng, staging = np.random.default_rng(0), Staging(torch.device("cuda"))
    sent = [(rng.random((100, 1000)), rng.random(9) < 0.5, rng.integers(9, size=7)) for _ in range(20)]
    received = [staging.to_device(*arrays) for arrays in sent]
    for arrays, tensors in zip(sent, received, strict=True):
        for array, tensor in zip(arrays, tensors, strict=True):
            np.testing.assert_array_equal(tensor.cpu().numpy(), array)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_part_of_an_update_on_the_gpu_never_waits(kind, precision):
    learner = kind.make(kind.spec(), precision=precision)
    inputs = learner._to_device(batches_for(kind.spec(), 1)[0])
    torch.cuda.set_sync_debug_mode("error")
    try:
        learner._update_on_device(inputs)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_cuda_graph_of_an_update_computes_what_the_update_does(kind, precision):
    spec = kind.spec()
    captured, plain = (kind.make(spec, precision=precision) for _ in range(2))
    (batch,) = batches_for(spec, 1)
    inputs, stream, graph = captured._to_device(batch), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # libraries allocate their workspaces before the capture
        for _ in range(3):
            captured._update_on_device(inputs)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        captured._update_on_device(inputs)
    for _ in range(2):
        graph.replay()
    for _ in range(5):
        plain.update(batch)
    for name, value in copy_of_state(plain).items():
        np.testing.assert_array_equal(captured.get_state()[name], value, err_msg=name)


def test_the_memory_estimate_holds(kind):
    spec = kind.spec()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    learner = kind.make(spec, hidden_sizes=(256, 256), batch_size=16)
    for batch in batches_for(spec, 3):
        learner.update(batch)
    assert torch.cuda.max_memory_allocated() - before <= 1.1 * learner.memory(spec.observation) + 2**25  # cuBLAS
