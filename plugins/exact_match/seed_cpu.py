"""``maximal-matches`` on the CPU: backward search that leaps over what the references lack."""

import numpy as np
from seqloom.core.backends import with_capacity
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape

from .seed_reference import MaximalMatches, seeds_of, strands_together
from .strands_cpu import strand_of
from .symbols import NEVER


@kernel
def _before(bwt, counts, bucket, symbol, place):
    """How often ``symbol`` occurs in the transform before ``place``."""
    first = place // bucket
    count = counts[first, symbol]
    for row in range(np.uint64(first * bucket), np.uint64(place)):
        count += bwt[row] == symbol
    return count


@kernel
def _shares(text, suffix, query, start, length):
    """Whether the query's ``length`` residues from ``start`` on begin a suffix of the text."""
    shared = 0
    while shared < length and text[suffix + shared] == query[start + shared]:
        shared += 1
    return shared == length


@kernel
def _search(text, suffixes, rank, bwt, smaller, counts, bucket, query, length, out):
    """Write (query place, text place, length) of every maximal match; their number, also when ``out`` is full.

    A stretch of ``length`` residues is looked up from its last residue on. Where the text lacks what was read, no
    stretch that holds it can occur: the next one to try begins behind its first residue. Where a match goes on, the
    suffixes of the next stretch are neighbours of the one that the match goes on in.
    """
    found = 0
    start = 1
    ahead = np.int64(-1)  # where the text goes on with the stretch at ``start``, if that is known
    while start + length <= len(query):
        low, high = 0, len(bwt)
        place = start + length - 1
        if ahead >= 0:
            low = int(rank[ahead])
            high, place = low + 1, start - 1
            while low > 0 and _shares(text, np.int64(suffixes[low - 1]), query, start, length):
                low -= 1
            while high < len(bwt) and _shares(text, np.int64(suffixes[high]), query, start, length):
                high += 1
        while place >= start and query[place] != NEVER:
            symbol = query[place]
            low = smaller[symbol] + _before(bwt, counts, bucket, symbol, low)
            high = smaller[symbol] + _before(bwt, counts, bucket, symbol, high)
            if low >= high:
                break
            place -= 1
        if place >= start:
            start, ahead = place + 1, np.int64(-1)
            continue
        for row in range(low, high):
            if bwt[row] == query[start - 1]:
                continue  # part of a match that begins further left
            if found < len(out):
                suffix = np.int64(suffixes[row])
                shared = length
                while text[suffix + shared] == query[start + shared]:
                    shared += 1
                out[found, 0], out[found, 1], out[found, 2] = start, suffix, shared
            found += 1
        suffix = np.int64(suffixes[low])
        ahead = suffix + 1 if text[suffix + length] == query[start + length] else np.int64(-1)
        start += 1
    return found


class MaximalMatchesCpu(MaximalMatches):
    __doc__ = MaximalMatches.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        texts = 16 * shape.query_residues + 8 * (shape.target_residues + shape.targets)
        return Footprint(host=texts + 64 * shape.queries)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, options = context.index("suffix-array"), context.options
        suffixes = index["suffixes"]
        rank = np.empty_like(suffixes)
        rank[suffixes] = np.arange(len(suffixes), dtype=rank.dtype)
        parts = []
        for frame in options.frames():
            context.cancellation.check()
            strand = strand_of(context.queries, frame, options.acgt_only)

            def launch(capacity: int, query: np.ndarray = strand.symbols) -> tuple[int, np.ndarray]:
                out = np.empty((capacity, 3), np.int64)
                count = int(_search(index["text"], suffixes, rank, index["bwt"], index["smaller"], index["counts"],
                                    index.parameters["bucket"], query, options.length, out))
                return count, out[:count]

            rows = with_capacity(launch, len(strand.symbols) // 16 + 1024)
            context.count("matches", len(rows))
            parts.append(seeds_of(context, index["starts"], strand, *rows.T))
        return strands_together(parts)
