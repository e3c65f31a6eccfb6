"""``lsd-radix`` on a CUDA device: word by word from the last, all passes on the device.

Keys are sent whole and packed there, if it has memory for them; else the host packs and sends one word at a time. Words
that stand so deep that few keys have them are sorted on the host first.
"""

from typing import Any

import numpy as np
from seqloom.core.cuda.transfer import to_device, to_device_made, to_host
from seqloom.core.records import Ragged
from seqloom.plugins.common.radix_cuda import DeviceWords, numbers
from seqloom.plugins.common.sort_words_cpu import coding_of, length_range
from seqloom.plugins.sorting import keys_cuda
from seqloom.plugins.sorting.keys_cuda import DeviceKeys, fill_words, whole_order
from seqloom.plugins.sorting.lsd_radix_cpu import LsdRadixCpu, by_length, order_by_words
from seqloom.plugins.sorting.ranges_cpu import KeyRange
from seqloom.plugins.sorting.ranges_cuda import sorted_there


class LsdRadixCuda(LsdRadixCpu):
    __doc__ = LsdRadixCpu.__doc__
    backend = "cuda"

    def order(self, keys: Ragged) -> np.ndarray:
        order = sorted_there(keys, self.device_memory, self.threads, self._on_device)
        return super().order(keys) if order is None else order

    def _on_device(self, some: KeyRange, room: int, threads: int) -> np.ndarray:
        at_once = whole_order(some, threads)
        if at_once is not None:
            return at_once
        return some.rows_of(self._by_words(some.copied(threads), room, threads), threads)

    def _by_words(self, keys: Ragged, room: int, threads: int) -> np.ndarray:
        """i4[n]: stable order of keys of any length, with ``room`` bytes of the device for characters."""
        count, lengths = len(keys), length_range(keys, threads)
        one_length, longest = lengths[0] == lengths[1], lengths[1]
        whole = DeviceKeys(keys, lengths, threads) if keys.offsets[-1] - keys.offsets[0] <= room else None
        coding = coding_of(keys, threads, lengths=lengths) if whole is None else whole.coding
        per = coding.per
        # On the device rows are places in ``ranked``, so that those that have a word at some depth are the first ones.
        if one_length:  # they stand as they are ranked
            ranked = np.arange(0 if whole is not None else count, dtype=np.int32)
            joined = np.full(-(-longest // per), count, np.int64)
        else:
            ranked, joined = by_length(keys, per, lengths)
        there = DeviceWords(count)
        places = None
        if whole is not None:
            places = numbers(count) if one_length else to_device(ranked, threads)
        depths = int(np.count_nonzero(joined >= keys_cuda.LEAST))
        size = there.put(_places(order_by_words(keys, coding, ranked, joined, depths), ranked))
        for depth in range(depths - 1, -1, -1):
            total = int(joined[depth])
            characters = min(per, longest - depth * per)

            def fill(words: Any, depth: int = depth, total: int = total, characters: int = characters) -> None:
                if whole is not None:
                    whole.pack(places, total, depth * per, characters, words)
                else:
                    given = (keys.values, keys.offsets, coding.codes, coding.bits, characters, depth * per, ranked,
                             np.zeros(1, np.uint8))
                    to_device_made(fill_words, given, words, 0, total, threads)

            numbered = size == 0
            there.put_before(size, total - size)
            there.load(total, fill, numbered)
            there.sort(total, coding.bits * characters)
            size = total
        order = to_host(there.rows, size, np.int32, threads)
        return order if one_length and size == count else np.concatenate([ranked[size:], ranked[order]])


def _places(rows: np.ndarray, ranked: np.ndarray) -> np.ndarray:
    """i4: where each of the rows stands in ``ranked``."""
    place = np.empty(len(ranked), np.int32)
    if len(rows):
        place[ranked] = np.arange(len(ranked), dtype=np.int32)
    return place[rows]
