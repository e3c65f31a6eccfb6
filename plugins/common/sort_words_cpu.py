"""Keys as 64-bit words whose numeric order is the order of the keys: what the CPU's sorters compare and count.

A word holds as many symbols as fit. Symbols are coded densely: DNA takes 2 bits a residue, so a word holds 32 residues
where 8 bytes would hold 8. Where keys differ in length, code 0 is the end of a key, below every residue.
"""

from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.engine.threads import by_threads
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.core.records import Ragged
from seqloom.plugins.common.residues_cpu import mark_residues

_SAMPLE = 1 << 14  # residues or rows looked at to guess what all are like
_AHEAD = 16  # rows whose residues are asked for from memory before the first is looked at
_DIGIT = 9  # bits
_FEW = 48  # words that are sorted by insertion
ROOM_AHEAD = 4
"""How many words ahead of the one that is written a bucket asks for its memory: half a line of the cache."""
INVALID = 0x8000
"""Code of a residue that a guess left out."""
_U64 = np.uint64


class Coding(NamedTuple):
    """How residues become codes: u2[256] ``codes``, ``bits`` a code, ``per`` codes a word; ``ended``: 0 is the end."""

    codes: np.ndarray
    bits: int
    per: int
    ended: bool


class Words(NamedTuple):
    """Whole keys as numbers: u8[n] ``words``, of which the lowest ``bits`` bits are in use."""

    words: np.ndarray
    bits: int


def coding_of(keys: Ragged, threads: int = 1, sample: bool = False,
              lengths: tuple[int, int] | None = None) -> Coding:
    """The dense coding of the residues that occur in ``keys``, or in the first of them only.

    Args:
        lengths: of the shortest and of the longest key, if they are known.
    """
    seen = np.zeros((threads, 256), np.bool_)  # a part each: a line of memory that many write to goes to and fro
    first, last = int(keys.offsets[0]), int(keys.offsets[-1])
    last = min(last, first + _SAMPLE) if sample else last
    by_threads(threads, first, last, lambda n, a, b: mark_residues(keys.values, a, b, seen[n]))
    shortest, longest = length_range(keys, threads) if lengths is None else lengths
    return dense_coding(np.bitwise_or.reduce(seen), shortest < longest)


def dense_coding(seen: np.ndarray, ended: bool) -> Coding:
    """The coding of the residues for which bool[256] ``seen`` is set; ``ended``: with a code for the end of a key."""
    residues = np.flatnonzero(seen)
    bits = max(1, (len(residues) + ended - 1).bit_length())
    codes = np.full(256, INVALID, np.uint16)
    codes[residues] = np.arange(len(residues)) + ended
    return Coding(codes, bits, 64 // bits, ended)


def whole_words(keys: Ragged, threads: int = 1) -> Words | None:
    """``keys`` as one number each, or None if 64 bits don't hold them.

    Codes of residues, or the bits of each byte column that vary: whichever a sample says are fewer bits.
    """
    if not len(keys):
        return Words(np.empty(0, np.uint64), 0)
    shortest, longest = length_range(keys, threads)
    if longest > 64:
        return None
    words = np.empty(len(keys), np.uint64)
    fixed = 0 < shortest == longest
    guess = coding_of(keys, threads, sample=True, lengths=(shortest, longest))
    if fixed and _column_bits(keys, longest, min(_SAMPLE, len(keys)), 1).sum() <= min(64, guess.bits * longest):
        bits = _column_bits(keys, longest, len(keys), threads)
        if bits.sum() <= 64:
            first = int(keys.offsets[0])
            by_threads(threads, 0, len(words), lambda n, a, b: _pack_columns(
                keys.values, first + a * longest, longest, bits, words[a:b]))
            return Words(words, int(bits.sum()))
    for sample in (True, False):
        coding = guess if sample else coding_of(keys, threads, lengths=(shortest, longest))
        if coding.bits * longest <= 64 and _packed(keys, longest, fixed, coding, threads, words):
            return Words(words, coding.bits * longest)
    return None


def _packed(keys: Ragged, longest: int, fixed: bool, coding: Coding, threads: int, words: np.ndarray) -> bool:
    """Fill ``words`` with the keys' codes; False if a residue has none."""
    if fixed and coding.bits <= 7:
        first, pairs = int(keys.offsets[0]), _pairs(coding)
        return not any(by_threads(threads, 0, len(words), lambda n, a, b: _pack_pairs(
            keys.values, first + a * longest, longest, pairs, coding.codes, coding.bits, words[a:b])))
    return not any(by_threads(threads, 0, len(words), lambda n, a, b: _pack(
        keys.values, keys.offsets[a : b + 1], longest, coding.codes, coding.bits, words[a:b])))


def length_range(keys: Ragged, threads: int) -> tuple[int, int]:
    """Lengths of the shortest and of the longest key; 0 and 0 if there are none."""
    if not len(keys) or keys.width:
        return keys.width, keys.width
    parts = by_threads(threads, 0, len(keys), lambda n, first, last: _length_range(keys.offsets, first, last))
    lowest, highest = zip(*parts, strict=True)
    return int(min(lowest)), int(max(highest))


@kernel
def _length_range(offsets, first, last):
    lowest = offsets[1] - offsets[0]
    highest = lowest
    for row in range(np.uint64(first), np.uint64(last)):
        length = offsets[row + np.uint64(1)] - offsets[row]
        lowest, highest = min(lowest, length), max(highest, length)
    return lowest, highest


def _column_bits(keys: Ragged, width: int, rows: int, threads: int) -> np.ndarray:
    """i8[width]: low bits of each byte that vary among the first ``rows`` keys."""
    values = np.ascontiguousarray(keys.values[keys.offsets[0] : keys.offsets[rows]])
    varying = np.zeros((threads, width), np.uint8)
    by_threads(threads, 0, rows, lambda n, a, b: _vary(values, a * width, b * width, width, varying[n]))
    return np.array([int(v).bit_length() for v in np.bitwise_or.reduce(varying)], np.int64)


def _pairs(coding: Coding) -> np.ndarray:
    """u2[65536]: codes of two residues at a time; the first residue is the low byte."""
    first, second = coding.codes[None, :], coding.codes[:, None]
    both = (first << np.uint16(coding.bits)) | second
    return np.where((first | second) & INVALID, np.uint16(INVALID), both).astype(np.uint16).reshape(-1)


@kernel
def _vary(values, first, last, width, varying):
    """Bits in which the bytes of some column differ from that of the first row."""
    found = np.zeros(width, np.uint8)  # of this thread alone until it is done
    for start in range(np.uint64(first), np.uint64(last), np.uint64(width)):
        for column in range(np.uint64(width)):
            found[column] |= values[start + column] ^ values[column]
    varying[:] = found


@kernel
def _pack_columns(values, first, width, bits, words):
    """The varying bits of each row, one column behind the other."""
    masks = np.empty(width, np.uint64)
    shifts = np.empty(width, np.uint64)
    used = np.empty(width, np.uint64)
    columns = np.uint64(0)
    for column in range(width):
        if bits[column]:
            masks[columns] = (np.uint64(1) << np.uint64(bits[column])) - np.uint64(1)
            shifts[columns] = np.uint64(bits[column])
            used[columns] = np.uint64(column)
            columns += np.uint64(1)
    place = np.uint64(first)
    for row in range(np.uint64(len(words))):
        word = np.uint64(0)
        for n in range(columns):
            word = (word << shifts[n]) | (np.uint64(values[place + used[n]]) & masks[n])
        words[row] = word
        place += np.uint64(width)


@kernel
def _pack_pairs(values, first, width, pairs, codes, bits, words):
    """Rows of one width; returns not 0 if a residue has no code."""
    bad = np.uint64(0)
    place = np.uint64(first)
    two, one = np.uint64(2 * bits), np.uint64(bits)
    halves, odd = np.uint64(width // 2), width % 2
    for row in range(np.uint64(len(words))):
        word = np.uint64(0)
        for _ in range(halves):
            code = np.uint64(pairs[np.uint64(values[place]) | np.uint64(values[place + np.uint64(1)]) << np.uint64(8)])
            bad |= code
            word = (word << two) | code
            place += np.uint64(2)
        if odd:
            code = np.uint64(codes[values[place]])
            bad |= code
            word = (word << one) | code
            place += np.uint64(1)
        words[row] = word
    return bad & np.uint64(INVALID)


@kernel
def _pack(values, offsets, width, codes, bits, words):
    """Rows of up to ``width`` residues; returns not 0 if a residue has no code."""
    bad = np.uint64(0)
    for row in range(len(words)):
        word = np.uint64(0)
        for place in range(offsets[row], offsets[row + 1]):
            code = np.uint64(codes[values[place]])
            bad |= code
            word = (word << np.uint64(bits)) | code
        rest = width - (offsets[row + 1] - offsets[row])
        words[row] = word << np.uint64(bits * rest) if bits * rest < 64 else np.uint64(0)
    return bad & np.uint64(INVALID)


@inline
def load_word(values, begin, end, codes, bits, per):
    """The codes of ``values[begin:end]``, at most ``per`` of them, filled up with 0."""
    word = np.uint64(0)
    if begin < end:
        stop = min(begin + per, end)
        for place in range(begin, stop):
            word = (word << np.uint64(bits)) | np.uint64(codes[values[place]])
        word <<= np.uint64(bits * (per - (stop - begin)))
    return word


@kernel
def load_words(values, offsets, codes, bits, per, rows, low, high, depth, words):
    """Words of ``rows[low:high]`` from residue ``depth`` on, into the same places of ``words``.

    Rows that are sorted already lie anywhere in memory, so residues are asked for some rows before they are taken.
    """
    for place in range(low, high + _AHEAD):
        if place < high:
            prefetch(values, offsets[rows[place]] + depth)
        if place >= low + _AHEAD:
            row = rows[place - _AHEAD]
            words[place - _AHEAD] = load_word(values, offsets[row] + depth, offsets[row + 1], codes, bits, per)


@kernel
def insertion_sort(words, rows, low, high):
    """Stable sort of a few words, ``words[low:high]``, and their rows."""
    for place in range(low + 1, high):
        word, row = words[place], rows[place]
        hole = place
        while hole > low and words[hole - 1] > word:
            words[hole], rows[hole] = words[hole - 1], rows[hole - 1]
            hole -= 1
        words[hole], rows[hole] = word, row


@kernel
def sort_strings(values, offsets, codes, bits, per, ended, longest, words, rows, low, high, depth, spare_words,
                 spare_rows):
    """Put ``rows[low:high]`` in order; ``words`` hold their words at ``depth``, before which they are all equal.

    Multikey quicksort by whole words. A stretch is parted into less, equal and greater through spare arrays, each part
    in its old order; so the sort is stable. The pivot is drawn at random, so no input is bad; the largest parts wait,
    so the stack stays small.
    """
    stack = np.empty((1024, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = low, high, depth
    top = 1
    last = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    random = np.uint64(0x9E3779B97F4A7C15)
    while top:
        top -= 1
        low, high, depth = stack[top, 0], stack[top, 1], stack[top, 2]
        if high - low <= 24:
            insertion_sort(words, rows, low, high)
            if depth + per >= longest:
                continue
            first = low
            while first < high:
                word, behind = words[first], first + 1
                while behind < high and words[behind] == word:
                    behind += 1
                if behind - first > 1 and not (ended and word & last == 0):
                    load_words(values, offsets, codes, bits, per, rows, first, behind, depth + per, words)
                    stack[top, 0], stack[top, 1], stack[top, 2] = first, behind, depth + per
                    top += 1
                first = behind
            continue
        size = np.uint64(high - low)
        random ^= random << np.uint64(13)
        random ^= random >> np.uint64(7)
        random ^= random << np.uint64(17)
        one = words[low + np.int64((random & np.uint64(0xFFFFF)) % size)]
        two = words[low + np.int64((random >> np.uint64(20) & np.uint64(0xFFFFF)) * size >> np.uint64(20))]
        three = words[low + np.int64((random >> np.uint64(40)) * size >> np.uint64(24))]
        pivot = max(min(one, two), min(max(one, two), three))
        less = equal = 0
        for place in range(low, high):
            less += words[place] < pivot
            equal += words[place] == pivot
        if equal < high - low:
            a, b, c = low, low + less, low + less + equal
            for place in range(low, high):
                word = words[place]
                to = a if word < pivot else b if word == pivot else c
                a += word < pivot
                b += word == pivot
                c += word > pivot
                spare_words[to], spare_rows[to] = word, rows[place]
            words[low:high] = spare_words[low:high]
            rows[low:high] = spare_rows[low:high]
        first, behind = low + less, low + less + equal
        done = depth + per >= longest or (ended and pivot & last == 0)
        if not done and equal > 1:
            load_words(values, offsets, codes, bits, per, rows, first, behind, depth + per, words)
        ends = ((low, first, depth), (first, behind, depth + per), (behind, high, depth))
        sizes = (less if less > 1 else 0, 0 if done or equal < 2 else equal, high - behind if high - behind > 1 else 0)
        # Largest first, so that the smallest is taken up next.
        for rank in range(3):
            for part in range(3):
                before = 0
                for other in range(3):
                    before += sizes[other] > sizes[part] or (sizes[other] == sizes[part] and other < part)
                if before == rank and sizes[part]:
                    stack[top, 0], stack[top, 1], stack[top, 2] = ends[part]
                    top += 1


@kernel
def radix_sort(words, rows, spare_words, spare_rows, low, high, shift, bits, digit):
    """Stable LSD radix sort of ``words[low:high]`` by ``bits`` bits from bit ``shift`` on, ``digit`` at a time.

    ``rows`` go along; give empty arrays where the words themselves say which row they are. A digit that all words share
    costs no move. The result stands in ``words`` and ``rows``.
    """
    passes = -(-bits // digit)
    carry = len(rows) > 0
    size = 1 << digit
    counts = np.zeros((passes, size), np.int64)
    mask = np.uint64(size - 1)
    above = np.uint64(shift + bits)
    keep = ~np.uint64(0) if shift + bits >= 64 else (np.uint64(1) << above) - np.uint64(1)
    for place in range(np.uint64(low), np.uint64(high)):
        word = (words[place] & keep) >> np.uint64(shift)
        for n in range(passes):
            counts[n, (word >> np.uint64(n * digit)) & mask] += 1
    a, b, x, y = words, rows, spare_words, spare_rows
    swapped = False
    for n in range(passes):
        at = counts[n]
        word = (a[low] & keep) >> np.uint64(shift)
        if at[(word >> np.uint64(n * digit)) & mask] == high - low:
            continue
        place = low
        for value in range(size):
            count = at[value]
            at[value] = place
            place += count
        down = np.uint64(shift + n * digit)
        if carry:
            for place in range(np.uint64(low), np.uint64(high)):
                value = ((a[place] & keep) >> down) & mask
                to = np.uint64(at[value])
                at[value] += 1
                x[to], y[to] = a[place], b[place]
        else:
            for place in range(np.uint64(low), np.uint64(high)):
                value = ((a[place] & keep) >> down) & mask
                to = np.uint64(at[value])
                at[value] += 1
                x[to] = a[place]
        a, b, x, y = x, y, a, b
        swapped = not swapped
    if swapped:
        words[low:high] = spare_words[low:high]
        if carry:
            rows[low:high] = spare_rows[low:high]


@kernel
def number(words, first, last, bits):
    """Put its place below each word of ``words[first:last]``, in ``bits`` bits."""
    for place in range(np.uint64(first), np.uint64(last)):
        words[place] = (words[place] << np.uint64(bits)) | place


def top_digit(total: int, bits: int) -> int:
    """By how many bits at the top of words of some ``bits`` one pass parts them into buckets that fit the cache."""
    digit = min(11, bits)
    while digit > 1 and total >> digit < 512:  # or buckets are too small for passes to pay
        digit -= 1
    return digit


@kernel
def sort_numbered(words, spare, place_bits, bits, digit):
    """Number ``words`` by their places, in ``place_bits`` bits below the words, and write them into ``spare`` in order.

    One pass by ``top_digit`` makes buckets that fit the cache; they are sorted there.
    """
    total = len(words)
    shift = np.uint64(place_bits + bits - digit)
    at = np.zeros((1 << digit) + 1, np.int64)
    number(words, 0, total, place_bits)
    for place in range(np.uint64(total)):
        at[(words[place] >> shift) + np.uint64(1)] += 1
    for value in range(1 << digit):
        at[value + 1] += at[value]
    starts = at.copy()
    for place in range(np.uint64(total)):
        value = words[place] >> shift
        to = np.uint64(at[value])
        at[value] += 1
        spare[to] = words[place]
        prefetch(spare, to + np.uint64(ROOM_AHEAD))
    sort_buckets(spare, words, starts, place_bits, bits - digit)


@kernel
def sort_buckets(words, spare, starts, shift, bits):
    """Sort each stretch of ``words`` from one of ``starts`` to the next by ``bits`` bits from ``shift`` on.

    Words of a stretch don't differ in higher bits, and stand in order of the lower ones.
    """
    room = spare[starts[0] :]  # the same for all, so that it stays in the cache
    for bucket in range(len(starts) - 1):
        sort_bucket(words[starts[bucket] : starts[bucket + 1]], room, shift, bits)


@kernel
def sort_bucket(words, spare, shift, bits):
    """Sort ``words`` by ``bits`` bits from ``shift`` on: by two digits at the top, if these tell most apart.

    Words don't differ in higher bits, and stand in order of the lower ones. ``spare``: as much room at least.
    """
    none = np.empty(0, np.int64)
    size = len(words)
    if size <= _FEW:
        insert(words, size * size)
    elif bits <= 2 * _DIGIT or not (_sort_by_two_digits(words, spare, np.uint64(shift + bits - 2 * _DIGIT))
                                    and insert(words, 2 * size)):
        radix_sort(words, none, spare, none, 0, size, shift, bits, _DIGIT)


@kernel
def _sort_by_two_digits(words, spare, shift):
    """Two passes of radix sort, from bit ``shift`` on; False, with nothing moved, if most words share the upper one."""
    low, high = np.zeros(1 << _DIGIT, np.int64), np.zeros(1 << _DIGIT, np.int64)
    mask, digit, size = np.uint64((1 << _DIGIT) - 1), np.uint64(_DIGIT), np.uint64(len(words))
    for place in range(size):
        value = words[place] >> shift
        low[value & mask] += 1
        high[value >> digit & mask] += 1
    if high.max() > len(words) >> 1:
        return False
    below = lower = 0
    for value in range(1 << _DIGIT):
        here, there = low[value], high[value]
        low[value], high[value] = below, lower
        below += here
        lower += there
    for place in range(size):
        value = words[place] >> shift & mask
        to = np.uint64(low[value])
        low[value] += 1
        spare[to] = words[place]
    for place in range(size):
        value = spare[place] >> shift >> digit & mask
        to = np.uint64(high[value])
        high[value] += 1
        words[to] = spare[place]
    return True


@kernel
def insert(words, most):
    """Sort words by insertion; False if that takes more than some ``most`` moves."""
    moves = np.uint64(0)
    for place in range(np.uint64(1), np.uint64(len(words))):
        word = words[place]
        if words[place - np.uint64(1)] > word:
            hole: Any = place
            while hole > np.uint64(0) and words[hole - np.uint64(1)] > word:
                words[hole] = words[hole - np.uint64(1)]
                hole -= np.uint64(1)
            words[hole] = word
            moves += place - hole
            if moves > np.uint64(most):
                return False
    return True
