"""Four array libraries behind one face, to ask each for the same thing."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import torch


@dataclass(frozen=True)
class Library:
    """How to make an array of one library, recognise it and read it."""

    name: str
    kinds: tuple[type, ...]
    """What its arrays are instances of."""
    dtypes: tuple[str, ...]
    """The floating-point types it has."""
    make: Callable[[np.ndarray, str | None], Any]
    read: Callable[[Any], np.ndarray]

    def array(self, values: Any, dtype: str | None = None) -> Any:
        """Return `values` as an array of this library, of the named type or else the type NumPy would give them."""
        return self.make(np.asarray(values), dtype)

    def dtype_of(self, x: Any) -> str:
        """Return the bare name of the type of `x`."""
        return str(x.dtype).split(".")[-1]

    def doubles(self, dtype: str) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which this library has `dtype`; JAX has float64 only where it is asked to."""
        return jax.enable_x64(True) if self.name == "jax" and dtype == "float64" else contextlib.nullcontext()


def _torch_array(values: np.ndarray, dtype: str | None) -> torch.Tensor:
    return torch.tensor(values, dtype=getattr(torch, dtype) if dtype else None)


def _torch_read(x: torch.Tensor) -> np.ndarray:
    return (x.double() if x.dtype.is_floating_point else x).detach().numpy()


def _jax_read(x: jax.Array) -> np.ndarray:
    return np.asarray(x).astype(np.float64 if jnp.issubdtype(x.dtype, jnp.floating) else np.int64)


NUMPY = Library(
    name="numpy",
    kinds=(np.ndarray, np.generic),
    dtypes=("float16", "float32", "float64"),
    make=lambda values, dtype: np.array(values, dtype=dtype),
    read=np.asarray,
)
TORCH = Library(
    name="torch",
    kinds=(torch.Tensor,),
    dtypes=("float16", "bfloat16", "float32", "float64"),
    make=_torch_array,
    read=_torch_read,
)
JAX = Library(
    name="jax",
    kinds=(jax.Array,),
    dtypes=("float16", "bfloat16", "float32", "float64"),
    make=lambda values, dtype: jnp.asarray(values, dtype=dtype),
    read=_jax_read,
)
STRICT = Library(
    name="array_api_strict",
    kinds=(type(array_api_strict.asarray(0.0)),),
    dtypes=("float32", "float64"),
    make=lambda values, dtype: array_api_strict.asarray(values, dtype=getattr(array_api_strict, dtype or "", None)),
    read=np.asarray,
)
LIBRARIES = (NUMPY, TORCH, JAX, STRICT)
"""Everything that the formulas are promised to take, and the strictest reading of the array API standard."""
