"""``maximal-matches`` on the CPU: backward search that leaps over what the references lack."""

import numpy as np
from seqloom.core.backends import with_capacity
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.exact_match.seed_reference import MaximalMatches, seeds_of, strand_of
from seqloom.plugins.exact_match.symbols import NEVER


@kernel
def _before(bwt, counts, bucket, symbol, place):
    """How often ``symbol`` occurs in the transform before ``place``."""
    first = place // bucket
    count = counts[first, symbol]
    for row in range(np.uint64(first * bucket), np.uint64(place)):
        count += bwt[row] == symbol
    return count


@kernel
def _search(text, suffixes, bwt, smaller, counts, bucket, query, length, out):
    """Write (query place, text place, length) of every maximal match; their number, also when ``out`` is full.

    A stretch of ``length`` letters is looked up from its last letter on. Where the text lacks what was read, no stretch
    that holds it can occur: the next one to try begins behind its first letter.
    """
    found = 0
    start = 1
    while start + length <= len(query):
        low, high = 0, len(bwt)
        place = start + length - 1
        while place >= start and query[place] != NEVER:
            symbol = query[place]
            low = smaller[symbol] + _before(bwt, counts, bucket, symbol, low)
            high = smaller[symbol] + _before(bwt, counts, bucket, symbol, high)
            if low >= high:
                break
            place -= 1
        if place >= start:
            start = place + 1
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
        start += 1
    return found


class MaximalMatchesCpu(MaximalMatches):
    __doc__ = MaximalMatches.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=16 * shape.query_letters + 64 * shape.queries)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, options = context.index("suffix-array"), context.options
        parts = []
        for frame in options.frames():
            context.cancellation.check()
            strand = strand_of(context.queries, frame, options.acgt_only)

            def launch(capacity: int, query: np.ndarray = strand.symbols) -> tuple[int, np.ndarray]:
                out = np.empty((capacity, 3), np.int64)
                count = int(_search(index["text"], index["suffixes"], index["bwt"], index["smaller"], index["counts"],
                                    index.parameters["bucket"], query, options.length, out))
                return count, out[:count]

            rows = with_capacity(launch, len(strand.symbols) // 16 + 1024)
            context.count("matches", len(rows))
            parts.append(seeds_of(context, index, strand, *rows.T))
        seeds = Seeds.concat(parts)
        return seeds.take(np.lexsort([-seeds.query_frame, seeds.query]))
