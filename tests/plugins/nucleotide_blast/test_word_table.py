"""Tables of words that several threads make, each a range of the words; hits that several threads join."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.engine import threads as threads_of_host
from seqloom.plugins.nucleotide_blast import scanned_cpu, word_table_cpu
from seqloom.plugins.nucleotide_blast.word_table_cpu import word_table


@pytest.fixture(autouse=True, scope="module")
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_table_cpu, "_WORTH_A_RANGE", 5)
        patch.setattr(threads_of_host, "_LARGE", 60)
        yield


@given(st.integers(0, 2**32), st.integers(0, 700), st.sampled_from([1, 64, 256, 4096]), st.integers(1, 5))
def test_places_stand_by_word_in_the_order_in_which_they_come(seed, count, kinds, threads):
    generator = np.random.default_rng(seed)
    words, places = generator.integers(0, kinds, count), generator.permutation(count)
    table = word_table(words.astype(np.int32), places.astype(np.int32), kinds, threads)
    order, known = np.argsort(words, kind="stable"), np.unique(words)
    assert table.entries.tolist() == places[order].tolist()
    assert np.flatnonzero(np.unpackbits(table.bits.view(np.uint8), bitorder="little")).tolist() == known.tolist()
    assert table.starts.tolist() == [*np.searchsorted(words[order], known).tolist(), count, count]
    assert table.ranks.tolist() == np.searchsorted(known, 64 * np.arange(len(table.ranks))).tolist()


@given(st.lists(st.integers(0, 30)), st.integers(1, 4))
def test_rows_are_joined_by_any_number_of_threads(sizes, threads):
    rows = np.arange(3 * sum(sizes), dtype=np.int32).reshape(-1, 3)
    parts = np.split(rows, np.cumsum(sizes)[:-1]) if sizes else []
    assert np.array_equal(scanned_cpu.joined(parts, threads), rows)
