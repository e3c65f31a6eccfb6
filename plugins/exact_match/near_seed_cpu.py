"""``near-queries`` on the CPU: parts of a query by backward search, the rest by comparing it with the text.

Of k + 1 parts of a query that differs from the text in k residues at most, one differs in none. Every part is looked up
in the FM-index, and around each of its places the whole query is compared; a place counts where this is the first part
that is the same, so that it comes once.

Source: on pieces that must match, S. Wu & U. Manber, "Fast text searching allowing errors", CACM 1992.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, Shape

from .fm_index import KIND, tables_of, text_of
from .fm_seed_cpu import codes_of
from .near_seed_reference import NearMatches, NearQueries
from .query_seeds_cpu import seeds_of_queries
from .seed_reference import Strand
from .strands_cpu import strand_of
from .symbols import rejected
from .whole_seed_cpu import located, rows_of

_QUERIES = 1 << 10  # of a piece of work
_I64 = np.int64


@kernel
def _differ(text, at, query, start, length, parts, part, most, last):
    """How many residues differ, if at most ``most`` do, none in ``part``, and some in each part before; else −1.

    last: the greatest symbol of a residue. part: −1 where no part was looked up.
    """
    differ = 0
    for n in range(parts):
        before = differ
        for place in range(length * n // parts, length * (n + 1) // parts):
            if text[at + place] > last:
                return -1
            differ += text[at + place] != query[start + place]
        if differ > most or (n < part and differ == before):
            return -1
    return differ


@kernel
def _kept(text, query, starts, lengths, numbers, places, parts, most, last, keep):
    """Make each of the ``places`` of parts, ``numbers`` of which count parts of queries, the place of the query, and
    say whether it counts."""
    for n in range(len(numbers)):
        number, part = numbers[n] // parts, numbers[n] % parts
        length = lengths[number]
        places[n] -= length * part // parts
        keep[n] = (places[n] >= 0 and places[n] + length <= len(text)
                   and _differ(text, places[n], query, starts[number], length, parts, part, most, last) >= 0)


@kernel
def _everywhere(text, query, start, length, most, last, out):
    """Fill the places of a query that is too short for parts; how many there are."""
    found = 0
    for at in range(len(text) - length + 1):
        if _differ(text, at, query, start, length, 1, -1, most, last) >= 0:
            out[found] = at
            found += 1
    return found


class NearQueriesCpu(NearQueries):
    __doc__ = NearQueries.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 2
    strand_of = staticmethod(strand_of)
    seeds = staticmethod(seeds_of_queries)

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets
        return Footprint(host=8 * shape.query_residues + 256 * shape.queries + 11 * text)

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        index, lengths, most = context.index(KIND), context.queries.lengths.astype(np.int64), self.options.mismatches
        fm, text, parts = tables_of(index), text_of(index, context.targets), self.options.mismatches + 1
        codes, last = codes_of(fm), rejected(context.targets.alphabet)
        bounds = np.arange(parts + 1)

        def part(task: tuple[Strand, int]) -> tuple[np.ndarray, np.ndarray]:
            strand, first = task
            context.cancellation.check()
            size, starts = lengths[first : first + _QUERIES], strand.starts[first : first + _QUERIES].astype(np.int64)
            ends = size[:, None] * bounds // parts
            begin, behind = (starts[:, None] + some for some in (ends[:, :-1], ends[:, 1:]))
            short = size < parts
            behind[short] = begin[short]  # nothing is looked up
            lows, highs = rows_of(fm, codes, strand.symbols, begin.reshape(-1).astype(np.uint64),
                                  (behind - begin).reshape(-1).astype(np.uint64))
            numbers, places = located(fm, lows, highs)
            places = places.copy()
            keep = np.empty(len(numbers), np.bool_)
            _kept(text, strand.symbols, starts, size, numbers, places, _I64(parts), _I64(most), _I64(last), keep)
            found = [(numbers[keep] // parts, places[keep])]
            for number in np.flatnonzero(short & (size > 0)).tolist():
                out = np.empty(len(text), np.int64)
                count = _everywhere(text, strand.symbols, starts[number], size[number], _I64(most), _I64(last), out)
                found.append((np.full(count, number), out[:count]))
            return (np.concatenate([numbers for numbers, _ in found]) + first,
                    np.concatenate([places for _, places in found]))

        firsts = range(0, len(lengths), _QUERIES)
        done = iter(run_tasks(context.threads, part, [(strand, first) for strand in strands for first in firsts]))
        none, joined = np.empty(0, np.int64), []
        for _ in strands:
            some = list(islice(done, len(firsts)))
            joined.append((np.concatenate([none, *(numbers for numbers, _ in some)]),
                           np.concatenate([none, *(places for _, places in some)])))
        return joined


class NearMatchesCpu(NearMatches):
    __doc__ = NearMatches.__doc__
    backend = "cpu"
    strand_of = staticmethod(strand_of)
