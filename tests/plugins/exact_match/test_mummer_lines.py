"""Lines of mummer: the compiled ones are the plain ones, and both what mummer's format says."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.plugins.exact_match.mummer_lines import Sections, compiled, plain

names = st.text(st.sampled_from("aé|_\n1"), max_size=70)
numbers = st.one_of(st.integers(0, 99), st.integers(10**7, 10**9), st.integers(0, 2**40))


@st.composite
def sections(draw):
    queries = draw(st.lists(names, min_size=1, max_size=4))
    endings = draw(st.sampled_from([[""], [" Reverse"], ["", " Reverse"]]))
    rows = draw(st.lists(st.tuples(st.integers(0, len(queries) * len(endings) - 1), numbers, numbers, numbers,
                                   st.integers(0, 1), st.text("acgt\n", max_size=50)), max_size=8))
    rows.sort(key=lambda row: row[0])
    table = np.array([row[:5] for row in rows], np.int64).reshape(-1, 5).T
    lengths = np.array(draw(st.lists(numbers, min_size=len(queries), max_size=len(queries))), np.int64)
    named, told, shown = (draw(st.booleans()) for _ in range(3))
    return Sections(queries, endings, lengths if told else None, table[0], table[1:4],
                    ["  one    ", "  longer  "] if named else [], table[4] if named else None,
                    [row[5] for row in rows] if shown else None)


@settings(max_examples=150, deadline=None)
@given(sections())
def test_the_kernel_writes_the_plain_lines(some):
    assert compiled(some) == plain(some)


def test_columns_are_as_wide_as_their_numbers_need():
    some = Sections(["q"], ["", " Reverse"], np.array([7]), np.array([1, 1]),
                    np.array([[1, 123456789], [22, 100000000], [333, 99999999]]), ["  r  "], np.array([0, 0]),
                    ["", "\nacgt"])
    assert plain(some) == ("> q  Len = 7\n> q Reverse  Len = 7\n"
                           "  r         1        22       333\n  r  123456789  100000000  99999999\nacgt\n")
