"""Asking for memory before it is needed: kernels that jump about in large arrays wait less if they say where to."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # numba's types don't know what it makes of a function


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
