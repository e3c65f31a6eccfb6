"""Symmetric DUST against its definition, and the rules for N. Agreement with dustmasker: tests/gold/test_blastn.py."""

from collections import Counter
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.plugins.nucleotide_blast import dust_cpu
from seqloom.plugins.nucleotide_blast.dust import Dust, DustOptions, _Search, dust_intervals
from seqloom.plugins.nucleotide_blast.dust_cpu import intervals_by_definition, intervals_by_window

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


def test_a_window_out_of_range_still_says_which_runs_of_n_are_long():
    core = "ACGTTGCATCAGGATCTACG"
    assert Dust(DustOptions(window=6)).intervals(batch(core + "N" * 20 + core)).rows() == [(0, 20, 40)]


def test_other_ambiguities_count_as_a():
    assert dust_intervals(NUCLEOTIDE.encode("CGTCTG" + "R" * 10 + "CGTCTG")).tolist() == [[6, 16]]


def test_the_reverse_complement_has_other_intervals_where_there_are_ambiguities():
    """Searches with ``--strand minus`` look at it, as blastn of BLAST+ 2.12 does."""
    mixed = batch("CGTCTG" + "ARRARAARRRARAAARRARA" + "CGTCTG")
    assert Dust(DustOptions()).intervals(mixed).rows() == [(0, 6, 26)]
    assert Dust(DustOptions(turned=True)).intervals(mixed).rows() == []
    assert Dust(DustOptions(turned=True)).intervals(batch("A" * 20 + "CGTCTG")).rows() == [(0, 0, 20)]


def test_masker_gives_intervals_of_every_sequence():
    found = Dust(DustOptions()).intervals(batch("ACGATTGCAT", "A" * 20, "", "C" * 9))
    assert found.rows() == [(1, 0, 20), (3, 0, 9)]


@settings(max_examples=60, deadline=None)
@given(
    st.text("AC", max_size=90) | st.text("ACGT", max_size=90),
    st.sampled_from([2, 5, 10, 20, 64]),
    st.sampled_from([16, 32, 64]),
    st.sampled_from([1, 5, 32]),
)
def test_the_sliding_window_finds_what_the_definition_says(text, level, window, linker):
    codes = NUCLEOTIDE.encode(text)
    slid = _Search(codes, level, window, linker)._by_window(0, len(codes) - 1)
    found = intervals_by_definition(codes, np.array([0, 0, len(codes)]), np.ones(2, bool), level, window, linker)
    assert [[1, a, b + 1] for a, b in slid] == found.tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["A", "AC", "ACGT", "CAG", "N", "N" * 9, "N" * 70, "A" * 30, "R"]), max_size=40)
    .map("".join),
    st.integers(0, 3),
    st.sampled_from([2, 10, 20, 64]),
    st.sampled_from([8, 16, 64]),
    st.sampled_from([1, 32]),
)
def test_the_compiled_window_equals_the_reference(text, start, level, window, linker):
    """N at starts, at ends, alone and in runs; both stretches draw from one generator."""
    codes = NUCLEOTIDE.encode(text)
    slow, fast = (_Search(codes, level, window, linker) for _ in range(2))
    for first, last in ((start, len(codes) // 2), (len(codes) // 2 + 1, len(codes) - 1)):
        found = intervals_by_window(codes, first, last, level, window, linker, fast._state)
        assert found.tolist() == slow._by_window(first, last)
    words, *pointers = slow._random.position()
    assert fast._state.tolist() == [*words.tolist(), *pointers]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["A", "AC", "ACGT", "CAG", "N", "N" * 9, "N" * 70, "A" * 30, "R"]), max_size=12)
             .map("".join), max_size=8),
    st.sampled_from([2, 10, 20, 64]),
    st.sampled_from([6, 8, 16, 64]),
    st.sampled_from([1, 32]),
    st.booleans(),
)
def test_many_sequences_at_once_have_the_intervals_of_each(texts, level, window, linker, turned):
    with mock.patch.object(dust_cpu, "_AT_ONCE", 50):
        found = Dust(DustOptions(level, window, linker, runs=False, turned=turned)).intervals(batch(*texts)).rows()
    wanted = []
    for number, text in enumerate(texts):
        codes = NUCLEOTIDE.encode(text)
        for a, b in dust_intervals(NUCLEOTIDE.complement[codes][::-1] if turned else codes, level, window, linker,
                                   runs=False).tolist():
            wanted.append((number, len(text) - b, len(text) - a) if turned else (number, a, b))
    assert found == sorted(wanted)


WITH_N = (
    "CAAACCAAACANAAAACAANCCACNCCCANCACACNCAAACCCACAANANCCACAACNCCNCANACCACNCCCANCACCCACCCCCACCNCNCACCACCACNCNCANNNNCAAANCNACCCCCNCANC"
    "ACACACANCCNACCCCCANAAA"
)


@pytest.mark.parametrize(("text", "settings", "expected"), [
    (WITH_N, (), [[0, 146]]),
    ("ACGATTGCATCGGA" + "N" * 20 + "CAGTTACGAN" * 9 + "ACGTTGACCA", (), [[32, 123]]),
    ("A" * 30 + "CGTACGTTGCATGCAA" + "N" * 100, (20, 64, 32), [[0, 30], [46, 146]]),  # not joined with a run of N
    ("A" * 9 + "CGTCTG", (40, 8), [[0, 9]]),  # one triplet in the whole window
    ("AC" * 50, (20, 100), [[0, 100]]),
    ("AC" * 3 + "G" * 9, (70, 100), [[6, 15]]),
])
def test_intervals_are_those_of_dustmasker_where_its_ways_matter(text, settings, expected):
    assert dust_intervals(NUCLEOTIDE.encode(text), *settings).tolist() == expected


def test_searches_look_across_runs_of_n():
    codes = NUCLEOTIDE.encode("N" * 40 + "A" * 10 + "CGTCAGTTAC")
    assert dust_intervals(codes).tolist() == [[0, 50]]
    assert dust_intervals(codes, runs=False).tolist() == [[40, 50]]
