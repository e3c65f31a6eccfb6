"""Edit paths and the counts taken from them."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.records import path_text
from seqloom.plugins.common.edit_path import count_path, path_of_steps, run_lengths
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.common.xdrop import BOTH, COLUMN_ONLY, ROW_ONLY

BLOSUM62 = protein_matrix("BLOSUM62").tolist()


def encode(text: str) -> bytes:
    return PROTEIN.encode(text).tobytes()


def test_path_and_counts_of_an_example():
    """MK-VILA over MRWVL-A: query residues against a gap are insertions, target residues deletions."""
    query, target = encode("MKVILA"), encode("MRWVLA")
    steps = [BOTH, BOTH, COLUMN_ONLY, BOTH, ROW_ONLY, BOTH, BOTH]
    path = path_of_steps(steps, query, target)
    assert path_text(np.array(path)) == "1=1X1D1=1I2="
    counts = count_path(path, query, target, BLOSUM62)
    assert counts == (7, 4, 5, 1, 2, 2)  # K and R are similar


@given(st.lists(st.sampled_from([1, 2, 7, 8]), max_size=60))
def test_run_lengths_say_the_same_operations(operations):
    runs = run_lengths(operations)
    assert [run & 15 for run in runs for _ in range(run >> 4)] == operations
    assert all(first & 15 != second & 15 for first, second in pairwise(runs))


def test_rows_may_be_the_target():
    query, target = encode("MKV"), encode("MV")
    by_target = path_of_steps([BOTH, COLUMN_ONLY, BOTH], query, target, rows_are_query=False)
    by_query = path_of_steps([BOTH, ROW_ONLY, BOTH], query, target)
    assert path_text(np.array(by_target)) == path_text(np.array(by_query)) == "1=1I1="
