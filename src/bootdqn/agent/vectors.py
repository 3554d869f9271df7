"""A vector of eight float32 numbers for Numba, with the operations that the compiled kernel needs.

Numba leaves it to LLVM which loops become vector instructions, and in which order these add. Here both are written
down, so that a sum is rounded alike on every processor, however long its vectors are.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 8
_VECTOR, _INDEX = ir.VectorType(ir.FloatType(), LANES), ir.IntType(32)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)


class _Vector(types.Type):
    """The type of eight float32 numbers."""

    def __init__(self) -> None:
        super().__init__(name="float32x8")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, of: Any) -> None:
        super().__init__(manager, of, _VECTOR)  # type: ignore[no-untyped-call]


_vector = _Vector()


def _operation(result: Any, count: int, build: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for compiled code of `count` values; `build(builder, *values)` writes its instructions."""

    def typed(*arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
            return build(builder, *values)

        return result(*arguments), generate

    definitions: dict[int, Callable[..., Any]] = {
        1: lambda _, x: typed(x),
        2: lambda _, x, y: typed(x, y),
        3: lambda _, x, y, z: typed(x, y, z),
    }
    made: Callable[..., Any] = intrinsic(definitions[count])
    return made


def _address(builder: Any, pointer: Any, start: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [start]), _VECTOR.as_pointer())


def _fill(builder: Any, x: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), x, _INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES))


def _call(builder: Any, function: str, *values: Any) -> Any:
    """Call LLVM's own `function` of vectors."""
    declared, name = ir.FunctionType(_VECTOR, [_VECTOR] * len(values)), f"llvm.{function}.v{LANES}f32"
    found = cgutils.get_or_insert_function(builder.module, declared, name)  # type: ignore[no-untyped-call]
    return builder.call(found, values)


def _differences(builder: Any, x: Any, y: Any) -> Any:
    bits = builder.bitcast(builder.fcmp_unordered("!=", x, y), ir.IntType(LANES))
    return builder.zext(bits, ir.IntType(64))


def _total(builder: Any, x: Any) -> Any:
    half = LANES // 2
    while half:
        lanes = [list(range(start, start + half)) for start in (0, half)]
        halves = (builder.shuffle_vector(x, x, ir.Constant(ir.VectorType(_INDEX, half), one)) for one in lanes)
        x, half = builder.fadd(*halves), half // 2
    return builder.extract_element(x, _INDEX(0))


def _pointers(to: Any, of: Any) -> Callable[..., Any]:
    pointer: Any = types.CPointer(to)  # type: ignore[no-untyped-call]
    return _operation(pointer, 1, lambda builder, address: builder.inttoptr(address, of.as_pointer()))


load = _operation(_vector, 2, lambda builder, pointer, start: builder.load(_address(builder, pointer, start), align=4))
"""`load(pointer, start)`: the numbers `start` to `start + 7`."""
filled = _operation(_vector, 1, _fill)
"""`filled(x)`: eight times the number x."""
fma = _operation(_vector, 3, lambda builder, *values: _call(builder, "fma", *values))
"""`fma(a, b, c)`: a * b + c, rounded once, as IEEE 754 defines it."""
root = _operation(_vector, 1, lambda builder, x: _call(builder, "sqrt", x))
"""`root(x)`: the square roots."""
rectified = _operation(_vector, 1, lambda builder, x: builder.select(builder.fcmp_ordered("<", x, _ZERO), _ZERO, x))
"""`rectified(x)`: 0 where x is negative, and x elsewhere, NaN included."""
where_nonzero = _operation(
    _vector, 2, lambda builder, x, y: builder.select(builder.fcmp_unordered("!=", x, _ZERO), y, _ZERO)
)
"""`where_nonzero(x, y)`: y where x is not 0, and 0 elsewhere."""
differences = _operation(types.uint64, 2, _differences)
"""`differences(x, y)`: the lanes in which x and y differ, as bits; NaN differs from everything."""
total = _operation(types.float32, 1, _total)
"""`total(x)`: the sum of both halves, of their halves, and of the last two numbers."""
lowest_bit = _operation(types.int64, 1, lambda builder, bits: builder.cttz(bits, cgutils.true_bit))
"""`lowest_bit(bits)`: the index of the lowest set bit of an integer that is not 0."""
floats = _pointers(types.float32, ir.FloatType())
"""`floats(address)`: the pointer to float32 numbers."""
integers = _pointers(types.int64, ir.IntType(64))
"""`integers(address)`: the pointer to int64 numbers."""


@intrinsic
def _store(_: Any, pointer: Any, start: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        builder.store(values[2], _address(builder, *values[:2]), align=4)
        return context.get_dummy_value()

    return types.none(pointer, start, x), generate


@intrinsic
def _data_of(_: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, values[0]).data

    return types.CPointer(array.dtype)(array), generate  # type: ignore[no-untyped-call]


store: Callable[..., None] = _store
"""`store(pointer, start, x)`: write x to the numbers `start` to `start + 7`."""
data_of: Callable[..., Any] = _data_of
"""`data_of(array)`: the pointer to the numbers of an array without gaps."""


def _overload(operation: Any, instruction: str) -> None:
    """Let `operation`, as `operator.add`, of two vectors be an instruction."""
    compute = _operation(_vector, 2, lambda builder, x, y: getattr(builder, instruction)(x, y))

    @overload(operation)
    def choose(x: Any, y: Any) -> Any:
        def apply(x: Any, y: Any) -> Any:
            return compute(x, y)

        return apply if isinstance(x, _Vector) and isinstance(y, _Vector) else None


_overload(operator.add, "fadd")
_overload(operator.sub, "fsub")
_overload(operator.mul, "fmul")
_overload(operator.truediv, "fdiv")
