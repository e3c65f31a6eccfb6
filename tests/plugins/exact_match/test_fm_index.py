"""The FM-index against naive suffix sorting, read back by the inverse transform, and its matches against all others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.options import build_options
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_index_cpu, fm_seed_cpu
from seqloom.plugins.exact_match.fm_index import CODE, SMALLER, row_type, tables_of, transform_of, unpacked
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_index_reference import FmIndex, FmIndexOptions
from seqloom.plugins.exact_match.fm_search_cpu import locate, mapped, symbol_before
from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu
from seqloom.plugins.exact_match.fm_seed_reference import FmMatches
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.plugins.exact_match.symbols import target_text
from seqloom.plugins.exact_match.whole_seed_cpu import located
from seqloom.testing import assert_same_hits, assert_same_records, check_pipeline, run_pipeline

from tests.plugins.exact_match.mummer import MODES

FM_INDEX = ("index.references=fm-index", "seed.matches=fm-matches")
SUFFIX_ARRAY = ("index.references=suffix-array", "seed.matches=maximal-matches")

periodic = st.builds(lambda unit, times, tail: unit * times + tail, st.text("ACGTN", min_size=1, max_size=7),
                     st.integers(1, 30), st.text("ACGT", max_size=5))
some_texts = st.one_of(
    st.sampled_from(["A", "AC", "ACGT", "ACGTN", "ACGTRYN-"]).flatmap(
        lambda residues: st.lists(st.text(residues, max_size=90), min_size=1, max_size=4)),
    st.lists(periodic, min_size=1, max_size=2))
layouts = st.builds(FmIndexOptions, st.sampled_from([32, 64, 128]), st.sampled_from([1, 2, 5, 8, 64]))
alphabets = st.sampled_from([NUCLEOTIDE, PROTEIN])
strands = st.sampled_from([{}, {"both": True}, {"reverse": True}])


def nucleotides(texts: list[str]) -> SequenceBatch:
    return SequenceBatch.of(NUCLEOTIDE, texts)


def naive_order(text: np.ndarray) -> list[int]:
    whole = text.tobytes()
    return sorted(range(len(text)), key=lambda place: whole[place:])


@settings(max_examples=150, deadline=None)
@given(some_texts, layouts, alphabets)
def test_the_index_reads_back_as_the_text_and_its_sorted_suffixes(given_, layout, residues):
    batch = SequenceBatch.of(residues, [t.replace("-", "") for t in given_] if residues is PROTEIN else given_)
    text = target_text(batch, acgt_only=False)[0]
    order = naive_order(text)
    index, reference = FmIndexCpu(layout).run(Context(), batch), FmIndex(layout).run(Context(), batch)
    assert index.fingerprint == reference.fingerprint
    read_text, suffixes, bwt = unpacked(index)
    assert read_text.tolist() == text.tolist() and suffixes.tolist() == order
    assert transform_of(tables_of(index)).tolist() == bwt.tolist() == [text[place - 1] for place in order]


@settings(max_examples=60, deadline=None)
@given(some_texts, layouts, alphabets)
def test_every_question_has_the_plain_answer(given_, layout, residues):
    batch = SequenceBatch.of(residues, [t.replace("-", "") for t in given_] if residues is PROTEIN else given_)
    text = target_text(batch, acgt_only=False)[0]
    order = naive_order(text)
    fm = tables_of(FmIndexCpu(layout).run(Context(), batch))
    bwt = [int(text[place - 1]) for place in order]
    for row, place in enumerate(order):
        assert locate(fm, np.uint64(row)) == place and symbol_before(*fm[:5], np.uint64(row)) == bwt[row]
    rows = np.arange(len(order), dtype=np.uint64)
    numbers, places = located(fm, rows, rows + np.uint64(1))
    assert numbers.tolist() == rows.tolist() and places.tolist() == order
    for symbol in set(bwt):
        smaller = int((text < symbol).sum())
        for row in range(len(text) + 1):
            assert mapped(*fm[:5], np.uint64(symbol), np.uint64(row)) == smaller + bwt[:row].count(symbol)


@pytest.mark.parametrize("residues", [NUCLEOTIDE, PROTEIN])
@pytest.mark.parametrize("layout", [FmIndexOptions(32, 3), FmIndexOptions(128, 8), FmIndexOptions(64, 1)])
def test_threads_make_the_same_index(residues, layout, monkeypatch):
    monkeypatch.setattr(fm_index_cpu, "_LEAST_PART", 100)
    rng = np.random.default_rng(2)
    for length in (1, 190, 639, 640, 1000):  # with the symbol behind it, rows of whole blocks too
        batch = SequenceBatch.of(residues, [rng.choice([0, 1, 2, 3, residues.unknown_code], length).astype(np.uint8)])
        wanted = FmIndex(layout).run(Context(), batch)
        assert wanted.fingerprint == FmIndexCpu(layout).run(Context(threads=5), batch).fingerprint


def test_bases_take_two_bits_and_other_residues_nothing_where_there_are_none():
    rng = np.random.default_rng(1)
    batch = nucleotides(["".join(rng.choice(list("ACGT"), 100_000))])
    index = FmIndexCpu().run(Context(), batch)
    assert index["blocks"].nbytes * 8 / batch.total_residues == pytest.approx(4, rel=0.01)  # 2 and 2 for counts
    assert index.nbytes * 8 / batch.total_residues == pytest.approx(10, rel=0.01)  # 4 of suffixes, 2 of marks
    assert len(index["odd_rows"]) == 1 and tables_of(index).symbols[-1, SMALLER] == batch.total_residues + 1
    assert sorted(tables_of(index).symbols[:, CODE].tolist())[-4:] == [0, 1, 2, 3]
    assert row_type(1 << 32) == np.uint64 and row_type((1 << 32) - 1) == np.uint32


def test_the_index_is_the_same_for_every_search():
    batch = nucleotides(["ACGTNNACRT", "NN"])
    one = FmIndexCpu().run(Context(), batch)
    assert one.fingerprint == FmIndexCpu().run(Context(options=object()), batch).fingerprint


def test_blocks_are_powers_of_two():
    with pytest.raises(OptionError, match="power of two"):
        build_options(FmIndexOptions, {"bucket": 96})


@settings(max_examples=200, deadline=None)
@given(some_texts, some_texts, st.sampled_from(MODES), strands, st.integers(1, 25), st.booleans(), layouts,
       st.sampled_from([10**6, 50, 1]), st.booleans())
def test_matches_are_those_of_the_other_routes(queries, targets, mode, strand, length, acgt_only, layout, volume, long):
    options = {mode: True, "length": length, "acgt_only": acgt_only, **strand}
    given_ = (nucleotides([*queries, targets[0][:40]]), nucleotides(targets))
    layout_ = [f"index.references.bucket={layout.bucket}", f"index.references.sample={layout.sample}"]
    wanted = run_pipeline("mum", *given_, options, SUFFIX_ARRAY)
    reference = run_pipeline("mum", *given_, options, FM_INDEX, layout_, volume_residues=volume)
    assert_same_hits(wanted, reference, "reference")
    with pytest.MonkeyPatch.context() as patch:  # parts of a query that meet inside of matches
        patch.setattr(fm_seed_cpu, "_LEAST_PART", 5 if long else 10**6)
        found = run_pipeline("mum", *given_, options, FM_INDEX, layout_, backend="cpu", volume_residues=volume)
    assert_same_hits(wanted, found, "cpu")


def related_sequences() -> tuple[SequenceBatch, SequenceBatch]:
    """Queries and targets with long matches, repeats of all kinds and runs of N."""
    rng = np.random.default_rng(6)
    targets = ["".join(rng.choice(list("ACGT"), n)) for n in (9000, 500, 3000)]
    targets += [targets[0][1000:2500] * 3, "AC" * 400, "N" * 100 + targets[1]]
    queries = [targets[0][500:4000] + "N" * 30 + targets[2], targets[1] + targets[0][1000:2600], "CA" * 300, targets[0]]
    return nucleotides(queries), nucleotides(targets)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_seeds_of_both_back_ends_are_the_same_rows(mode, threads, monkeypatch):
    monkeypatch.setattr(fm_seed_cpu, "_LEAST_PART", 100)
    queries, targets = related_sequences()
    for length in (8, 20):
        context = Context(queries=queries, targets=targets, threads=threads,
                          indexes={"fm-index": FmIndex().run(Context(), targets)},
                          options=MatchOptions(length=length, both=True, **{mode: True}))
        found = FmMatchesCpu().run(context, None)
        assert len(found) > 8
        assert_same_records(FmMatches().run(context, None), found)


@pytest.mark.parametrize("mode", MODES)
def test_results_do_not_depend_on_how_the_work_is_cut(mode):
    check_pipeline("mum", *related_sequences(), {mode: True, "length": 20, "both": True}, backends=("cpu",),
                   stages=FM_INDEX, least=4)


@pytest.mark.parametrize("mode", MODES)
def test_proteins_match(mode):
    rng = np.random.default_rng(5)
    residues = list("ACDEFGHIKLMNPQRSTVWYXBZ*")
    targets = ["".join(rng.choice(residues, n)) for n in (900, 150)]
    targets.append(targets[0][40:120])
    batches = [SequenceBatch.of(PROTEIN, s) for s in ([targets[0][10:100] + targets[1][60:], targets[1]], targets)]
    for length in (3, 12):
        options = {mode: True, "length": length}
        wanted = run_pipeline("mum-protein", *batches, options, SUFFIX_ARRAY)
        for backend in ("reference", "cpu"):
            assert_same_hits(wanted, run_pipeline("mum-protein", *batches, options, FM_INDEX, backend=backend))


@pytest.mark.parametrize("residues", ["N", "A", "AC"])
def test_repeats_without_end_take_no_quadratic_time(residues):
    text = residues * (300_000 // len(residues))
    hits = run_pipeline("mum", nucleotides([text + "T"]), nucleotides([text, "G" + text]), {"mum": True, "length": 20},
                        FM_INDEX, backend="cpu")
    assert not len(hits)
