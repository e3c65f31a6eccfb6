"""More vector operations for kernels, beside those of ``core.simd``: lanes moved and chosen, and a choice of width."""

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import types
from seqloom.core.simd import Vector

intrinsic: Any = extending.intrinsic
"""Its own type has kernels pass the typing context."""


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


@intrinsic
def choose_greater(typing_context: Any, left: Any, right: Any, chosen: Any, other: Any) -> Any:
    """``chosen`` in the lanes where ``left`` is greater than ``right``, else ``other``."""
    if not isinstance(left, Vector) or left != right or not isinstance(chosen, Vector) or chosen != other:
        return None

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        compare = builder.icmp_signed if left.signed else builder.icmp_unsigned
        return builder.select(compare(">", *arguments[:2]), *arguments[2:])

    return chosen(left, right, chosen, other), build
