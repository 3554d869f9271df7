"""Vectors of eight and of sixteen float32 numbers for Numba, with the operations that the compiled kernels need.

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

LANES, WIDE = 8, 16
_INDEX = ir.IntType(32)


class _Vector(types.Type):
    """The type of some float32 numbers."""

    def __init__(self, lanes: int) -> None:
        super().__init__(name=f"float32x{lanes}")
        self.lanes = lanes


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, of: Any) -> None:
        super().__init__(manager, of, ir.VectorType(ir.FloatType(), of.lanes))  # type: ignore[no-untyped-call]


_narrow, _wide = _Vector(LANES), _Vector(WIDE)


def _operation(result: Any, count: int, build: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for compiled code of `count` values.

    Args:
        result: The type that it returns; None for that of its first argument.
        count: The number of its arguments.
        build: `build(builder, *values)` writes its instructions.
    """

    def typed(*arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
            return build(builder, *values)

        return (arguments[0] if result is None else result)(*arguments), generate

    definitions: dict[int, Callable[..., Any]] = {
        1: lambda _, x: typed(x),
        2: lambda _, x, y: typed(x, y),
        3: lambda _, x, y, z: typed(x, y, z),
    }
    made: Callable[..., Any] = intrinsic(definitions[count])
    return made


def _zero(x: Any) -> Any:
    return ir.Constant(x.type, [0.0] * x.type.count)


def _address(builder: Any, pointer: Any, start: Any, of: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [start]), of.as_pointer())


def _loader(vector: Any) -> Callable[..., Any]:
    of = ir.VectorType(ir.FloatType(), vector.lanes)
    return _operation(
        vector, 2, lambda builder, pointer, start: builder.load(_address(builder, pointer, start, of), align=4)
    )


def _filler(vector: Any) -> Callable[..., Any]:
    of, lanes = ir.VectorType(ir.FloatType(), vector.lanes), ir.VectorType(_INDEX, vector.lanes)

    def fill(builder: Any, x: Any) -> Any:
        one = builder.insert_element(ir.Constant(of, ir.Undefined), x, _INDEX(0))
        return builder.shuffle_vector(one, one, ir.Constant(lanes, [0] * vector.lanes))

    return _operation(vector, 1, fill)


def _call(builder: Any, function: str, *values: Any) -> Any:
    """Call LLVM's own `function` of vectors."""
    of = values[0].type
    declared, name = ir.FunctionType(of, [of] * len(values)), f"llvm.{function}.v{of.count}f32"
    found = cgutils.get_or_insert_function(builder.module, declared, name)  # type: ignore[no-untyped-call]
    return builder.call(found, values)


def _differences(builder: Any, x: Any, y: Any) -> Any:
    bits = builder.bitcast(builder.fcmp_unordered("!=", x, y), ir.IntType(x.type.count))
    return builder.zext(bits, ir.IntType(64))


def _total(builder: Any, x: Any) -> Any:
    half = x.type.count // 2
    while half:
        lanes = [list(range(start, start + half)) for start in (0, half)]
        halves = (builder.shuffle_vector(x, x, ir.Constant(ir.VectorType(_INDEX, half), one)) for one in lanes)
        x, half = builder.fadd(*halves), half // 2
    return builder.extract_element(x, _INDEX(0))


def _pointers(to: Any, of: Any) -> Callable[..., Any]:
    pointer: Any = types.CPointer(to)  # type: ignore[no-untyped-call]
    return _operation(pointer, 1, lambda builder, address: builder.inttoptr(address, of.as_pointer()))


load, load_wide = _loader(_narrow), _loader(_wide)
"""`load(pointer, start)`: the numbers `start` to `start + 7`, or to `start + 15`."""
filled, filled_wide = _filler(_narrow), _filler(_wide)
"""`filled(x)`: eight times the number x, or sixteen times."""
fma = _operation(None, 3, lambda builder, *values: _call(builder, "fma", *values))
"""`fma(a, b, c)`: a * b + c, rounded once, as IEEE 754 defines it."""
root = _operation(None, 1, lambda builder, x: _call(builder, "sqrt", x))
"""`root(x)`: the square roots."""
rectified = _operation(None, 1, lambda builder, x: builder.select(builder.fcmp_ordered("<", x, _zero(x)), _zero(x), x))
"""`rectified(x)`: 0 where x is negative, and x elsewhere, NaN included."""
where_nonzero = _operation(
    None, 2, lambda builder, x, y: builder.select(builder.fcmp_unordered("!=", x, _zero(x)), y, _zero(x))
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
        pointer, start, x = values
        builder.store(x, _address(builder, pointer, start, x.type), align=4)
        return context.get_dummy_value()

    return types.none(pointer, start, x), generate


@intrinsic
def _data_of(_: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, values[0]).data

    return types.CPointer(array.dtype)(array), generate  # type: ignore[no-untyped-call]


@intrinsic
def _prefetch(_: Any, pointer: Any, start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        of = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [of, *[ir.IntType(32)] * 3])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")  # type: ignore[no-untyped-call]
        address = builder.bitcast(builder.gep(values[0], [values[1]]), of)
        read, second_level, data = _INDEX(0), _INDEX(2), _INDEX(1)
        builder.call(call, [address, read, second_level, data])
        return context.get_dummy_value()

    return types.none(pointer, start), generate


prefetch: Callable[..., None] = _prefetch
"""`prefetch(pointer, start)`: bring the line of number `start` into the second-level cache, without waiting for it."""
store: Callable[..., None] = _store
"""`store(pointer, start, x)`: write the vector x to the numbers from `start` on."""
data_of: Callable[..., Any] = _data_of
"""`data_of(array)`: the pointer to the numbers of an array without gaps."""


def _overload(operation: Any, instruction: str) -> None:
    """Let `operation`, as `operator.add`, of two vectors be an instruction."""
    compute = _operation(None, 2, lambda builder, x, y: getattr(builder, instruction)(x, y))

    @overload(operation)
    def choose(x: Any, y: Any) -> Any:
        def apply(x: Any, y: Any) -> Any:
            return compute(x, y)

        return apply if isinstance(x, _Vector) and x == y else None


_overload(operator.add, "fadd")
_overload(operator.sub, "fsub")
_overload(operator.mul, "fmul")
_overload(operator.truediv, "fdiv")
