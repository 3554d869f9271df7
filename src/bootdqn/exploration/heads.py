"""The values of the active head: an int, or an integer array (...) with one head for every state."""

from typing import Any

import numpy as np

from bootdqn.exploration.arrays import Array, device_of, namespace_of_q, one_hot


def of_head(values: Array, head: int | Array) -> Array:
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


def _head_array(head: Any, values: Array, xp: Any) -> Array:
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
