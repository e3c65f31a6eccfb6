"""Symmetric DUST by its definition, for many sequences at once where there is no N.

An interval that is masked ends with a triplet that occurs in it so often that the pairs it makes alone outweigh the
threshold: had it fewer, the interval without it would score higher. So a count of the triplets in a sliding window
tells where masked intervals may end, which is at few places; from there one looks back for intervals that score enough,
and evaluates the definition, one length after the other, in the stretches that these cover.

Sequences with N, whose bases are drawn as they are read, are looked at through a sliding window.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.kernels.jit import kernel

_TRIPLETS = 64
_RECENT = 8
"""Places of a triplet that are known: more than a tenth of the highest level."""
_N = NUCLEOTIDE.unknown_code
_AT_ONCE = 1 << 18
"""Bases that are looked at before room for more is made."""
_SHORTEST = 4
"""Bases of the shortest interval that can be masked."""


@kernel
def _furthest(triplets, end, longest, level, counts):
    """Where the longest interval of triplets begins that ends there and scores more than the threshold; −1: none."""
    counts[:] = 0
    pairs, first = 0, -1
    for place in range(end, max(-1, end - longest), -1):
        pairs += counts[triplets[place]]
        counts[triplets[place]] += 1
        if 10 * pairs > level * (end - place) and place < end:
            first = place
    return first


@kernel
def _mark_perfect(triplets, level, longest, pairs, shorter, best_inside, marked):
    """Add 1 to ``marked`` where a perfect interval begins and −1 behind its end.

    pairs, shorter, best_inside: by start, the pairs of equal triplets in the interval of the present length and in the
    one before, and the best score within.
    """
    size = len(triplets)
    pairs[: size + 1] = 0
    shorter[: size + 1] = 0
    best_inside[: size + 1] = 0.0
    marked[: size + 3] = 0
    for length in range(2, min(longest, size) + 1):
        for start in range(size - length + 1):
            before = pairs[start]
            found = before + pairs[start + 1] - shorter[start + 1] + (triplets[start] == triplets[start + length - 1])
            pairs[start], shorter[start] = found, before
            # Equal fractions give equal doubles, and unequal ones differ by far more than the rounding.
            score = found / (length - 1)
            inside = max(best_inside[start], best_inside[start + 1])
            if score >= inside and 10 * found > level * (length - 1):
                marked[start] += 1
                marked[start + length + 2] -= 1
            best_inside[start] = max(inside, score)


@kernel
def _append_runs(marked, size, begin, sequence, linker, rows, first, count):
    """Add what is marked of ``size`` bases from ``begin`` on to ``rows``; those of a sequence start at ``first``."""
    depth, start = 0, -1
    for place in range(size + 1):
        depth += marked[place] if place < size else -depth
        if depth > 0 and start < 0:
            start = begin + place
        elif depth == 0 and start >= 0:
            # The last masked base and the next first one may be ``linker`` apart: touching intervals are one apart.
            if count > first and start - (rows[count - 1, 2] - 1) <= linker:
                rows[count - 1, 2] = begin + place
            else:
                rows[count, 0], rows[count, 1], rows[count, 2] = sequence, start, begin + place
                count += 1
            start = -1
    return count


@kernel
def _triplets(codes, triplets):
    """Write the triplet that begins at each place but the last two of the codes."""
    for place in range(len(codes) - 2):
        one, two, three = codes[place], codes[place + 1], codes[place + 2]
        triplets[place] = (np.uint8(one if one < 4 else 0) << np.uint8(4) | np.uint8(two if two < 4 else 0)
                           << np.uint8(2) | np.uint8(three if three < 4 else 0))


@kernel
def _find(codes, offsets, wanted, level, window, linker, triplets, pairs, shorter, best_inside, marked, rows):
    """Write rows of sequence, start and end; returns their number."""
    count, enough = 0, level // 10 + 1
    counts, behind = np.zeros(_TRIPLETS, np.int64), np.zeros(_TRIPLETS, np.int64)
    # How often each triplet was seen, and where the last few times: it takes one more than are ``enough``.
    seen, recent = np.zeros(_TRIPLETS, np.uint8), np.empty((_TRIPLETS, _RECENT), np.int32)
    for sequence in range(len(wanted)):
        low, size = offsets[sequence], offsets[sequence + 1] - offsets[sequence] - 2
        if not wanted[sequence] or size < 1:
            continue
        longest, first = min(window - 2, size), count
        counts[:] = 0
        recent[:] = -longest
        alike = np.int64(0)
        begin = end = np.int64(-1)
        own = codes[low : low + size + 2]
        _triplets(own, triplets)
        for place in range(size):
            triplet = triplets[place]
            before = counts[triplet]
            alike += before
            counts[triplet] = before + 1
            if place >= longest:
                old = triplets[place - longest]
                left = counts[old] - 1
                counts[old] = left
                alike -= left
            number = seen[triplet]
            seen[triplet] = number + np.uint8(1)
            recent[triplet, number & _RECENT - 1] = place
            # An interval has no more pairs than the window, and no more triplets than these are enough for.
            apart = place - recent[triplet, number - enough & _RECENT - 1]
            if (apart >= longest) | (apart * level >= 10 * alike):
                continue
            most = min(longest, (10 * alike - 1) // level + 1)
            start = _furthest(triplets, place, most, level, behind)
            if start < 0:
                continue
            if end >= 0 and place - longest < end:  # a later interval may still begin in this stretch
                begin, end = min(begin, np.int64(start)), np.int64(place)
                continue
            if end >= 0:
                _mark_perfect(triplets[begin : end + 1], level, longest, pairs, shorter, best_inside, marked)
                count = _append_runs(marked, end - begin + 3, begin, sequence, linker, rows, first, count)
            begin, end = np.int64(start), np.int64(place)
        if end >= 0:
            _mark_perfect(triplets[begin : end + 1], level, longest, pairs, shorter, best_inside, marked)
            count = _append_runs(marked, end - begin + 3, begin, sequence, linker, rows, first, count)
    return count


def intervals_by_definition(codes: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, level: int, window: int,
                            linker: int) -> np.ndarray:
    """Low-complexity intervals, i8[m, 3] of sequence, first base and end, by sequence and place.

    Args:
        codes: u1[n], ambiguities count as A.
        offsets: i8[k + 1] of the sequences.
        wanted: bool[k], sequences to look at.
        level, window, linker: as of ``dust.dust_intervals``, within their ranges.
    """
    room = int(np.diff(offsets).max(initial=0)) + 4
    rows = np.empty((len(codes) // (_SHORTEST + 1) + len(wanted), 3), np.int64)
    count = _find(np.ascontiguousarray(codes), offsets, wanted, level, window, linker, np.empty(room, np.uint8),
                  np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32), rows)
    return rows[:count]


@kernel
def _base(code, state):
    """A base of a code; for N one that the generator draws, see ``random_bases``. state: words, then both pointers."""
    if code != _N:
        return np.int64(code) if code < 4 else np.int64(0)
    words = len(state) - 2
    k, j = state[words], state[words + 1]
    value = (state[k] + state[j]) & 0xFFFFFFFF
    state[k] = value
    state[words] = k - 1 if k > 0 else words - 1
    state[words + 1] = j - 1 if j > 0 else words - 1
    return (value >> 1) & 3


@kernel
def _save(perfect, held, limit, shift, linker, found, count):
    """Move the longest perfect interval that begins before ``limit`` to ``found``; forget its like.

    Returns the numbers of perfect intervals and of those found.
    """
    if held == 0 or perfect[0, 0] >= limit:
        return held, count
    first, last = perfect[0, 0] + shift, perfect[0, 1] + shift
    if count > 0 and found[count - 1, 1] + linker >= first:
        found[count - 1, 1] = max(found[count - 1, 1], last)
    else:
        found[count, 0], found[count, 1] = first, last
        count += 1
    gone = 0
    while gone < held and perfect[gone, 0] < limit:
        gone += 1
    for at in range(held - gone):
        perfect[at] = perfect[at + gone]
    return held - gone, count


@kernel
def _find_perfect(triplets, first, suffix, stop, level, pairs, counts, perfect, held):
    """Add the perfect intervals that begin before the suffix and end with the newest triplet; returns their number."""
    length, best_pairs, best_length, at = stop - suffix, 0, 0, held
    for place in range(suffix - 1, first - 1, -1):
        seen = counts[triplets[place]]
        pairs += seen
        counts[triplets[place]] += 1
        if seen and 10 * pairs > (length * level if length else 1):
            while at > 0 and place <= perfect[at - 1, 0]:
                at -= 1
                if best_pairs == 0 or best_length * perfect[at, 2] > best_pairs * perfect[at, 3]:
                    best_pairs, best_length = perfect[at, 2], perfect[at, 3]
            if best_pairs == 0 or pairs * best_length >= best_pairs * length:
                best_pairs, best_length = pairs, length
                for later in range(held, at, -1):
                    perfect[later] = perfect[later - 1]
                perfect[at, 0], perfect[at, 1], perfect[at, 2], perfect[at, 3] = place, stop + 1, pairs, length
                held += 1
        length += 1
    return held


@kernel
def _slide(codes, begin, end, size, level, linker, state, triplets, counts, inner, spare, perfect, found):
    """Write closed intervals of the bases begin…end, the last included, to ``found``; returns their number."""
    count, few = 0, level // 5
    while end > begin + 2:
        counts[:] = 0
        inner[:] = 0
        first, suffix, stop, pairs, inner_pairs, kinds, held = 0, 0, 0, 0, 0, 0, 0
        triplet = _base(codes[begin], state) << 2
        triplet += _base(codes[begin + 1], state)
        uniform = False
        for place in range(begin + 2, end + 1):
            held, count = _save(perfect, held, first, begin, linker, found, count)
            triplet = (triplet << 2 | _base(codes[place], state)) & (_TRIPLETS - 1)
            full = stop - first >= size
            alike = full and kinds <= 1
            if full:
                old = triplets[first]
                counts[old] -= 1
                pairs -= counts[old]
                kinds -= counts[old] == 0
                first += 1
                if not alike and suffix == first - 1:
                    suffix += 1
                    inner[old] -= 1
                    inner_pairs -= inner[old]
            triplets[stop] = triplet
            kinds += counts[triplet] == 0
            pairs += counts[triplet]
            counts[triplet] += 1
            stop = place - begin - 1
            if not alike:
                inner_pairs += inner[triplet]
                inner[triplet] += 1
                if inner[triplet] > few:
                    old = -1
                    while old != triplet:
                        old = np.int64(triplets[suffix])
                        inner[old] -= 1
                        inner_pairs -= inner[old]
                        suffix += 1
            mixed = stop - first < size or kinds > 1
            if not mixed:
                if not alike:
                    held = 0
                perfect[held, 0], perfect[held, 1], perfect[held, 2], perfect[held, 3] = first, stop + 1, 0, 0
                held += 1
            if uniform and mixed:
                break
            uniform = not mixed
            length = stop - suffix
            if mixed and length < stop - first and 10 * pairs > (length * level if length else 1):
                spare[:] = inner
                held = _find_perfect(triplets, first, suffix, stop, level, inner_pairs, spare, perfect, held)
        limit = first
        while held > 0:
            held, count = _save(perfect, held, limit, begin, linker, found, count)
            limit += 1
        if first == 0:
            break
        begin += first
    return count


@kernel
def _slide_through(codes, offsets, wanted, size, level, linker, built_in, state, triplets, counts, perfect, found,
                   rows):
    """Write rows of sequence, first base and end for each of the sequences ``wanted``; returns their number."""
    count = 0
    for sequence in wanted:
        state[:] = built_in
        first = offsets[sequence]
        number = _slide(codes, first, offsets[sequence + 1] - 1, size, level, linker, state, triplets, counts[0],
                        counts[1], counts[2], perfect, found)
        for n in range(number):
            rows[count, 0], rows[count, 1] = sequence, found[n, 0] - first
            rows[count, 2] = found[n, 1] - first + 1
            count += 1
    return count


def intervals_of_whole(codes: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, level: int, window: int, linker: int,
                       state: np.ndarray) -> np.ndarray:
    """Low-complexity intervals, i8[m, 3] of sequence, first base and end, of many sequences as a sliding window finds
    them in each.

    Args:
        codes: u1[n].
        offsets: i8[k + 1] of the sequences.
        wanted: i8[w], sequences to look at.
        level, window, linker: as of ``dust.dust_intervals``, within their ranges.
        state: i8[35] of the generator that draws bases for N, as each sequence begins with it.
    """
    codes, parts = np.ascontiguousarray(codes), [np.empty((0, 3), np.int64)]
    lengths = (offsets[1:] - offsets[:-1])[wanted]
    room = int(lengths.max(initial=0)) + 1
    triplets, found = np.empty(room, np.uint8), np.empty((room, 2), np.int64)
    counts, perfect = np.empty((3, _TRIPLETS), np.int64), np.empty((window * window, 4), np.int64)
    # No more intervals than bases: some sequences at a time, so that there is little room for many.
    some = np.cumsum(lengths) // _AT_ONCE
    for part in np.split(np.arange(len(wanted)), np.flatnonzero(np.diff(some)) + 1) if len(wanted) else []:
        rows = np.empty((int((lengths[part] + 1).sum()), 3), np.int64)
        count = _slide_through(codes, offsets, wanted[part], window - 2, level, linker, state, state.copy(), triplets,
                               counts, perfect, found, rows)
        parts.append(rows[:count].copy())
    return np.concatenate(parts)


def intervals_by_window(codes: np.ndarray, start: int, stop: int, level: int, window: int, linker: int,
                        state: np.ndarray) -> np.ndarray:
    """Closed low-complexity intervals, i8[m, 2], of the bases start…stop (included), as a sliding window finds them.

    Args:
        codes: u1[n] of one sequence.
        level, window, linker: as of ``dust.dust_intervals``, within their ranges.
        state: i8[35] of the generator that draws bases for N, its words and both pointers; goes on.
    """
    room = max(0, stop - start + 1)
    found, perfect = np.empty((room + 1, 2), np.int64), np.empty((window * window, 4), np.int64)
    counts = np.empty((3, _TRIPLETS), np.int64)
    count = _slide(np.ascontiguousarray(codes), start, stop, window - 2, level, linker, state,
                   np.empty(room + 1, np.uint8), counts[0], counts[1], counts[2], perfect, found)
    return found[:count]
