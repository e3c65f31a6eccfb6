"""``msd-radix`` on a CUDA device: by as many first characters as fit a word; what ties is sorted out on the host.

Short keys are sent whole and packed there; of long ones the host chops off the first characters and sends these.
"""

import numpy as np
from seqloom.core.cuda.transfer import to_host
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Ragged
from seqloom.plugins.common.radix_cuda import DeviceWords
from seqloom.plugins.common.sort_words_cpu import coding_of, length_range, load_words, sort_strings
from seqloom.plugins.sorting.keys_cuda import DeviceKeys, chopped, short, sorted_there, whole_order
from seqloom.plugins.sorting.msd_radix_cpu import MsdRadixCpu
from seqloom.plugins.sorting.threads_cpu import useful_threads

_TASKS = 16  # stretches of ties per thread


@kernel
def _part_ties(values, offsets, codes, bits, per, ended, longest, rows, firsts, sizes):
    """Sort each run of rows whose first ``per`` characters are equal by what follows."""
    most = sizes.max()
    words, spare_words, spare_rows = np.empty(most, np.uint64), np.empty(most, np.uint64), np.empty(most, rows.dtype)
    for run in range(len(firsts)):
        tied = rows[firsts[run] : firsts[run] + sizes[run]]
        load_words(values, offsets, codes, bits, per, tied, 0, len(tied), per, words)
        sort_strings(values, offsets, codes, bits, per, ended, longest, words, tied, 0, len(tied), per, spare_words,
                     spare_rows)


class MsdRadixCuda(MsdRadixCpu):
    __doc__ = MsdRadixCpu.__doc__
    backend = "cuda"

    def order(self, keys: Ragged) -> np.ndarray:
        order = sorted_there(keys, self.device_memory, self._on_device)
        return super().order(keys) if order is None else order

    def _on_device(self, keys: Ragged) -> np.ndarray:
        threads = useful_threads(self.threads, keys)
        count, lengths = len(keys), length_range(keys, threads)
        whole = whole_order(keys, lengths, threads)
        if whole is not None:
            return whole
        longest = lengths[1]
        if short(keys):
            sent = DeviceKeys(keys, lengths, threads)
            coding, there = sent.coding._replace(per=min(sent.coding.per, longest)), DeviceWords(count)
            there.put_before(0, count)
            there.load(count, lambda words: sent.pack(there.rows, count, 0, coding.per, words), numbered=True)
            there.sort(count, coding.bits * coding.per)
        else:
            coding = coding_of(keys, threads, lengths=lengths)
            coding = coding._replace(per=min(coding.per, longest))
            there = chopped(keys, coding, threads)
        order = to_host(there.rows, count, np.int32, threads)
        if longest > coding.per:
            last = (1 << coding.bits) - 1 if coding.ended else 0
            tied = np.flatnonzero(there.ties(count, last, threads))  # with the word before
            begins = np.flatnonzero(np.diff(tied, prepend=-1) != 1)
            firsts, sizes = tied[begins] - 1, np.diff(begins, append=len(tied)) + 1
            bounds = np.searchsorted(np.cumsum(sizes), np.linspace(0, sizes.sum(), _TASKS * threads + 1)[1:-1])
            tasks = [t for t in zip(np.split(firsts, bounds), np.split(sizes, bounds), strict=True) if len(t[0])]
            run_tasks(threads, lambda task: _part_ties(keys.values, keys.offsets, *coding, longest, order, *task),
                    tasks)
        return order
