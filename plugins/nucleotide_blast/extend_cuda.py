"""Kernels of the ungapped extension of hits that are on a device (G-BLASTN section 3.2), and of what comes back."""

from functools import cache
from typing import Any

from numba import cuda as _cuda
from numba import int32, int64, uint64
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.unroll import specialise
from seqloom.plugins.nucleotide_blast.look_up_cuda import GROUP
from seqloom.plugins.nucleotide_blast.scan_cuda import base_at, last_up_to, packed_four, query_of

cuda: Any = _cuda  # numba's types don't know what code on the device may do
SEGMENT = 8
"""Numbers of a segment: query, piece, starts in strands and piece, length, score, starts of the word hit in both."""


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
def extend_kernel() -> Any:
    return kept_kernel()(specialise(extend, SEGMENT=SEGMENT))


@cache
def tabulate_kernel() -> Any:
    return kept_kernel()(specialise(tabulate, SEGMENT=SEGMENT))
