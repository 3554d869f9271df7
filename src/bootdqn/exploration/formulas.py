"""Exploration criteria: pure functions of the Q-values of an ensemble.

Every function takes `q` of shape (..., K, A), K heads and A actions with any leading axes of states, as a NumPy,
PyTorch or JAX array, and returns an array of the same library on the same device. An action that is -inf in every head
is ruled out. Notation of the docstrings, for one state:

    q[k, a]   Q-value of head k
    m(a)      mean over heads
    s(a)      population standard deviation over heads
    a1, m2    the action with the highest mean (the lowest index on a tie), and the second highest mean
"""

import math
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from bootdqn.exploration.arrays import AnyArray, clip, device_of, namespace_of_q, one_hot, population_variance

Reduction = Literal["mean", "sum"]
_REDUCTIONS = get_args(Reduction)


def gain(q: AnyArray) -> AnyArray:
    """Compute the gain of information of every head and action (equation 1 of the paper).

    It is the value of learning that head k is right where the ensemble is wrong:

        gain[k, a1] = max(m2 - q[k, a1], 0)        the best action may be worse than the second best
        gain[k, a]  = max(q[k, a] - m(a1), 0)      another action may be better than the best

    Args:
        q: Q-values (..., K, A), A >= 2.

    Returns:
        Gain (..., K, A), never negative.

    Raises:
        TypeError: `q` is not an array of real floating-point numbers.
        ValueError: `q` has another shape, or only one action.

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
    return clip(higher - lower, 0, None, xp)


def evoi(q: AnyArray, reduce: Reduction = "mean") -> AnyArray:
    """Compute the expected value of information of every action (equation 2 of the paper).

        evoi(a) = mean_k gain[k, a]

    Args:
        q: Q-values (..., K, A), A >= 2.
        reduce: `"mean"` is equation 2; `"sum"` is the variant that the paper uses on DeepSea.

    Returns:
        EVOI (..., A), never negative.

    Raises:
        TypeError: `q` is not an array of real floating-point numbers.
        ValueError: `q` has another shape or only one action, or `reduce` is neither of the two.

    Example:
        >>> import numpy as np
        >>> evoi(np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.5]]), reduce="sum")
        array([1., 0.])
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"reduce must be one of {', '.join(_REDUCTIONS)}; got {reduce!r}")
    xp = namespace_of_q(q, min_actions=2)
    return (xp.mean if reduce == "mean" else xp.sum)(gain(q), axis=-2)


def ucb(q: AnyArray, scale: float = 1.0) -> AnyArray:
    """Compute an upper confidence bound of every action (Chen et al. 2017).

        ucb(a) = m(a) + scale * s(a)

    Args:
        q: Q-values (..., K, A).
        scale: Number of standard deviations above the mean.

    Returns:
        Scores (..., A), higher is better.

    Raises:
        TypeError: `q` is not an array of real floating-point numbers.
        ValueError: `q` has another shape.

    Example:
        >>> import numpy as np
        >>> ucb(np.array([[1.0, 2.0], [5.0, 2.0]]), scale=0.5)
        array([4., 2.])
    """
    xp = namespace_of_q(q)
    mean, variance = _mean_and_variance(q, xp)
    return mean + scale * _deviation(variance, xp)


def ids(q: AnyArray, regret_scale: float = 0.1, noise_variance: float | AnyArray = 1.0) -> AnyArray:
    """Compute the score of information-directed sampling of every action (DQN-IDS, Nikolov et al. 2019).

    With `l = regret_scale` and `rho2 = noise_variance`:

        D(a)   = max_b (m(b) + l s(b)) - (m(a) - l s(a))       regret
        I(a)   = log(1 + s(a)^2 / rho2) + 1e-5                 information
        ids(a) = -D(a)^2 / I(a)

    Args:
        q: Q-values (..., K, A).
        regret_scale: Half the width of the confidence interval, in standard deviations.
        noise_variance: Variance of the return that no data removes.

    Returns:
        Scores (..., A), higher is better.

    Raises:
        TypeError: `q` is not an array of real floating-point numbers.
        ValueError: `q` has another shape, or `noise_variance` is not positive.

    Example:
        >>> import numpy as np
        >>> ids(np.array([[0.0, 1.0], [2.0, 5.0]])).round(2)
        array([-7.63, -0.1 ])
    """
    if isinstance(noise_variance, Real) and not float(noise_variance) > 0:  # a number that JAX traces has no value
        raise ValueError(f"noise_variance must be positive, got {noise_variance}")
    xp = namespace_of_q(q)
    mean, variance = _mean_and_variance(q, xp)
    width = regret_scale * _deviation(variance, xp)
    regret = xp.max(mean + width, axis=-1, keepdims=True) - (mean - width)
    information = xp.log1p(variance / noise_variance) + 1e-5
    return -(regret**2) / information


def disagreement(q: AnyArray) -> AnyArray:
    """Compute the disagreement of the heads in every state: the standard deviation averaged over actions.

        disagreement = mean_a s(a)

    Args:
        q: Q-values (..., K, A).

    Returns:
        Disagreement (...), in units of the return; 0 where all heads agree.

    Raises:
        TypeError: `q` is not an array of real floating-point numbers.
        ValueError: `q` has another shape.

    Example:
        >>> import numpy as np
        >>> disagreement(np.array([[1.0, 2.0], [5.0, 2.0]]))
        np.float64(1.0)
    """
    xp = namespace_of_q(q)
    mean, variance = _mean_and_variance(q, xp)
    allowed = xp.astype(mean != -xp.inf, q.dtype)  # a ruled out action has no variance
    return xp.sum(_deviation(variance, xp), axis=-1) / clip(xp.sum(allowed, axis=-1), 1, None, xp)


def information_gain(q: AnyArray, temperature: float = 1.0) -> AnyArray:
    """Compute the information gain of every state: the divergence of the heads' policies from their average.

    With `pi_k(a)` proportional to `exp(q[k, a] / temperature)` and `pi_avg(a) = mean_k pi_k(a)` (Chen et al. 2017):

        b = mean_k KL(pi_k || pi_avg) = mean_k sum_a pi_k(a) log(pi_k(a) / pi_avg(a))

    Args:
        q: Q-values (..., K, A).
        temperature: Scale of the differences between Q-values, in units of the return.

    Returns:
        Information in nats (...), from 0 where all heads agree to `log K` where each is sure of another action.

    Raises:
        TypeError: `q` is not an array of real floating-point numbers.
        ValueError: `q` has another shape, or its type cannot hold `1 / temperature`.

    Example:
        >>> import numpy as np
        >>> information_gain(np.array([[[90.0, 0.0], [0.0, 90.0]], [[1.0, 0.0], [1.0, 0.0]]])).round(3)
        array([0.693, 0.   ])
    """
    xp = namespace_of_q(q)
    log_policy = log_boltzmann(q, temperature, xp)
    policy = xp.exp(log_policy)
    average = clip(xp.mean(policy, axis=-2, keepdims=True), float(xp.finfo(q.dtype).smallest_normal), None, xp)
    divergence = xp.sum(policy * xp.where(q == -xp.inf, 0.0, log_policy - xp.log(average)), axis=-1)
    return clip(xp.mean(divergence, axis=-1), 0, math.log(q.shape[-2]), xp)


def head_values(values: AnyArray, head: int | AnyArray) -> AnyArray:
    """Return the row of one head: `values[head]` for every state.

    Args:
        values: Q-values, or any other values of heads and actions (..., K, A).
        head: The head, an int, or an integer array (...) with one head for every state.

    Returns:
        The values of that head (..., A).

    Raises:
        TypeError: `head` is not made of integers.
        ValueError: `head` is out of range, or has another shape than the states. The values of a PyTorch or JAX array
            are not read to check this; a head out of range gives NaN there.

    Example:
        >>> import numpy as np
        >>> head_values(np.array([[3.0, 0.0], [0.0, 1.0]]), 1)
        array([0., 1.])
    """
    xp = namespace_of_q(values)
    num_heads = values.shape[-2]
    if isinstance(head, (int, np.integer)) and not isinstance(head, bool):
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


def log_boltzmann(q: AnyArray, temperature: float, xp: Any) -> AnyArray:
    """Compute the log-probabilities of Boltzmann policies, `log softmax(q / temperature)` over the last axis.

    Differences are halved first, so that they cannot overflow, and clipped to a finite log-probability whose
    exponential is as good as zero in q's type. A Q-value of -inf has the log-probability -inf.

    Args:
        q: Q-values (..., A).
        temperature: Small values approach the greedy policy, large ones the uniform policy.
        xp: Array namespace of `q`.

    Returns:
        Log-probabilities (..., A).

    Raises:
        ValueError: q's type cannot hold `1 / temperature`.
    """
    limits = xp.finfo(q.dtype)
    smallest, largest = float(limits.smallest_normal), float(limits.max)
    if not smallest <= temperature <= largest:
        raise ValueError(
            f"temperature must be between {smallest:.2g} and {largest:.2g} for {q.dtype}, got {temperature}"
        )
    least = 2 * math.log(smallest)
    half = q / 2 - xp.max(q, axis=-1, keepdims=True) / 2
    logits = 2 * (clip(half, max(least / 2 * temperature, -largest), None, xp) / temperature)
    logits = xp.where(q == -xp.inf, -xp.inf, logits)
    return logits - xp.log(xp.sum(xp.exp(logits), axis=-1, keepdims=True))


def _mean_and_variance(q: AnyArray, xp: Any) -> tuple[AnyArray, AnyArray]:
    """Return mean and variance over heads, each (..., A); a ruled out action has mean -inf and variance 0."""
    mean = xp.mean(q, axis=-2)
    return mean, population_variance(xp.where((mean == -xp.inf)[..., None, :], 0.0, q), -2, xp)


def _deviation(variance: AnyArray, xp: Any) -> AnyArray:
    """Return the square root of a variance, with a gradient of 0 where the variance is 0."""
    agreed = variance == 0
    return xp.where(agreed, 0.0, xp.where(agreed, 1.0, variance) ** 0.5)


def _head_array(head: Any, values: AnyArray, xp: Any) -> AnyArray:
    """Return an array of heads in the library of `values`; the range of a NumPy array is checked."""
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
