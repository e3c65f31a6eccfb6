# ruff: noqa: F821  (names in capitals in the kernel templates are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""The kernel that looks for words in packed targets, and how bases and words are read there (G-BLASTN section 3.1).

Scan and look-up (``look_up_cuda.py``) are two passes. The first makes the words of the targets, asks the presence bits,
and notes places; the second looks these up, completes table words to seeding words and writes hits. Both collect what
they find in shared memory, with a counter that lies there too, and hand it on when half of the room is taken, by one
addition to a counter of all blocks. What there is no room for is counted all the same.

Targets are laid end to end, so that no launch is for a single one. A target is searched in *pieces*, its chunks; *scan
places*, where words of a piece begin, are numbered through all pieces, and a piece has as many *diagonals* as its bases
and those of all queries. So a diagonal has a number of its own, and a hit is a key: its diagonal, then the place of its
table word. Hits of several queries may share a diagonal; those of one follow each other there.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint64
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.unroll import specialise

cuda: Any = _cuda  # numba's types don't know what code on the device may do
THREADS = 256
PER_THREAD = 8
"""Scan places of a tile, for each thread."""
HITS = 1024
"""That there is room for in shared memory."""
FOUND, KEPT, LOOKED_UP, ALL_HITS = range(4)
"""Counters: places whose word is in the table, hits that are kept, pairs of equal words, and all hits where some aren't
kept."""


def extraction_runs(templates: list[np.ndarray], length: int) -> np.ndarray:
    """i8[t, runs, 2]: shift and mask that bring each run of neighbouring places of a window to its bits of the word.

    Templates that have fewer runs than others have empty masks behind theirs.
    """
    runs = [np.split(places, np.flatnonzero(np.diff(places) != 1) + 1) for places in templates]
    table = np.zeros((len(templates), max(map(len, runs)), 2), np.int64)
    for number, places in enumerate(templates):
        behind = len(places)
        for at, run in enumerate(runs[number]):
            behind -= len(run)
            table[number, at] = 2 * (length - 1 - run[-1] - behind), (4 ** len(run) - 1) << 2 * behind
    return table


@cuda.jit(device=True)
def sixteen(words, number):
    """A word with its first base highest, u8. words: u4, four bases in each byte with the first one highest."""
    word = uint64(words[number])
    return ((word >> uint64(24)) | ((word >> uint64(8)) & uint64(0xFF00)) | ((word << uint64(8)) & uint64(0xFF0000))
            | ((word << uint64(24)) & uint64(0xFF000000)))


@cuda.jit(device=True)
def window_at(words, place):
    """32 bases from a place on, the first one highest."""
    number = place >> int64(4)
    more = uint64(2) * uint64(place & int64(15))
    high = (sixteen(words, number) << uint64(32)) | sixteen(words, number + int64(1))
    return (high << more) | (sixteen(words, number + int64(2)) >> (uint64(32) - more))


@cuda.jit(device=True)
def base_at(words, place):
    """The base at a place."""
    return int32((sixteen(words, place >> int64(4)) >> (uint64(30) - uint64(2) * uint64(place & int64(15))))
                 & uint64(3))


@cuda.jit(device=True)
def packed_four(words, place):
    """Four bases from a place on."""
    number = place >> int64(4)
    two = (sixteen(words, number) << uint64(32)) | sixteen(words, number + int64(1))
    return int32((two >> (uint64(56) - uint64(2) * uint64(place & int64(15)))) & uint64(255))


@cuda.jit(device=True)
def word_in(window, runs, template, bits):
    """The word of a template in a window; see ``extraction_runs``. runs: i8[templates, runs, 2]."""
    word = uint64(template) << uint64(bits)
    for run in range(runs.shape[1]):
        word |= (window >> uint64(runs[template, run, 0])) & uint64(runs[template, run, 1])
    return int64(word)


@cuda.jit(device=True)
def last_up_to(firsts, value, low, high):
    """The last place in rising i8 ``firsts`` from ``low`` to ``high`` whose value is at most this."""
    while low < high:
        middle = (low + high + int64(1)) >> int64(1)
        if firsts[middle] <= value:
            low = middle
        else:
            high = middle - int64(1)
    return low


@cuda.jit(device=True)
def query_of(begins, blocks, block, place):
    """The query whose strands a place is in: see ``scanned_cpu.query_at``."""
    number = int64(blocks[place // block])
    while begins[number + 1] <= place:
        number += int64(1)
    return number


@cuda.jit(device=True)
def hand_on_numbers(buffer, count, here, begin, which, found, room, counts):
    """Hand on the numbers that the threads of a block have noted, which all come here.

    Args:
        buffer, count, here: in shared memory, how many there are, and their counter there.
        begin: i8[1] in shared memory.
        which: the counter of all blocks.
    """
    thread = int32(cuda.threadIdx.x)
    if thread == int32(0):
        begin[0] = cuda.atomic.add(counts, which, int64(count))
    cuda.syncthreads()
    for n in range(thread, count, int32(cuda.blockDim.x)):
        if begin[0] + int64(n) < room:
            found[begin[0] + int64(n)] = buffer[n]
    if thread == int32(0):
        here[0] = int32(0)


def scan(words, lows, firsts, tiles, total, stride, runs, bits, present, found, room, counts):
    """Kernel template: scan places whose word is in a table.

    Args:
        words: u4, packed bases, see ``sixteen``.
        lows, firsts: i8[pieces], first base and first scan place of each piece.
        tiles: i4[t + 1], the piece in which each tile of scan places begins, and the last piece.
        total, stride: scan places; bases from one to the next.
        runs, bits: of ``word_in``.
        present: u8, presence bits.
        found, room: i4[room] for numbers: scan place · TEMPLATES + template.
        counts: i8[4].
    """
    buffer = cuda.shared.array(2 * TILE * TEMPLATES, int32)
    here = cuda.shared.array(1, int32)
    begin = cuda.shared.array(1, int64)
    thread = int32(cuda.threadIdx.x)
    if thread == int32(0):
        here[0] = int32(0)
    cuda.syncthreads()
    tile = int64(cuda.blockIdx.x)
    while tile * int64(TILE) < total:
        low = int64(tiles[tile])
        high = int64(tiles[tile + 1])
        for k in range(TILE // THREADS):
            place = tile * int64(TILE) + int64(k * THREADS + thread)
            if place < total:
                piece = last_up_to(firsts, place, low, high)
                window = window_at(words, lows[piece] + (place - firsts[piece]) * stride)
                for template in range(TEMPLATES):
                    word = word_in(window, runs, template, bits)
                    if (present[word >> int64(6)] >> uint64(word & int64(63))) & uint64(1):
                        number = cuda.atomic.add(here, 0, int32(1))
                        buffer[number] = int32(place * int64(TEMPLATES) + int64(template))
        cuda.syncthreads()
        count = here[0]
        tile += int64(cuda.gridDim.x)
        if count > int32(TILE * TEMPLATES) or tile * int64(TILE) >= total:
            hand_on_numbers(buffer, count, here, begin, FOUND, found, room, counts)
        cuda.syncthreads()


@cache
def scan_kernel(templates: int) -> Any:
    return kept_kernel()(specialise(scan, TEMPLATES=templates, THREADS=THREADS, TILE=THREADS * PER_THREAD, FOUND=FOUND))
