"""Hits by word against numpy's stable sort."""

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.nucleotide_blast import hits_by_word_cpu
from seqloom.plugins.nucleotide_blast.hits_by_word_cpu import by_word


@given(st.lists(st.integers(0, 40), max_size=6), st.lists(st.integers(0, 30), max_size=5), st.integers(0, 2**32 - 1),
       st.integers(1, 3), st.booleans(), st.sampled_from([1, 3, 8]))
def test_hits_are_in_the_order_of_words_and_equal_ones_stay(parts: list[int], chunks: list[int], seed: int,
                                                            threads: int, few: bool, bits: int) -> None:
    random, firsts = np.random.default_rng(seed), np.cumsum([0, *chunks])
    sizes = parts if firsts[-1] else [0 for _ in parts]
    given_rows = [np.column_stack([random.integers(0, 99, (size, 3)), random.integers(0, max(1, firsts[-1]), size)])
                  .astype(np.int32) for size in sizes]
    with mock.patch.multiple(hits_by_word_cpu, _FEW=1 << 40 if few else 0, _BUCKET_BITS=bits):
        rows, bounds = by_word(threads, given_rows, firsts)
    whole = np.concatenate([np.empty((0, 4), np.int32), *given_rows])
    whole = whole[np.argsort(whole[:, 3], kind="stable")]
    assert rows.dtype == np.int32 and rows.tolist() == whole[:, :3].tolist()
    assert bounds.tolist() == np.searchsorted(whole[:, 3], firsts).tolist()
