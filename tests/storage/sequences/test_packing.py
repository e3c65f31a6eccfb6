"""Two-bit packing against its definition, residue by residue."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqloom.storage.sequences.packing import pack, unpack

stretch = st.tuples(st.integers(0, 15), st.integers(1, 9))
codes = st.lists(stretch, max_size=30).map(lambda s: np.array([c for c, n in s for _ in range(n)], np.uint8))


@given(codes)
def test_pack_is_as_defined(residues):
    data, runs = pack(residues)
    assert len(data) == -(-len(residues) // 4)
    for n in range(4 * len(data)):
        wanted = residues[n] if n < len(residues) and residues[n] < 4 else 0
        assert data[n // 4] >> 2 * (n % 4) & 3 == wanted
    slow = [(n, 1, c) for n, c in enumerate(residues.tolist()) if c > 3]
    spread = [(start + k, 1, code) for start, length, code in runs.tolist() for k in range(length)]
    assert spread == slow
    for left, right in pairwise(runs):
        assert left["start"] + left["length"] < right["start"] or left["code"] != right["code"]


@given(codes, st.integers(0, 3))
def test_unpack_gives_back_what_was_packed(residues, shift):
    data, runs = pack(residues)
    assert np.array_equal(unpack(data, len(residues), runs), residues)
    out = np.full(len(residues) + shift + 1, 99, np.uint8)
    unpack(data, len(residues), runs, out[shift : shift + len(residues)])
    assert np.array_equal(out[shift : shift + len(residues)], residues)
    assert (out[:shift] == 99).all() and out[-1] == 99
