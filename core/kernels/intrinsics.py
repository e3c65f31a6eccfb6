"""What kernels can do beyond Python: explicit vectors, and asking for memory ahead. Imported when one is compiled.

Kernels take the names from ``simd.py`` and ``prefetch.py`` of this folder. All vector operations are LLVM's own, so any
width compiles on any CPU. Arrays are addressed by flat element index and must be contiguous; lane counts are literals
or module constants.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic as _intrinsic
from numba.extending import overload, register_model

from .cpu import BYTE_LANES, HAS_AVX2, HAS_BIT_EXTRACT, HAS_BYTE_PERMUTE, HAS_SSSE3, SATURATES_ON_ONE_PORT

intrinsic: Any = _intrinsic
"""As it is; numba's own type counts the typing context among the arguments of a call."""


class Vector(types.Type):
    """numba's type of a vector: ``lanes`` integers of ``bits`` bits, or ``floating`` numbers of 32 or 64."""

    def __init__(self, lanes: int, bits: int, signed: bool, floating: bool = False) -> None:
        self.lanes, self.bits, self.signed, self.floating = lanes, bits, signed, floating
        super().__init__(name=f"Vector({lanes} x {'f' if floating else 'i' if signed else 'u'}{bits})")

    @property
    def ir(self) -> ir.VectorType:
        numbers = {32: ir.FloatType, 64: ir.DoubleType}
        return ir.VectorType(numbers[self.bits]() if self.floating else ir.IntType(self.bits), self.lanes)

    @property
    def element(self) -> types.Number:
        if self.floating:
            return types.float32 if self.bits == 32 else types.float64
        return types.Integer.from_bitwidth(self.bits, self.signed)


def _vector_of(number: Any, lanes: int) -> Vector:
    """The type of vectors of numbers of a type."""
    if isinstance(number, types.Float):
        return Vector(lanes, number.bitwidth, True, floating=True)
    return Vector(lanes, number.bitwidth, number.signed)


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
    vector = _vector_of(array.dtype, lanes.literal_value)

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
    """A vector with the same number in all lanes; its type decides bits and sign."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    value = types.unliteral(value)
    vector = _vector_of(value, lanes.literal_value)

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


_add = _lanewise("add.sat")
_subtract = _lanewise("sub.sat")


def _arithmetic(instruction: str) -> Any:
    """An intrinsic for two equal vectors of floating-point numbers; each operation is rounded by itself."""

    def typed(typing_context: Any, left: Any, right: Any) -> Any:
        if not isinstance(left, Vector) or left != right or not left.floating:
            return None
        return left(left, right), lambda context, builder, signature, arguments: getattr(builder, instruction)(
            *arguments)

    return intrinsic(typed)


_float_add, _float_subtract = _arithmetic("fadd"), _arithmetic("fsub")
_float_multiply, _float_divide = _arithmetic("fmul"), _arithmetic("fdiv")


def _extreme(comparison: str, name: str) -> Any:
    """An intrinsic that keeps of two equal vectors, in each lane, the left number if it compares so, else the right."""

    def typed(typing_context: Any, left: Any, right: Any) -> Any:
        if not isinstance(left, Vector) or left != right:
            return None

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if left.floating:
                return builder.select(builder.fcmp_ordered(comparison, *arguments), *arguments)
            operation = f"llvm.{'s' if left.signed else 'u'}{name}.v{left.lanes}i{left.bits}"
            return _call(builder, operation, left.ir, list(arguments))

        return left(left, right), build

    return intrinsic(typed)


maximum, minimum = _extreme(">", "max"), _extreme("<", "min")


@overload(operator.add)
def _overload_add(left, right):  # numba wants the same signature as the implementation's
    if isinstance(left, Vector) and left == right:
        if left.floating:
            return lambda left, right: _float_add(left, right)
        return lambda left, right: _add(left, right)
    return None


@overload(operator.sub)
def _overload_subtract(left, right):
    if isinstance(left, Vector) and left == right:
        if left.floating:
            return lambda left, right: _float_subtract(left, right)
        return lambda left, right: _subtract(left, right)
    return None


@overload(operator.mul)
def _overload_multiply(left, right):
    if isinstance(left, Vector) and left == right and left.floating:
        return lambda left, right: _float_multiply(left, right)
    return None


@overload(operator.truediv)
def _overload_divide(left, right):
    if isinstance(left, Vector) and left == right and left.floating:
        return lambda left, right: _float_divide(left, right)
    return None


def _instruction(name: str) -> Any:
    """An intrinsic for two equal vectors that is one of LLVM's instructions."""

    def typed(typing_context: Any, left: Any, right: Any) -> Any:
        if not isinstance(left, Vector) or left != right:
            return None
        return left(left, right), lambda context, builder, signature, arguments: getattr(builder, name)(*arguments)

    return intrinsic(typed)


_and, _or, _xor = _instruction("and_"), _instruction("or_"), _instruction("xor")
wrapped_sum, wrapped_difference = _instruction("add"), _instruction("sub")


@overload(operator.and_)
def _overload_and(left, right):
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _and(left, right)
    return None


@overload(operator.or_)
def _overload_or(left, right):
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _or(left, right)
    return None


@overload(operator.xor)
def _overload_xor(left, right):
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _xor(left, right)
    return None


def _greater(builder: Any, vector: Vector, left: Any, right: Any) -> Any:
    if vector.floating:
        return builder.fcmp_ordered(">", left, right)
    return (builder.icmp_signed if vector.signed else builder.icmp_unsigned)(">", left, right)


@intrinsic
def greater_lanes(typing_context: Any, left: Any, right: Any) -> Any:
    """u64 with bit l set where lane l of ``left`` is greater than that of ``right``; for up to 64 lanes."""
    if not isinstance(left, Vector) or left != right or left.lanes > 64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = builder.bitcast(_greater(builder, left, *arguments), ir.IntType(left.lanes))
        return mask if left.lanes == 64 else builder.zext(mask, ir.IntType(64))

    return types.uint64(left, right), build


@intrinsic
def not_greater_lanes(typing_context: Any, left: Any, right: Any, among: Any) -> Any:
    """u64 with the bits of ``among`` but for those of lanes where ``left`` is greater than ``right``; up to 64 lanes.

    With AVX-512 this is one comparison under a mask, however many are made in a row.
    """
    if not isinstance(left, Vector) or left != right or left.lanes > 64 or among != types.uint64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, mask = ir.IntType(left.lanes), ir.VectorType(ir.IntType(1), left.lanes)
        before = arguments[2] if left.lanes == 64 else builder.trunc(arguments[2], bits)
        compare = builder.icmp_signed if left.signed else builder.icmp_unsigned
        kept = builder.and_(builder.bitcast(before, mask), compare("<=", *arguments[:2]))
        if HAS_BYTE_PERMUTE:  # no instruction, but LLVM can't see through it; it would make maxima of several
            kept = builder.asm(ir.FunctionType(mask, [mask]), "", "=^Yk,0", [kept], False)
        kept = builder.bitcast(kept, bits)
        return kept if left.lanes == 64 else builder.zext(kept, ir.IntType(64))

    return types.uint64(left, right, among), build


class Mask(types.Type):
    """numba's type of a bit for each of ``lanes`` lanes; with AVX-512 it stays in a register of masks."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"Mask({lanes})")

    @property
    def ir(self) -> ir.VectorType:
        return ir.VectorType(ir.IntType(1), self.lanes)


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, mask: Mask) -> None:
        super().__init__(manager, mask, mask.ir)


@intrinsic(prefer_literal=True)
def every_lane(typing_context: Any, lanes: Any) -> Any:
    """The mask with all bits set, of ``lanes`` lanes."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    mask = Mask(lanes.literal_value)
    return mask(lanes), lambda context, builder, signature, arguments: _constant(mask.ir, [1] * mask.lanes)


@intrinsic
def within(typing_context: Any, left: Any, right: Any, among: Any) -> Any:
    """The mask ``among`` without the lanes where ``left`` is greater than ``right``.

    As ``not_greater_lanes``, for masks that are kept from one round of a loop to the next.
    """
    if not isinstance(left, Vector) or left != right or not isinstance(among, Mask) or among.lanes != left.lanes:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        compare = builder.icmp_signed if left.signed else builder.icmp_unsigned
        kept = builder.and_(arguments[2], compare("<=", *arguments[:2]))
        if HAS_BYTE_PERMUTE:  # as above
            kept = builder.asm(ir.FunctionType(among.ir, [among.ir]), "", "=^Yk,0", [kept], False)
        return kept

    return among(left, right, among), build


@intrinsic
def mask_bits(typing_context: Any, mask: Any) -> Any:
    """u64 with the bits of a mask of up to 64 lanes."""
    if not isinstance(mask, Mask) or mask.lanes > 64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(mask.lanes))
        return bits if mask.lanes == 64 else builder.zext(bits, ir.IntType(64))

    return types.uint64(mask), build


@intrinsic
def lowered(typing_context: Any, left: Any, right: Any) -> Any:
    """``left`` − ``right``, but at least 0, of signed lanes that hold no number below 0."""
    if not isinstance(left, Vector) or left != right or not left.signed:
        return None
    return left(left, right), lambda context, builder, signature, arguments: _call(
        builder, f"llvm.usub.sat.v{left.lanes}i{left.bits}", left.ir, list(arguments))


@intrinsic
def lowered_to(typing_context: Any, floor: Any, left: Any, right: Any) -> Any:
    """``left`` − ``right``, but at least ``floor``, of signed lanes where neither difference nor sum overflows."""
    if not isinstance(left, Vector) or left != right or left != floor or not left.signed:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        least, number, by = arguments
        if SATURATES_ON_ONE_PORT:
            greater = builder.icmp_signed(">", number, builder.add(least, by))
            return builder.select(greater, builder.sub(number, by), least)
        return _call(builder, f"llvm.smax.v{left.lanes}i{left.bits}", left.ir, [builder.sub(number, by), least])

    return left(floor, left, right), build


@intrinsic
def in_place(typing_context: Any, vector: Any) -> Any:
    """The vector as it is, computed before what comes next: LLVM puts off what it needs only behind a branch."""
    if not isinstance(vector, Vector):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        register = ir.VectorType(vector.ir.element, BYTE_LANES * 8 // vector.bits)
        places = [ir.Constant(ir.VectorType(ir.IntType(32), register.count), [*range(begin, begin + register.count)])
                  for begin in range(0, vector.lanes, register.count)]
        if not HAS_SSSE3 or len(places) not in (1, 2):
            return arguments[0]
        same = ir.FunctionType(register, [register])
        parts = [builder.asm(same, "", "=v,0" if HAS_BYTE_PERMUTE else "=x,0",
                             [builder.shuffle_vector(arguments[0], arguments[0], place)], True) for place in places]
        everything = ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [*range(vector.lanes)])
        return builder.shuffle_vector(parts[0], parts[-1], everything)

    return vector(vector), build


@intrinsic
def highest(typing_context: Any, vector: Any) -> Any:
    """The greatest of all lanes, which are integers."""
    if not isinstance(vector, Vector) or vector.floating:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        name = f"llvm.vector.reduce.{'s' if vector.signed else 'u'}max.v{vector.lanes}i{vector.bits}"
        return _call(builder, name, vector.ir.element, list(arguments))

    return vector.element(vector), build


@intrinsic
def lowest_bit(typing_context: Any, mask: Any) -> Any:
    """Place of the lowest set bit of a u64 that isn't 0."""
    if mask != types.uint64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(mask), build


@intrinsic
def _extracted_bits(typing_context: Any, number: Any, mask: Any) -> Any:
    """``picked_bits`` by the processor's own operation."""
    if number != types.uint64 or mask != types.uint64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, "llvm.x86.bmi.pext.64", ir.IntType(64), list(arguments))

    return types.uint64(number, mask), build


@njit(inline="always", error_model="numpy")
def _gathered_bits(number, mask):
    """``picked_bits``: runs of set bits are moved to where they belong, the lowest first."""
    found, place = np.uint64(0), np.uint64(0)
    while mask != 0:
        begin = lowest_bit(mask)
        run = mask & ~(mask + (np.uint64(1) << begin))
        found |= (number & run) >> (begin - place)
        place += lowest_bit(~(run >> begin))
        mask ^= run
    return found


picked_bits: Any = _extracted_bits if HAS_BIT_EXTRACT else _gathered_bits
"""The bits of a u64 that are set in ``mask``, another that isn't all ones, side by side in the lowest bits."""


@intrinsic
def highest_bit(typing_context: Any, mask: Any) -> Any:
    """Place of the highest set bit of a u64 that isn't 0."""
    if mask != types.uint64:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        before = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(ir.IntType(64), 63), before)

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
        table, begin, residues = arguments
        if HAS_BYTE_PERMUTE:
            row = builder.load(_address(context, builder, tables, table, begin, result), align=1)
            return _call(builder, "llvm.x86.avx512.permvar.qi.512", result.ir, [row, residues])
        if HAS_SSSE3:
            return _shuffle_halves(context, builder, tables, table, begin, residues, result)
        data = context.make_array(tables)(context, builder, table).data
        found = ir.Constant(result.ir, ir.Undefined)
        for lane in range(index.lanes):
            place = ir.Constant(ir.IntType(32), lane)
            residue = builder.zext(builder.extract_element(residues, place), begin.type)
            value = builder.load(builder.gep(data, [builder.add(begin, residue)]))
            found = builder.insert_element(found, value, place)
        return found

    return result(tables, types.intp, index), build


def _shuffle_halves(context: Any, builder: Any, tables: Any, table: Any, begin: Any, residues: Any,
                    vector: Vector) -> Any:
    name = "llvm.x86.avx2.pshuf.b" if HAS_AVX2 else "llvm.x86.ssse3.pshuf.b.128"
    low = builder.load(_address(context, builder, tables, table, begin, vector), align=1)
    behind = builder.add(begin, ir.Constant(begin.type, vector.lanes))
    high = builder.load(_address(context, builder, tables, table, behind, vector), align=1)
    from_low = _call(builder, name, vector.ir, [low, residues])
    from_high = _call(builder, name, vector.ir, [high, residues])
    upper = builder.icmp_signed(">", residues, _constant(vector.ir, [15] * vector.lanes))
    return builder.select(upper, from_high, from_low)


@intrinsic
def squeezed(typing_context: Any, vector: Any, like: Any) -> Any:
    """Eight lanes of 8 bits to one number of the type of the array ``like``: the lowest bits of each, as many as it has
    bytes; those of the first lane are the lowest. Other bits of the lanes are not set."""
    if not isinstance(vector, Vector) or vector.bits != 8 or not isinstance(like, types.Array):
        return None
    result = Vector(vector.lanes // 8, like.dtype.bitwidth, False)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.VectorType(ir.IntType(64), result.lanes)

        def all_lanes(number: int) -> ir.Constant:
            return _constant(wide, [number] * result.lanes)

        numbers, each = builder.bitcast(arguments[0], wide), result.bits // 8
        for together, apart in ((2, 16), (4, 32), (8, 64)):  # lanes of a number by now, and bits from one to the next
            empty = all_lanes((apart - each * together) // 2)
            mask = sum((1 << each * together) - 1 << begin for begin in range(0, 64, apart))
            numbers = builder.or_(numbers, builder.lshr(numbers, empty))
            numbers = builder.and_(numbers, all_lanes(mask))
        return builder.trunc(numbers, result.ir) if each < 8 else numbers

    return result(vector, like), build


@intrinsic
def spread(typing_context: Any, value: Any, like: Any) -> Any:
    """A vector of the type of ``like`` with the same integer in all lanes; what doesn't fit is cut off."""
    if not isinstance(like, Vector) or not isinstance(value, types.Integer):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = builder.trunc if signature.args[0].bitwidth > like.bits else builder.sext
        nothing = ir.Constant(like.ir, ir.Undefined)
        first = builder.insert_element(nothing, element(arguments[0], like.ir.element), ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), like.lanes), None))

    return like(value, like), build


@intrinsic
def widened(typing_context: Any, vector: Any, like: Any) -> Any:
    """Signed lanes with the bits of ``like``, which are no fewer."""
    if not isinstance(vector, Vector) or not isinstance(like, Vector) or vector.lanes != like.lanes:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0] if vector.bits == like.bits else builder.sext(arguments[0], like.ir)

    return like(vector, like), build


@intrinsic
def joined(typing_context: Any, low: Any, high: Any, like: Any) -> Any:
    """Lanes with the bits of ``like``, which are no fewer than 16, of their lowest 8 bits and the signed ones above."""
    if not (isinstance(low, Vector) and low == high and low.bits == 8 and isinstance(like, Vector)
            and like.lanes == low.lanes and like.bits >= 16):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        upper = builder.shl(builder.sext(arguments[1], like.ir), _constant(like.ir, [8] * like.lanes))
        return builder.or_(builder.zext(arguments[0], like.ir), upper)

    return like(low, high, like), build


@intrinsic
def whole_numbers(typing_context: Any, vector: Any) -> Any:
    """f32 lanes as i32, rounded towards 0; of numbers beyond its range and of NaN it doesn't matter which."""
    if not isinstance(vector, Vector) or not vector.floating or vector.bits != 32:
        return None
    whole = Vector(vector.lanes, 32, True)
    return whole(vector), lambda context, builder, signature, arguments: builder.fptosi(arguments[0], whole.ir)


@intrinsic
def highest_bytes(typing_context: Any, vector: Any) -> Any:
    """The highest 8 bits of each lane, unsigned."""
    if not isinstance(vector, Vector) or vector.floating:
        return None
    bytes_ = Vector(vector.lanes, 8, False)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        below = _constant(vector.ir, [vector.bits - 8] * vector.lanes)
        return builder.trunc(builder.lshr(arguments[0], below), bytes_.ir)

    return bytes_(vector), build


@intrinsic
def bits_of(typing_context: Any, vector: Any) -> Any:
    """The bits of floating-point lanes, as signed integers."""
    if not isinstance(vector, Vector) or not vector.floating:
        return None
    bits = Vector(vector.lanes, vector.bits, True)
    return bits(vector), lambda context, builder, signature, arguments: builder.bitcast(arguments[0], bits.ir)


@intrinsic
def numbers_of(typing_context: Any, vector: Any) -> Any:
    """The floating-point numbers that have these bits: integer lanes of 32 or 64."""
    if not isinstance(vector, Vector) or vector.floating or vector.bits < 32:
        return None
    numbers = Vector(vector.lanes, vector.bits, True, floating=True)
    return numbers(vector), lambda context, builder, signature, arguments: builder.bitcast(arguments[0], numbers.ir)


@intrinsic(prefer_literal=True)
def shifted_down(typing_context: Any, vector: Any, count: Any) -> Any:
    """The bits of integer lanes moved down by ``count``, a literal; zeros come in."""
    if not isinstance(vector, Vector) or vector.floating or not isinstance(count, types.IntegerLiteral):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.lshr(arguments[0], _constant(vector.ir, [count.literal_value] * vector.lanes))

    return vector(vector, count), build


def _moved(vector: Vector, first: int) -> Any:
    """Lanes ``first``… of two vectors side by side."""
    order = ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [first + lane for lane in range(vector.lanes)])
    return lambda context, builder, signature, arguments: builder.shuffle_vector(arguments[0], arguments[1], order)


@intrinsic(prefer_literal=True)
def move_up(typing_context: Any, below: Any, vector: Any, count: Any) -> Any:
    """Lane k goes to lane k + ``count``; the last lanes of ``below`` come in. ``count`` is a literal."""
    if not isinstance(vector, Vector) or below != vector or not isinstance(count, types.IntegerLiteral):
        return None
    return vector(below, vector, count), _moved(vector, max(vector.lanes - count.literal_value, 0))


@intrinsic(prefer_literal=True)
def move_down(typing_context: Any, vector: Any, above: Any, count: Any) -> Any:
    """Lane k goes to lane k − ``count``; the first lanes of ``above`` come in. ``count`` is a literal."""
    if not isinstance(vector, Vector) or above != vector or not isinstance(count, types.IntegerLiteral):
        return None
    return vector(vector, above, count), _moved(vector, min(count.literal_value, vector.lanes))


QUAD = 4
"""Lanes of a part of a vector that ``quads`` and its like move by themselves."""


def _picked(builder: Any, left: Any, right: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order))


@intrinsic(prefer_literal=True)
def quads(typing_context: Any, array: Any, places: Any, index: Any, lanes: Any) -> Any:
    """``lanes`` elements of a flat array, four by four: those from ``places[n] + index`` on for the n-th four.

    ``places``: flat i8 array.
    """
    if not isinstance(lanes, types.IntegerLiteral) or lanes.literal_value % QUAD:
        return None
    four, vector = _vector_of(array.dtype, QUAD), _vector_of(array.dtype, lanes.literal_value)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        begins = context.make_array(signature.args[1])(context, builder, arguments[1]).data
        parts = []
        for n in range(vector.lanes // QUAD):
            begin = builder.load(builder.gep(begins, [ir.Constant(ir.IntType(64), n)]))
            place = builder.add(begin, arguments[2])
            address = _address(context, builder, signature.args[0], arguments[0], place, four)
            parts.append(builder.load(address, align=array.dtype.bitwidth // 8))
        while len(parts) > 1:
            together = list(range(2 * parts[0].type.count))
            parts = [_picked(builder, parts[n], parts[n + 1], together) for n in range(0, len(parts), 2)]
        return parts[0]

    return vector(array, places, types.intp, lanes), build


@intrinsic
def words_at(typing_context: Any, array: Any, places: Any) -> Any:
    """u32 lanes: the four bytes of a flat u1 array from each of the i32 ``places`` on, the first one lowest."""
    if not isinstance(places, Vector) or places.bits != 32 or not isinstance(array, types.Array):
        return None
    if array.dtype != types.uint8:
        return None
    vector = Vector(places.lanes, 32, False)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        number, word = ir.IntType(64), ir.IntType(32)
        words = ir.Constant(vector.ir, ir.Undefined)
        for lane in range(vector.lanes):
            place = builder.sext(builder.extract_element(arguments[1], word(lane)), number)
            address = builder.bitcast(builder.gep(data, [place]), word.as_pointer())
            words = builder.insert_element(words, builder.load(address, align=1), word(lane))
        return words

    return vector(array, places), build


@intrinsic(prefer_literal=True)
def same_quads(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    """Four elements of a flat array from ``index`` on, over and over in ``lanes`` lanes."""
    if not isinstance(lanes, types.IntegerLiteral) or lanes.literal_value % QUAD:
        return None
    four, vector = _vector_of(array.dtype, QUAD), _vector_of(array.dtype, lanes.literal_value)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1], four)
        loaded = builder.load(address, align=array.dtype.bitwidth // 8)
        return _picked(builder, loaded, loaded, [*range(QUAD)] * (vector.lanes // QUAD))

    return vector(array, types.intp, lanes), build


def _within_quads(order: list[int]) -> Any:
    """Lanes of each four in another order; 4 is a lane of 0."""

    def typed(typing_context: Any, vector: Any) -> Any:
        if not isinstance(vector, Vector) or vector.lanes % QUAD:
            return None
        lanes = [vector.lanes if place == QUAD else begin + place
                 for begin in range(0, vector.lanes, QUAD) for place in order]
        return vector(vector), lambda context, builder, signature, arguments: _picked(
            builder, arguments[0], ir.Constant(vector.ir, None), lanes)

    return intrinsic(typed)


quads_up, quads_down = _within_quads([4, 0, 1, 2]), _within_quads([1, 2, 3, 4])
quads_pairs, quads_halves = _within_quads([1, 0, 3, 2]), _within_quads([2, 3, 0, 1])


@intrinsic
def choose_greater(typing_context: Any, left: Any, right: Any, chosen: Any, other: Any) -> Any:
    """``chosen`` in the lanes where ``left`` is greater than ``right``, else ``other``."""
    if not isinstance(left, Vector) or left != right or not isinstance(chosen, Vector) or chosen != other:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(_greater(builder, left, *arguments[:2]), *arguments[2:])

    return chosen(left, right, chosen, other), build


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Start to fetch ``array[index]``, of a one-dimensional array, into the cache; ``index`` may lie outside."""
    if not isinstance(array, types.Array) or not isinstance(index, types.Integer):
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = context.cast(builder, arguments[1], index, types.uintp)
        pointer = builder.bitcast(builder.gep(data, [place]), cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(fetch, [pointer, number(0), number(3), number(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.none(array, index), build
