"""Explicit vectors for kernels: a few lanes of a small integer in one register, with saturating arithmetic.

Plain loops vectorise several times worse than vectors that are spelled out, so kernels that decide the speed say what
they mean: ``h = load(column, place, LANES) + lookup(profile, row, letters)``. ``+`` and ``-`` saturate, signed or
unsigned as the lanes are. All operations are LLVM vector instructions, so any width compiles on any CPU;
``BYTE_LANES`` is the number of 8-bit lanes that this CPU handles best.

Arrays are addressed by flat element index and must be contiguous. Lane counts are literals or module constants.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.core.datamodel import models
from numba.extending import intrinsic as _intrinsic
from numba.extending import overload, register_model

from . import jit

intrinsic: Any = _intrinsic
"""As it is; numba's own type counts the typing context among the arguments of a call."""


def _host_features() -> set[str]:
    if jit.SIMD_LEVELS.get(jit.level):
        return {"avx2": {"+avx2", "+ssse3"}, "portable": set()}[jit.level]
    return set(get_host_cpu_features().split(","))


_FEATURES = _host_features()
HAS_BYTE_PERMUTE = {"+avx512vbmi", "+avx512bw"} <= _FEATURES
HAS_AVX2 = "+avx2" in _FEATURES
HAS_SSSE3 = "+ssse3" in _FEATURES
CACHE_LINE = 64
BYTE_LANES: int = 64 if HAS_BYTE_PERMUTE else 32 if HAS_AVX2 else 16
"""Lanes of 8 bits per vector on this CPU; as many lanes of 16 bits take two registers."""


def aligned(size: int, dtype: Any) -> np.ndarray:
    """An uninitialised flat array that begins on a cache line, so that no vector of it crosses one."""
    dtype = np.dtype(dtype)
    room = np.empty(size * dtype.itemsize + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + size * dtype.itemsize].view(dtype)


class Vector(types.Type):
    """numba's type of a vector: ``lanes`` integers of ``bits`` bits."""

    def __init__(self, lanes: int, bits: int, signed: bool) -> None:
        self.lanes, self.bits, self.signed = lanes, bits, signed
        super().__init__(name=f"Vector({lanes} x {'i' if signed else 'u'}{bits})")

    @property
    def ir(self) -> ir.VectorType:
        return ir.VectorType(ir.IntType(self.bits), self.lanes)

    @property
    def element(self) -> types.Integer:
        return types.Integer.from_bitwidth(self.bits, self.signed)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.ir)


def _call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    signature = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), arguments)


def _constant(vector: ir.VectorType, values: list[int]) -> ir.Constant:
    return ir.Constant(vector, values)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Vector) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.ir.as_pointer())


@intrinsic(prefer_literal=True)
def load(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    """``lanes`` elements of a flat array from ``index`` on."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    vector = Vector(lanes.literal_value, array.dtype.bitwidth, array.dtype.signed)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1], vector)
        return builder.load(address, align=array.dtype.bitwidth // 8)

    return vector(array, types.intp, lanes), build


@intrinsic
def store(typing_context: Any, array: Any, index: Any, vector: Any) -> Any:
    """Write a vector to a flat array from ``index`` on."""
    if not isinstance(vector, Vector):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1], vector)
        builder.store(arguments[2], address, align=vector.bits // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), build


@intrinsic(prefer_literal=True)
def splat(typing_context: Any, value: Any, lanes: Any) -> Any:
    """A vector with the same integer in all lanes; its type decides bits and sign."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    value = types.unliteral(value)
    vector = Vector(lanes.literal_value, value.bitwidth, value.signed)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = ir.Constant(vector.ir, ir.Undefined)
        first = builder.insert_element(nothing, arguments[0], ir.Constant(ir.IntType(32), 0))
        zeros = _constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes)
        return builder.shuffle_vector(first, nothing, zeros)

    return vector(value, lanes), build


def _lanewise(name: str) -> Any:
    """An intrinsic that calls LLVM's signed or unsigned operation on two equal vectors."""

    def typed(typing_context: Any, left: Any, right: Any) -> Any:
        if not isinstance(left, Vector) or left != right:
            return None

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            sign = "s" if left.signed else "u"
            return _call(builder, f"llvm.{sign}{name}.v{left.lanes}i{left.bits}", left.ir, list(arguments))

        return left(left, right), build

    return intrinsic(typed)


maximum = _lanewise("max")
minimum = _lanewise("min")
_add = _lanewise("add.sat")
_subtract = _lanewise("sub.sat")


@overload(operator.add)
def _overload_add(left, right):  # numba wants the same signature as the implementation's
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _add(left, right)
    return None


@overload(operator.sub)
def _overload_subtract(left, right):
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _subtract(left, right)
    return None


@intrinsic
def greater_lanes(typing_context: Any, left: Any, right: Any) -> Any:
    """u64 with bit l set where lane l of ``left`` is greater than that of ``right``; for up to 64 lanes."""
    if not isinstance(left, Vector) or left != right or left.lanes > 64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        compare = builder.icmp_signed if left.signed else builder.icmp_unsigned
        mask = builder.bitcast(compare(">", *arguments), ir.IntType(left.lanes))
        return mask if left.lanes == 64 else builder.zext(mask, ir.IntType(64))

    return types.uint64(left, right), build


@intrinsic
def lowest_bit(typing_context: Any, mask: Any) -> Any:
    """Place of the lowest set bit of a u64 that isn't 0."""
    if mask != types.uint64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(mask), build


@intrinsic
def shift_in(typing_context: Any, vector: Any, value: Any) -> Any:
    """The lanes moved up by one, with ``value`` in lane 0."""
    if not isinstance(vector, Vector):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = builder.insert_element(ir.Constant(vector.ir, ir.Undefined), arguments[1],
                                       ir.Constant(ir.IntType(32), 0))
        order = _constant(ir.VectorType(ir.IntType(32), vector.lanes),
                          [vector.lanes, *range(vector.lanes - 1)])
        return builder.shuffle_vector(arguments[0], first, order)

    return vector(vector, vector.element), build


LOOKUP_ENTRIES = 32
"""Entries of a table for ``lookup``: enough for the letters of an alphabet and padding."""


def lookup_tables(rows: np.ndarray) -> np.ndarray:
    """Tables for ``lookup``, laid out for this CPU.

    Args:
        rows: i1 or u1[k, 32].

    Returns:
        Flat array of the same type; table i begins at ``i * LOOKUP_STRIDE``.
    """
    rows = np.ascontiguousarray(rows)
    if HAS_BYTE_PERMUTE:
        laid = np.concatenate([rows, rows], axis=1)
    elif HAS_SSSE3:
        half = [np.tile(rows[:, part : part + 16], (1, BYTE_LANES // 16)) for part in (0, 16)]
        laid = np.concatenate(half, axis=1)
    else:
        laid = rows
    tables = aligned(laid.size, laid.dtype)
    tables[:] = laid.reshape(-1)
    return tables


LOOKUP_STRIDE: int = 64 if HAS_BYTE_PERMUTE else 2 * BYTE_LANES if HAS_SSSE3 else LOOKUP_ENTRIES


@intrinsic
def lookup(typing_context: Any, tables: Any, offset: Any, index: Any) -> Any:
    """``table[index]`` in each of ``BYTE_LANES`` 8-bit lanes; the table (of ``lookup_tables``) begins at ``offset``.

    Indices are 0…31. One byte permutation with AVX-512 VBMI, two shuffles and a blend with SSSE3 or AVX2, else a load
    per lane.
    """
    if not isinstance(index, Vector) or index.bits != 8 or index.lanes != BYTE_LANES:
        return None
    result = Vector(index.lanes, 8, tables.dtype.signed)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, begin, letters = arguments
        if HAS_BYTE_PERMUTE:
            row = builder.load(_address(context, builder, tables, table, begin, result), align=1)
            return _call(builder, "llvm.x86.avx512.permvar.qi.512", result.ir, [row, letters])
        if HAS_SSSE3:
            return _shuffle_halves(context, builder, tables, table, begin, letters, result)
        data = context.make_array(tables)(context, builder, table).data
        found = ir.Constant(result.ir, ir.Undefined)
        for lane in range(index.lanes):
            place = ir.Constant(ir.IntType(32), lane)
            letter = builder.zext(builder.extract_element(letters, place), begin.type)
            value = builder.load(builder.gep(data, [builder.add(begin, letter)]))
            found = builder.insert_element(found, value, place)
        return found

    return result(tables, types.intp, index), build


def _shuffle_halves(context: Any, builder: Any, tables: Any, table: Any, begin: Any, letters: Any,
                    vector: Vector) -> Any:
    name = "llvm.x86.avx2.pshuf.b" if HAS_AVX2 else "llvm.x86.ssse3.pshuf.b.128"
    low = builder.load(_address(context, builder, tables, table, begin, vector), align=1)
    behind = builder.add(begin, ir.Constant(begin.type, vector.lanes))
    high = builder.load(_address(context, builder, tables, table, behind, vector), align=1)
    from_low = _call(builder, name, vector.ir, [low, letters])
    from_high = _call(builder, name, vector.ir, [high, letters])
    upper = builder.icmp_signed(">", letters, _constant(vector.ir, [15] * vector.lanes))
    return builder.select(upper, from_high, from_low)
