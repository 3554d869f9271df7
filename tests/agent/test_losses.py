"""The learning rule: hand-worked numbers, a loop over heads and transitions, and its gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.agent.losses import action_values, head_losses, mean_masked_error, q_targets


def tensor(values):
    return torch.tensor(values, dtype=torch.float32)


def rule(kind, error):
    """Return loss and slope of one TD error."""
    if kind == "squared":
        return error**2, 2 * error
    return (error**2 / 2, error) if abs(error) <= 1 else (abs(error) - 0.5, np.sign(error))


# Targets


def test_the_online_values_choose_the_action_that_the_target_values_rate():
    online = tensor([[[1, 5, 2], [9, 0, 3]]])
    target = tensor([[[100, 20, 300], [7, 800, 900]]])
    targets = q_targets(tensor([0.5]), tensor([0.25]), online, target)
    assert targets.tolist() == [[0.5 + 0.25 * 20, 0.5 + 0.25 * 7]]


def test_a_terminated_transition_is_worth_its_reward_alone():
    q = tensor([[[1, 2]], [[3, 4]]])
    assert q_targets(tensor([6, 7]), tensor([0, 1]), q, q).tolist() == [[6], [11]]


def test_a_tie_goes_to_the_lowest_action():
    online, target = tensor([[[2, 2, 1]]]), tensor([[[10, 20, 30]]])
    assert q_targets(tensor([0]), tensor([1]), online, target).item() == 10


def test_the_value_of_an_action_is_taken_from_every_head():
    q = torch.arange(2 * 3 * 4).reshape(2, 3, 4)
    assert action_values(q, torch.tensor([3, 0])).tolist() == [[3, 7, 11], [12, 16, 20]]


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 5), st.integers(1, 5))
def test_targets_and_taken_values_are_those_of_a_loop(seed, B, K, A):
    rng = np.random.default_rng(seed)
    online, target = rng.integers(-3, 4, (2, B, K, A)).astype(np.float32)  # many ties
    reward, discount = rng.integers(-2, 3, B).astype(np.float32), rng.choice([0, 0.5], B).astype(np.float32)
    action = rng.integers(0, A, B)
    targets = q_targets(*map(torch.from_numpy, (reward, discount, online, target)))
    taken = action_values(torch.from_numpy(online), torch.from_numpy(action))
    assert targets.shape == taken.shape == (B, K)
    for b in range(B):
        for k in range(K):
            best = list(online[b, k]).index(max(online[b, k]))
            assert targets[b, k] == reward[b] + discount[b] * target[b, k, best]
            assert taken[b, k] == online[b, k, action[b]]


# Losses


def test_the_loss_of_a_head_is_the_mean_over_the_transitions_it_owns():
    td_error = tensor([[1, 2], [3, 4], [5, 6]])
    mask = torch.tensor([[True, False], [False, False], [True, True]])
    losses = head_losses(td_error, mask, tensor([1, 1, 1]), "squared")
    assert losses.tolist() == [(1 + 25) / 2, 36]


def test_weights_scale_the_losses_but_not_the_number_they_are_divided_by():
    losses = head_losses(tensor([[1], [2]]), torch.tensor([[True], [True]]), tensor([3, 0.5]), "squared")
    assert losses.tolist() == [(3 * 1 + 0.5 * 4) / 2]


@pytest.mark.parametrize("kind", ["squared", "huber"])
def test_a_head_that_owns_nothing_has_neither_loss_nor_gradient(kind):
    td_error = tensor([[1, 2], [3, 4]]).requires_grad_()
    mask = torch.tensor([[True, False], [True, False]])
    losses = head_losses(td_error, mask, tensor([1, 1]), kind)
    losses.mean().backward()
    assert losses[1] == 0
    assert td_error.grad[:, 1].tolist() == [0, 0]
    assert (td_error.grad[:, 0] != 0).all()


@pytest.mark.parametrize("error", [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", ["squared", "huber"])
def test_one_error_has_the_loss_and_slope_of_its_kind_also_at_the_kink(kind, error):
    td_error = tensor([[error]]).requires_grad_()
    loss = head_losses(td_error, torch.tensor([[True]]), tensor([1]), kind)
    loss.sum().backward()
    assert (loss.item(), td_error.grad.item()) == rule(kind, error)


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 5), st.sampled_from(["squared", "huber"]))
def test_losses_errors_and_gradients_are_those_of_a_loop(seed, B, K, kind):
    rng = np.random.default_rng(seed)
    error, weight = rng.normal(0, 1.5, (B, K)), rng.choice([0, 0.3, 1, 2], B)
    mask = rng.random((B, K)) < rng.choice([0.0, 0.5, 1.0])
    td_error = torch.from_numpy(error).requires_grad_()
    losses = head_losses(td_error, torch.from_numpy(mask), torch.from_numpy(weight), kind)
    losses.mean().backward()
    expected, gradient = np.zeros(K), np.zeros((B, K))
    for k in range(K):
        owned = max(1, mask[:, k].sum())
        for b in np.flatnonzero(mask[:, k]):
            loss, slope = rule(kind, error[b, k])
            expected[k] += weight[b] * loss / owned
            gradient[b, k] = weight[b] * slope / owned / K
    np.testing.assert_allclose(losses.detach(), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(td_error.grad, gradient, rtol=1e-12, atol=1e-14)
    mean = [np.abs(error[b, mask[b]]).mean() if mask[b].any() else 0 for b in range(B)]
    owned_error = mean_masked_error(td_error.detach(), torch.from_numpy(mask))
    np.testing.assert_allclose(owned_error, mean, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("huge", [1e30, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", ["squared", "huber"])
def test_an_error_that_overflows_spoils_only_the_head_that_owns_it(kind, huge):
    td_error = tensor([[1, 2, 3], [huge, huge, huge]]).requires_grad_()
    mask = torch.tensor([[True, True, True], [False, True, False]])
    losses = head_losses(td_error, mask, tensor([1, 1]), kind)
    losses.sum().backward()
    assert losses.shape == (3,)
    alone = tensor([[1, 3]]).requires_grad_()
    expected = head_losses(alone, torch.tensor([[True, True]]), tensor([1]), kind)
    expected.sum().backward()
    assert losses[[0, 2]].tolist() == expected.tolist()
    assert losses[1] > 1e29 or not losses[1].isfinite()
    assert td_error.grad[:, [0, 2]].tolist() == [*alone.grad.tolist(), [0, 0]]


def test_priorities_ignore_heads_that_do_not_own_the_transition():
    td_error, mask = tensor([[1, float("inf")], [float("nan"), 2]]), torch.tensor([[True, False], [False, True]])
    assert mean_masked_error(td_error, mask).tolist() == [1, 2]


def test_priorities_count_owners_alone_and_are_zero_without_one():
    td_error = tensor([[1, -3], [5, 7], [2, -4]])
    mask = torch.tensor([[True, True], [False, False], [False, True]])
    assert mean_masked_error(td_error, mask).tolist() == [2, 0, 4]
