"""Gain, EVOI, UCB, IDS and the disagreement of an ensemble: pure functions of Q-values (..., K, A)."""

import math
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from bootdqn.exploration.arrays import AnyArray, device_of, namespace_of_q, one_hot, population_variance


def of_head(values: AnyArray, head: int | AnyArray) -> AnyArray:
    """Return the row (..., A) of `values` (..., K, A) that belongs to `head`, an int or an integer array (...).

    Raises:
        TypeError: `head` is not made of integers.
        ValueError: `head` is out of range, or has another shape than the states. An array that lives in PyTorch or JAX
            is not read to find out; there, a head out of range gives NaN.
    """
    xp = namespace_of_q(values)
    num_heads = values.shape[-2]
    if isinstance(head, int | np.integer) and not isinstance(head, bool):
        _check_head(int(head), num_heads)
        return values[..., int(head), :]
    index = _head_array(head, values, xp)
    if tuple(index.shape) != tuple(values.shape[:-2]):
        raise ValueError(
            f"head must be an int or have one entry a state, shape {tuple(values.shape[:-2])}; got {tuple(index.shape)}"
        )
    chosen = one_hot(index, num_heads, xp)
    row = xp.sum(xp.where(chosen[..., None], values, 0.0), axis=-2)
    return xp.where(xp.any(chosen, axis=-1)[..., None], row, xp.nan)


def _head_array(head: Any, values: AnyArray, xp: Any) -> AnyArray:
    """Return an array of heads as one of the same kind as `values`, checked as far as it can be without a trace."""
    if not hasattr(head, "dtype"):
        raise TypeError(f"head must be an int or an integer array, got {type(head).__name__}")
    if isinstance(head, np.ndarray) and head.size and np.issubdtype(head.dtype, np.integer):
        _check_head(int(head.min()), values.shape[-2])
        _check_head(int(head.max()), values.shape[-2])
    device = None if device_of(head) is None else device_of(values)
    index = xp.asarray(head.copy() if isinstance(head, np.ndarray) else head, device=device)
    if not xp.isdtype(index.dtype, "integral"):
        raise TypeError(f"head must be an int or an integer array, got dtype {index.dtype}")
    return index


def _check_head(head: int, num_heads: int) -> None:
    if not 0 <= head < num_heads:
        raise ValueError(f"head must be in 0..{num_heads - 1} for an ensemble of {num_heads}, got {head}")


Reduction = Literal["mean", "sum"]


def gain(q: AnyArray) -> AnyArray:
    """Gain of information of every head and action (equation 1 of the paper).

    What head k stands to learn if it is right and the ensemble is wrong:

        gain[k, a1] = max(m2 - q[k, a1], 0)        the best action may be worse than the second best
        gain[k, a]  = max(q[k, a] - m(a1), 0)      another action may be better than the best

    Args:
        q: Q-values (..., K, A), A >= 2.

    Returns:
        Gain (..., K, A), never negative.

    Example:
        >>> import numpy as np
        >>> gain(np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.5]]))
        array([[0. , 0. ],
               [0.5, 0. ],
               [0.5, 0. ]])
    """
    xp = namespace_of_q(q, min_actions=2)
    mean = xp.mean(q, axis=-2)
    is_best = one_hot(xp.argmax(mean, axis=-1), q.shape[-1], xp)
    best_value = xp.max(mean, axis=-1, keepdims=True)
    second_value = xp.max(xp.where(is_best, -xp.inf, mean), axis=-1, keepdims=True)
    is_best = is_best[..., None, :]
    higher = xp.where(is_best, second_value[..., None, :], q)  # minus lower: m2 - q[k, a1], q[k, a] - m(a1)
    lower = xp.where(is_best, q, best_value[..., None, :])
    return xp.clip(higher - lower, 0, None)


def evoi(q: AnyArray, reduce: Reduction = "mean") -> AnyArray:
    """Expected value of information of every action: the gain averaged over heads (equation 2 of the paper).

    Args:
        q: Q-values (..., K, A), A >= 2.
        reduce: `"mean"` is equation 2; `"sum"` is what the paper uses on DeepSea.

    Returns:
        EVOI (..., A), never negative.

    Example:
        >>> import numpy as np
        >>> evoi(np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.5]]), reduce="sum")
        array([1., 0.])
    """
    check_reduction(reduce)
    xp = namespace_of_q(q, min_actions=2)
    return (xp.mean if reduce == "mean" else xp.sum)(gain(q), axis=-2)


def check_reduction(reduce: str) -> None:
    """Raise a ValueError unless `reduce` is one of `Reduction`."""
    if reduce not in get_args(Reduction):
        raise ValueError(f"reduce must be one of {', '.join(get_args(Reduction))}; got {reduce!r}")


def ucb(q: AnyArray, scale: float = 1.0) -> AnyArray:
    """Upper confidence bound `m(a) + scale * s(a)` (Chen et al. 2017).

    Args:
        q: Q-values (..., K, A).
        scale: How many standard deviations of optimism.

    Returns:
        Scores (..., A), higher is better.
    """
    xp = namespace_of_q(q)
    mean, variance = _mean_and_variance(q, xp)
    return mean + scale * _deviation(variance, xp)


def ids(q: AnyArray, regret_scale: float = 0.1, noise_variance: float = 1.0) -> AnyArray:
    """Information-directed sampling score `-D(a)^2 / I(a)` (DQN-IDS, Nikolov et al. 2019).

    With `l = regret_scale` and `rho2 = noise_variance`:

        D(a) = max_b (m(b) + l s(b)) - (m(a) - l s(a))       the regret action a may cost
        I(a) = log(1 + s(a)^2 / rho2) + 1e-5                 the information it may bring

    Args:
        q: Q-values (..., K, A).
        regret_scale: Width of the confidence interval, in standard deviations.
        noise_variance: Variance of the return that no data removes.

    Returns:
        Scores (..., A), higher is better.

    Raises:
        ValueError: `noise_variance` is not positive.
    """
    check_noise_variance(noise_variance)
    xp = namespace_of_q(q)
    mean, variance = _mean_and_variance(q, xp)
    width = regret_scale * _deviation(variance, xp)
    regret = xp.max(mean + width, axis=-1, keepdims=True) - (mean - width)
    information = xp.log1p(variance / noise_variance) + 1e-5
    return -(regret**2) / information


def check_noise_variance(noise_variance: Any) -> None:
    """Raise a ValueError unless `noise_variance` is positive, or traced by JAX and so without a value yet."""
    if isinstance(noise_variance, Real) and not float(noise_variance) > 0:
        raise ValueError(f"noise_variance must be positive, got {noise_variance}")


def disagreement(q: AnyArray) -> AnyArray:
    """How far apart the heads are about a state: `s(a)` averaged over its actions.

    Args:
        q: Q-values (..., K, A).

    Returns:
        Disagreement (...), in units of the return; 0 where all heads agree.

    Example:
        >>> import numpy as np
        >>> disagreement(np.array([[1.0, 2.0], [5.0, 2.0]]))
        np.float64(1.0)
    """
    xp = namespace_of_q(q)
    mean, variance = _mean_and_variance(q, xp)
    allowed = xp.astype(mean != -xp.inf, q.dtype)  # one that is ruled out has no variance
    return xp.sum(_deviation(variance, xp), axis=-1) / xp.clip(xp.sum(allowed, axis=-1), 1, None)


def information_gain(q: AnyArray, temperature: float = 1.0) -> AnyArray:
    """Information that a state holds about which head is right: how far the heads' policies are from their average.

    With `pi_k(a)` proportional to `exp(q[k, a] / temperature)` and `pi_avg(a) = mean_k pi_k(a)` (Chen et al. 2017):

        b = mean_k KL(pi_k || pi_avg) = mean_k sum_a pi_k(a) log(pi_k(a) / pi_avg(a))

    Args:
        q: Q-values (..., K, A).
        temperature: How far apart Q-values must be to count as different.

    Returns:
        Information in nats (...), from 0 where all heads agree to `log K` where each is sure of another action.

    Example:
        >>> import numpy as np
        >>> information_gain(np.array([[[90.0, 0.0], [0.0, 90.0]], [[1.0, 0.0], [1.0, 0.0]]])).round(3)
        array([0.693, 0.   ])
    """
    xp = namespace_of_q(q)
    log_policy = log_boltzmann(q, temperature, xp)
    policy = xp.exp(log_policy)
    average = xp.clip(xp.mean(policy, axis=-2, keepdims=True), float(xp.finfo(q.dtype).smallest_normal), None)
    divergence = xp.sum(policy * xp.where(q == -xp.inf, 0.0, log_policy - xp.log(average)), axis=-1)
    return xp.clip(xp.mean(divergence, axis=-1), 0, math.log(q.shape[-2]))


def log_boltzmann(q: AnyArray, temperature: float, xp: Any) -> AnyArray:
    """Return the log-probabilities of `softmax(q / temperature)` over the last axis.

    Half of each difference is taken, so that it cannot overflow, and what is too unlikely for q's type to hold its
    probability is kept at a finite one that is as good as zero. An action with Q-value -inf has none.
    """
    limits = xp.finfo(q.dtype)
    smallest, largest = float(limits.smallest_normal), float(limits.max)
    if not smallest <= temperature <= largest:
        raise ValueError(
            f"temperature must be between {smallest:.2g} and {largest:.2g} for {q.dtype}, got {temperature}"
        )
    least = 2 * math.log(smallest)
    half = q / 2 - xp.max(q, axis=-1, keepdims=True) / 2
    logits = 2 * (xp.clip(half, max(least / 2 * temperature, -largest), None) / temperature)
    logits = xp.where(q == -xp.inf, -xp.inf, logits)
    return logits - xp.log(xp.sum(xp.exp(logits), axis=-1, keepdims=True))


def _mean_and_variance(q: AnyArray, xp: Any) -> tuple[AnyArray, AnyArray]:
    """Return both over the heads of `q`, each (..., A); an action that is ruled out has mean -inf and no variance."""
    mean = xp.mean(q, axis=-2)
    return mean, population_variance(xp.where((mean == -xp.inf)[..., None, :], 0.0, q), -2, xp)


def _deviation(variance: AnyArray, xp: Any) -> AnyArray:
    """Return the square root, with a gradient of 0 where all heads agree."""
    agreed = variance == 0
    return xp.where(agreed, 0.0, xp.where(agreed, 1.0, variance) ** 0.5)
