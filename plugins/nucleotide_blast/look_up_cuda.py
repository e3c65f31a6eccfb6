# ruff: noqa: F821  (names in capitals in the kernel templates are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""Kernels that look up what a scan found, and write hits (G-BLASTN section 3.1).

Words of BLAST's tables are completed to hits; around sampled words (``sampled_words_cpu.py``) the runs of equal bases
say where hits are.
"""

from functools import cache
from typing import Any

from numba import cuda as _cuda
from numba import int32, int64, uint32, uint64
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.unroll import specialise
from seqloom.plugins.nucleotide_blast import scan_cuda
from seqloom.plugins.nucleotide_blast.scan_cuda import (
    ALL_HITS,
    FOUND,
    KEPT,
    LOOKED_UP,
    base_at,
    last_up_to,
    query_of,
    window_at,
    word_in,
)

cuda: Any = _cuda  # numba's types don't know what code on the device may do
GROUP = 4
"""Bases that an extension looks at together."""


@cuda.jit(device=True)
def rank_of(present, ranks, word):
    """How many words of a table come before a word that is there."""
    below = (uint64(1) << uint64(word & int64(63))) - uint64(1)
    return int64(ranks[word >> int64(6)]) + int64(cuda.popc(present[word >> int64(6)] & below))


@cuda.jit(device=True)
def shift_of_masked(strands, indexed, opens, start, need, words, low, opposite, length, size):
    """By how many bases a hit is moved on whose first ones are masked; -1 if there is none then.

    Args:
        start, opposite: where it begins in the strands and in the piece, of ``length`` bases from ``low`` on.
        need: by how many bases it is longer than table words.
    """
    if opens[start]:
        return int64(0)
    if not indexed[start + need]:
        return int64(-1)
    shift = int64(0)
    while not indexed[start + shift]:
        shift += int64(1)
    if not opens[start + shift] or opposite + shift + size > length:
        return int64(-1)
    for same in range(size):
        if int32(strands[start + shift + same]) != base_at(words, low + opposite + shift + same):
            return int64(-1)
    return shift


@cuda.jit(device=True)
def equal_around(strands, query, words, low, target, length, width, need):
    """Bases that are equal in a row before a word, ``need`` at most; and with those behind it, ``need`` in all.

    Args:
        query, target: where the word, of ``width`` bases, begins in the strands and in the piece, which has ``length``
            bases from ``low`` on.
    """
    left = int64(0)
    most = min(need, min(target, query))
    while left < most:
        if int32(strands[query - left - int64(1)]) != base_at(words, low + target - left - int64(1)):
            break
        left += int64(1)
    right = int64(0)
    most = min(need - left, length - target - width)
    while right < most:
        if int32(strands[query + width + right]) != base_at(words, low + target + width + right):
            break
        right += int64(1)
    return left, left + right


@cuda.jit(device=True)
def note(key, place, shift, found_keys, found_places, found_shifts, here, keys, places, shifts, room, counts):
    """Note a hit in shared memory or, where that is full, where those of all blocks are."""
    slot = cuda.atomic.add(here, 0, int32(1))
    if slot < int32(len(found_keys)):
        found_keys[slot] = key
        found_places[slot] = int32(place)
        found_shifts[slot] = int32(shift)
    else:
        at = cuda.atomic.add(counts, KEPT, int64(1))
        if at < room:
            keys[at] = key
            places[at] = int32(place)
            shifts[at] = int32(shift)


@cuda.jit(device=True)
def hand_on(found_keys, found_places, found_shifts, here, begin, keys, places, shifts, room, counts):
    """Hand on the hits that the threads of a block have noted, which all come here."""
    thread = int32(cuda.threadIdx.x)
    count = min(here[0], int32(len(found_keys)))
    if thread == int32(0):
        begin[0] = cuda.atomic.add(counts, KEPT, int64(count))
    cuda.syncthreads()
    for n in range(thread, count, int32(cuda.blockDim.x)):
        at = int64(begin[0]) + int64(n)
        if at < room:
            keys[at] = found_keys[n]
            places[at] = found_places[n]
            shifts[at] = found_shifts[n]
    if thread == int32(0):
        here[0] = int32(0)


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
            rank = rank_of(present, ranks, word)
            last = int64(starts[rank + 1])
            equal += last - int64(starts[rank])
            for entry in range(int64(starts[rank]), last):
                query = int64(entries[entry])
                left = int64(0)
                shift = int64(0)
                whole = True
                if EXTENDED:
                    need = size - width
                    left, around = equal_around(strands, query, words, low, target, length, width, need)
                    whole = around >= need
                    if whole:
                        shift = shift_of_masked(strands, indexed, opens, query - left, need, words, low, target - left,
                                                length, size)
                        whole = shift >= int64(0)
                if whole:
                    key = (uint64(diagonals[piece] + target - query + everywhere) << uint64(bits_of_place)) | uint64(
                        target * int64(TEMPLATES) + template)
                    note(key, query - left + shift, shift, found_keys, found_places, found_shifts, here, keys, places,
                         shifts, room, counts)
        cuda.syncthreads()
        first += int64(cuda.gridDim.x) * int64(THREADS)
        if here[0] > int32(HITS // 2) or first >= total:
            hand_on(found_keys, found_places, found_shifts, here, begin, keys, places, shifts, room, counts)
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
            rank = rank_of(present, ranks, word)
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
                        if whole and need > int64(0):
                            shift = shift_of_masked(strands, indexed, opens, start, need, words, base, opposite, length,
                                                    size)
                            whole = shift >= int64(0)
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
                            note(key, start + shift, shift, found_keys, found_places, found_shifts, here, keys, places,
                                 shifts, room, counts)
                        scanned += need + int64(1)
        cuda.syncthreads()
        block_first += int64(cuda.gridDim.x) * int64(THREADS)
        if here[0] > int32(HITS // 2) or block_first >= total:
            hand_on(found_keys, found_places, found_shifts, here, begin, keys, places, shifts, room, counts)
        cuda.syncthreads()
    if equal > int64(0):
        cuda.atomic.add(counts, LOOKED_UP, equal)
    if hits > int64(0):
        cuda.atomic.add(counts, ALL_HITS, hits)


@cache
def look_up_kernel(templates: int, extended: bool) -> Any:
    """extended: whether table words are narrower than hits."""
    return kept_kernel()(specialise(look_up, TEMPLATES=templates, EXTENDED=int(extended), **_sizes()))


@cache
def look_up_sampled_kernel() -> Any:
    return kept_kernel()(specialise(look_up_sampled, GROUP=GROUP, ALL_HITS=ALL_HITS, **_sizes()))


def _sizes() -> dict[str, Any]:
    return {"THREADS": scan_cuda.THREADS, "HITS": scan_cuda.HITS, "FOUND": FOUND, "LOOKED_UP": LOOKED_UP}
