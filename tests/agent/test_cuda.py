"""Learning on a GPU, for machines that have one: the slow learner's updates, bit for bit the same twice and resumed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

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
def test_two_learners_and_one_restored_come_to_the_same_bits(kind, precision, prior_scale):
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


def test_what_the_agent_acts_by_is_what_it_says_on_the_cpu(kind):
    spec = kind.spec()
    observation = random_batch(np.random.default_rng(1), spec, 3, 6).observation
    here, there = (one.make(spec).q_values(observation) for one in (replace(kind, device="cpu"), kind))
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)
