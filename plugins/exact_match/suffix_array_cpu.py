"""Suffix arrays on the CPU: radix sort of packed words where texts repeat little, phrases or induced sorting elsewhere.

All ways give the same array. Radix sort is quicker on a genome; its ties are resolved word by word and, where few are
left, by doubling. Repetitive texts, those of whose stretches a sample holds many twice, and those that leave too many
ties, are cut into phrases; SA-IS, which is linear whatever the text, has those of which few phrases occur twice.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.4.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import by_threads, run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.plugins.common.sort_words_cpu import (
    ROOM_AHEAD,
    insertion_sort,
    radix_sort,
    sort_bucket,
    top_digit,
)

from .suffix_array import suffix_type
from .suffix_induction_cpu import by_induction
from .suffix_keys_cpu import ODD, Keys, key_at, next_key
from .suffix_phrases_cpu import Phrases

_ROUNDS = 4  # words compared before doubling, at most
_REPETITIVE = 16  # SA-IS if more than a 16th of the suffixes still tie with a neighbour
_WINDOW = 128  # length of the stretches that tell a repetitive text; about what the rounds compare
_SAMPLED = 8  # one stretch in 2 ** 8 is looked at
_WEIGHTS = np.cumprod(np.full(_WINDOW, ODD, np.uint64))
_LEAST_PART = 1 << 20  # symbols of a thread's part


def suffix_array(text: np.ndarray, threads: int = 1) -> np.ndarray:
    """i4[n] (i8 from 2 G on): starts of the suffixes of u8[n] ``text`` in lexicographic order.

    The last symbol of the text must be greater than all others. Several threads share the radix sort, and the places of
    phrases; induced sorting has one.
    """
    keys, threads = Keys.of(text), max(1, min(threads, len(text) // _LEAST_PART))
    sizes, repetitive = survey(text, keys, threads)
    order = None if repetitive else _by_words(text, keys, sizes, threads)
    if order is None:
        phrases = Phrases.of(text, keys, threads)
        order = phrases and phrases.suffixes(threads)
    return by_induction(text) if order is None else order


def survey(text: np.ndarray, keys: Keys, threads: int = 1) -> tuple[np.ndarray, bool]:
    """How many keys of each thread's part begin with each value of ``top_digit``; whether many stretches occur twice.

    That is told by a sample, as far as it can tell. The sample is drawn by content, so that equal stretches are in it
    together or not at all.
    """
    digit = top_digit(len(text), keys.bits)
    sizes, most = np.zeros((threads, 1 << digit), np.int64), len(text) >> (_SAMPLED - 1)
    samples = [np.empty(most, np.uint64) for _ in range(threads)]
    drawn = by_threads(threads, 0, len(text), lambda n, first, last: int(_survey(
        text, first, last, *keys[:4], keys.bits - digit, sizes[n], _WEIGHTS, samples[n])))
    found = sum(drawn)
    if len(text) < _WINDOW << _SAMPLED + 4:
        return sizes, False
    if not most >> 2 <= found <= most:  # half and twice what random text has
        return sizes, True
    sample = np.concatenate([some[:count] for some, count in zip(samples, drawn, strict=True)])
    return sizes, found - len(distinct(sample)) > found // _REPETITIVE


def _by_words(text: np.ndarray, keys: Keys, counts: np.ndarray, threads: int) -> np.ndarray | None:
    """The suffix array by radix sort; None if the text is repetitive.

    Args:
        counts: of ``survey``, by as many threads.
    """
    count, residues, place_bits = len(text), keys.residues, keys.place_bits
    words, order = np.empty(count, np.uint64), np.empty(count, suffix_type(count))
    sizes, shift = counts.sum(axis=0), keys.bits - (counts.shape[1] - 1).bit_length()
    at = np.cumsum(sizes) - sizes + np.cumsum(counts, axis=0) - counts
    by_threads(threads, 0, count, lambda n, first, last: _scatter(text, first, last, *keys[:4], place_bits, shift,
                                                                  at[n], words))
    runs = np.empty((count // 2 + 1, 2), order.dtype)
    ends = np.cumsum(sizes)
    found, left = _in_parts(threads, ends, runs, lambda first, last, here: _sort_keys(
        words, int(ends[first - 1]) if first else 0, sizes[first:last], place_bits, shift, residues, order, here))
    others = np.empty((min(count // 2, left) + 1, 2), order.dtype)
    bits = (keys.base - 1).bit_length()
    per = 64 // bits
    for done in range(_ROUNDS):
        if not left or (done and left <= count // _REPETITIVE):
            break
        if left > count // 2:
            return None
        now = runs[:found]
        found, left = _in_parts(threads, np.cumsum(now[:, 1], dtype=np.int64), others, partial(
            _refined, text, keys.digits, bits, per, residues, order, now))
        runs, others = others, runs
        residues += per
    if left > count // _REPETITIVE:
        return None
    rank = words.view(order.dtype)[:count]  # which are needed no more
    if left:
        _rank(order, runs[:found], residues, rank)
    while left:
        found, left = _double(rank, residues, place_bits, order, runs[:found], others)
        runs, others = others, runs
        residues *= 2
    return order


def _in_parts(threads: int, ends: np.ndarray, runs: np.ndarray,
              work: Callable[[int, int, np.ndarray], tuple[int, int]]) -> tuple[int, int]:
    """How many runs of ties there are, which ``runs`` takes, and how many suffixes tie with the one before.

    Args:
        ends: i8, numbers of suffixes up to the end of each thing to do.
        work: does things first … last − 1 and puts runs into an array, at most half as many as these have suffixes.
    """
    if threads == 1 or not len(ends):
        return work(0, len(ends), runs)
    bounds = np.searchsorted(ends, np.linspace(0, int(ends[-1]), 4 * threads + 1)[1:-1]).tolist()
    tasks = [task for task in pairwise([0, *bounds, len(ends)]) if task[0] < task[1]]
    starts = [int(ends[first - 1]) // 2 if first else 0 for first, _ in tasks]
    done = run_tasks(threads, lambda n: work(tasks[n][0], tasks[n][1], runs[starts[n] :]), range(len(tasks)))
    found = 0
    for start, (some, _) in zip(starts, done, strict=True):
        runs[found : found + some] = runs[start : start + some]
        found += some
    return found, sum(left for _, left in done)


def _refined(text: np.ndarray, digits: np.ndarray, bits: int, per: int, depth: int, order: np.ndarray,
             runs: np.ndarray, first: int, last: int, others: np.ndarray) -> tuple[int, int]:
    return _refine(text, digits, bits, per, depth, order, runs[first:last], others)


@kernel
def _survey(text, first, behind, digits, leaving, base, residues, shift, sizes, weights, sample):
    """Count the keys of some places by their bits from ``shift`` on, and hash the stretches that are drawn.

    Returns how many are drawn.
    """
    count, last, window = np.uint64(len(text)), np.uint64(len(text) - 1), np.uint64(len(weights))
    number, found = key_at(text, first, digits, base, residues), np.uint64(0)
    for place in range(np.uint64(first), np.uint64(behind)):
        sizes[number >> np.uint64(shift)] += 1
        if (number * np.uint64(ODD)) >> np.uint64(64 - _SAMPLED) == 1 and place + window <= count:
            if found < len(sample):
                mixed = np.uint64(0)
                for n in range(window):
                    mixed += weights[n] * text[place + n]
                sample[found] = mixed
            found += np.uint64(1)
        number = next_key(number, text, place, digits, leaving, base, residues, last)
    return found


@kernel
def _scatter(text, first, behind, digits, leaving, base, residues, place_bits, shift, at, words):
    """Write the keys of some suffixes, with their places below, into the buckets of their bits from ``shift`` on.

    at: i8, where the next one of each bucket goes.
    """
    last = np.uint64(len(text) - 1)
    number = key_at(text, first, digits, base, residues)
    for place in range(np.uint64(first), np.uint64(behind)):
        value = number >> np.uint64(shift)
        to = np.uint64(at[value])
        at[value] += 1
        words[to] = number << np.uint64(place_bits) | place
        prefetch(words, to + np.uint64(ROOM_AHEAD))
        number = next_key(number, text, place, digits, leaving, base, residues, last)


@kernel
def _sort_keys(words, start, sizes, place_bits, bits, residues, order, runs):
    """Sort some buckets of ``words`` by key, of which the first begins at ``start``; ``order`` takes the places.

    runs: takes the first place and the size of each run of suffixes that tie.

    Returns:
        How many runs there are, and how many suffixes tie with the one before.
    """
    spare = np.empty(sizes.max(), np.uint64)
    mask = (np.uint64(1) << np.uint64(place_bits)) - np.uint64(1)
    limit = np.uint64(max(0, len(words) - residues))  # suffixes from here on reach the end
    found, left, high = 0, np.uint64(0), np.uint64(start)
    for size in sizes:
        low, high = high, high + np.uint64(size)
        sort_bucket(words[low:high], spare, place_bits, bits)
        for n in range(low, high):
            order[n] = words[n] & mask
        first: Any = low
        for behind in range(low + np.uint64(1), high + np.uint64(1)):
            if (behind == high or (words[behind] ^ words[first]) >> np.uint64(place_bits)
                    or words[behind] & mask >= limit):
                if behind - first > 1:
                    runs[found, 0], runs[found, 1] = first, behind - first
                    found += 1
                    left += behind - first - np.uint64(1)
                first = behind
    return found, left


@kernel
def _sort_run(words, rows, spare_words, spare_rows, size, bits, first, limit, order, runs, found):
    """Sort the run of ``size`` suffixes at place ``first`` by their words.

    limit: suffixes from here on tie with none before them.
    runs: takes those that still tie, from ``found`` on.

    Returns:
        How many runs there are then, and how many suffixes of this one tie with the one before.
    """
    if size <= 32:
        insertion_sort(words, rows, 0, size)
    else:
        radix_sort(words, rows, spare_words, spare_rows, 0, size, 0, bits, 8 if size < 10000 else 11)
    begin = left = 0
    for n in range(size):
        order[first + n] = rows[n]
        if n + 1 == size or words[n + 1] != words[n] or rows[n + 1] >= limit:
            if n > begin:
                runs[found, 0], runs[found, 1] = first + begin, n + 1 - begin
                found += 1
                left += n - begin
            begin = n + 1
    return found, left


@kernel
def _refine(text, digits, bits, per, depth, order, runs, others):
    """Sort each run of tied suffixes by its next ``per`` symbols, the first after ``depth``.

    Returns:
        How many runs of ties are left, which ``others`` takes, and how many suffixes tie with the one before.
    """
    most, last, found, left = np.int64(runs[:, 1].max()), np.uint64(len(text) - 1), 0, 0
    words, spare_words = np.empty(most, np.uint64), np.empty(most, np.uint64)
    rows, spare_rows = np.empty(most, order.dtype), np.empty(most, order.dtype)
    limit = len(text) - depth - per
    for run in range(len(runs)):
        first, size = np.int64(runs[run, 0]), np.int64(runs[run, 1])
        for n in range(size):
            place, word = np.uint64(order[first + n]) + np.uint64(depth), np.uint64(0)
            for ahead in range(np.uint64(per)):
                word = word << np.uint64(bits) | digits[text[min(place + ahead, last)]]
            words[n], rows[n] = word, order[first + n]
        found, ties = _sort_run(words, rows, spare_words, spare_rows, size, bits * per, first, limit, order, others,
                                found)
        left += ties
    return found, left


@kernel
def _rank(order, runs, depth, rank):
    """Ranks that doubling asks for: of suffixes that tie, the first place of their run; of what follows them.

    That is, ``depth`` behind each. Deeper ones are among these: where two suffixes are equal in more symbols than
    ``depth``, so are two that stand ``depth`` before the end of what is equal.
    """
    needed = np.zeros((len(order) >> 6) + 1, np.uint64)
    for run in range(len(runs)):
        for n in range(runs[run, 0], runs[run, 0] + runs[run, 1]):
            place = np.uint64(order[n] + depth)
            needed[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))
    for n in range(np.uint64(len(order))):
        place = np.uint64(order[n])
        if needed[place >> np.uint64(6)] >> (place & np.uint64(63)) & np.uint64(1):
            rank[place] = n
    for run in range(len(runs)):
        for n in range(runs[run, 0], runs[run, 0] + runs[run, 1]):
            rank[order[n]] = runs[run, 0]


@kernel
def _double(rank, depth, bits, order, runs, others):
    """Sort each run of tied suffixes, equal in ``depth`` symbols, by the rank of what follows.

    Returns:
        How many runs of ties are left, which ``others`` takes, and how many suffixes tie with the one before.
    """
    most, found, left = np.int64(runs[:, 1].max()), 0, 0
    words, spare_words = np.empty(most, np.uint64), np.empty(most, np.uint64)
    rows, spare_rows = np.empty(most, order.dtype), np.empty(most, order.dtype)
    for run in range(len(runs)):
        first, size = np.int64(runs[run, 0]), np.int64(runs[run, 1])
        for n in range(size):  # within the text: a suffix that reaches its end ties with none
            words[n], rows[n] = rank[np.int64(order[first + n]) + depth], order[first + n]
        found, ties = _sort_run(words, rows, spare_words, spare_rows, size, bits, first, len(order), order, others,
                                found)
        left += ties
        place = 0
        for n in range(size):
            if words[n] != words[place]:
                place = n
            rank[rows[n]] = first + place
    return found, left
