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
from numba import int32, int64, uint32, uint64
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
def eight_bytes(eights, at):
    """The eight bytes from a place on, the first one lowest. eights: u8 of eight bytes each, one more than have any."""
    number = at >> int64(3)
    more = uint64(8) * uint64(at & int64(7))
    low = uint64(eights[number]) >> more
    if more:
        low |= uint64(eights[number + int64(1)]) << (uint64(64) - more)
    return low


@cuda.jit(device=True)
def unlike(groups, window):
    """Bits of the bases of eight groups, the first one lowest, that differ from those of a window."""
    swapped = (window >> uint64(32)) | (window << uint64(32))
    swapped = ((swapped & uint64(0x0000FFFF0000FFFF)) << uint64(16)) | ((swapped >> uint64(16))
                                                                       & uint64(0x0000FFFF0000FFFF))
    swapped = ((swapped & uint64(0x00FF00FF00FF00FF)) << uint64(8)) | ((swapped >> uint64(8))
                                                                      & uint64(0x00FF00FF00FF00FF))
    differ = groups ^ swapped
    return (differ | (differ >> uint64(1))) & uint64(0x5555555555555555)


@cuda.jit(device=True)
def quick_score(scores, eights, begin, size, words, low, width, query, target, x_drop):
    """The score of ``approximate``; -1 where eight groups to either side don't tell.

    eights: of ``group_bytes``, in which the query begins at ``begin``.
    """
    shift = (GROUP - target % GROUP) % GROUP
    query += shift
    target += shift
    if min(query, target) < int64(8 * GROUP) or min(size - query, width - target) < int64(8 * GROUP):
        return int32(-1)
    equal = int32(scores[0])
    cost = int32(scores[0]) - int32(scores[1])
    place = begin + (query & int64(3)) * ((size >> int64(2)) + int64(1)) + (query >> int64(2))
    score = int32(0)
    for side in range(2):
        if side == 0:
            bits = unlike(eight_bytes(eights, place - int64(8)), window_at(words, low + target - int64(8 * GROUP)))
        else:
            bits = unlike(eight_bytes(eights, place), window_at(words, low + target))
        gain = int32(0)
        ended = False
        for _ in range(8):
            if side == 0:
                own = bits >> uint64(56)
                bits <<= uint64(8)
            else:
                own = bits & uint64(255)
                bits >>= uint64(8)
            if not ended:
                gain += equal - cost * int32(cuda.popc(uint32(own)))
                if gain > int32(0):
                    score += gain
                    gain = int32(0)
                ended = gain < -x_drop
        if not ended:
            return int32(-1)
    return score


@cuda.jit(device=True)
def first_of_run(indexed, opens, place, target, low, high, own, size):
    """As ``sampled_words_cpu``: where the first hit of a run of equal bases begins; -1 if some of its words are masked.
    """
    need = size - own
    scanned = (low + need) // (need + int64(1)) * (need + int64(1))
    first = max(scanned - need, low)
    while scanned <= high - own:
        begin = max(scanned - need, low)
        if begin + size > high:
            break
        if not indexed[place + scanned - target]:
            return int64(-1)
        if need > int64(0) and not opens[place + begin - target]:
            return int64(-1)
        scanned += need + int64(1)
    return first


def look_up_sampled(words, lows, lengths, firsts, diagonals, stride, runs, bits, present, ranks, starts, entries,
                    strands, begins, blocks, block, indexed, opens, widths, width, size, scores, eights, limits, found,
                    found_room, bits_of_place, keys, places, shifts, room, counts):
    """Kernel: hits of the places that ``scan`` found in a table of sampled words (``sampled_words_cpu.py``), but for
    those that the extension of single hits doesn't save, as eight groups of bases on either side tell.

    Args:
        widths: i4[queries], of BLAST's words.
        scores, eights, limits: of ``quick_score``; i8[queries · 2 · 3] as of ``extend``.
        The others as of ``look_up``; ``counts`` have one more number, of all hits.
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
    hits = int64(0)
    block_first = int64(cuda.blockIdx.x) * int64(THREADS)
    while block_first < total:
        if block_first + int64(thread) < total:
            scan_place = int64(found[block_first + int64(thread)])
            piece = last_up_to(firsts, scan_place, int64(0), int64(len(firsts) - 1))
            base = int64(lows[piece])
            length = int64(lengths[piece])
            target = (scan_place - firsts[piece]) * stride
            word = word_in(window_at(words, base + target), runs, 0, bits)
            below = (uint64(1) << uint64(word & int64(63))) - uint64(1)
            rank = int64(ranks[word >> int64(6)]) + int64(cuda.popc(present[word >> int64(6)] & below))
            last = int64(starts[rank + 1])
            equal += last - int64(starts[rank])
            for entry in range(int64(starts[rank]), last):
                place = int64(entries[entry])
                number = query_of(begins, blocks, block, place)
                first = int64(begins[number])
                end = int64(begins[number + 1])
                # How far the bases around the word are equal, no further than matters.
                low = target
                most = target - min(size, min(place - first, target))
                while low > most and int32(strands[place + low - target - int64(1)]) == base_at(
                        words, base + low - int64(1)):
                    low -= int64(1)
                high = target + width
                most = high + min(size + stride - int64(1), min(end - place - width, length - high))
                while high < most and int32(strands[place + high - target]) == base_at(words, base + high):
                    high += int64(1)
                if high - max(low, target - stride + int64(1)) >= size:
                    own = int64(widths[number])
                    need = size - own
                    alone = int64(-1)
                    if target - low < size and high - low < int64(2) * size:
                        alone = first_of_run(indexed, opens, place, target, low, high, own, size)
                    scanned = (max(low, target - stride + int64(1)) + need) // (need + int64(1)) * (need + int64(1))
                    while scanned <= min(target + need, high - own):
                        opposite = max(scanned - need, low)
                        shift = int64(0)
                        whole = opposite > target - stride and opposite <= high - size
                        if whole:
                            whole = indexed[place + scanned - target]
                        start = place + opposite - target
                        if whole and need > int64(0) and not opens[start]:
                            whole = indexed[start + need]
                            if whole:
                                while not indexed[start + shift]:
                                    shift += int64(1)
                                whole = opens[start + shift] and opposite + shift + size <= length
                                same = int64(0)
                                while same < size and whole:
                                    whole = int32(strands[start + shift + same]) == base_at(
                                        words, base + opposite + shift + same)
                                    same += int64(1)
                        if whole:
                            hits += int64(1)
                            if alone >= int64(0):
                                whole = opposite == alone
                                if whole:
                                    limit = number * int64(6)
                                    if start - first > (end - first - int64(2)) // int64(2):
                                        limit += int64(3)
                                    score = quick_score(
                                        scores, eights, first + int64(GROUP) * number, end - first - int64(1), words,
                                        base, length, start - first, opposite, int32(limits[limit]))
                                    whole = score < int32(0) or score >= min(limits[limit + 1], limits[limit + 2])
                        if whole:
                            key = (uint64(diagonals[piece] + opposite - start + everywhere) << uint64(bits_of_place)
                                   ) | uint64(opposite)
                            slot = cuda.atomic.add(here, 0, int32(1))
                            if slot < int32(HITS):
                                found_keys[slot] = key
                                found_places[slot] = int32(start + shift)
                                found_shifts[slot] = int32(shift)
                            else:
                                at = cuda.atomic.add(counts, KEPT, int64(1))
                                if at < room:
                                    keys[at] = key
                                    places[at] = int32(start + shift)
                                    shifts[at] = int32(shift)
                        scanned += need + int64(1)
        cuda.syncthreads()
        count = min(here[0], int32(HITS))
        block_first += int64(cuda.gridDim.x) * int64(THREADS)
        if count > int32(HITS // 2) or block_first >= total:
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
    if hits > int64(0):
        cuda.atomic.add(counts, ALL_HITS, hits)


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
           blocks, block, scores, matrix, symbols, limits, window, length, shortest, segments, ranks, room, counts):
    """Kernel: segments of hits sorted by key; the thread of the first hit of a diagonal and query walks along it.

    Args:
        keys, rows: u8 and i4[total], sorted, and the hits that they are of.
        places, shifts, bits_of_place, lows, lengths, diagonals, strands, begins, blocks, block: as of ``look_up``.
        groups: u1, ``packed`` of the strands.
        scores, matrix, symbols: i4[256] of groups, i4[codes · symbols] of bases.
        limits: i8[queries · 2 · 3], by strand: X-drop, reduced cutoff, cutoff.
        window: see ``ungapped_reference``. length, shortest: bases of hits, and those from which on groups are used.
        segments, ranks, room, counts: i4[room · SEGMENT]; u8[room], which put them in order, the query and the number
            of the hit among the sorted ones; ``counts[0]`` are found.
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
                            ranks[slot] = (uint64(number) << uint64(32)) | uint64(at)
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


def tabulate(segments, rows, total, sizes, queries, chunks, first, plus, minus, table):
    """Kernel: columns of ``ungapped_cpu.COLUMNS``, i4[10 · total], of segments in the order of ``rows``.

    Args:
        segments, rows: of ``extend``, and i4[total].
        sizes, queries: i8[queries], bases and numbers.
        chunks, first: i8[pieces, 2], target and begin of each piece; the number of the first one that was searched.
        plus, minus: as what a strand is written.
    """
    row = int64(cuda.grid(1))
    if row < total:
        at = int64(rows[row]) * int64(SEGMENT)
        number = int64(segments[at])
        piece = int64(segments[at + 1]) + first
        size = int64(sizes[number])
        chunk = int64(chunks[piece, 1])
        start = int64(segments[at + 2])
        word = int64(segments[at + 6])
        taken = int64(segments[at + 4])
        frame = plus
        if word > size:
            frame = minus
            start = int64(2) * size + int64(1) - start - taken
            word = int64(2) * size + int64(1) - word
        table[row] = int32(queries[number])
        table[total + row] = int32(chunks[piece, 0])
        table[2 * total + row] = int32(chunk)
        table[3 * total + row] = int32(frame)
        table[4 * total + row] = int32(start)
        table[5 * total + row] = int32(segments[at + 3] + chunk)
        table[6 * total + row] = int32(taken)
        table[7 * total + row] = segments[at + 5]
        table[8 * total + row] = int32(word)
        table[9 * total + row] = int32(segments[at + 7] + chunk)


@cache
def tabulate_kernel() -> Any:
    return kept_kernel()(specialise(tabulate, SEGMENT=SEGMENT))


@cache
def scan_kernel(templates: int) -> Any:
    return kept_kernel()(specialise(scan, TEMPLATES=templates, THREADS=THREADS, TILE=THREADS * PER_THREAD, FOUND=FOUND))


@cache
def look_up_kernel(templates: int, extended: bool) -> Any:
    """extended: whether table words are narrower than hits."""
    return kept_kernel()(specialise(look_up, TEMPLATES=templates, EXTENDED=int(extended), THREADS=THREADS, HITS=HITS,
                                    FOUND=FOUND, KEPT=KEPT, LOOKED_UP=LOOKED_UP))


@cache
def look_up_sampled_kernel() -> Any:
    return kept_kernel()(specialise(look_up_sampled, GROUP=GROUP, THREADS=THREADS, HITS=HITS, FOUND=FOUND, KEPT=KEPT,
                                    LOOKED_UP=LOOKED_UP, ALL_HITS=ALL_HITS))


@cache
def extend_kernel() -> Any:
    return kept_kernel()(specialise(extend, SEGMENT=SEGMENT))
