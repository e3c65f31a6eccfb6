"""Seeds of whole queries: the kernels give what the reference gives, in whatever order places come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.errors import DamagedError
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.query_seeds_cpu import seeds_of_queries
from seqloom.plugins.exact_match.seed_reference import Strand, strand_of
from seqloom.plugins.exact_match.whole_seed_reference import WholeQueries
from seqloom.testing import assert_same_records

TARGETS = SequenceBatch.of(NUCLEOTIDE, ["ACGT" * 30, "A", "CCGT" * 10]).renumbered(np.array([3, 5, 8]))
STARTS = np.array([0, 121, 123])
"""Where they begin in the text: a mark stands behind each."""


def context(lengths: list[int]) -> Context:
    queries = SequenceBatch.of(NUCLEOTIDE, ["A" * length for length in lengths])
    return Context(queries=queries.renumbered(np.arange(len(lengths)) + 7), targets=TARGETS, options=None, threads=2)


def strands(made: Context, frames: list[int]) -> list[Strand]:
    return [strand_of(made.queries, frame, False) for frame in frames]


@given(st.data())
def test_seeds_are_those_of_the_reference(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    frames = data.draw(st.sampled_from([[1], [-1], [1, -1]]))
    made, found = context(lengths), []
    for _ in frames:
        rows = data.draw(st.lists(st.tuples(st.integers(0, len(lengths) - 1), st.integers(0, 114)), max_size=60))
        table = np.array(sorted(set(rows), key=lambda row: (row[0], hash(row))), np.int64).reshape(-1, 2)
        found.append((table[:, 0], table[:, 1]))
    given_strands = strands(made, frames)
    wanted = WholeQueries.seeds(made, STARTS, given_strands, found)
    assert_same_records(seeds_of_queries(made, STARTS, given_strands, found), wanted)


@pytest.mark.parametrize("places", [[120], [121], [161], [0, 118]])
def test_a_place_beyond_its_target_is_damage(places: list[int]) -> None:
    made = context([3])
    found = [(np.zeros(len(places), np.int64), np.array(places, np.int64))]
    for make in (seeds_of_queries, WholeQueries.seeds):
        with pytest.raises(DamagedError, match="was not made of these sequences"):
            make(made, STARTS, strands(made, [1]), found)
