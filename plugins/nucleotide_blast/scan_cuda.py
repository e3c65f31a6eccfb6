# ruff: noqa: F821  (names in capitals in the kernel templates are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""Kernels that find word hits in packed targets, and kernels that extend them (G-BLASTN sections 3.1 and 3.2).

Scan and look-up are two passes. The first makes the words of the targets, asks the presence bits, and notes places; the
second looks these up, completes table words to seeding words and writes hits. Both collect what they find in shared
memory, with a counter that lies there too, and hand it on when half of the room is taken, by one addition to a counter
of all blocks. What there is no room for is counted all the same.

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
FOUND, KEPT, LOOKED_UP = range(3)
"""Counters: places whose word is in the table, hits, and pairs of equal words."""
SEGMENT = 8
"""Numbers of a segment: query, piece, starts in strands and piece, length, score, starts of the word hit in both."""
GROUP = 4


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
        counts: i8[3].
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
            if thread == int32(0):
                begin[0] = cuda.atomic.add(counts, FOUND, int64(count))
            cuda.syncthreads()
            for n in range(thread, count, int32(THREADS)):
                if begin[0] + int64(n) < room:
                    found[begin[0] + int64(n)] = buffer[n]
            if thread == int32(0):
                here[0] = int32(0)
        cuda.syncthreads()


def look_up(words, lows, lengths, firsts, diagonals, stride, runs, bits, present, ranks, starts, entries, strands,
            begins, blocks, block, indexed, opens, width, size, found, found_room, bits_of_place, keys, places, shifts,
            room, counts):
    """Kernel template: hits of the places that ``scan`` found.

    Args:
        words, lows, firsts, stride, runs, bits, present, found, counts: as of ``scan``.
        lengths, diagonals: i8[pieces], bases of each piece and its first diagonal.
        ranks, starts, entries: of ``seed_cpu.WordTable``.
        strands, begins: as ``compared`` of ``Strands``. blocks, block: of ``Places``, for these begins.
        indexed, opens: bool, for every place of the strands.
        width, size: bases of table words and of hits.
        bits_of_place: of a key.
        keys, places, shifts: u8, i4, i4[room] for hits: key, place in the strands, shift.
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
    total = min(int64(counts[FOUND]), int64(found_room))
    everywhere = int64(len(strands))
    equal = int64(0)
    first = int64(cuda.blockIdx.x) * int64(THREADS)
    while first < total:
        if first + int64(thread) < total:
            number = int64(found[first + int64(thread)])
            template = number % int64(TEMPLATES)
            scan_place = number // int64(TEMPLATES)
            piece = last_up_to(firsts, scan_place, int64(0), int64(len(firsts) - 1))
            low = int64(lows[piece])
            length = int64(lengths[piece])
            target = (scan_place - firsts[piece]) * stride
            word = word_in(window_at(words, low + target), runs, template, bits)
            below = (uint64(1) << uint64(word & int64(63))) - uint64(1)
            rank = int64(ranks[word >> int64(6)]) + int64(cuda.popc(present[word >> int64(6)] & below))
            last = int64(starts[rank + 1])
            equal += last - int64(starts[rank])
            for entry in range(int64(starts[rank]), last):
                query = int64(entries[entry])
                left = int64(0)
                shift = int64(0)
                whole = True
                if EXTENDED:
                    need = size - width
                    right = int64(0)
                    most = min(need, target)
                    while left < most:
                        if query - left <= int64(0):
                            break
                        if int32(strands[query - left - int64(1)]) != base_at(words, low + target - left - int64(1)):
                            break
                        left += int64(1)
                    most = min(need - left, length - target - width)
                    while right < most:
                        if int32(strands[query + width + right]) != base_at(words, low + target + width + right):
                            break
                        right += int64(1)
                    whole = left + right >= need
                    if whole:
                        start = query - left
                        if not opens[start]:
                            whole = indexed[start + need]
                            if whole:
                                while not indexed[start + shift]:
                                    shift += int64(1)
                                opposite = target - left + shift
                                whole = opens[start + shift] and opposite + size <= length
                                if whole:
                                    same = int64(0)
                                    while same < size and whole:
                                        whole = int32(strands[start + shift + same]) == base_at(
                                            words, low + opposite + same)
                                        same += int64(1)
                if whole:
                    key = (uint64(diagonals[piece] + target - query + everywhere) << uint64(bits_of_place)) | uint64(
                        target * int64(TEMPLATES) + template)
                    slot = cuda.atomic.add(here, 0, int32(1))
                    if slot < int32(HITS):
                        found_keys[slot] = key
                        found_places[slot] = int32(query - left + shift)
                        found_shifts[slot] = int32(shift)
                    else:
                        at = cuda.atomic.add(counts, KEPT, int64(1))
                        if at < room:
                            keys[at] = key
                            places[at] = int32(query - left + shift)
                            shifts[at] = int32(shift)
        cuda.syncthreads()
        count = min(here[0], int32(HITS))
        first += int64(cuda.gridDim.x) * int64(THREADS)
        if count > int32(HITS // 2) or first >= total:
            if thread == int32(0):
                begin[0] = cuda.atomic.add(counts, KEPT, int64(count))
            cuda.syncthreads()
            for n in range(thread, count, int32(THREADS)):
                at = int64(begin[0]) + int64(n)
                if at < room:
                    keys[at] = found_keys[n]
                    places[at] = found_places[n]
                    shifts[at] = found_shifts[n]
            if thread == int32(0):
                here[0] = int32(0)
        cuda.syncthreads()
    if equal > int64(0):
        cuda.atomic.add(counts, LOOKED_UP, equal)


@cuda.jit(device=True)
def packed_four(words, place):
    """Four bases from a place on."""
    number = place >> int64(4)
    two = (sixteen(words, number) << uint64(32)) | sixteen(words, number + int64(1))
    return int32((two >> (uint64(56) - uint64(2) * uint64(place & int64(15)))) & uint64(255))


@cuda.jit(device=True)
def approximate(scores, groups, begin, size, words, low, width, query, target, word_end, x_drop):
    """Segment of whole groups of four: query, target, length, score; see ``ungapped_reference.Extender``."""
    shift = (GROUP - target % GROUP) % GROUP
    query += shift
    target += shift
    score = int64(0)
    start = query
    gain = int64(0)
    for group in range(int64(1), min(query, target) // GROUP + int64(1)):
        q = query - GROUP * group
        four = packed_four(words, low + target - GROUP * group)
        gain += int64(scores[int32(groups[begin + q]) ^ four])
        if gain > 0:
            score += gain
            start = q
            gain = int64(0)
        if gain < -x_drop:
            break
    end = query + int64(1)
    gain = int64(0)
    for group in range(min(size - query, width - target) // GROUP):
        q = query + GROUP * group
        four = packed_four(words, low + target + GROUP * group)
        gain += int64(scores[int32(groups[begin + q]) ^ four])
        if gain > 0:
            score += gain
            end = q + GROUP
            gain = int64(0)
        if gain < -x_drop:
            break
    opposite = target - (query - start)
    return start, opposite, max(word_end - opposite, end - start), score


@cuda.jit(device=True)
def exact(matrix, symbols, strands, begin, size, words, low, width, query, target, x_drop):
    """Best segment base by base: query, target, length, score."""
    score = int64(0)
    start = query
    gain = int64(0)
    for back in range(int64(1), min(query, target) + int64(1)):
        gain += int64(matrix[int64(strands[begin + query - back]) * symbols + base_at(words, low + target - back)])
        if gain > 0:
            score += gain
            start = query - back
            gain = int64(0)
        elif gain < -x_drop:
            break
    end = query
    floor = -x_drop
    gain = int64(0)
    for ahead in range(min(size - query, width - target)):
        gain += int64(matrix[int64(strands[begin + query + ahead]) * symbols + base_at(words, low + target + ahead)])
        if gain > 0:
            score += gain
            end = query + ahead + int64(1)
            gain = int64(0)
            floor = max(-score, -x_drop)
        elif gain < floor:
            break
    return start, target - (query - start), end - start, score


def extend(keys, rows, total, places, shifts, bits_of_place, words, lows, lengths, diagonals, strands, groups, begins,
           blocks, block, scores, matrix, symbols, limits, window, length, shortest, segments, room, counts):
    """Kernel: segments of hits sorted by key; the thread of the first hit of a diagonal and query walks along it.

    Args:
        keys, rows: u8 and i4[total], sorted, and the hits that they are of.
        places, shifts, bits_of_place, lows, lengths, diagonals, strands, begins, blocks, block: as of ``look_up``.
        groups: u1, ``packed`` of the strands.
        scores, matrix, symbols: i4[256] of groups, i4[codes · symbols] of bases.
        limits: i8[queries · 2 · 3], by strand: X-drop, reduced cutoff, cutoff.
        window: see ``ungapped_reference``. length, shortest: bases of hits, and those from which on groups are used.
        segments, room, counts: i4[room · SEGMENT]; ``counts[0]`` are found.
    """
    hit = cuda.grid(1)
    if hit < total:
        diagonal = keys[hit] >> uint64(bits_of_place)
        number = query_of(begins, blocks, block, int64(places[rows[hit]]))
        going = True
        if hit > 0 and keys[hit - 1] >> uint64(bits_of_place) == diagonal:
            going = query_of(begins, blocks, block, int64(places[rows[hit - 1]])) != number
        piece = last_up_to(diagonals, int64(diagonal), int64(0), int64(len(diagonals) - 1))
        begin = int64(begins[number])
        size = int64(begins[number + 1]) - begin
        apart = int64(diagonal) - int64(diagonals[piece]) - int64(len(strands))
        low = int64(lows[piece])
        width = int64(lengths[piece])
        explored = int64(-window)
        saved = False
        at = int64(hit)
        while going:
            place = int64(places[rows[at]])
            query = place - begin
            target = place + apart
            start = target - int64(shifts[rows[at]])
            end = target + length
            if start >= explored:
                if window > 0 and (saved or start + length > explored + window):
                    explored = end
                    saved = False
                else:
                    limit = number * int64(6)
                    if query > (size - int64(2)) // int64(2):
                        limit += int64(3)
                    begun = opposite = taken = score = int64(0)
                    done = False
                    if length >= shortest:
                        begun, opposite, taken, score = approximate(
                            scores, groups, begin, size - int64(1), words, low, width, query, target, end,
                            int64(limits[limit]))
                        done = score < limits[limit + 1]
                    if not done:
                        begun, opposite, taken, score = exact(matrix, symbols, strands, begin, size, words, low, width,
                                                              query, target, int64(limits[limit]))
                    saved = score >= limits[limit + 2]
                    explored = end
                    if saved:
                        explored = opposite + taken
                        slot = cuda.atomic.add(counts, 0, int64(1))
                        if slot < room:
                            slot *= int64(SEGMENT)
                            segments[slot] = int32(number)
                            segments[slot + 1] = int32(piece)
                            segments[slot + 2] = int32(begun)
                            segments[slot + 3] = int32(opposite)
                            segments[slot + 4] = int32(taken)
                            segments[slot + 5] = int32(score)
                            segments[slot + 6] = int32(query)
                            segments[slot + 7] = int32(target)
            at += int64(1)
            going = at < total
            if going:
                going = keys[at] >> uint64(bits_of_place) == diagonal and places[rows[at]] < begin + size


@cache
def scan_kernel(templates: int) -> Any:
    return kept_kernel()(specialise(scan, TEMPLATES=templates, THREADS=THREADS, TILE=THREADS * PER_THREAD, FOUND=FOUND))


@cache
def look_up_kernel(templates: int, extended: bool) -> Any:
    """extended: whether table words are narrower than hits."""
    return kept_kernel()(specialise(look_up, TEMPLATES=templates, EXTENDED=int(extended), THREADS=THREADS, HITS=HITS,
                                    FOUND=FOUND, KEPT=KEPT, LOOKED_UP=LOOKED_UP))


@cache
def extend_kernel() -> Any:
    return kept_kernel()(specialise(extend, SEGMENT=SEGMENT))
