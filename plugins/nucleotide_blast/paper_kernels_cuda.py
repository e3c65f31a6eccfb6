# ruff: noqa: F821  (names in capitals in the kernel templates are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""G-BLASTN's kernels: scan, look-up and mini-extension with BLAST's two tables of words (sections 3.1 and 3.2).

A pair is eight bytes: what a word of the targets has in the table, and behind it, in the lower four, its scan place.

**Small table** (figures 6 and 7). The scan reads the backbone. A word that is at one place makes a pair with it; of one
that is at several the scan notes where these begin in the overflow array, along which the look-up goes.

**Megablast's** (figures 8 and 9). The scan asks the presence bits and notes words; the look-up goes from the head of
each along its chain of places.

**Mini-extension.** Pairs of places of either table are completed to hits, to the left first and then to the right: four
bases at a time with the small table, base by base with that of megablast, as BLAST does.

What the scan finds is collected in shared memory, with a counter that lies there too. When half of the room is taken,
all of it goes on side by side, after one addition to a counter of all blocks. A thread looks at one word in each turn,
whichever piece that is in: targets are laid end to end, where the paper has a launch for each. Its tables in texture
memory are read by way of the read-only cache here, which textures share today.

Source: Zhao & Chu 2014 (G-BLASTN).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import cuda as _cuda
from numba import int32, int64, uint64
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.read_only import read_only
from seqloom.core.kernels.unroll import specialise
from seqloom.plugins.nucleotide_blast import scan_cuda
from seqloom.plugins.nucleotide_blast.look_up_cuda import equal_around, hand_on, note, shift_of_masked
from seqloom.plugins.nucleotide_blast.scan_cuda import (
    FOUND,
    LOOKED_UP,
    hand_on_numbers,
    last_up_to,
    packed_four,
    query_of,
    window_at,
)

cuda: Any = _cuda  # numba's types don't know what code on the device may do
NUMBERS = 1024
"""That there is room for in shared memory: K of the paper. As many as twice the threads at least."""
NO_BASE = 8
"""Of four bits, in place of a base."""
_PLACE = (1 << 32) - 1


@cuda.jit(device=True)
def half_at(halves, at):
    """A number of sixteen bits, of which each i4 of ``halves`` has two, the first one lowest."""
    number = int32(read_only(halves, at >> int64(1)) >> int32(int64(16) * (at & int64(1)))) & int32(0xFFFF)
    return int32(number - ((number & int32(0x8000)) << int32(1)))


@cuda.jit(device=True)
def bit_at(bits, word):
    """1 if a word is there. bits: i4, of 32 words each."""
    return int32(read_only(bits, word >> int64(5)) >> int32(word & int64(31))) & int32(1)


@cuda.jit(device=True)
def pair_of(entry, place):
    return (int64(entry) << int64(32)) | int64(place)


def scan_table(words, lows, firsts, tiles, total, stride, width, table, kept, kept_room, found, found_room, counts):
    """Kernel template: what the words of the targets have in a table; figure 6, or figure 8 if CHAINED.

    Args:
        words, lows, firsts, tiles, total, stride, counts: as of ``scan_cuda.scan``.
        width: bases of a word.
        table: i4, two entries of the backbone each, or if CHAINED 32 presence bits each.
        kept, kept_room: i8[kept_room], pairs with places; if CHAINED they aren't used.
        found, found_room: i8[found_room], pairs with places in the overflow array, or with words if CHAINED.
    """
    buffer = cuda.shared.array(NUMBERS, int64)
    here = cuda.shared.array(1, int32)
    begin = cuda.shared.array(1, int64)
    thread = int32(cuda.threadIdx.x)
    if thread == int32(0):
        here[0] = int32(0)
    cuda.syncthreads()
    first = int64(cuda.blockIdx.x) * int64(THREADS)
    while first < total:
        place = first + int64(thread)
        if place < total:
            tile = first >> int64(TILE_BITS)
            piece = last_up_to(firsts, place, int64(tiles[tile]), int64(tiles[tile + int64(1)]))
            window = window_at(words, lows[piece] + (place - firsts[piece]) * stride)
            word = int64(window >> uint64(int64(64) - int64(2) * width))
            if CHAINED:
                if bit_at(table, word) != int32(0):
                    number = cuda.atomic.add(here, 0, int32(1))
                    buffer[number] = pair_of(word, place)
            else:
                entry = half_at(table, word)
                if entry > int32(-1):
                    number = cuda.atomic.add(here, 0, int32(1))
                    buffer[number] = pair_of(entry, place)
                if entry < int32(-1):
                    slot = cuda.atomic.add(counts, FOUND, int64(1))
                    if slot < found_room:
                        found[slot] = pair_of(-entry, place)
        cuda.syncthreads()
        count = here[0]
        first += int64(cuda.gridDim.x) * int64(THREADS)
        if count >= int32(NUMBERS // 2) or first >= total:
            if CHAINED:
                hand_on_numbers(buffer, count, here, begin, FOUND, found, found_room, counts)
            else:
                hand_on_numbers(buffer, count, here, begin, LOOKED_UP, kept, kept_room, counts)
        cuda.syncthreads()


def look_up_small(found, found_room, overflow, pairs, room, counts):
    """Kernel: pairs with all places of the words that are at several (figure 7).

    Args:
        found, found_room, counts: of ``scan_table``.
        overflow: i4, two entries each.
        pairs, room: i8[room], of which the scan has written some.
    """
    total = min(int64(counts[FOUND]), int64(found_room))
    number = int64(cuda.grid(1))
    while number < total:
        place = int64(found[number]) & int64(_PLACE)
        at = int64(found[number]) >> int64(32)
        query = half_at(overflow, at)
        while query >= int32(0):
            slot = cuda.atomic.add(counts, LOOKED_UP, int64(1))
            if slot < room:
                pairs[slot] = pair_of(query, place)
            at += int64(1)
            query = half_at(overflow, at)
        number += int64(cuda.gridDim.x) * int64(cuda.blockDim.x)


def look_up_chained(found, found_room, heads, following, pairs, room, counts):
    """Kernel: pairs with all places of the words that were found (figure 9).

    Args:
        found, found_room, counts: of ``scan_table``.
        heads, following: of ``ChainedTable``.
        pairs, room: i8[room].
    """
    total = min(int64(counts[FOUND]), int64(found_room))
    number = int64(cuda.grid(1))
    while number < total:
        place = int64(found[number]) & int64(_PLACE)
        query = int64(heads[int64(found[number]) >> int64(32)])
        while query > int64(0):
            slot = cuda.atomic.add(counts, LOOKED_UP, int64(1))
            if slot < room:
                pairs[slot] = pair_of(query - int64(1), place)
            query = int64(following[query])
        number += int64(cuda.gridDim.x) * int64(cuda.blockDim.x)


@cuda.jit(device=True)
def four_at(words, place):
    """Four bases from a place on, in four bits each."""
    four = packed_four(words, place)
    four = int32(four | (four << int32(4))) & int32(0x0F0F)
    return int32(int32(four | (four << int32(2))) & int32(0x3333))


@cuda.jit(device=True)
def equal_fours(fours, query, words, low, target, length, width, need):
    """As ``look_up_cuda.equal_around``, four bases at a time.

    fours: u2, four codes from each place of the strands on, in four bits each; ``NO_BASE`` where one isn't a base.
    """
    left = int64(0)
    most = min(need, min(target, query))
    going = True
    while going and left < most:
        count = min(int64(4), most - left)
        at = query - left - count
        differ = int32(fours[at]) ^ four_at(words, low + target - left - count)
        differ = int32(differ >> int32(int64(16) - int64(4) * count))
        if differ == int32(0):
            left += count
        else:
            left += (int64(cuda.ffs(differ)) - int64(1)) >> int64(2)
            going = False
    right = int64(0)
    most = min(need - left, length - target - width)
    going = True
    while going and right < most:
        count = min(int64(4), most - right)
        at = query + width + right
        differ = int32(fours[at]) ^ four_at(words, low + target + width + right)
        differ = int32(differ >> int32(int64(16) - int64(4) * count))
        if differ == int32(0):
            right += count
        else:
            right += (int64(4) * count - int64(32) + int64(cuda.clz(differ))) >> int64(2)
            going = False
    return left, left + right


def extend_pairs(words, lows, lengths, firsts, diagonals, stride, begins, blocks, block, strands, fours, indexed, opens,
                 width, size, pairs, pair_room, bits_of_place, keys, places, shifts, room, counts):
    """Kernel template: hits of the pairs that can be completed to ``size`` bases (section 3.2).

    Args:
        words, lows, lengths, firsts, diagonals, stride, width, size, strands, indexed, opens: as of
            ``look_up_cuda.look_up``.
        begins, blocks, block: of ``Places``, of strands one behind the other, of which pairs have places; the others
            have a place more behind the strands of each query.
        fours: of ``equal_fours``, which is taken if FOURS.
        pairs, pair_room: i8[pair_room], of the look-up.
        bits_of_place, keys, places, shifts, room, counts: as of ``look_up_cuda.look_up``.
    """
    found_keys = cuda.shared.array(HITS, uint64)
    found_places = cuda.shared.array(HITS, int32)
    found_shifts = cuda.shared.array(HITS, int32)
    here = cuda.shared.array(2, int32)
    begin = cuda.shared.array(1, int64)
    thread = int32(cuda.threadIdx.x)
    if thread < int32(2):
        here[thread] = int32(0)
    cuda.syncthreads()
    total = min(int64(counts[LOOKED_UP]), int64(pair_room))
    everywhere = int64(len(strands))
    need = size - width
    first = int64(cuda.blockIdx.x) * int64(THREADS)
    while first < total:
        if first + int64(thread) < total:
            pair = int64(pairs[first + int64(thread)])
            scan_place = pair & int64(_PLACE)
            query = pair >> int64(32)
            query += query_of(begins, blocks, block, query)
            piece = last_up_to(firsts, scan_place, int64(0), int64(len(firsts) - 1))
            low = int64(lows[piece])
            length = int64(lengths[piece])
            target = (scan_place - firsts[piece]) * stride
            if FOURS:
                left, around = equal_fours(fours, query, words, low, target, length, width, need)
            else:
                left, around = equal_around(strands, query, words, low, target, length, width, need)
            if around >= need:
                shift = int64(0)
                if need > int64(0):
                    shift = shift_of_masked(strands, indexed, opens, query - left, need, words, low, target - left,
                                            length, size)
                if shift >= int64(0):
                    key = (uint64(diagonals[piece] + target - query + everywhere) << uint64(bits_of_place)) | uint64(
                        target)
                    note(key, query - left + shift, shift, found_keys, found_places, found_shifts, here, keys, places,
                         shifts, room, counts)
        cuda.syncthreads()
        first += int64(cuda.gridDim.x) * int64(THREADS)
        if here[0] > int32(HITS // 2) or first >= total:
            hand_on(found_keys, found_places, found_shifts, here, begin, keys, places, shifts, room, counts)
        cuda.syncthreads()


@cache
def scan_table_kernel(chained: bool) -> Any:
    tile = scan_cuda.THREADS * scan_cuda.PER_THREAD
    return kept_kernel()(specialise(scan_table, CHAINED=int(chained), NUMBERS=NUMBERS, THREADS=scan_cuda.THREADS,
                                    TILE_BITS=tile.bit_length() - 1, FOUND=FOUND, LOOKED_UP=LOOKED_UP))


@cache
def look_up_kernel(chained: bool) -> Any:
    return kept_kernel()(specialise(look_up_chained if chained else look_up_small, FOUND=FOUND, LOOKED_UP=LOOKED_UP))


@cache
def extend_pairs_kernel(fours: bool) -> Any:
    return kept_kernel()(specialise(extend_pairs, FOURS=int(fours), THREADS=scan_cuda.THREADS, HITS=scan_cuda.HITS,
                                    LOOKED_UP=LOOKED_UP))
