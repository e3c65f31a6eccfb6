"""Loads of what no kernel that runs writes to, by way of the cache for data that are read only.

CUDA C++ calls such arrays ``const __restrict__``. numba says nothing of the kind of its arrays, so that the instruction
(``ld.global.nc``) is asked for by name.
"""

from typing import Any

from numba import types

from ..kernels.packed16 import SIMULATED

if not SIMULATED:
    from llvmlite import ir
    from numba.core.cgutils import create_struct_proxy, pack_array
    from numba.cuda.extending import intrinsic as _intrinsic

    intrinsic: Any = _intrinsic

    def address(context: Any, builder: Any, signature: Any, values: Any, place: Any) -> Any:
        """Of an item of the i4 array that comes first, at a place that is a number of 64 bits."""
        long = ir.IntType(64)
        begin = builder.ptrtoint(create_struct_proxy(signature.args[0])(context, builder, values[0]).data, long)
        return builder.add(begin, builder.mul(place, ir.Constant(long, 4)))

    @intrinsic
    def read_only(typing_context, array, place):
        """``array[place]`` of an i4 array in global memory that lies whole, which nobody writes to meanwhile."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            code = ir.InlineAsm(ir.FunctionType(ir.IntType(32), [ir.IntType(64)]),
                                "{.reg .u64 t; cvta.to.global.u64 t, $1; ld.global.nc.b32 $0, [t];}", "=r,l")
            return builder.call(code, [address(context, builder, signature, values, values[1])])

        return types.int32(array, types.int64), build

    @intrinsic
    def four_read_only(typing_context, array, place):
        """The same four times, from a place on that is a multiple of four, in one instruction."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            code = ir.InlineAsm(
                ir.FunctionType(ir.LiteralStructType([ir.IntType(32)] * 4), [ir.IntType(64)]),
                "{.reg .u64 t; cvta.to.global.u64 t, $4; ld.global.nc.v4.b32 {$0, $1, $2, $3}, [t];}",
                "=r,=r,=r,=r,l")
            read = builder.call(code, [address(context, builder, signature, values, values[1])])
            return pack_array(builder, [builder.extract_value(read, n) for n in range(4)])

        return types.UniTuple(types.int32, 4)(array, types.int64), build

    @intrinsic
    def place_in(typing_context, array, place):
        """Where four words of an i4 array in global memory stand, for ``four_behind``: a place that is a multiple of
        four."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            long = ir.IntType(64)
            code = ir.InlineAsm(ir.FunctionType(long, [long]), "cvta.to.global.u64 $0, $1;", "=l,l")
            return builder.call(code, [address(context, builder, signature, values, builder.sext(values[1], long))])

        return types.int64(array, types.int32), build

    @intrinsic
    def four_behind(typing_context, place, words):
        """``four_read_only`` so many words, a multiple of four, behind what ``place_in`` tells: with a number that is
        known when it is compiled, no instruction goes to the sum."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            word, long = ir.IntType(32), ir.IntType(64)
            code = ir.InlineAsm(ir.FunctionType(ir.LiteralStructType([word] * 4), [long]),
                                "ld.global.nc.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l")
            read = builder.call(code, [builder.add(values[0], builder.mul(values[1], ir.Constant(long, 4)))])
            return pack_array(builder, [builder.extract_value(read, n) for n in range(4)])

        return types.UniTuple(types.int32, 4)(types.int64, types.int64), build

else:

    def read_only(array, place):
        return array[place]

    def four_read_only(array, place):
        return tuple(array[place : place + 4])

    def place_in(array, place):
        return array[place:]

    def four_behind(place, words):
        return tuple(place[words : words + 4])
