"""Letters on their way to a CUDA device: three of them in sixteen bits, unpacked in the place where they belong.

Codes below 32 take five bits. A block of 3 · WORDS letters goes as WORDS words: word k holds the letters k, WORDS + k
and 2 · WORDS + k, the first of them in its lowest bits, so that plain loops pack whole vectors. On the device the words
of a block stand where its letters are to be, from the first one on; a block of threads there reads all of them before
it writes the letters. So letters that arrive take no room beside their own.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import uint32, uint64

from .alphabet import Alphabet
from .jit import kernel as host_kernel
from .jit_cuda import kernel, launching

cuda: Any = _cuda  # numba's types don't know what code on the device may do
CODES = 32
"""Letters that are packed are below."""
TOGETHER = 3
"""Letters of a word."""
WORDS = 4096
"""Of a block: 8 KiB on the bus, and 512 threads of the device."""
_EACH = 8
"""Words that a thread of the device takes."""
_BITS = 5
_LOWEST = 0x001F001F001F001F
_PAIRS = 0x0000FFFF0000FFFF


def packable(alphabet: Alphabet) -> bool:
    """Whether all letters of an alphabet can go packed."""
    return len(alphabet) <= CODES


@host_kernel
def pack(letters, words, size):
    """Fill u2 ``words`` with u1 ``letters``, three times as many: blocks of ``size`` words each."""
    for block in range(len(words) // size):
        begin = TOGETHER * size * block
        first, second = letters[begin : begin + size], letters[begin + size : begin + 2 * size]
        third, out = letters[begin + 2 * size : begin + 3 * size], words[size * block : size * (block + 1)]
        for k in range(size):
            out[k] = np.uint16(first[k]) | np.uint16(second[k]) << 5 | np.uint16(third[k]) << 10


def arrived(letters: np.ndarray, size: int = WORDS) -> np.ndarray:
    """u1: what stands in the place of u1 ``letters`` when they have come packed, those of no whole block as they are.

    The measure of what carriers do, and what the simulator is given.
    """
    there = letters.copy()
    blocks = there[: len(there) // (TOGETHER * size) * TOGETHER * size].reshape(-1, 3, size)
    words = (blocks.astype(np.uint16) << np.array([0, 5, 10], np.uint16)[:, None]).sum(1, np.uint16)
    blocks.reshape(-1, TOGETHER * size)[:, : 2 * size] = words.view(np.uint8)
    return there


@cuda.jit(device=True)
def _lowest(words):
    """The lowest letters of four words, a byte each."""
    pairs = words & uint64(_LOWEST)
    pairs = (pairs | pairs >> uint64(8)) & uint64(_PAIRS)
    return uint32(pairs | pairs >> uint64(16))


def spread(words, letters):
    """Kernel: the letters of blocks in the place of their words. A block of threads has an eighth as many as words.

    Args:
        words, letters: u8 and u4, the same memory.
    """
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    begin = cuda.blockIdx.x * TOGETHER * threads
    four, more = uint64(words[begin + thread]), uint64(words[begin + threads + thread])
    cuda.syncthreads()
    place = 2 * begin + thread
    for _ in range(TOGETHER):
        letters[place] = _lowest(four)
        letters[place + threads] = _lowest(more)
        four, more, place = four >> uint64(_BITS), more >> uint64(_BITS), place + 2 * threads


@cache
def _compiled() -> Any:
    return kernel()(spread)


def unpack(there: Any, count: int, stream: Any, size: int = WORDS) -> None:
    """Queue the unpacking of so many letters that arrive at the beginning of a device array of u1."""
    blocks = count // (TOGETHER * size)
    if blocks:
        place = there[: blocks * TOGETHER * size]
        with launching:
            _compiled()[blocks, size // _EACH, stream](place.view(np.uint64), place.view(np.uint32))


def bring(stream: Any) -> None:
    """Have what unpacks letters on the current device, by having it unpack a few that nobody needs."""
    unpack(cuda.device_array(TOGETHER * _EACH, np.uint8), TOGETHER * _EACH, stream, _EACH)
