"""Arithmetic of two numbers of 16 bits in one 32-bit register, for CUDA kernels, and shuffles of a warp.

An ``Arithmetic`` is a set of operations that a kernel template is made with (``unroll.py``): ``PACKED`` for
devices of compute capability 9.0 and later, which have instructions for them; ``ORDINARY`` for older ones, which take
halves for halves of floating point where that gives the same order; ``SINGLE`` for one number of 32 bits. In numba's
simulator all are a few lines of Python with the same results.

``anew(a)`` is ``a`` again: what is computed of it is computed where it stands, and not kept in registers before.
``add_half_or_zero(a, b)`` adds halves as floating-point numbers of 16 bits, and gives 0 for what is negative: the pipe
of the multipliers does it, beside that of the maxima (compute capability 8.0).

Additions of ``SINGLE`` numbers and of register halves by ``multiply_add`` are those of 32 bits: kernels keep halves in
range, and where the device adds without regard to halves, never negative, so that nothing is borrowed or carried.
"""

import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, types

from ..classes import dataclass

cuda: Any = _cuda  # numba's types don't know what code on the device may do
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
WHOLE_WARP = 0xFFFFFFFF
EXACT_HALVES = 2048
"""Up to which floating-point numbers of 16 bits are whole numbers without gaps."""


def pair(value: int) -> int:
    """The 32-bit number that holds ``value`` in both halves."""
    return signed_word((value & 0xFFFF) * 0x10001)


def twice(value: int) -> int:
    """The 32-bit number that, added, adds ``value`` to both halves, as long as neither leaves its range."""
    return signed_word(value * 0x10001)


def half_bits(value: int) -> int:
    """The bits of a floating-point number of 16 bits; those of numbers that aren't negative are ordered as these are.

    Whole numbers up to ``EXACT_HALVES`` have exact ones.
    """
    return int(np.float16(value).view(np.uint16))


def signed_word(word: int) -> int:
    """The signed number of 32 bits with the same bits."""
    return ((word & 0xFFFFFFFF) ^ 1 << 31) - (1 << 31)


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """Operations on numbers in a register.

    Attributes:
        name: for people.
        numbers: how many there are in a register.
        largest: largest number that all operations take.
        signed: whether numbers may be negative.
        functions: of the device, by the name that templates use: ``maximum(a, b)``, ``maximum3(a, b, c)``,
            ``add(a, b)``, ``add_maximum(a, b, c)`` = max(a + b, c), ``add_maximum_zero(a, b, c)`` = max(a + b, c, 0).
        addend: the register that stands for a constant b that is added.
    """

    name: str
    numbers: int
    largest: int
    functions: dict[str, Any]
    addend: Callable[[int], int]
    signed: bool

    def both(self, value: int) -> int:
        """The register with ``value`` as each of its numbers."""
        return pair(value) if self.numbers == 2 else value

    def plus(self, value: int) -> int:
        """What ``multiply_add`` adds to add ``value`` to each number."""
        return twice(value) if self.numbers == 2 else value


if not SIMULATED:
    from llvmlite import ir
    from numba.core.cgutils import create_struct_proxy, pack_array
    from numba.cuda.extending import intrinsic as _intrinsic

    intrinsic: Any = _intrinsic

    def instruction(text: str, arguments: int, stays: bool = False) -> Any:
        """A device function of 32-bit numbers made of PTX; $0 is its result, $1 … its arguments. One that ``stays`` is
        done where it stands, as often as it stands there."""
        word = ir.IntType(32)

        def typed(*_: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                shape = ir.FunctionType(word, [word] * arguments)
                code = ir.InlineAsm(shape, text, ",".join(["=r"] + ["r"] * arguments), side_effect=stays)
                return builder.call(code, values)

            return types.int32(*[types.int32] * arguments), build

        if arguments == 1:
            return intrinsic(lambda typing_context, a: typed())
        if arguments == 2:
            return intrinsic(lambda typing_context, a, b: typed())
        return intrinsic(lambda typing_context, a, b, c: typed())

    def _operations(kind: str, add: str) -> dict[str, Any]:
        return {
            "maximum": instruction(f"max.{kind} $0, $1, $2;", 2),
            "maximum3": instruction(f"{{.reg .b32 t; max.{kind} t, $1, $2; max.{kind} $0, t, $3;}}", 3),
            "add": instruction(f"add.{add} $0, $1, $2;", 2),
            "add_maximum": instruction(f"{{.reg .b32 t; add.{add} t, $1, $2; max.{kind} $0, t, $3;}}", 3),
            "add_maximum_zero": instruction(
                f"{{.reg .b32 t; add.{add} t, $1, $2; max.{kind}.relu $0, t, $3;}}" if kind == "s16x2" else
                f"{{.reg .b32 t; add.{add} t, $1, $2; max.{kind} t, t, $3; max.{kind} $0, t, 0;}}", 3),
        }

    choose_bytes = instruction("prmt.b32 $0, $1, $2, $3;", 3)
    dot4 = instruction("dp4a.s32.s32 $0, $1, $2, $3;", 3)
    multiply_add = instruction("mad.lo.s32 $0, $1, $2, $3;", 3)
    maximum_unsigned = instruction("max.u16x2 $0, $1, $2;", 2)
    maximum_unsigned3 = instruction("{.reg .b32 t; max.u16x2 t, $1, $2; max.u16x2 $0, t, $3;}", 3)
    add_half_or_zero = instruction(
        "{.reg .b32 one; mov.b32 one, 0x3C003C00; fma.rn.relu.f16x2 $0, $1, one, $2;}", 2)
    anew = instruction("mov.b32 $0, $1;", 1, True)
    @intrinsic
    def four_words(typing_context, array, first):
        """Four words of an i4 array in shared memory, from a place on that is a multiple of four: one instruction."""

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            word, long = ir.IntType(32), ir.IntType(64)
            pointer = builder.ptrtoint(create_struct_proxy(signature.args[0])(context, builder, values[0]).data, long)
            of_array = builder.call(ir.InlineAsm(
                ir.FunctionType(word, [long]),
                "{.reg .u64 t; cvta.to.shared.u64 t, $1; cvt.u32.u64 $0, t;}", "=r,l"), [pointer])
            address = builder.add(of_array, builder.mul(values[1], ir.Constant(word, 4)))
            shape = ir.LiteralStructType([word] * 4)
            read = builder.call(ir.InlineAsm(ir.FunctionType(shape, [word]),
                                             "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r"), [address])
            return pack_array(builder, [builder.extract_value(read, n) for n in range(4)])

        return types.UniTuple(types.int32, 4)(array, types.int32), build

    _packed, _ordinary, _single = (_operations(*o) for o in (("s16x2", "s16x2"), ("f16x2", "s32"), ("s32", "s32")))

    @cuda.jit(device=True, inline="always")
    def from_lane(value, lane):
        """``value`` of another lane of the warp."""
        return cuda.shfl_sync(WHOLE_WARP, value, lane)

    @cuda.jit(device=True, inline="always")
    def from_lane_before(value):
        """``value`` of the lane before; lane 0 keeps its own."""
        return cuda.shfl_up_sync(WHOLE_WARP, value, 1)

    @cuda.jit(device=True, inline="always")
    def from_group(value, lane, size):
        """``value`` of another lane of the same ``size`` neighbours, which alone have to ask."""
        first = (cuda.threadIdx.x & 31) // size * size
        return cuda.shfl_sync((WHOLE_WARP >> (32 - size)) << first, value, lane)

    @cuda.jit(device=True, inline="always")
    def from_partner(value, distance):
        """``value`` of the lane whose number differs in the bits of ``distance``."""
        return cuda.shfl_xor_sync(WHOLE_WARP, value, distance)

    @cuda.jit(device=True, inline="always")
    def any_of_warp(here):
        """Whether something is so in any lane of the warp."""
        return cuda.any_sync(WHOLE_WARP, here)

    @cuda.jit(device=True, inline="always")
    def lanes_where(here):
        """i4 of which bit n says whether something is so in lane n."""
        return int32(cuda.ballot_sync(WHOLE_WARP, here))

    @cuda.jit(device=True, inline="always")
    def first_lane(lanes):
        """The first lane of those that ``lanes_where`` tells; there must be one."""
        return int32(cuda.ffs(lanes)) - int32(1)

    @cuda.jit(device=True, inline="always")
    def meet_warp():
        """All lanes of the warp come here, and see in shared memory what the others wrote before."""
        cuda.syncwarp()

else:
    _mailbox: list[Any] = [0] * 1024

    def _halves(word: int) -> tuple[int, int]:
        word = int(word) & 0xFFFFFFFF
        return ((word & 0xFFFF) ^ 0x8000) - 0x8000, ((word >> 16) ^ 0x8000) - 0x8000

    def _joined(low: int, high: int) -> int:
        return signed_word((low & 0xFFFF) | (high & 0xFFFF) << 16)

    def anew(value):
        return value

    _SIGNS = bytes(128) + bytes([255]) * 128

    def choose_bytes(a, b, selector):
        source = struct.pack("<2I", int(a) & WHOLE_WARP, int(b) & WHOLE_WARP)
        source += source.translate(_SIGNS)
        chosen = (source[selector & 15], source[selector >> 4 & 15], source[selector >> 8 & 15],
                  source[selector >> 12 & 15])
        return int.from_bytes(chosen, "little", signed=True)

    def dot4(a, b, c):
        words = [(int(w) & 0xFFFFFFFF).to_bytes(4, "little") for w in (a, b)]
        signed = [[(x ^ 128) - 128 for x in word] for word in words]
        return signed_word(int(c) + sum(x * y for x, y in zip(*signed, strict=True)))

    def multiply_add(a, b, c):
        return signed_word(int(a) * int(b) + int(c))

    def maximum_unsigned(a, b):
        return _joined(*(max(x & 0xFFFF, y & 0xFFFF) for x, y in zip(_halves(a), _halves(b), strict=True)))

    def maximum_unsigned3(a, b, c):
        return maximum_unsigned(maximum_unsigned(a, b), c)

    def add_half_or_zero(a, b):
        words = struct.pack("<2I", int(a) & WHOLE_WARP, int(b) & WHOLE_WARP)
        low, high, more_low, more_high = struct.unpack("<4e", words)
        return struct.unpack("<i", struct.pack("<2e", max(low + more_low, 0.0), max(high + more_high, 0.0)))[0]

    def four_words(array, first):
        return tuple(int(word) for word in array[first : first + 4])

    def _maximum2(a, b):
        return _joined(*map(max, _halves(a), _halves(b)))

    def _add2(a, b):
        return _joined(*(x + y for x, y in zip(_halves(a), _halves(b), strict=True)))

    def _twins(maximum: Callable[..., int], add: Callable[..., int]) -> dict[str, Any]:
        return {"maximum": maximum, "maximum3": lambda a, b, c: maximum(maximum(a, b), c),
                "add": add, "add_maximum": lambda a, b, c: maximum(add(a, b), c),
                "add_maximum_zero": lambda a, b, c: maximum(maximum(add(a, b), c), 0)}

    def _add1(a, b):
        return signed_word(int(a) + int(b))

    _packed, _ordinary, _single = _twins(_maximum2, _add2), _twins(_maximum2, _add1), _twins(max, _add1)

    def _exchange(value, lane):
        here = cuda.threadIdx.x
        _mailbox[here] = value
        cuda.syncthreads()
        received = _mailbox[lane]
        cuda.syncthreads()
        return received

    _exchange = cuda.jit(device=True)(_exchange)

    @cuda.jit(device=True)
    def from_lane(value, lane):
        return _exchange(value, (cuda.threadIdx.x & ~31) | lane)

    @cuda.jit(device=True)
    def from_lane_before(value):
        return _exchange(value, max(cuda.threadIdx.x - 1, cuda.threadIdx.x & ~31))

    @cuda.jit(device=True)
    def from_group(value, lane, size):
        # All threads of a block wait for each other: there it must be a group of its own.
        return _exchange(value, (cuda.threadIdx.x & ~31) | lane)

    @cuda.jit(device=True)
    def from_partner(value, distance):
        return _exchange(value, cuda.threadIdx.x ^ distance)

    @cuda.jit(device=True)
    def any_of_warp(here):
        return cuda.syncthreads_or(here)  # a block is one warp here


    @cuda.jit(device=True)
    def lanes_where(here):
        thread = cuda.threadIdx.x
        _mailbox[thread] = bool(here)
        cuda.syncthreads()
        first = thread & ~31
        lanes = sum(1 << lane for lane in range(32) if _mailbox[first + lane])
        cuda.syncthreads()
        return signed_word(lanes)

    def first_lane(lanes):
        return (int(lanes) & -int(lanes)).bit_length() - 1

    @cuda.jit(device=True)
    def meet_warp():
        cuda.syncthreads()


PACKED = Arithmetic("packed 16-bit instructions", 2, 32767, _packed, pair, True)
ORDINARY = Arithmetic("ordinary instructions", 2, 0x7BFF, _ordinary, twice, False)
"""Halves up to 0x7bff are finite numbers of floating point, whose order is that of their bits."""
SINGLE = Arithmetic("single numbers", 1, (1 << 31) - 1, _single, lambda value: value, True)


def packed_arithmetic() -> Arithmetic:
    """The arithmetic of two numbers in a register for the current device; ``SEQLOOM_DPX=no`` takes the ordinary one."""
    if os.environ.get("SEQLOOM_DPX", "") == "no":
        return ORDINARY
    return PACKED if SIMULATED or cuda.get_current_device().compute_capability >= (9, 0) else ORDINARY


def has_packed_maxima() -> bool:
    """Whether the current device has what ``ORDINARY`` needs: maxima of two halves (compute capability 8.0)."""
    return SIMULATED or cuda.get_current_device().compute_capability >= (8, 0)
