"""The state of a learner: saved and restored, its target networks, and the two learners beside each other."""

import numpy as np
import pytest
import torch

from reference.batches import choose, grid_walk, random_batch
from reference.comparison import KINDS, SINGLE, copy_of_state, learner_after

PAPER = {"hidden_sizes": (50, 50), "num_heads": 6}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def assert_equal_states(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[name], value, err_msg=name, strict=True)


def assert_equal_results(found, expected):
    for field, value in zip(found, expected, strict=True):
        np.testing.assert_array_equal(field, value)


def continue_both(learner, resumed, batches, copy_after=None):
    """Give both the same updates, and compare their results and states bit for bit."""
    for number, batch in enumerate(batches):
        assert_equal_results(resumed.update(batch), learner.update(batch))
        if number == copy_after:
            learner.update_target()
            resumed.update_target()
    assert_equal_states(copy_of_state(resumed), copy_of_state(learner))


# Save and restore


@pytest.mark.parametrize("hidden_sizes", [(7, 5), (50, 50)])
def test_a_restored_learner_continues_bit_for_bit(kind, hidden_sizes):
    spec = kind.spec(num_values=60)
    learner = kind.make(spec, hidden_sizes=hidden_sizes)
    resumed = kind.make(spec, hidden_sizes=hidden_sizes, seed=9)
    rng = np.random.default_rng(0)
    batches = [random_batch(rng, spec, 3, 16) for _ in range(20)]
    for batch in batches[:7]:
        learner.update(batch)
    learner.update_target()
    resumed.set_state(copy_of_state(learner))
    continue_both(learner, resumed, batches[7:], copy_after=4)


def test_a_tabular_learner_restored_between_two_target_copies_continues_bit_for_bit():
    kind = KINDS["tabular"]
    spec = kind.spec(num_values=400, num_actions=2)
    learner, resumed = kind.make(spec, **PAPER), kind.make(spec, **PAPER)
    walk = grid_walk(np.random.default_rng(1), 20, 2000, 6)
    rng = np.random.default_rng(2)
    batches = [choose(walk, rng.integers(0, 2000, 128)) for _ in range(30)]
    for batch in batches[:15]:
        learner.update(batch)
    resumed.set_state(copy_of_state(learner))
    continue_both(learner, resumed, batches[15:], copy_after=10)


def test_reading_the_state_or_the_values_of_a_tabular_learner_changes_nothing():
    kind = KINDS["tabular"]
    spec = kind.spec(num_values=60)
    learners = [kind.make(spec) for _ in range(4)]
    rng = np.random.default_rng(6)
    for number in range(137):
        batch = random_batch(rng, spec, 3, 4)
        results = [learner.update(batch) for learner in learners]
        always, values, now_and_then, _ = learners
        copy_of_state(always)
        values.q_values(rng.integers(0, 60, 5))
        if number % 50 == 7:
            now_and_then.online  # noqa: B018 - reading is what matters
        if number % 30 == 11:
            for learner in learners:
                learner.update_target()
        for result in results[1:]:
            assert_equal_results(result, results[0])
    everywhere = np.arange(60)
    for learner in learners[1:]:
        np.testing.assert_array_equal(learner.q_values(everywhere), learners[0].q_values(everywhere))
        assert_equal_states(copy_of_state(learner), copy_of_state(learners[0]))


def test_the_ensemble_of_a_tabular_learner_is_always_up_to_date():
    learner, spec, rng = learner_after(20, KINDS["tabular"], num_values=60, seed=7)
    weights = learner.online.state_dict()["heads.0.weight"].clone().numpy()
    np.testing.assert_array_equal(weights, copy_of_state(learner)["online.heads.0.weight"])
    learner.update(random_batch(rng, spec, 3, 4))
    learner.update_target()
    state = copy_of_state(learner)
    np.testing.assert_array_equal(state["target.heads.0.weight"], state["online.heads.0.weight"])


def test_a_row_whose_first_moment_has_decayed_to_zero_keeps_decaying_after_resuming():
    learner, spec, rng = learner_after(20, KINDS["tabular"], num_values=60, seed=7)
    state = copy_of_state(learner)
    state["first_moment.heads.0.weight"][:] = 0
    learner.set_state(state)
    batches = [random_batch(rng, spec, 3, 4) for _ in range(3)]
    for batch in batches:
        learner.update(batch)
    absent = np.setdiff1d(np.arange(60), np.concatenate([batch.observation for batch in batches]))
    before, after = (one["second_moment.heads.0.weight"][:, absent] for one in (state, copy_of_state(learner)))
    assert before.any()
    np.testing.assert_allclose(after, before * 0.999**3, rtol=1e-4)


@pytest.mark.parametrize("steps", [0, 3])
def test_restoring_a_state_replaces_all_earlier_state_of_a_learner(kind, steps):
    spec = kind.spec()
    learner, used = kind.make(spec), kind.make(spec, seed=7)
    rng = np.random.default_rng(3)
    for _ in range(5):
        used.update(random_batch(rng, spec, 3, 16))
    used.update_target()
    used.update(random_batch(rng, spec, 3, 16))
    for _ in range(steps):
        learner.update(random_batch(rng, spec, 3, 16))
    learner.update_target()
    used.set_state(copy_of_state(learner))
    assert_equal_states(used.get_state(), copy_of_state(learner))
    continue_both(learner, used, [random_batch(rng, spec, 3, 16) for _ in range(4)], copy_after=1)


def test_a_state_that_was_set_is_copied(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    rng = np.random.default_rng(4)
    learner.update(random_batch(rng, spec, 3, 16))
    state = copy_of_state(learner)
    kept = {name: value.copy() for name, value in state.items()}
    learner.set_state(state)
    learner.update(random_batch(rng, spec, 3, 16))
    learner.update_target()
    assert_equal_states(state, kept)
    for value in state.values():
        value[...] = 0
    assert all(np.isfinite(learner.q_values(random_batch(rng, spec, 3, 4).observation)).ravel())
    assert np.abs(copy_of_state(learner)["online.heads.0.weight"]).max() > 0


def test_state_is_complete(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    parameters = {name: tuple(value.shape) for name, value in learner.online.named_parameters()}
    for steps in range(3):
        state = copy_of_state(learner)
        assert state.pop("adam_steps") == steps
        parts = ("online", "target", "first_moment", "second_moment")
        expected = {f"{part}.{name}": shape for part in parts for name, shape in parameters.items()}
        assert {name: value.shape for name, value in state.items()} == expected
        assert {value.dtype for value in state.values()} == {np.dtype(np.float32)}
        learner.update(random_batch(np.random.default_rng(steps), spec, 3, 16))


def test_state_passes_from_one_learner_to_the_other_and_back():
    spec = KINDS["tabular"].spec()
    tabular, autograd = KINDS["tabular"].make(spec), KINDS["independent-discrete"].make(spec, seed=5)
    rng = np.random.default_rng(5)
    for giver, taker in ((tabular, autograd), (autograd, tabular), (tabular, autograd)):
        for _ in range(3):
            giver.update(random_batch(rng, spec, 3, 16))
        giver.update_target()
        giver.update(random_batch(rng, spec, 3, 16))
        state = giver.get_state()
        taker.set_state(state)
        assert_equal_states(taker.get_state(), state)
        batch = random_batch(rng, spec, 3, 16)
        for found, expected in zip(taker.update(batch), giver.update(batch), strict=True):
            np.testing.assert_allclose(found, expected, rtol=SINGLE)


def test_a_state_of_another_shape_is_an_error():
    spec = KINDS["tabular"].spec()
    single = KINDS["tabular"].make(spec, num_heads=1).get_state()
    with pytest.raises(ValueError, match="in the state"):
        KINDS["tabular"].make(spec, num_heads=3).set_state(single)


# Target networks


def test_targets_stay_until_they_are_copied(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    rng = np.random.default_rng(6)
    start = {name: value for name, value in copy_of_state(learner).items() if name.startswith("target.")}
    for name, value in start.items():
        np.testing.assert_array_equal(value, copy_of_state(learner)[name.replace("target", "online")])
    for _ in range(3):
        learner.update(random_batch(rng, spec, 3, 16))
    for name, value in start.items():
        np.testing.assert_array_equal(copy_of_state(learner)[name], value)
    learner.update_target()
    state = copy_of_state(learner)
    for name, value in start.items():
        np.testing.assert_array_equal(state[name], state[name.replace("target", "online")])
        assert (state[name] != value).any()


def test_the_next_observation_of_a_terminated_transition_is_never_read():
    kind = KINDS["tabular"]
    spec = kind.spec()
    learner, other = kind.make(spec), kind.make(spec)
    batch = random_batch(np.random.default_rng(7), spec, 3, 16, terminated=0.5)
    nowhere = np.where(batch.discount == 0, -(10**12), batch.next_observation)
    assert_equal_results(learner.update(batch), other.update(batch._replace(next_observation=nowhere)))
    assert_equal_states(copy_of_state(learner), copy_of_state(other))


# Q-values


def test_q_values_are_those_of_the_online_ensemble_before_and_after_learning(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    rng = np.random.default_rng(8)
    for _ in range(3):
        for size in (1, 5):
            observation = random_batch(rng, spec, 3, size).observation
            q = learner.q_values(observation)
            assert q.shape == (size, 3, spec.num_actions)
            assert q.dtype == np.float32
            with torch.no_grad():
                np.testing.assert_allclose(q, learner.online(torch.from_numpy(observation)), rtol=SINGLE, atol=SINGLE)
        before = q
        learner.update(random_batch(rng, spec, 3, 16))
        assert (learner.q_values(observation) != before).any()


def test_the_tabular_learner_learns_in_the_memory_of_its_ensemble():
    spec = KINDS["tabular"].spec()
    learner = KINDS["tabular"].make(spec)
    parameters = [parameter.detach().clone() for parameter in learner.online.parameters()]
    learner.update(random_batch(np.random.default_rng(9), spec, 3, 16))
    assert all((new != old).any() for new, old in zip(learner.online.parameters(), parameters, strict=True))
    with torch.no_grad():
        for parameter in learner.online.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(learner.q_values(np.arange(9)), 0)
    assert all((value == 0).all() for name, value in copy_of_state(learner).items() if name.startswith("online."))


# The two learners beside each other


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_both_learners_agree_over_a_hundred_updates(loss, seed):
    spec = KINDS["tabular"].spec(num_values=100, num_actions=2)
    both = [KINDS[name].make(spec, loss=loss, seed=seed, **PAPER) for name in ("tabular", "independent-discrete")]
    walk = grid_walk(np.random.default_rng(10 + seed), 10, 1000, 6)
    rng = np.random.default_rng(11)
    losses = []
    for step in range(100):
        batch = choose(walk, rng.integers(0, 1000, 64))
        found, expected = (learner.update(batch) for learner in both)
        np.testing.assert_allclose(found.head_loss, expected.head_loss, rtol=2e-4, atol=0, err_msg=f"update {step}")
        tolerance = 2e-4 * expected.td_error.mean()
        np.testing.assert_allclose(found.td_error, expected.td_error, rtol=0, atol=tolerance, err_msg=f"update {step}")
        losses.append(expected.head_loss.mean())
        if step % 10 == 9:
            for learner in both:
                learner.update_target()
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) / 20  # they learned something meanwhile
