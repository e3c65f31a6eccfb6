"""``fm-matches`` on a CUDA device: a thread searches a short part of the query as a lane of the host's does.

The search is the host's, compiled for the device. Every part is searched twice: first the matches are counted, then
each part writes its own where those of the parts before it end.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import uint64
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.transfer import to_device, to_host
from seqloom.core.errors import BudgetError
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.exact_match import fm_search_cuda as devices
from seqloom.plugins.exact_match import fm_seed_cpu as host

from .fm_index import KIND, tables_of
from .fm_search_cuda import FUNCTIONS, cuda, device_functions
from .fm_seed_cpu import FmMatchesCpu
from .seed_reference import Strand
from .symbols import target_text

_THREADS = 64
_PARTS = 1 << 17  # of a strand, at most
_LEAST_PART = 8 if SIMULATED else 64  # residues

_search = device_functions(host._longest, host._put, host._cover, host._all_at, host._search, **FUNCTIONS)["_search"]


@kernel()
def _match(symbols, blocks, odd_rows, shift, packed, samples, marks, codes, text, query, length, bounds, unique, ends,
           counts, out):
    """Count the matches of each part of the query; write those that have room.

    bounds: u8[parts + 1], where parts begin. ends: i8[parts + 1], where the matches of the parts before each end in
    ``out``, i8[…, 3]; all 0 to count only.
    """
    n = cuda.grid(1)
    if n >= len(counts):
        return
    work = cuda.local.array((6, 1), uint64)
    fm = (symbols, blocks, odd_rows, shift, packed, samples, marks)
    counts[n], _ = _search(fm, codes, text, query, length, out[:0, 0], uint64(0), uint64(0), out[:0], bounds[n : n + 1],
                           bounds[n + 1 : n + 2], unique, np.inf, work, out[ends[n] : ends[n + 1]])


class FmMatchesCuda(FmMatchesCpu):
    __doc__ = FmMatchesCpu.__doc__
    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets
        return Footprint(super().footprint(shape).host, device=4 * text + 4 * shape.query_residues + 32 * _PARTS)

    def matches(self, context: Context, strands: Sequence[Strand]) -> list[np.ndarray]:
        fm, text = tables_of(context.index(KIND)), target_text(context.targets, acgt_only=False)[0]
        length, unique = np.uint64(context.options.length), context.options.mode() != "maxmatch"
        found = []
        with devices.in_use, devices.on_device(0):
            memory = min(context.device_memory or 1 << 62, devices.free_memory())
            tables = devices.device_tables(fm, 0, memory - len(text), context.threads)
            index = (*tables, to_device(text, context.threads))
            memory -= devices.tables_bytes(fm) + len(text)
            for strand in strands:
                context.cancellation.check()
                found.append(_matched(index, strand.symbols, length, unique, context.threads, memory))
        context.count("matches", sum(map(len, found)))
        return found


def _matched(index: tuple[Any, ...], query: np.ndarray, length: np.uint64, unique: bool, threads: int,
             memory: int) -> np.ndarray:
    """i8[n, 3]: query place, text place and length of every match.

    memory: bytes on the device for the query and the matches.
    """
    parts = max(1, min(_PARTS, len(query) // _LEAST_PART))
    there, bounds = to_device(query, threads), to_device(np.linspace(1, len(query), parts + 1).astype(np.uint64))
    counts, block = cuda.device_array(parts, np.int64), 4 if SIMULATED else _THREADS

    def launch(ends: np.ndarray) -> Any:
        need = len(query) + 24 * (parts + int(ends[-1]))
        if need > memory:
            raise BudgetError("the matches of one query batch and volume on the device", need, memory,
                              "raise --device-memory, or take smaller volumes (--volume-residues)")
        out = cuda.device_array((max(1, int(ends[-1])), 3), np.int64)
        _match[-(-parts // block), block](*index, there, length, bounds, unique, to_device(ends), counts, out)
        return out

    ends = np.zeros(parts + 1, np.int64)
    launch(ends)
    np.cumsum(to_host(counts, parts, np.int64), out=ends[1:])
    return to_host(launch(ends).reshape(-1), 3 * int(ends[-1]), np.int64, threads).reshape(-1, 3)


__all__ = ["FmMatchesCuda"]
