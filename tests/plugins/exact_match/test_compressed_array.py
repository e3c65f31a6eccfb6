"""The compressed suffix array against Psi of naively sorted suffixes, its look-ups against those of other indexes."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.options import build_options
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import compressed_seed_cpu, whole_seed_cpu
from seqloom.plugins.exact_match.compressed_array import psi_of, psi_tables, read_back
from seqloom.plugins.exact_match.compressed_array_cpu import CompressedArrayCpu
from seqloom.plugins.exact_match.compressed_array_reference import CompressedArray, CompressedArrayOptions
from seqloom.plugins.exact_match.compressed_search_cpu import first_row, place_of, row_behind
from seqloom.plugins.exact_match.stored_psi_cpu import wrong_compressed_array
from seqloom.plugins.exact_match.symbols import target_text
from seqloom.testing import assert_same_hits, check_pipeline, run_pipeline

EXACT = ("index.references=compressed-suffix-array", "seed.queries=compressed-queries")
MUM = ("index.references=compressed-suffix-array", "seed.matches=compressed-matches")

periodic = st.builds(lambda unit, times, tail: unit * times + tail, st.text("ACGTN", min_size=1, max_size=7),
                     st.integers(1, 30), st.text("ACGT", max_size=5))
some_texts = st.one_of(
    st.sampled_from(["A", "AC", "ACGT", "ACGTN", "ACGTRYN"]).flatmap(
        lambda residues: st.lists(st.text(residues, max_size=90), min_size=1, max_size=4)),
    st.lists(periodic, min_size=1, max_size=2))
layouts = st.builds(CompressedArrayOptions, st.sampled_from([2, 8, 32, 128]), st.sampled_from([1, 2, 5, 8, 64]))
strands = st.sampled_from([{}, {"both": True}, {"reverse": True}])
modes = st.sampled_from(["mum", "mumreference", "maxmatch"])


def order_and_psi(text: np.ndarray) -> tuple[list[int], list[int]]:
    whole = text.tobytes()
    order = sorted(range(len(text)), key=lambda place: whole[place:])
    return order, [order.index((place + 1) % len(text)) for place in order]


@settings(max_examples=150, deadline=None)
@given(some_texts, layouts, st.sampled_from([NUCLEOTIDE, PROTEIN]))
def test_the_index_reads_back_as_psi_of_the_sorted_suffixes(texts, layout, residues):
    batch = SequenceBatch.of(residues, texts)
    text = target_text(batch, acgt_only=False)[0]
    order, psi = order_and_psi(text)
    index, reference = CompressedArrayCpu(layout).run(Context(), batch), CompressedArray(layout).run(Context(), batch)
    assert index.fingerprint == reference.fingerprint
    tables = psi_tables(index)
    assert psi_of(tables).tolist() == psi
    read_text, suffixes = read_back(index)
    assert read_text.tolist() == text.tolist() and suffixes.tolist() == order
    given_, rows = tables[:5], range(len(text))
    assert [row_behind(*given_, np.uint64(row)) for row in rows] == psi
    assert [place_of(tables, np.uint64(row)) for row in rows] == order
    for symbol in set(text.tolist()):
        first, last = tables.smaller[symbol : symbol + 2].tolist()
        for bound in {0, 1, len(text) // 2, len(text), *psi[:4]}:
            wanted = next((row for row in range(first, last) if psi[row] >= bound), last)
            assert first_row(*given_, np.uint64(symbol), np.uint64(bound)) == wanted
    assert wrong_compressed_array(batch, index, index.parameters) == ""


@settings(max_examples=100, deadline=None)
@given(some_texts, st.lists(st.text("ACGTN", max_size=9), max_size=4), strands, layouts, st.booleans(),
       st.sampled_from([10**6, 40]), st.sampled_from([0, 10**6]))
def test_places_are_those_of_the_fm_index(targets, queries, strand, layout, acgt_only, volume, many):
    queries = [*queries, targets[0][2:30], ""]
    batches = [SequenceBatch.of(NUCLEOTIDE, texts) for texts in (queries, targets)]
    options = {"acgt_only": acgt_only, **strand}
    wanted = run_pipeline("exact", *batches, options, volume_residues=volume)
    layout_of = (f"index.references.block={layout.block}", f"index.references.sample={layout.sample}")
    for backend in ("reference", "cpu"):
        with patch.object(whole_seed_cpu, "_MANY", many):
            assert_same_hits(wanted, run_pipeline("exact", *batches, options, stages=EXACT, settings=layout_of,
                                                  backend=backend, volume_residues=volume, threads=2))


@settings(max_examples=100, deadline=None)
@given(some_texts, st.lists(st.text("ACGTN", max_size=60), min_size=1, max_size=3), strands, modes, st.integers(1, 9),
       st.booleans(), st.sampled_from([10**6, 40]))
def test_matches_are_those_of_the_fm_index(targets, queries, strand, mode, length, acgt_only, volume):
    queries = [*queries, targets[0][2:60] + targets[-1][1:20]]
    batches = [SequenceBatch.of(NUCLEOTIDE, texts) for texts in (queries, targets)]
    options = {mode: True, "length": length, "acgt_only": acgt_only, **strand}
    wanted = run_pipeline("mum", *batches, options, volume_residues=volume)
    for backend in ("reference", "cpu"):
        with patch.object(compressed_seed_cpu, "_LEAST_PART", 20):
            assert_same_hits(wanted, run_pipeline("mum", *batches, options, stages=MUM, backend=backend,
                                                  volume_residues=volume, threads=2))


@pytest.mark.parametrize("pipeline", ["exact", "mum"])
def test_rows_do_not_depend_on_how_the_work_is_cut(pipeline, monkeypatch):
    monkeypatch.setattr(compressed_seed_cpu, "_LEAST_PART", 100)
    rng = np.random.default_rng(3)
    genome = "".join(rng.choice(list("ACGT"), 20_000))
    targets = [genome, genome[500:900] * 2 + "N" * 9, genome[::-1]]
    reads = [genome[place : place + 60] for place in rng.integers(0, 19_900, 200)]
    batches = [SequenceBatch.of(NUCLEOTIDE, texts) for texts in (reads, targets)]
    options = {"both": True, **({"maxmatch": True} if pipeline == "mum" else {})}
    stages = EXACT if pipeline == "exact" else MUM
    hits = check_pipeline(pipeline, *batches, options, stages=stages, backends=("cpu",), least=150)
    assert_same_hits(hits, run_pipeline(pipeline, *batches, options))


def test_proteins_are_found():
    batches = [SequenceBatch.of(PROTEIN, texts) for texts in (["GAG", "MKX", "WW"], ["MKVLITGAGSGAG", "AAMKXX"])]
    for backend in ("reference", "cpu"):
        found = run_pipeline("exact-protein", *batches, stages=EXACT, backend=backend)
        assert_same_hits(run_pipeline("exact-protein", *batches), found)
        assert len(found.alignments) == 3


def test_a_block_is_a_power_of_two():
    with pytest.raises(OptionError, match="power of two, not 48"):
        build_options(CompressedArrayOptions, {"block": 48})
