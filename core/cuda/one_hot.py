"""Scores of residues, looked up and added by the tensor cores of a device of compute capability 9.0.

A residue as a row of zeros with a single one, times a table of scores of every residue with many positions, is the row
of its scores: a product of matrices looks scores up, and adds them to what is there. Four warps, a *warpgroup*, do so
for 64 residues at a time and any multiple of eight positions, which lie one behind the other in shared memory and may
begin anywhere.

Numbers are floating-point ones of 16 bits in units of 1/2048, so that whole numbers up to ``CEILING`` are exact and
adding with saturation keeps them from 0 to there. Scores have eight bits: of whole numbers, those from −16 to 16 are
exact (``score_bytes``).

A thread holds for row r of its warp, its lane / 4, and for row r + 8 two positions of every eight: 2 · (lane % 4) and
the one behind. Register 2 · e is of row r and the e-th eight, register 2 · e + 1 of row r + 8.

In the simulator every warp is by itself, and the same functions are a few lines of Python with the same results.
"""

from typing import Any

import numpy as np
from numba import types

from ..kernels.packed16 import SIMULATED

CEILING = 2048
"""Where sums saturate."""
CODES = 32
"""Of residues, at most, and bytes of a position's scores."""
ROWS = 16
"""Residues of a warp."""
GROUP_WARPS = 1 if SIMULATED else 4
"""Warps that work together."""
_SCALE = 32
"""A score of one is stored as 1/32 and multiplied by a one that is 1/64."""


def score_bytes(scores: np.ndarray) -> np.ndarray:
    """u1, floating-point numbers of eight bits (e4m3) of scores: whole numbers beyond ±16 are rounded up.

    Args:
        scores: whole numbers from −448 · 32 to 448 · 32.
    """
    return np.asarray(_BYTES[np.clip(scores, -_MOST, _MOST) + _MOST])


def _values() -> np.ndarray:
    """f8[256], the numbers that bytes stand for, in units of a score of one."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    values = np.where(codes & 128, -size, size) * _SCALE
    return np.where(codes & 127 == 127, np.nan, values)


VALUES = _values()
_MOST = int(np.nanmax(VALUES))
_ordered = np.argsort(VALUES[:255], kind="stable")[: 254]  # without those that are no numbers
_BYTES = _ordered[np.searchsorted(VALUES[_ordered], np.arange(-_MOST, _MOST + 1))].astype(np.uint8)


if not SIMULATED:
    from llvmlite import ir
    from numba import cuda as _cuda
    from numba.core.cgutils import create_struct_proxy, pack_array, unpack_tuple
    from numba.cuda.extending import intrinsic as _intrinsic

    cuda: Any = _cuda  # numba's types don't know what code on the device may do
    intrinsic: Any = _intrinsic
    _word, _long = ir.IntType(32), ir.IntType(64)

    def _assembly(builder: Any, text: str, constraints: str, result: Any, values: list[Any],
                  effects: bool = False) -> Any:
        shape = ir.FunctionType(result, [value.type for value in values])
        return builder.call(ir.InlineAsm(shape, text, constraints, side_effect=effects), values)

    def _constant(value: int, kind: Any = _word) -> Any:
        return ir.Constant(kind, value)

    def no_scores(count):
        """A device function that gives so many registers with sums of 0."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return pack_array(builder, [_constant(0)] * count)

        return intrinsic(lambda typing_context: (types.UniTuple(types.int32, count)(), build))

    @intrinsic
    def scores_at(typing_context, table, positions):
        """Where scores of ``positions`` positions begin in shared memory, for ``add_two_steps``.

        There the scores of residues 0 … 15 with all positions come first, then those of the others.
        """

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array = create_struct_proxy(signature.args[0])(context, builder, values[0])
            address = _assembly(builder, "{.reg .u64 t; cvta.to.shared.u64 t, $1; cvt.u32.u64 $0, t;}", "=r,l", _word,
                                [builder.ptrtoint(array.data, _long)])
            first = builder.zext(builder.and_(builder.lshr(address, _constant(4)), _constant(0x3FFF)), _long)
            half = builder.shl(builder.zext(values[1], _long), _constant(16, _long))
            return builder.or_(builder.or_(first, half), _constant(8 << 32, _long))

        return types.int64(table, types.int32), build

    @intrinsic
    def scores_are_there(typing_context):
        """What this thread has put into shared memory is seen by the tensor cores after the next barrier."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return _assembly(builder, "fence.proxy.async.shared::cta; mov.b32 $0, 0;", "=r", _word, [], True)

        return types.int32(), build

    @intrinsic
    def add_two_steps(typing_context, sums, first, first8, second, second8, table, place, limit, limit8):
        """Sums with the scores of two residues in turn, kept from 0 to ``CEILING`` after the second.

        Args:
            sums: registers.
            first, first8: of the first residue of row r and of row r + 8, its code times 8 and not 32 times this
                thread's lane % 4, as bits.
            second, second8: of the second one.
            table, place: the scores; those of the first position with the first residue. The second residue takes the
                scores of the positions behind.
            limit, limit8: both halves of registers.

        Returns:
            Sums, and the largest halves of row r and of row r + 8, or the limits, if these are larger.
        """
        count = sums.count

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            ones = [_assembly(builder, "shl.b32 $0, $1, $2;", "=r,r,r", _word, [_constant(8), shift])
                    for row, row8 in (values[1:3], values[3:5])
                    for shift in (row, row8, *(builder.xor(x, _constant(128)) for x in (row, row8)))]
            places = [values[6], builder.add(values[6], _constant(1, _long))]
            registers = ",".join(f"${n}" for n in range(count))
            text = "{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.fence.sync.aligned;"
            for step in range(2):
                own = ",".join(f"${2 * count + 4 * step + n}" for n in range(4))
                text += (f"wgmma.mma_async.sync.aligned.m64n{4 * count}k32.f16.e4m3.e4m3 {{{registers}}}, {{{own}}}, "
                         f"${2 * count + 8 + step}, p, 1, 1;")
            text += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
            constraints = ",".join(["=r"] * count + [str(n) for n in range(count)] + ["r"] * 8 + ["l"] * 2)
            made = _assembly(builder, text, constraints, ir.LiteralStructType([_word] * count),
                             [*unpack_tuple(builder, values[0], count), *ones, *places], True)
            added = [_assembly(builder, "add.sat.f16x2 $0, $1, $2;", "=r,r,r", _word,
                               [builder.extract_value(made, n), _constant(0)]) for n in range(count)]
            largest = list(values[7:9])
            for n in range(0, count, 4):
                for row in range(2):
                    two = [added[m] for m in (n + row, n + row + 2) if m < count]
                    largest[row] = _assembly(
                        builder, "{.reg .b32 t; max.u16x2 t, $1, $2; max.u16x2 $0, t, $3;}", "=r,r,r,r", _word,
                        [largest[row], two[0], two[-1]])
            return context.make_tuple(builder, signature.return_type, [pack_array(builder, added), *largest])

        kind = types.Tuple([sums, types.int32, types.int32])
        return kind(sums, *[types.int32] * 4, table, types.int64, types.int32, types.int32), build

    @intrinsic
    def put_registers(typing_context, array, first, sums):
        """Write registers to i4 shared memory from a place on that is a multiple of four."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = create_struct_proxy(signature.args[0])(context, builder, values[0]).data
            for n, value in enumerate(unpack_tuple(builder, values[2], sums.count)):
                builder.store(value, builder.gep(data, [builder.add(values[1], _constant(n))]), align=4)
            return _constant(0)

        return types.int32(array, types.int32, sums), build

    @intrinsic
    def get_registers(typing_context, array, first, sums):
        """As many registers as ``sums`` has, read from where ``put_registers`` writes them."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = create_struct_proxy(signature.args[0])(context, builder, values[0]).data
            return pack_array(builder, [builder.load(builder.gep(data, [builder.add(values[1], _constant(n))]), align=4)
                                        for n in range(sums.count)])

        return sums(array, types.int32, sums), build

else:
    from numba import cuda

    from ..kernels import packed16

    def no_scores(count):
        return lambda: (0,) * count

    def scores_at(table, positions):
        return int(positions) << 32

    def scores_are_there():
        return 0

    @cuda.jit(device=True)
    def add_two_steps(sums, first, first8, second, second8, table, place, limit, limit8):
        positions, first_place = int(place) >> 32, int(place) & 0xFFFFFFFF
        scores = np.asarray(table[: positions * CODES // 4]).view(np.uint8).reshape(2, positions, CODES // 2)
        lane, halves = cuda.threadIdx.x & 31, np.array(sums, np.int64).astype(np.uint32).view(np.float16).copy()
        eights = np.arange(len(sums) // 2)[:, None] * 8 + 2 * (lane & 3) + np.arange(2)
        for step, shifts in enumerate(((first, first8), (second, second8))):
            for row, shift in enumerate(shifts):
                code = (int(shift) ^ 32 * (lane & 3)) >> 3
                added = VALUES[scores[code // 16, first_place + step + eights, code % 16]] / CEILING
                own = halves.reshape(-1, 2, 2)[:, row]
                own[:] = own + added.astype(np.float16)
        np.clip(halves, 0, 1, out=halves)
        made = tuple(int(word) for word in halves.view(np.int32))
        largest = [limit, limit8]
        for n, word in enumerate(made):
            largest[n & 1] = packed16.maximum_unsigned(largest[n & 1], word)
        return made, *largest

    def put_registers(array, first, sums):
        for n, word in enumerate(sums):
            array[first + n] = word

    def get_registers(array, first, sums):
        return tuple(int(word) for word in array[first : first + len(sums)])
