"""Symmetric DUST against its definition, and the rules for N. Agreement with dustmasker: tests/gold/test_blastn.py."""

from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.plugins.nucleotide_blast.dust import Dust, DustOptions, dust_intervals

from tests.plugins.nucleotide_blast.sequences import batch


def by_definition(text: str, level: int, window: int) -> set[int]:
    """Masked positions, from the scores of all intervals."""
    triplets = [text[i : i + 3] for i in range(len(text) - 2)]

    def score(start: int, end: int) -> Fraction:
        counts = Counter(triplets[start:end]).values()
        return Fraction(sum(c * (c - 1) // 2 for c in counts), end - start - 1)

    spans = [(s, e) for s in range(len(triplets)) for e in range(s + 2, min(s + window - 2, len(triplets)) + 1)]
    scores = {span: score(*span) for span in spans}
    masked: set[int] = set()
    for (start, end), value in scores.items():
        inside = [v for (s, e), v in scores.items() if start <= s and e <= end]
        if 10 * value > level and value >= max(inside):
            masked |= set(range(start, end + 2))
    return masked


def positions(intervals: np.ndarray) -> set[int]:
    return {p for start, end in intervals.tolist() for p in range(start, end)}


@settings(max_examples=60, deadline=None)
@given(
    st.text("AC", max_size=30) | st.text("ACGT", max_size=30),
    st.sampled_from([5, 10, 20]),
    st.sampled_from([8, 16, 64]),
)
def test_equals_the_definition(text, level, window):
    found = dust_intervals(NUCLEOTIDE.encode(text), level, window)
    assert positions(found) == by_definition(text, level, window)


def test_intervals_are_disjoint_and_nearby_ones_are_joined():
    text = "ACGTTGCA" + "A" * 12 + "CGT" + "T" * 12 + "GCATGACT"
    apart = dust_intervals(NUCLEOTIDE.encode(text), linker=1)
    joined = dust_intervals(NUCLEOTIDE.encode(text), linker=10)
    assert len(apart) == 2 and len(joined) == 1
    assert (joined[0] == [apart[0][0], apart[1][1]]).all()


def test_runs_of_n_are_masked_at_the_ends_and_where_longer_than_the_window():
    core = "ACGTTGCATCAGGATCTACG"
    text = "NNN" + core + "N" * 20 + core + "N" * 65 + core + "N"
    assert dust_intervals(NUCLEOTIDE.encode(text)).tolist() == [[0, 3], [63, 128], [148, 149]]


def test_other_ambiguities_count_as_a():
    assert dust_intervals(NUCLEOTIDE.encode("CGTCTG" + "R" * 10 + "CGTCTG")).tolist() == [[6, 16]]


def test_masker_gives_intervals_of_every_sequence():
    found = Dust(DustOptions()).intervals(batch("ACGATTGCAT", "A" * 20, "", "C" * 9))
    assert found.rows() == [(1, 0, 20), (3, 0, 9)]
