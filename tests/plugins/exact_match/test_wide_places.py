"""Places and rows of eight bytes, which texts of more than 2 G and 4 G symbols have, give the rows of four bytes."""

import sys
from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.compressed_array_cpu import CompressedArrayCpu
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.index_cpu import SuffixArrayCpu
from seqloom.plugins.exact_match.minimizer_index_cpu import MinimizerIndexCpu
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.plugins.exact_match.suffix_array import sorting_bytes
from seqloom.testing import assert_same_hits, run_pipeline

from tests.plugins.exact_match.mummer import MODES

WIDE = {"row_type": np.dtype(np.uint64), "place_type": np.dtype(np.uint64), "suffix_type": np.dtype(np.int64)}
"""What numbers places and rows beyond four bytes, by the function that chooses it from a text or its length."""
ROUTES = {
    "minimizers": ("index.references=minimizer-index", "seed.matches=minimizer-matches"),
    "fm-index": ("index.references=fm-index", "seed.matches=fm-matches"),
    "suffix array": ("index.references=suffix-array", "seed.matches=maximal-matches"),
    "compressed suffix array": ("index.references=compressed-suffix-array", "seed.matches=compressed-matches"),
}
WHOLE = {
    "fm-index": (),
    "compressed suffix array": ("index.references=compressed-suffix-array", "seed.queries=compressed-queries"),
    "near": ("seed.queries=near-queries", "extend.matches=near-matches"),
}
sequences = st.lists(st.one_of(
    st.text("ACGTN", min_size=1, max_size=80),
    st.builds(lambda unit, times: unit * times, st.text("ACGT", min_size=1, max_size=9), st.integers(2, 12))),
    min_size=1, max_size=4)


@pytest.fixture
def wide() -> Iterator[pytest.MonkeyPatch]:
    """Gives what makes all places wide."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def widen(patch: pytest.MonkeyPatch) -> None:
    for module in [*sys.modules.values()]:
        if getattr(module, "__name__", "").startswith("seqloom.plugins.exact_match."):
            for name, kind in WIDE.items():
                if hasattr(module, name):
                    patch.setattr(module, name, lambda _, kind=kind: kind)


def nucleotides(texts: list[str]) -> SequenceBatch:
    return SequenceBatch.of(NUCLEOTIDE, texts)


@pytest.mark.parametrize("make", [FmIndexCpu, CompressedArrayCpu, SuffixArrayCpu, MinimizerIndexCpu])
def test_indexes_have_the_same_numbers(make, wide):
    rng = np.random.default_rng(1)
    batch = nucleotides(["".join(rng.choice([*"ACGT"], 5000)), "ACGNNRT" * 50])
    context = Context(options=MatchOptions(length=20))
    narrow = make().run(context, batch).arrays
    import_module("seqloom.plugins.exact_match.stored_cpu")
    widen(wide)
    broad = make().run(context, batch).arrays
    assert narrow.keys() == broad.keys()
    for name, values in narrow.items():
        assert broad[name].tolist() == values.tolist(), name
    assert any(broad[name].itemsize > values.itemsize for name, values in narrow.items())


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("route", list(ROUTES))
@settings(max_examples=15, deadline=None)
@given(sequences, sequences, st.sampled_from(MODES), st.integers(1, 12))
def test_maximal_matches_are_the_same(route, backend, queries, targets, mode, length):
    given_ = nucleotides([*queries, targets[0]]), nucleotides(targets)
    options = {mode: True, "length": length, "both": True}
    narrow = run_pipeline("mum", *given_, options, ROUTES[route], backend=backend)
    with pytest.MonkeyPatch.context() as patch:
        widen(patch)
        assert_same_hits(narrow, run_pipeline("mum", *given_, options, ROUTES[route], backend=backend), route)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("route", list(WHOLE))
@settings(max_examples=15, deadline=None)
@given(sequences, sequences)
def test_whole_queries_are_the_same(route, backend, queries, targets):
    given_ = nucleotides([*queries, targets[0], targets[0][: len(targets[0]) // 2 + 1]]), nucleotides(targets)
    narrow = run_pipeline("exact", *given_, {"both": True}, WHOLE[route], backend=backend)
    with pytest.MonkeyPatch.context() as patch:
        widen(patch)
        assert_same_hits(narrow, run_pipeline("exact", *given_, {"both": True}, WHOLE[route], backend=backend), route)


def test_sorting_takes_twice_the_memory_where_places_are_wide():
    assert sorting_bytes((1 << 31) - 1) == 16 * ((1 << 31) - 1) and sorting_bytes(1 << 31) == 32 << 31
