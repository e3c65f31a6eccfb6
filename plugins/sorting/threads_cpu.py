"""Sorting by several threads of the host: first all of them at one stretch of keys, then each at buckets of its own.

Large stretches are parted by all threads together: each counts the digits of its part, and moves its keys to where the
counts of all say. Small ones are sorted out by one thread each, while others do the next.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.2.4 and 4.3.1.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from seqloom.core.engine.threads import by_threads, run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Ragged
from seqloom.core.stages import row_type
from seqloom.plugins.common.sort_words_cpu import Coding, load_words

LEAST = 1 << 17
"""Keys for each thread, or their work is done before all have been called."""
_LEAST_TASK = 1 << 15  # keys of a stretch that one thread sorts
_DIGIT = 11
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # words, rows, and as much room again
Finish = Callable[[Arrays, np.ndarray, int, int], object]
"""Sorts stretches of words and rows: the arrays, the stretches' bounds, how many bits of their words are still to be
compared, and which of the keys' words they are."""


def useful_threads(threads: int, keys: Ragged) -> int:
    """How many of some threads it is worth calling: characters count as well, where keys are long."""
    characters = int(keys.offsets[-1] - keys.offsets[0])
    return max(1, min(threads, max(len(keys), characters // 32) // LEAST))


@kernel
def _count(words, low, high, shift, mask, counts):
    for place in range(np.uint64(low), np.uint64(high)):
        counts[(words[place] >> np.uint64(shift)) & np.uint64(mask)] += 1


@kernel
def _move(words, rows, spare_words, spare_rows, low, high, shift, mask, at):
    """Move ``words[low:high]``, and their rows if there are any, to where ``at`` says for their digits."""
    if len(rows):
        for place in range(np.uint64(low), np.uint64(high)):
            value = (words[place] >> np.uint64(shift)) & np.uint64(mask)
            to = np.uint64(at[value])
            at[value] += 1
            spare_words[to], spare_rows[to] = words[place], rows[place]
    else:
        for place in range(np.uint64(low), np.uint64(high)):
            value = (words[place] >> np.uint64(shift)) & np.uint64(mask)
            to = np.uint64(at[value])
            at[value] += 1
            spare_words[to] = words[place]


def move_by_digit(words: np.ndarray, rows: np.ndarray, spare_words: np.ndarray, spare_rows: np.ndarray, low: int,
                  high: int, shift: int, digit: int, threads: int) -> np.ndarray | None:
    """Move ``words[low:high]`` into the spare arrays in order of the ``digit`` bits from ``shift`` on; stable.

    Args:
        rows: go along with the words; may be empty.

    Returns:
        i8[2 ** digit + 1]: where each digit's words begin, and the end; None, with nothing moved, if all are alike.
    """
    mask = (1 << digit) - 1
    counts = np.zeros((threads, mask + 1), np.int64)
    by_threads(threads, low, high, lambda n, first, last: _count(words, first, last, shift, mask, counts[n]))
    sizes = counts.sum(axis=0)
    if sizes.max() == high - low:
        return None
    starts = np.concatenate([[low], low + np.cumsum(sizes)])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    by_threads(threads, low, high, lambda n, first, last: _move(words, rows, spare_words, spare_rows, first, last,
                                                                shift, mask, places[n]))
    return starts


@kernel
def _places(words, first, last, mask, places):
    for n in range(np.uint64(first), np.uint64(last)):
        places[n] = words[n] & np.uint64(mask)


def places_of(words: np.ndarray, bits: int, threads: int, room: np.ndarray) -> np.ndarray:
    """The lowest bits of some words, as ``row_type``, in the memory of as many others: it has been touched already."""
    count = len(words)
    places = room.view(row_type(count))[:count]
    by_threads(threads, 0, count, lambda n, first, last: _places(words, first, last, (1 << bits) - 1, places))
    return places


def load_by_threads(keys: Ragged, coding: Coding, rows: np.ndarray, depth: int, threads: int) -> np.ndarray:
    """u8[len(rows)]: words of the keys from character ``depth`` on."""
    words = np.empty(len(rows), np.uint64)
    by_threads(threads, 0, len(rows), lambda n, first, last: load_words(
        keys.values, keys.offsets, *coding[:3], rows, first, last, depth, words))
    return words


def order_by_threads(keys: Ragged, coding: Coding, longest: int, threads: int, finish: Finish) -> np.ndarray:
    """Stable order of keys of up to ``longest`` characters."""
    count = len(keys)
    rows = np.arange(count, dtype=row_type(count))
    words = load_by_threads(keys, coding, rows, 0, threads)
    if threads == 1:
        finish((words, rows, np.empty_like(words), np.empty_like(rows)), np.array([0, count]), coding.bits * coding.per,
               0)
        return rows
    last = (1 << coding.bits) - 1

    def go_on(arrays: Arrays, low: int, high: int, depth: int) -> bool:
        if depth * coding.per >= longest or (coding.ended and not int(arrays[0][low]) & last):
            return False
        arrays[0][low:high] = load_by_threads(keys, coding, arrays[1][low:high], depth * coding.per, threads)
        return True

    return sort_by_threads(words, rows, 0, coding.bits * coding.per, threads, finish, go_on)[1]


def sort_by_threads(words: np.ndarray, rows: np.ndarray, shift: int, bits: int, threads: int,
                    finish: Finish, go_on: Callable[[Arrays, int, int, int], bool] = lambda *stretch: False,
                    ) -> Arrays:
    """Words in order of ``bits`` bits from ``shift`` on, then of what follows, with their rows.

    Args:
        words, rows: written over; rows may be empty.
        finish: sorts the stretches between some bounds; called by many threads at once.
        go_on: puts words number so and so of the keys in the place of the equal words of a stretch; False if there are
            none.

    Returns:
        The two arrays that hold the result, and the room.
    """
    arrays = words, rows, np.empty_like(words), np.empty_like(rows)
    small = max(min(LEAST, _LEAST_TASK), len(words) // (4 * threads))
    large, tasks = [(0, len(words), bits, 0)], []
    while large:
        low, high, left, depth = large.pop()
        if left == 0:
            if go_on(arrays, low, high, depth + 1):
                large.append((low, high, bits, depth + 1))
            continue
        digit = min(_DIGIT, left)
        left -= digit
        starts = move_by_digit(*arrays, low, high, shift + left, digit, threads)
        if starts is None:
            large.append((low, high, left, depth))
            continue
        if high - low == len(words):
            arrays = *arrays[2:], *arrays[:2]
        else:
            for array, spare in ((arrays[0], arrays[2]), (arrays[1], arrays[3])):
                if len(array):
                    array[low:high] = spare[low:high]
        first, bounds = 0, starts.tolist()
        for bucket, (begin, end) in enumerate(pairwise(bounds)):
            if end - begin > small:
                tasks.append((starts[first : bucket + 1], left, depth))
                large.append((begin, end, left, depth))
                first = bucket + 1
            elif end - bounds[first] > small // 4:
                tasks.append((starts[first : bucket + 2], left, depth))
                first = bucket + 1
        tasks.append((starts[first:], left, depth))
    run_tasks(threads, lambda task: finish(arrays, *task), tasks)
    return arrays
