"""What the paper does not have: priors, plain DQN's targets, soft target updates; against the slow learner."""

import numpy as np
import pytest
import torch

from bootdqn.agent.ensemble import make_ensemble
from bootdqn.common.specs import DiscreteSpec, EnvSpec
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from reference.batches import random_batch
from reference.comparison import KINDS, SINGLE, assert_same_update, copy_of_state, slow_learner

VARIANTS = {
    "a prior": {"prior_scale": 3.0},
    "plain DQN's target": {"double_q": False},
    "a soft target update": {"target_rate": 0.3},
    "all of them": {"prior_scale": 0.7, "double_q": False, "target_rate": 0.05, "loss": "huber"},
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_updates_are_those_of_the_slow_learner(kind, variant):
    spec = kind.spec()
    learner = kind.make(spec, **variant)
    slow = slow_learner(learner, spec, variant)
    rng = np.random.default_rng(0)
    for step in range(4):
        assert_same_update(learner, slow, random_batch(rng, spec, 3, 12))
        if step % 2:
            learner.update_target()


@pytest.mark.parametrize("rate", [1.0, 0.3, 0.005])
def test_the_target_networks_move_by_the_rate(kind, rate):
    spec = kind.spec()
    learner = kind.make(spec, target_rate=rate)
    slow = slow_learner(learner, spec, {"target_rate": rate})
    rng = np.random.default_rng(1)
    for _ in range(3):
        learner.update(random_batch(rng, spec, 3, 12))
        slow.set_state(learner.get_state())
        learner.update_target()
        slow.update_target()
        found, expected = learner.get_state(), slow.get_state()
        for name in (name for name in expected if name.startswith("target.")):
            np.testing.assert_allclose(found[name], expected[name], rtol=SINGLE, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_q_values_are_those_of_the_slow_learner_and_of_the_ensemble_itself(kind, variant):
    spec = kind.spec()
    learner = kind.make(spec, **variant)
    slow = slow_learner(learner, spec, variant)
    observation = random_batch(np.random.default_rng(2), spec, 3, 9).observation
    expected = slow.q_values(observation).detach().numpy()
    np.testing.assert_allclose(learner.q_values(observation), expected, rtol=1e-5, atol=1e-6)
    with torch.inference_mode():
        ensemble = learner.online(torch.from_numpy(observation)).numpy()
    np.testing.assert_allclose(ensemble, expected, rtol=1e-5, atol=1e-6)


def test_a_prior_is_as_large_as_its_scale_says_and_different_for_each_head(kind):
    spec = kind.spec()
    observation = random_batch(np.random.default_rng(3), spec, 3, 9).observation
    without, once, thrice = (kind.make(spec, prior_scale=scale).q_values(observation) for scale in (0.0, 1.0, 3.0))
    prior = once - without
    assert np.abs(prior).max(axis=(0, 2)).min() > 1e-3
    assert not np.allclose(prior[:, 0], prior[:, 1], atol=1e-3)
    np.testing.assert_allclose(thrice - without, 3 * prior, rtol=1e-3, atol=1e-5)


def test_learning_never_changes_the_prior(kind):
    spec = kind.spec()
    learner = kind.make(spec, prior_scale=2.0)
    before = {name: value for name, value in copy_of_state(learner).items() if ".prior." in name}
    rng = np.random.default_rng(4)
    for _ in range(5):
        learner.update(random_batch(rng, spec, 3, 12))
        learner.update_target()
    after = copy_of_state(learner)
    assert before
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_restored_learner_continues_bit_for_bit_though_its_own_prior_was_another(kind, variant):
    spec = kind.spec()
    learner, resumed = kind.make(spec, **variant), kind.make(spec, seed=9, **variant)
    rng = np.random.default_rng(5)
    for _ in range(3):
        learner.update(random_batch(rng, spec, 3, 12))
    learner.update_target()
    resumed.set_state(copy_of_state(learner))
    for _ in range(3):
        batch = random_batch(rng, spec, 3, 12)
        for found, expected in zip(resumed.update(batch), learner.update(batch), strict=True):
            np.testing.assert_array_equal(found, expected)
        learner.update_target()
        resumed.update_target()
    np.testing.assert_array_equal(resumed.q_values(batch.observation), learner.q_values(batch.observation))


def test_without_a_prior_an_ensemble_is_initialised_as_before():
    spec = EnvSpec(DiscreteSpec(9), 3)
    plain, primed = (
        make_ensemble(NetworkConfig(3, "independent", (7, 5), scale), spec, np.random.default_rng(0))
        for scale in (0.0, 3.0)
    )
    assert plain.prior is None
    for name, value in plain.learned().items():
        torch.testing.assert_close(value, primed.learned()[name], rtol=0, atol=0)


def test_bf16_takes_its_prior_along_and_keeps_it_out_of_the_optimiser():
    kind = KINDS["shared-box"]
    spec = kind.spec()
    exact, rough = (kind.make(spec, prior_scale=3.0, precision=precision) for precision in ("fp32", "bf16"))
    rng = np.random.default_rng(6)
    batch = random_batch(rng, spec, 3, 12)
    np.testing.assert_allclose(rough.q_values(batch.observation), exact.q_values(batch.observation), atol=0.05)
    before = copy_of_state(rough)
    rough.update(batch)
    restored = kind.make(spec, prior_scale=3.0, precision="bf16", seed=9)
    restored.set_state(copy_of_state(rough))
    np.testing.assert_array_equal(restored.q_values(batch.observation), rough.q_values(batch.observation))
    after = copy_of_state(rough)
    assert all((after[name] == before[name]).all() for name in before if ".prior." in name)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"target_rate": 0.0}, "--target-rate must be positive and at most 1"),
        ({"target_rate": 1.1}, "--target-rate must be positive and at most 1"),
        ({"target_rate": float("nan")}, "--target-rate must be finite"),
        ({"target_rate": 0.5, "precision": "bf16"}, "--target-rate below 1 needs --precision fp32"),
    ],
)
def test_settings_that_make_no_sense_are_an_error(setting, message):
    with pytest.raises(ValueError, match=message):
        LearnerConfig(**setting)


@pytest.mark.parametrize(("scale", "bound"), [(-1.0, "at least 0"), (float("nan"), "finite"), (float("inf"), "finite")])
def test_a_prior_scale_that_makes_no_sense_is_an_error(scale, bound):
    with pytest.raises(ValueError, match=f"--prior-scale must be {bound}"):
        NetworkConfig(prior_scale=scale)
