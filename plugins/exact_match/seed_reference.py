"""Maximal exact matches by backward search in the Burrows–Wheeler transform of the references.

Every stretch of ``length`` query residues is looked up from its last residue to its first; this gives the range of the
suffixes that begin with it. A suffix whose symbol before equals the query residue before belongs to a longer match
that starts further left, and is left out; the others are extended to the right.
"""

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.errors import DamagedError
from seqloom.core.index import Index
from seqloom.core.keys import stable_order
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, SeedStage, Shape

from .symbols import NEVER, complement_table, symbol_table

MOST_WORK = 64
"""Looks in vain, for each residue of text and query, beyond which the texts count as repetitive for kernels."""
RESIDUES = 0.125
"""How many such looks a residue that is compared counts for."""
_REPEATS_BYTES = 40
"""What a residue of text or query takes where matches of repetitive texts are found by their suffixes."""
_STRETCHES = 1 << 14  # looked up together
_SUFFIXES = 1 << 20  # resolved together
_BLOCK = 64  # residues compared at a time


class Strand(NamedTuple):
    """One strand of all queries: symbols one query behind the other, ``NEVER`` before, between and behind them."""

    symbols: np.ndarray
    starts: np.ndarray
    frame: int


class MaximalMatches(SeedStage):
    """All maximal exact matches of at least ``length`` residues, on the strands that the options ask for.

    A match is maximal when it can't be extended on either side; it never crosses the end of a sequence. Seeds come by
    query, strand (plus first), start on the strand searched, and then in the order of the suffixes of the volume.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 3.4.3 and figure 3.7, after Ferragina & Manzini 2000.
    """

    name: ClassVar[str] = "maximal-matches"
    cells_per_second: ClassVar[float | None] = math.inf
    takes: ClassVar[tuple[type[Records] | None, ...]] = (None,)
    gives: ClassVar[type[Records]] = Seeds
    reads: ClassVar[tuple[str, ...]] = ("suffix-array",)
    uses: ClassVar[tuple[str, ...]] = ("length", "mode", "frames", "acgt_only")
    gives_order: ClassVar[tuple[str, ...] | None] = ("query",)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=8 * shape.query_residues + _STRETCHES * 400 + _SUFFIXES * 64)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index = context.index("suffix-array")
        parts = [Seeds.empty()]
        for frame in context.options.frames():
            strand = strand_of(context.queries, frame, context.options.acgt_only)
            parts += [seeds_of(context, index["starts"], strand, *found) for found in matches(context, index, strand)]
        return strands_together(parts)


def most_work(context: Context, residues: int, unique: bool = False) -> float:
    """Looks in vain beyond which a kernel gives up on texts of so many residues together.

    It goes on, however long that takes, where all matches are wanted and memory doesn't hold the suffixes of both.
    """
    held = unique or context.memory is None or 2 * _REPEATS_BYTES * residues <= context.memory
    return float(MOST_WORK * residues) if held else np.inf


def strand_of(queries: SequenceBatch, frame: int, acgt_only: bool) -> Strand:
    """One strand of the queries in symbols."""
    strand = strand_in(np.full(strand_size(queries), NEVER, np.uint8), queries, frame)
    table = strand_table(queries, frame, acgt_only)
    for place, start in enumerate(strand.starts.tolist()):
        residues = queries[place][:: 1 if frame > 0 else -1]
        strand.symbols[start : start + len(residues)] = table[residues]
    return strand


def strand_table(queries: SequenceBatch, frame: int, acgt_only: bool) -> np.ndarray:
    """u8[256]: symbol of each residue on a strand."""
    table = symbol_table(queries.alphabet, acgt_only, NEVER)
    return table if frame > 0 else table[complement_table(queries.alphabet)]


def strand_size(queries: SequenceBatch) -> int:
    """Symbols of a strand."""
    return queries.total_residues + len(queries) + 1 + _BLOCK


def strand_in(symbols: np.ndarray, queries: SequenceBatch, frame: int) -> Strand:
    """A strand with room for every query in u1[strand_size] ``symbols``."""
    return Strand(symbols, queries.offsets[:-1] + 1 + np.arange(len(queries)), frame)


def matches(context: Context, index: Index, strand: Strand) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """i8 places in the strand, places in the text and lengths of all matches, in order of place and suffix."""
    length = context.options.length
    text = np.concatenate([index["text"], np.full(_BLOCK, NEVER - 1, np.uint8)])
    usable = np.concatenate([[0], np.cumsum(strand.symbols == NEVER)])
    stretches = np.flatnonzero(usable[length:] == usable[:-length])
    for block in np.array_split(stretches, -(-len(stretches) // _STRETCHES)) if len(stretches) else ():
        context.cancellation.check()
        low, high = backward_search(index, strand.symbols, block, length)
        for part in np.split(np.arange(len(block)), _cuts(high - low)):
            found = np.repeat(part, (high - low)[part])
            first = np.repeat(np.cumsum((high - low)[part]) - (high - low)[part], (high - low)[part])
            rows = low[found] + np.arange(len(found)) - first
            places = block[found]
            context.count("suffixes", len(rows))
            begins = index["bwt"][rows] != strand.symbols[places - 1]
            places, suffixes = places[begins], index["suffixes"][rows[begins]]
            yield places, suffixes, common_length(strand.symbols, places, text, suffixes, length)


def _cuts(sizes: np.ndarray) -> np.ndarray:
    """Where to cut a row of jobs so that none of the parts has much more than ``_SUFFIXES`` results."""
    return np.flatnonzero(np.diff(np.cumsum(sizes) // _SUFFIXES)) + 1


def backward_search(index: Index, symbols: np.ndarray, stretches: np.ndarray,
                    length: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of suffixes that begin with stretches of a query.

    Args:
        index: of kind "suffix-array".
        symbols: u8, the query; the stretches hold no ``NEVER``.
        stretches: i8[k], where each begins.
        length: residues of each.

    Returns:
        i8[k] first and i8[k] behind the last place in the suffix array; equal where there is none.
    """
    low = np.zeros(len(stretches), np.int64)
    high = np.full(len(stretches), len(index["bwt"]), np.int64)
    for place in range(length - 1, -1, -1):
        open_ = np.flatnonzero(low < high)
        symbol = symbols[stretches[open_] + place]
        smaller = index["smaller"][symbol]
        low[open_], high[open_] = (smaller + _occurrences(index, symbol, bound[open_]) for bound in (low, high))
    return low, high


def _occurrences(index: Index, symbol: np.ndarray, before: np.ndarray) -> np.ndarray:
    """i8[k]: how often each symbol occurs in the transform before a place."""
    bucket = index.parameters["bucket"]
    first = before // bucket * bucket
    places = first[:, None] + np.arange(bucket)
    bwt = index["bwt"]
    equal = (bwt[np.minimum(places, len(bwt) - 1)] == symbol[:, None]) & (places < before[:, None])
    return index["counts"][before // bucket, symbol] + equal.sum(axis=1)


def common_length(query: np.ndarray, places: np.ndarray, text: np.ndarray, suffixes: np.ndarray,
                  known: int) -> np.ndarray:
    """i8[k]: residues that query and text share from ``places`` and ``suffixes`` on, of which ``known`` are known."""
    lengths = np.full(len(places), known, np.int64)
    going = np.arange(len(places))
    window = np.arange(_BLOCK)
    while len(going):
        ahead = lengths[going, None] + window
        equal = query[places[going, None] + ahead] == text[suffixes[going, None] + ahead]
        whole = equal.all(axis=1)
        lengths[going] += np.where(whole, _BLOCK, equal.argmin(axis=1))
        going = going[whole]
    return lengths


def in_order(rows: np.ndarray) -> np.ndarray:
    """i8[n, 3] matches by place in the strand, then in the text; mostly they are in this order."""
    before, behind = rows[:-1], rows[1:]
    descends = (before[:, 0] > behind[:, 0]) | ((before[:, 0] == behind[:, 0]) & (before[:, 1] > behind[:, 1]))
    return rows[stable_order([rows[:, 0], rows[:, 1]])] if descends.any() else rows


def strands_together(parts: Sequence[Seeds]) -> Seeds:
    """Seeds of each strand by query as those of all strands by query and strand, plus first."""
    seeds = Seeds.concat(parts)
    if len(parts) == 1:
        return seeds
    key = seeds.query.astype(np.int64) * 2 + (seeds.query_frame < 0)
    return seeds.take(np.argsort(key, kind="stable"))


def damaged() -> DamagedError:
    """What is wrong where a match doesn't end within its target."""
    return DamagedError("the stored index gives matches that aren't there: it was not made of these sequences; make it "
                        "anew: seqloom index drop, then seqloom index build")


def seeds_of(context: Context, starts: np.ndarray, strand: Strand, places: np.ndarray, suffixes: np.ndarray,
             lengths: np.ndarray) -> Seeds:
    """Seeds of matches by their places in the strand and in the text, where targets begin at i8[k] ``starts``.

    Raises:
        DamagedError: a match doesn't end where its target does.
    """
    queries, targets = context.queries, context.targets
    query = np.searchsorted(strand.starts, places, "right") - 1
    target = np.searchsorted(starts, suffixes, "right") - 1
    if (suffixes - starts[target] + lengths > targets.lengths[target]).any():
        raise damaged()
    start = places - strand.starts[query]
    if strand.frame < 0:
        start = queries.lengths[query] - start - lengths
    return Seeds({
        "query": queries.ordinals[query], "target": targets.ordinals[target], "score": lengths, "query_pos": start,
        "target_pos": suffixes - starts[target], "length": lengths,
        "query_frame": np.full(len(places), strand.frame), "target_frame": np.ones(len(places)),
    })
