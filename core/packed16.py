"""Arithmetic on pairs of signed 16-bit numbers in one 32-bit register, for CUDA kernels.

Each operation is one or two instructions on devices of compute capability 9.0 and later, and a few lines of Python in
numba's simulator, with the same result. The low half belongs to the first of two targets, the high half to the second.
Additions wrap: kernels keep their numbers in range.

Warp shuffles are here too, because the simulator has none.
"""

import os
from typing import Any

from numba import cuda as _cuda
from numba import types

from .errors import BackendError

cuda: Any = _cuda  # numba's types don't know what code on the device may do
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
WHOLE_WARP = 0xFFFFFFFF


def check_device() -> None:
    """Raise ``BackendError`` unless the current device has packed 16-bit maxima."""
    if SIMULATED:
        return
    device = cuda.get_current_device()
    if device.compute_capability < (9, 0):
        raise BackendError(f"{device.name.decode() if isinstance(device.name, bytes) else device.name} has compute "
                           f"capability {device.compute_capability[0]}.{device.compute_capability[1]}; this kernel "
                           "needs 9.0; --backend cpu")


def pair(value: int) -> int:
    """The 32-bit number that holds ``value`` in both halves."""
    packed = (value & 0xFFFF) * 0x10001
    return packed - (1 << 32) if packed >> 31 else packed


if not SIMULATED:
    from llvmlite import ir
    from numba.cuda.extending import intrinsic as _intrinsic

    intrinsic: Any = _intrinsic

    def _instruction(text: str, arguments: int) -> Any:
        """A device function of 32-bit numbers made of PTX; $0 is its result, $1 … its arguments."""
        word = ir.IntType(32)

        def typed(*_: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                shape = ir.FunctionType(word, [word] * arguments)
                code = ir.InlineAsm(shape, text, ",".join(["=r"] + ["r"] * arguments), side_effect=False)
                return builder.call(code, values)

            return types.int32(*[types.int32] * arguments), build

        if arguments == 2:
            return intrinsic(lambda typing_context, a, b: typed())
        return intrinsic(lambda typing_context, a, b, c: typed())

    maximum2 = _instruction("max.s16x2 $0, $1, $2;", 2)
    add2 = _instruction("add.s16x2 $0, $1, $2;", 2)
    maximum3 = _instruction("{.reg .b32 t; max.s16x2 t, $1, $2; max.s16x2 $0, t, $3;}", 3)
    add_maximum = _instruction("{.reg .b32 t; add.s16x2 t, $1, $2; max.s16x2 $0, t, $3;}", 3)
    add_maximum_zero = _instruction("{.reg .b32 t; add.s16x2 t, $1, $2; max.s16x2.relu $0, t, $3;}", 3)
    choose_bytes = _instruction("prmt.b32 $0, $1, $2, $3;", 3)

    @cuda.jit(device=True, inline="always")
    def from_lane(value, lane):
        """``value`` of another lane of the warp."""
        return cuda.shfl_sync(WHOLE_WARP, value, lane)

    @cuda.jit(device=True, inline="always")
    def from_lane_before(value):
        """``value`` of the lane before; lane 0 keeps its own."""
        return cuda.shfl_up_sync(WHOLE_WARP, value, 1)

    @cuda.jit(device=True, inline="always")
    def from_partner(value, distance):
        """``value`` of the lane whose number differs in the bits of ``distance``."""
        return cuda.shfl_xor_sync(WHOLE_WARP, value, distance)

else:
    _mailbox = [0] * 1024

    def _halves(word: int) -> tuple[int, int]:
        word = int(word) & 0xFFFFFFFF
        return ((word & 0xFFFF) ^ 0x8000) - 0x8000, ((word >> 16) ^ 0x8000) - 0x8000

    def _joined(low: int, high: int) -> int:
        word = (low & 0xFFFF) | (high & 0xFFFF) << 16
        return word - (1 << 32) if word >> 31 else word

    def _wrapped(value: int) -> int:
        return ((value & 0xFFFF) ^ 0x8000) - 0x8000

    def maximum2(a, b):
        return _joined(*map(max, _halves(a), _halves(b)))

    def add2(a, b):
        return _joined(*(_wrapped(x + y) for x, y in zip(_halves(a), _halves(b), strict=True)))

    def maximum3(a, b, c):
        return maximum2(maximum2(a, b), c)

    def add_maximum(a, b, c):
        return maximum2(add2(a, b), c)

    def add_maximum_zero(a, b, c):
        return maximum2(add_maximum(a, b, c), 0)

    def choose_bytes(a, b, selector):
        source = (int(a) & 0xFFFFFFFF).to_bytes(4, "little") + (int(b) & 0xFFFFFFFF).to_bytes(4, "little")
        chosen = []
        for place in range(4):
            nibble = selector >> 4 * place & 15
            byte = source[nibble & 7]
            chosen.append((255 if byte & 128 else 0) if nibble & 8 else byte)
        return int.from_bytes(bytes(chosen), "little", signed=True)

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
    def from_partner(value, distance):
        return _exchange(value, cuda.threadIdx.x ^ distance)
