"""Matches of a text that is searched in parts are those of the text as a whole."""

from itertools import pairwise

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_seed_cpu
from seqloom.plugins.exact_match.fm_index import KIND, IndexPart, tables_of
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu, codes_of
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.plugins.exact_match.parted_matches import crossing_matches, joined_matches, whole_matches
from seqloom.plugins.exact_match.strands_cpu import strand_of
from seqloom.plugins.exact_match.symbols import end, target_text

LENGTH = 5


def part_of(text: np.ndarray, first: int, last: int, overlap: int) -> IndexPart:
    """The index of places first … last − 1, which reaches into the next part."""
    stretch = np.append(text[:-1][first : last + overlap], np.uint8(end(NUCLEOTIDE)))
    arrays = FmIndexCpu().arrays(Context(), stretch, NUCLEOTIDE, 64, 4)
    index = Index(KIND, "target", arrays, {"bucket": 64, "sample": 4})
    return IndexPart(tables_of(index), first, last - first, stretch)


def found_in(part: IndexPart, query: np.ndarray, unique: bool) -> np.ndarray:
    """Matches of a stretch, as a device finds them."""
    out, work = np.empty((1 << 14, 3), np.int64), np.empty((6, 1), np.uint64)
    bounds = np.array([1, len(query)], np.uint64)
    count, _ = fm_seed_cpu._search(part.fm, codes_of(part.fm), part.text, query, np.uint64(LENGTH), np.empty(0, bool),
                                   np.uint64(0), np.uint64(0), np.empty((1, 2), part.fm.samples.dtype), bounds[:1],
                                   bounds[1:], unique, np.inf, work, out)
    assert count <= len(out)
    return out[:count]


@pytest.mark.parametrize("mode", ["mum", "maxmatch"])
def test_parts_give_the_matches_of_the_whole(mode):
    rng = np.random.default_rng(5)
    crossing = 0
    for turn in range(60):
        letters = "ACGT"[: 1 + turn % 4] if turn % 3 else "ACGN"
        unit = "".join(rng.choice(list(letters), rng.integers(3, 30)))
        genome = "".join(rng.choice(list(letters), 60)) + unit * int(rng.integers(1, 4)) + "".join(
            rng.choice(list(letters), 40))
        targets = SequenceBatch.of(NUCLEOTIDE, [genome, unit * 2, genome[20:90]][: 1 + turn % 3])
        queries = SequenceBatch.of(NUCLEOTIDE, [genome[5:95], unit * 2, "", genome[30:70] + unit, genome[60:0:-1]])
        context = Context(queries=queries, targets=targets, options=MatchOptions(length=LENGTH, **{mode: True}),
                          indexes={KIND: FmIndexCpu().run(Context(), targets)})
        text, unique = target_text(targets, acgt_only=False)[0], mode != "maxmatch"
        strand = strand_of(queries, 1, False)
        [wanted] = FmMatchesCpu().matches(context, [strand])
        count, overlap = int(rng.integers(2, 6)), int(rng.integers(LENGTH, 12))
        bounds = np.linspace(0, len(text), count + 1).astype(int).tolist()
        parts = [part_of(text, first, last, overlap) for first, last in pairwise(bounds)]
        query = strand.symbols
        rows = [whole_matches(found_in(part, query, unique), part, text, query) for part in parts]
        crossing += len(crossing_matches(parts, overlap, text, query))
        rows.append(crossing_matches(parts, overlap, text, query))
        got = joined_matches(np.concatenate(rows), tables_of(context.index(KIND)), query, unique)
        assert np.array_equal(got[np.lexsort(got.T)], wanted[np.lexsort(wanted.T)]), (turn, genome, bounds, overlap)
    assert crossing > 20
