"""Array API helpers, for formulas that work on NumPy, PyTorch and JAX arrays.

Only static properties (rank, shape, type) are checked, never values, so that the formulas can be traced by `jax.jit`,
`torch.compile(fullgraph=True)` and `torch.func.vmap`. Only `holds_nan` reads values, where there are any.
"""

import math
import sys
from typing import Any

import numpy as np

AnyArray = Any
"""An array of any library that `array_api_compat` knows; static typing has no name for "the same kind"."""


class FastNumpyNamespace:
    """NumPy namespace that skips keyword handling in the functions the formulas use; results are bit-identical.

    A run calls them at every step on the Q-values of one state, where keyword handling takes longer than the numbers.
    """

    argmax = staticmethod(lambda x, axis: x.argmax(axis))
    astype = staticmethod(lambda x, dtype: x.astype(dtype))
    max = staticmethod(lambda x, axis, keepdims=False: np.maximum.reduce(x, axis, keepdims=keepdims))
    sum = staticmethod(lambda x, axis, keepdims=False: np.add.reduce(x, axis, keepdims=keepdims))
    matrix_transpose = staticmethod(lambda x: x.swapaxes(-1, -2))
    where, inf, nan = staticmethod(np.where), np.inf, np.nan

    @staticmethod
    def mean(x: AnyArray, axis: int, keepdims: bool = False) -> AnyArray:
        """Return the mean over one axis."""
        total: AnyArray = FastNumpyNamespace.sum(x, axis, keepdims)
        return total / x.shape[axis]

    @staticmethod
    def clip(x: AnyArray, lowest: float, highest: float | None) -> AnyArray:
        """Return `x` within limits."""
        return np.maximum(x, lowest) if highest is None else np.clip(x, lowest, highest)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


_FAST_NUMPY = FastNumpyNamespace()
_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def namespace_of_q(q: AnyArray, *, min_actions: int = 1) -> Any:
    """Return the array namespace of Q-values `q` of shape (..., K, A), after checking that they are Q-values.

    Args:
        q: Floating-point array (..., K, A).
        min_actions: Number of actions that the formula needs.

    Raises:
        TypeError: `q` is not an array, or not of a real floating-point type.
        ValueError: `q` has fewer than two axes, no head, or fewer than `min_actions` actions.
    """
    if type(q) is np.ndarray and (q.dtype is _SINGLE or q.dtype is _DOUBLE):
        xp: Any = _FAST_NUMPY
    elif not (xp := _namespace(q)).isdtype(q.dtype, "real floating"):
        raise TypeError(f"q must hold real floating-point numbers, got dtype {q.dtype}; convert it first")
    if q.ndim < 2:
        raise ValueError(f"q must have shape (..., K heads, A actions), got shape {tuple(q.shape)}")
    num_heads, num_actions = q.shape[-2:]
    if num_heads < 1:
        raise ValueError(f"q must have at least 1 head, got shape {tuple(q.shape)} (..., K heads, A actions)")
    if num_actions < min_actions:
        raise ValueError(f"this needs at least {min_actions} actions, got {num_actions} in q of shape {tuple(q.shape)}")
    return xp


def clip(x: AnyArray, lowest: float, highest: float | None, xp: Any) -> AnyArray:
    """Return `x` within limits that are numbers; None is no limit.

    That of array-api-compat can be compiled by PyTorch since its version 2.10 only.
    """
    torch = None if xp is _FAST_NUMPY else sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return torch.clamp(x, lowest, highest)
    return xp.clip(x, lowest, highest)


def one_hot(index: AnyArray, depth: int, xp: Any) -> AnyArray:
    """Return a boolean array (..., depth) that is true where the last axis equals `index` (...)."""
    return xp.arange(depth, dtype=index.dtype, device=device_of(index)) == index[..., None]


def device_of(x: AnyArray) -> Any:
    """Return the device of `x` for new arrays; None for an array that JAX traces, which has no device."""
    return getattr(x, "device", None)


def population_variance(x: AnyArray, axis: int, xp: Any) -> AnyArray:
    """Return the population variance over `axis`."""
    distance = x - xp.mean(x, axis=axis, keepdims=True)
    return xp.mean(distance * distance, axis=axis)  # PyTorch's `var` warns where there are no states


def holds_nan(x: AnyArray, xp: Any) -> bool:
    """Return whether `x` holds NaN; False for a traced array or one on PyTorch's meta device, which has no values."""
    if isinstance(x, np.ndarray):  # the fastest test, for every step of a run: NaN is the largest number to argmax
        return bool(x.size) and math.isnan(x.item(x.argmax()))
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        return False
    try:
        return bool(xp.any(xp.isnan(x)))
    except (TypeError, RuntimeError):  # raised by JAX and PyTorch where there is no value
        return False


def _namespace(x: AnyArray) -> Any:
    """Return the array API namespace of `x`; that of PyTorch is in array-api-compat.

    `array_api_compat.array_namespace` would do all of this, but its caches make `torch.compile` warn.
    """
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        from array_api_compat import torch as namespace  # imports PyTorch, which is optional here

        return namespace
    raise TypeError(f"q must be a NumPy, PyTorch or JAX array, got {type(x).__name__}")
