"""Updates of both learners against the slow learner, one step at a time from the same state."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bootdqn.common.errors import TrainingError
from reference.batches import random_batch
from reference.comparison import KINDS, SINGLE, assert_same_update, copy_of_state, learner_after, slow_learner

LOSSES = ("squared", "huber")


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def without_owner_of_row(batch):
    batch.mask[2] = False
    return batch


def without_owned_column(batch):
    batch.mask[:, 1] = False
    return batch


def with_repeats(batch):
    batch.observation[1:7] = batch.observation[0]
    batch.action[1:4] = batch.action[0]
    batch.next_observation[5:9] = batch.next_observation[0]
    return batch


def with_zero_weights(batch):
    batch.weight[::2] = 0
    return batch


def with_tiny_weights(batch):
    batch.weight[:] *= np.float32(3e-8)  # Adam's epsilon outweighs the gradients
    return batch


@dataclass(frozen=True)
class Case:
    """How a batch or an ensemble differs from the ordinary one."""

    name: str
    change: object = staticmethod(lambda batch: batch)
    num_values: int = 9
    num_actions: int = 3
    ensemble: dict = field(default_factory=dict)
    batch: dict = field(default_factory=dict)
    size: int = 12


CASES = [
    Case("an ordinary batch"),
    Case("a head that owns nothing", without_owned_column),
    Case("a transition that no head owns", without_owner_of_row),
    Case("no head owns anything", batch={"owned": 0.0}),
    Case("every head owns everything", batch={"owned": 1.0}),
    Case("everything is terminated", batch={"terminated": 1.0}),
    Case("nothing is terminated", batch={"terminated": 0.0}),
    Case("observations repeat", with_repeats),
    Case("all transitions lead to where they start", lambda batch: batch._replace(next_observation=batch.observation)),
    Case("some weights are zero", with_zero_weights),
    Case("all weights are zero", lambda batch: batch._replace(weight=np.zeros_like(batch.weight))),
    Case("weights are tiny", with_tiny_weights),
    Case("errors lie on both sides of the Huber kink", batch={"reward_scale": 3.0}),
    Case("there is no discount", batch={"discount": 1.0}),
    Case("one head", ensemble={"num_heads": 1}),
    Case("one action", num_actions=1),
    Case("two actions", num_actions=2),
    Case("five actions", num_actions=5),
    Case("one unit a layer", ensemble={"hidden_sizes": (1, 1), "seed": 4}),
    Case("widths that grow", ensemble={"hidden_sizes": (3, 11)}),
    Case("widths that shrink", ensemble={"hidden_sizes": (13, 2)}),
    Case("one observation", num_values=1),
    Case("many observations, few of them in a batch", num_values=50, size=5),
    Case("a batch of one", size=1, batch={"owned": 0.8}),
    Case("the paper's widths", ensemble={"hidden_sizes": (50, 50)}, num_values=100, size=20),
]


# One step at a time


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_losses_gradients_and_step_of_an_update_are_those_of_the_slow_learner(kind, case, loss):
    spec = kind.spec(case.num_values, case.num_actions)
    config = {"loss": loss}
    learner = kind.make(spec, **case.ensemble, **config)
    slow = slow_learner(learner, spec, config)
    num_heads = case.ensemble.get("num_heads", 3)
    rng = np.random.default_rng(1)
    for step in range(3):
        batch = case.change(random_batch(rng, spec, num_heads, case.size, **case.batch))
        assert_same_update(learner, slow, batch)
        if step == 1:
            learner.update_target()


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 5), st.integers(1, 30), st.integers(1, 20))
def test_an_update_of_any_shape_agrees_with_the_slow_learner(seed, num_heads, num_actions, num_values, size):
    rng = np.random.default_rng(seed)
    widths = tuple(int(width) for width in rng.integers(1, 12, 2))
    rate = float(rng.choice([1e-4, 1e-2]))
    config = {"loss": str(rng.choice(LOSSES)), "learning_rate": rate}
    for kind in (KINDS["tabular"], KINDS["shared-box"]):
        spec = kind.spec(num_values, num_actions)
        learner = kind.make(spec, num_heads=num_heads, hidden_sizes=widths, **config)
        slow = slow_learner(learner, spec, config)
        for _ in range(2):
            assert_same_update(learner, slow, random_batch(rng, spec, num_heads, size), learning_rate=rate)


def test_gradients_are_those_of_the_slow_learner(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    slow = slow_learner(learner, spec, {})
    batch = random_batch(np.random.default_rng(2), spec, 3, 16)
    learner.update(batch)
    slow.update(batch)
    gradients = {name: value / 0.1 for name, value in slow.get_state().items() if name.startswith("first_moment")}
    assert all(np.abs(gradient).max() > 1e-3 for gradient in gradients.values())
    for name, gradient in gradients.items():
        found = copy_of_state(learner)[name] / np.float32(0.1)
        np.testing.assert_allclose(found, gradient, rtol=SINGLE, atol=SINGLE * np.abs(gradient).max(), err_msg=name)


@pytest.mark.parametrize("name", ["tabular", "independent-discrete"])
def test_the_second_moment_is_exact_up_to_rounding(name):
    spec = KINDS[name].spec()
    learner = KINDS[name].make(spec)
    batch = random_batch(np.random.default_rng(2), spec, 3, 16)
    assert_same_update(learner, slow_learner(learner, spec, {}), batch)


@pytest.mark.parametrize("name", ["independent-box", "shared-box", "shared-discrete"])
def test_updates_with_a_prior_agree_with_the_slow_learner(name):
    spec = KINDS[name].spec()
    learner = KINDS[name].make(spec, prior_scale=1.0)
    slow = slow_learner(learner, spec, {"prior_scale": 1.0})
    rng = np.random.default_rng(9)
    for _ in range(4):
        assert_same_update(learner, slow, random_batch(rng, spec, 3, 12))


def test_an_infinite_gradient_is_blamed_on_its_head():
    spec = KINDS["shared-box"].spec()
    learner = KINDS["shared-box"].make(spec)
    batch = random_batch(np.random.default_rng(10), spec, 3, 12)
    learner.update(batch)
    torch.nn.init.constant_(learner.online.heads[1].bias[2], float("inf"))
    with pytest.raises(TrainingError, match="of head 2"):
        learner.update(batch)


def test_a_head_of_a_table_that_cannot_learn_and_those_after_it_do_not_move():
    learner, spec, rng = learner_after(5, KINDS["tabular"], num_values=30, seed=11)
    before = copy_of_state(learner)
    torch.nn.init.constant_(learner.online.heads[2].bias[1], float("inf"))
    with pytest.raises(TrainingError, match="of head 1"):
        learner.update(random_batch(rng, spec, 3, 12, owned=1.0))
    after = copy_of_state(learner)
    for part in ("online", "first_moment", "second_moment"):
        name = f"{part}.heads.0.weight"
        assert (after[name][0] != before[name][0]).any(), name
        np.testing.assert_array_equal(after[name][1:], before[name][1:], err_msg=name)
    np.testing.assert_array_equal(copy_of_state(learner)["online.heads.0.weight"], after["online.heads.0.weight"])


# Heads that own nothing, rows that are absent


def test_a_head_that_owns_nothing_has_no_loss_and_does_not_move(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    before = copy_of_state(learner)
    batch = without_owned_column(random_batch(np.random.default_rng(3), spec, 3, 12))
    result = learner.update(batch)
    assert result.head_loss[1] == 0
    assert (result.head_loss[[0, 2]] > 0).all()
    after = copy_of_state(learner)
    for name in (name for name in after if name.startswith("online.heads")):
        np.testing.assert_array_equal(after[name][1], before[name][1], err_msg=name)
        assert (after[name][0] != before[name][0]).any(), name


def test_a_head_that_owns_nothing_any_more_drifts_by_its_decayed_moments(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    rng = np.random.default_rng(4)
    learner.update(random_batch(rng, spec, 3, 12, owned=1.0))
    before = copy_of_state(learner)
    learner.update(without_owned_column(random_batch(rng, spec, 3, 12)))
    after = copy_of_state(learner)
    for name in (name.removeprefix("online.") for name in after if name.startswith("online.heads")):
        first, second = after[f"first_moment.{name}"][1], after[f"second_moment.{name}"][1]
        np.testing.assert_allclose(first, 0.9 * before[f"first_moment.{name}"][1], rtol=1e-6, atol=0)
        np.testing.assert_allclose(second, 0.999 * before[f"second_moment.{name}"][1], rtol=1e-6, atol=0)
        step = 1e-3 * first.astype(np.float64) / (1 - 0.9**2) / (np.sqrt(second / (1 - 0.999**2)) + 1e-8)
        expected = before[f"online.{name}"][1] - step
        np.testing.assert_allclose(after[f"online.{name}"][1], expected, rtol=2e-7, atol=1e-8)


def test_where_no_transition_is_owned_there_is_no_error_and_nothing_moves(kind):
    spec = kind.spec()
    learner = kind.make(spec)
    before = copy_of_state(learner)
    result = learner.update(random_batch(np.random.default_rng(5), spec, 3, 12, owned=0.0))
    np.testing.assert_array_equal(result.head_loss, 0)
    np.testing.assert_array_equal(result.td_error, 0)
    after = copy_of_state(learner)
    assert after.pop("adam_steps") == before.pop("adam_steps") + 1
    for name, value in after.items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


@pytest.mark.parametrize("name", ["tabular", "independent-discrete"])
def test_rows_of_the_table_move_on_when_absent_and_stay_when_never_seen(name):
    spec = KINDS[name].spec(num_values=6)
    learner = KINDS[name].make(spec)
    slow = slow_learner(learner, spec, {})
    rng = np.random.default_rng(6)
    initial = copy_of_state(learner)["online.heads.0.weight"]
    tables = []
    for present in ([0, 1], [2], [2], [1, 2]):
        batch = random_batch(rng, spec, 3, 12, owned=1.0)
        batch = batch._replace(observation=rng.choice(present, 12), next_observation=rng.choice([3, *present], 12))
        assert_same_update(learner, slow, batch)
        tables.append(copy_of_state(learner)["online.heads.0.weight"])
    for before, after in zip([initial, *tables], tables, strict=False):
        np.testing.assert_array_equal(before[:, 3:], after[:, 3:])
        assert (before[:, 0] != after[:, 0]).any(axis=-1).all()
    np.testing.assert_array_equal(initial[:, 2], tables[0][:, 2])
    assert (tables[0][:, 1] != tables[2][:, 1]).any(axis=-1).all()


# Known by hand: all weights zero, so that the Q-values are the output's biases


def constant_learner(kind, online, target, **config):
    """Return a learner whose Q-values (K, A) are the same everywhere, exactly."""
    online, target = np.asarray(online, np.float32), np.asarray(target, np.float32)
    spec = kind.spec(num_actions=online.shape[1])
    learner = kind.make(spec, num_heads=len(online), **config)
    state = {name: np.zeros_like(value) for name, value in copy_of_state(learner).items()}
    output = max(name for name in state if name.startswith("online.heads") and name.endswith("bias"))
    state[output], state[output.replace("online", "target")] = online, target
    learner.set_state(state)
    return learner, spec, output.replace("online", "first_moment")


def test_the_online_network_chooses_and_the_target_network_values(kind):
    learner, spec, gradient = constant_learner(kind, [[1, 3, 2], [5, 4, 0]], [[7, 0.5, 9], [0.25, 8, 8]])
    batch = random_batch(np.random.default_rng(7), spec, 2, 2)
    batch = batch._replace(
        action=np.array([2, 0]),
        reward=np.float32([1, -1]),
        discount=np.float32([0.5, 0]),
        mask=np.array([[True, True], [True, False]]),
        weight=np.float32([1, 2]),
    )
    result = learner.update(batch)
    # Errors: head 0 has 2 - (1 + 0.5 * 0.5) = 0.75 and 1 - (-1) = 2; head 1 has 0 - (1 + 0.5 * 0.25) = -1.125.
    np.testing.assert_array_equal(result.head_loss, [(0.75**2 + 2 * 2**2) / 2, 1.125**2])
    np.testing.assert_array_equal(result.td_error, [(0.75 + 1.125) / 2, 2])
    expected = 0.1 * np.array([[2 * 2 * 2 / 2, 0, 2 * 0.75 / 2], [0, 0, -2 * 1.125]]) / 2  # the mean of two heads
    np.testing.assert_allclose(copy_of_state(learner)[gradient], expected, rtol=1e-6, atol=0)


def test_a_tie_of_the_online_network_goes_to_the_lowest_action(kind):
    learner, spec, _ = constant_learner(kind, [[1, 2, 2]], [[8, 16, 32]])
    batch = random_batch(np.random.default_rng(8), spec, 1, 1, owned=1.0)
    batch = batch._replace(reward=np.float32([1]), discount=np.float32([0.5]), action=np.array([0]))
    np.testing.assert_array_equal(learner.update(batch).td_error, [8])


@pytest.mark.parametrize(
    ("error", "loss", "slope"),
    [(1, 0.5, 1), (-1, 0.5, -1), (0.5, 0.125, 0.5), (-0.5, 0.125, -0.5), (3, 2.5, 1), (-3, 2.5, -1), (0, 0, 0)],
)
def test_huber_is_half_the_square_up_to_one_and_linear_beyond(kind, error, loss, slope):
    learner, spec, gradient = constant_learner(kind, [[0, 0]], [[0, 0]], loss="huber")
    batch = random_batch(np.random.default_rng(9), spec, 1, 1, owned=1.0, terminated=1.0)
    weight = np.float32([0.5])
    result = learner.update(batch._replace(reward=np.float32([-error]), action=np.array([1]), weight=weight))
    assert result.head_loss[0] == 0.5 * loss
    assert result.td_error[0] == abs(error)
    np.testing.assert_allclose(copy_of_state(learner)[gradient], [[0, 0.1 * 0.5 * slope]], rtol=1e-6, atol=0)
