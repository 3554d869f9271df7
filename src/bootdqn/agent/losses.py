"""The learning rule as pure functions (Algorithm 1 of the paper, lines 10 to 13).

Shapes: B transitions, K heads, A actions; Q-values are (B, K, A).
"""

import torch
from torch import Tensor
from torch.nn import functional


def q_targets(
    reward: Tensor, discount: Tensor, next_choosing: Tensor, next_target: Tensor, next_legal: Tensor | None = None
) -> Tensor:
    """Return every head's target `r + discount * Qtarget_h(s', argmax_a Qchoosing_h(s', a))`, a over legal actions.

    Args:
        reward: (B,).
        discount: (B,), 0 after a terminated transition.
        next_choosing: Q-values (B, K, A) of the next observations that choose the action: the online networks' in
            double DQN, the target networks' in DQN.
        next_target: Q-values (B, K, A) of the target networks, which evaluate it.
        next_legal: Legal actions of the next states (B, A); None where all are.

    Returns:
        Targets (B, K).
    """
    if next_legal is not None:
        next_choosing = next_choosing.masked_fill(~next_legal[:, None], -torch.inf)
    chosen = next_choosing.argmax(dim=-1, keepdim=True)
    value = next_target.gather(-1, chosen)[..., 0]
    return reward[:, None] + discount[:, None] * value


def action_values(q: Tensor, action: Tensor) -> Tensor:
    """Return the Q-values (B, K) of the actions (B,) that were taken, from `q` (B, K, A)."""
    return q.gather(-1, action[:, None, None].expand(*q.shape[:-1], 1))[..., 0]


def head_losses(td_error: Tensor, mask: Tensor, weight: Tensor, kind: str) -> Tensor:
    """Return each head's loss over the transitions it owns: `sum_b mask * weight * loss / max(1, sum_b mask)`.

    The loss of the ensemble is their mean over heads. An infinite error affects only the heads that own it.

    Args:
        td_error: Value less target (B, K).
        mask: Which head owns which transition (B, K), bool.
        weight: Importance weights (B,).
        kind: `"squared"` or `"huber"` (delta 1).

    Returns:
        Losses (K,).
    """
    error = _owned(td_error, mask)
    if kind == "squared":
        loss = error.square()
    else:
        loss = functional.huber_loss(error, torch.zeros_like(error), reduction="none")
    return (loss * weight[:, None]).sum(dim=0) / mask.to(loss.dtype).sum(dim=0).clamp(min=1)


def mean_masked_error(td_error: Tensor, mask: Tensor) -> Tensor:
    """Return the mean absolute TD error (B,) over the heads that own each transition; 0 where none does."""
    return _owned(td_error, mask).abs().sum(dim=1) / mask.to(td_error.dtype).sum(dim=1).clamp(min=1)


def _owned(td_error: Tensor, mask: Tensor) -> Tensor:
    """Return the errors, 0 where the head does not own the transition. Times 0, infinity would be NaN."""
    return torch.where(mask, td_error, 0)
