"""Exact matching on the CPU: the same arrays and matches as the reference's, whichever route finds them."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import (
    minimizer_index_cpu,
    minimizers,
    seed_reference,
    strands_cpu,
    suffix_array_cpu,
    suffix_induction_cpu,
    suffix_names_cpu,
    suffix_phrases_cpu,
)
from seqloom.plugins.exact_match.index_cpu import SuffixArrayCpu
from seqloom.plugins.exact_match.index_reference import SuffixArray, SuffixArrayOptions
from seqloom.plugins.exact_match.minimizer_index_cpu import MinimizerIndexCpu
from seqloom.plugins.exact_match.minimizer_index_reference import MinimizerIndex
from seqloom.plugins.exact_match.minimizers import word_codes, words_of
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.plugins.exact_match.repeats_cpu import longest_matches
from seqloom.plugins.exact_match.suffix_array_cpu import Keys, suffix_array, survey
from seqloom.plugins.exact_match.suffix_induction_cpu import by_induction
from seqloom.plugins.exact_match.suffix_phrases_cpu import Phrases
from seqloom.testing import assert_same_hits, check_pipeline, run_pipeline

from tests.plugins.exact_match.mummer import MODES

SUFFIX_ARRAY = ("index.references=suffix-array", "seed.matches=maximal-matches")
FM_INDEX = ("index.references=fm-index", "seed.matches=fm-matches")
ROUTES = [(), SUFFIX_ARRAY]

texts = st.one_of(
    st.lists(st.integers(0, 3), max_size=150),
    st.builds(lambda unit, times, tail: unit * times + tail, st.lists(st.integers(0, 2), min_size=1, max_size=7),
              st.integers(1, 40), st.lists(st.integers(0, 2), max_size=5)))
sequences = st.sampled_from(["A", "AC", "ACGT", "ACGTN", "ACGTRYN-"]).flatmap(
    lambda residues: st.tuples(*2 * [st.lists(st.text(residues, max_size=60), min_size=1, max_size=4)]))
strands = st.sampled_from([{}, {"both": True}, {"reverse": True}])


def nucleotides(texts: list[str]) -> SequenceBatch:
    return SequenceBatch.of(NUCLEOTIDE, texts)


def is_sorted(text: np.ndarray, order: np.ndarray) -> bool:
    """Whether ``order`` is the suffix array of ``text``: a permutation, neighbours in order by residue, then by
    rest."""
    rank = np.empty(len(text) + 1, np.int64)
    rank[-1] = -1
    rank[order] = np.arange(len(text))
    one, other = order[:-1], order[1:]
    less = (text[one] < text[other]) | ((text[one] == text[other]) & (rank[one + 1] < rank[other + 1]))
    return bool((np.bincount(order, minlength=len(text)) == 1).all() and less.all())


def by_three_threads(text: np.ndarray) -> np.ndarray:
    with patch.object(suffix_array_cpu, "_LEAST_PART", 16):
        return suffix_array(text, 3)


@settings(max_examples=200, deadline=None)
@given(texts)
@pytest.mark.parametrize("build", [suffix_array, by_induction])
def test_suffixes_are_sorted(build, symbols):
    text = np.array([*symbols, 9], np.uint8)
    suffixes = [text[n:].tobytes() for n in range(len(text))]
    assert build(text).tolist() == sorted(range(len(text)), key=suffixes.__getitem__)


def long_texts() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    genome = rng.integers(0, 4, 60_000)
    copies = [np.where(rng.random(20_000) < 0.001, 0, genome[:20_000]) for _ in range(8)]
    fibonacci, longer = "a", "ab"
    while len(longer) < 100_000:
        fibonacci, longer = longer, longer + fibonacci
    return {
        "random": genome, "one residue": np.zeros(100_000, np.int64), "two residues": np.tile([0, 1], 50_000),
        "near copies": np.concatenate(copies), "exact copies": np.tile(genome[:5000], 20),
        "ties at the end": np.concatenate([genome, np.zeros(45, np.int64)]), "greatest residues": np.tile([3, 1, 3], 9),
        "some repeats": np.concatenate([genome, genome[5000:7000], genome[:500]]),
        "Fibonacci": np.frombuffer(longer.encode(), np.uint8) - 97,
        "all symbols": rng.integers(0, 18, 50_000),
        "long stretches": np.concatenate([np.append(np.zeros(n, np.int64), [1, 3]) for n in rng.integers(1, 40, 5000)]),
    }


@pytest.mark.parametrize("name", list(long_texts()))
@pytest.mark.parametrize("build", [suffix_array, by_three_threads, by_induction])
def test_suffixes_of_long_texts_are_sorted(build, name):
    text = np.append(long_texts()[name], 18).astype(np.uint8)
    order = build(text)
    assert order.dtype == np.int32 and is_sorted(text, order.astype(np.int64))


def phrases_of(text: np.ndarray, threads: int = 1) -> Phrases | None:
    """However short the text is and however often its phrases occur, but for one that has hardly any."""
    with patch.object(suffix_phrases_cpu, "FEWEST", 2), patch.object(suffix_phrases_cpu, "_LEAST_COPIES", 1):
        return Phrases.of(text, Keys.of(text), threads)


def by_phrases(text: np.ndarray, threads: int = 1) -> np.ndarray:
    phrases = phrases_of(text, threads)
    assert phrases is not None
    order = phrases.suffixes(threads)
    assert order is not None
    return order


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 20), st.integers(1, 9), st.integers(1, 600), st.integers(1, 12), st.integers(0, 30),
       st.randoms(use_true_random=False))
def test_suffixes_of_copies_are_sorted_by_their_phrases(symbols, pieces, unit, copies, changes, random):
    """Copies of some pieces in any order, of which some symbols are changed, behind what the phrases begin with."""
    parts = [[random.randrange(symbols) for _ in range(random.randint(1, unit))] for _ in range(pieces)]
    text = [symbol for _ in range(copies * pieces) for symbol in random.choice(parts)]
    for _ in range(changes):
        text[random.randrange(len(text))] = random.randrange(symbols)
    ended = np.array([*text, symbols], np.uint8)
    phrases = phrases_of(ended)
    if phrases is not None:
        bounds = phrases.bounds
        joined = [phrases.dictionary[bounds[name] : bounds[name + 1]].tolist() for name in phrases.names]
        cut = [*(phrase[: -phrases.window] for phrase in joined[:-1]), joined[-1]]
        assert [symbol for phrase in cut for symbol in phrase] == ended.tolist()
        for threads in (1, 3):
            assert by_phrases(ended, threads).tolist() == by_induction(ended).tolist()


@pytest.mark.parametrize("unit", [17, 37])
def test_copies_of_a_short_unit_have_phrases_whichever_windows_are_drawn(unit):
    for seed in range(8):
        text = np.append(np.tile(np.random.default_rng(seed).integers(0, 4, unit), 9000), 4).astype(np.uint8)
        phrases = Phrases.of(text, Keys.of(text))
        assert phrases is not None and len(phrases.dictionary) < len(text) // 9
        order = phrases.suffixes()
        assert order is not None and is_sorted(text, order.astype(np.int64))


@pytest.mark.parametrize("symbols", [2, 4, 20])
def test_repetitive_texts_are_sorted_by_their_phrases(symbols):
    rng = np.random.default_rng(symbols)
    copy = rng.integers(0, symbols, 3000)
    copies = [np.where(rng.random(len(copy)) < 0.0005, 0, copy) for _ in range(40)]
    text = np.append(np.concatenate(copies), symbols).astype(np.uint8)
    with patch.object(suffix_array_cpu, "by_induction", side_effect=AssertionError):
        assert is_sorted(text, suffix_array(text).astype(np.int64))


@pytest.mark.parametrize("name", ["random", "one residue", "two residues"])
def test_phrases_are_given_up_where_they_gain_nothing(name):
    text = np.append(long_texts()[name], 18).astype(np.uint8)
    assert Phrases.of(text, Keys.of(text)) is None


def test_phrases_are_given_up_where_their_ends_are_alike_too_long():
    """Phrases of a long run of one residue that no window is drawn from, with other beginnings and one end."""
    rng = np.random.default_rng(8)
    end = [np.zeros(3000, np.int64), rng.integers(0, 4, 200)]
    text = np.tile(np.concatenate([part for _ in range(40) for part in (rng.integers(0, 4, 30), *end)]), 2)
    ended = np.append(text, 4).astype(np.uint8)
    phrases = phrases_of(ended)
    assert phrases is not None and phrases.suffixes() is None
    assert is_sorted(ended, suffix_array(ended).astype(np.int64))


@pytest.mark.gold
@pytest.mark.parametrize("build", [suffix_array, by_induction])
def test_places_of_eight_bytes(build, monkeypatch):
    """As texts from 2 G symbols on have them."""
    for module in (suffix_array_cpu, suffix_induction_cpu, suffix_phrases_cpu):
        monkeypatch.setattr(module, "suffix_type", lambda count: np.dtype(np.int64))
    for symbols in long_texts().values():
        text = np.append(symbols, 18).astype(np.uint8)
        order = build(text)
        assert order.dtype == np.int64 and is_sorted(text, order)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 60), st.integers(1, 30), st.booleans(), st.randoms(use_true_random=False))
def test_stretches_named_by_a_table_and_by_sorting_are_the_same(symbols, unit, long, random):
    """A text of copies of some pieces, so that few stretches between leftmost rising suffixes differ."""
    pieces = [[random.randrange(symbols) for _ in range(random.randint(1, unit))] for _ in range(5)]
    pieces += [[0] * 200 + [1] * long] if long else []
    text = np.array([*(symbol for _ in range(60) for symbol in random.choice(pieces)), symbols], np.int64)
    with patch.object(suffix_names_cpu, "FEWEST", 1), patch.object(suffix_names_cpu, "_MOST_DIFFERENT", 0):
        by_sorting = by_induction(text)
    with patch.object(suffix_names_cpu, "FEWEST", 1), patch.object(suffix_names_cpu, "_LEAST_COPIES", 1):
        assert by_induction(text).tolist() == by_sorting.tolist()
    suffixes = [text[n:].tolist() for n in range(len(text))]
    assert by_sorting.tolist() == sorted(range(len(text)), key=suffixes.__getitem__)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.integers(1, 60), st.integers(0, 60), st.randoms(use_true_random=False))
def test_suffixes_that_end_in_a_tie_are_sorted(symbols, unit, kept, random):
    """A repeat of several words' length, whose last copy the end of the text cuts off."""
    repeat = [random.randrange(symbols) for _ in range(unit)] * 4
    between = [random.randrange(symbols) for _ in range(200)]
    text = np.array([*repeat, *between, *repeat, *between[:kept], *repeat[:kept], 9], np.uint8)
    assert suffix_array(text).tolist() == by_induction(text).tolist()
    assert is_sorted(text, suffix_array(text).astype(np.int64))


@pytest.mark.parametrize("symbols", [2, 128, 129, 256, 70_000])
def test_any_integers_are_sorted_by_induction(symbols):
    rng = np.random.default_rng(symbols)
    text = rng.integers(0, symbols, 3000).astype(np.uint8 if symbols < 257 else np.int64)
    for given_ in (text, np.tile(text[:40], 30), text[:1]):
        suffixes = [given_[n:].tolist() for n in range(len(given_))]
        assert by_induction(given_).tolist() == sorted(range(len(given_)), key=suffixes.__getitem__)


def repeats(text: np.ndarray) -> bool:
    ended = np.append(text, np.uint8(9))
    return survey(ended, Keys.of(ended))[1]


def test_repetitive_texts_are_told_from_others():
    rng = np.random.default_rng(5)
    genome = rng.integers(0, 4, 600_000).astype(np.uint8)
    changed = np.where(rng.random(len(genome)) < 0.001, 0, genome).astype(np.uint8)
    assert not repeats(genome) and not repeats(np.concatenate([genome, genome[:9000]]))
    assert repeats(np.concatenate([genome, changed])) and repeats(np.zeros(600_000, np.uint8))
    for text in (np.concatenate([genome[:300_000], changed[:300_000]]), np.zeros(600_000, np.uint8)):
        order = suffix_array(np.append(text, np.uint8(9)))
        assert is_sorted(np.append(text, np.uint8(9)), order.astype(np.int64))


@settings(max_examples=60, deadline=None)
@given(sequences, st.booleans(), st.sampled_from([1, 5, 32]), st.integers(1, 40))
def test_indexes_are_the_references(given_, acgt_only, bucket, length):
    batch = nucleotides(given_[1])
    context = Context(options=MatchOptions(acgt_only=acgt_only, length=length))
    options = SuffixArrayOptions(bucket=bucket)
    for ours, theirs in ((SuffixArrayCpu(options), SuffixArray(options)), (MinimizerIndexCpu(), MinimizerIndex())):
        one, other = ours.run(context, batch), theirs.run(context, batch)
        assert one.fingerprint == other.fingerprint


def test_the_transform_reads_back():
    rng = np.random.default_rng(8)
    batch = nucleotides(["".join(rng.choice(list("ACGTN"), n)) for n in (500, 1, 0, 99)])
    index = SuffixArrayCpu(SuffixArrayOptions(bucket=7)).run(Context(options=MatchOptions()), batch)
    bwt, smaller, text = index["bwt"], index["smaller"], index["text"]
    row, read = len(text) - 1, [text[-1]]  # the last row is the suffix that is the end of the text alone
    for _ in range(len(text) - 1):
        symbol = bwt[row]
        read.append(symbol)
        before = index["counts"][row // 7, symbol] + int((bwt[row // 7 * 7 : row] == symbol).sum())
        row = smaller[symbol] + before
    assert read[::-1] == text.tolist()


@settings(max_examples=150, deadline=None)
@given(sequences, st.sampled_from(MODES), strands, st.integers(1, 25), st.booleans(), st.sampled_from([10**6, 50, 1]))
def test_all_routes_find_the_same(given_, mode, strand, length, acgt_only, volume):
    queries, targets = map(nucleotides, given_)
    options = {mode: True, "length": length, "acgt_only": acgt_only, **strand}
    wanted = run_pipeline("mum", queries, targets, options, SUFFIX_ARRAY)
    for route, backend in ((SUFFIX_ARRAY, "cpu"), ((), "reference"), ((), "cpu")):
        assert_same_hits(wanted, run_pipeline("mum", queries, targets, options, route, backend=backend,
                                              volume_residues=volume), f"{route} {backend}")


@settings(max_examples=150, deadline=None)
@given(sequences, st.sampled_from(MODES), st.integers(1, 25), st.sampled_from([10**6, 50, 1]))
def test_repetitive_texts_have_the_same_matches(given_, mode, length, volume):
    queries, targets = map(nucleotides, given_)
    options = {mode: True, "length": length, "both": True}
    wanted = run_pipeline("mum", queries, targets, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seed_reference, "MOST_WORK", -1)
        for route in ((), FM_INDEX):
            assert_same_hits(wanted, run_pipeline("mum", queries, targets, options, route, backend="cpu",
                                                  volume_residues=volume), route)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([(NUCLEOTIDE, "ACGTN", -1), (PROTEIN, PROTEIN.letters, 1)]), st.data(), st.integers(1, 70),
       st.booleans())
def test_minimizers_of_queries_are_those_of_windows_inside_of_them(kind, data, length, acgt_only):
    alphabet, letters, strand = kind
    queries = SequenceBatch.of(alphabet, data.draw(st.lists(st.text(letters, max_size=90), min_size=1, max_size=6)))
    symbols, words = strands_cpu.strand_of(queries, strand, acgt_only).symbols, words_of(alphabet, length)
    codes = word_codes(alphabet)
    places, hashes = minimizers.minimizers(symbols, codes, words)
    for threads in (1, 2):
        found = minimizer_index_cpu.minimizers(symbols, codes, words, threads)
        assert np.array_equal(found[0], places) and np.array_equal(found[1], hashes)
    span, usable = words.window + words.residues - 1, symbols != 255
    windows = [first for first in range(len(symbols) - span + 1) if usable[first : first + span].all()]
    for first in windows:
        assert ((first <= places) & (places < first + words.window)).any()
    assert all(hashes[n] == 0 or any(first <= place < first + words.window for first in windows)
               for n, place in enumerate(places.tolist()))


@pytest.mark.parametrize("route", ROUTES, ids=["minimizers", "suffix array"])
@pytest.mark.parametrize("mode", MODES)
def test_results_do_not_depend_on_how_the_work_is_cut(mode, route):
    rng = np.random.default_rng(4)
    targets = ["".join(rng.choice(list("ACGT"), n)) for n in (300, 120, 40, 200)]
    targets += [targets[1][30:80], "N" * 60, targets[0][:90] + targets[3][100:]]
    queries = [targets[0][20:150] + "N" * 25 + targets[3][10:90], targets[1][5:100] + targets[0][200:240], "ACG",
               targets[2], "", targets[0] * 3]
    check_pipeline("mum", nucleotides(queries), nucleotides(targets), {mode: True, "length": 12, "both": True},
                   backends=("reference", "cpu"), stages=route, least=4)


@pytest.mark.parametrize("mode", MODES)
def test_proteins_match_on_every_route(mode):
    rng = np.random.default_rng(5)
    residues = list("ACDEFGHIKLMNPQRSTVWYXBZ*")
    targets = ["".join(rng.choice(residues, n)) for n in (200, 150)]
    targets.append(targets[0][40:120])
    batches = [SequenceBatch.of(PROTEIN, s) for s in ([targets[0][10:100] + targets[1][60:], targets[1]], targets)]
    for length in (3, 5, 12, 30):
        options = {mode: True, "length": length}
        wanted = run_pipeline("mum-protein", *batches, options, SUFFIX_ARRAY)
        for route in ROUTES:
            assert_same_hits(wanted, run_pipeline("mum-protein", *batches, options, route, backend="cpu"))


@pytest.mark.parametrize("residues", ["N", "A", "AC"])
def test_repeats_without_end_take_no_quadratic_time(residues):
    text = residues * (600_000 // len(residues))
    hits = run_pipeline("mum", nucleotides([text + "T"]), nucleotides([text, "G" + text]), {"mum": True, "length": 20},
                        backend="cpu")
    assert not len(hits)


@pytest.mark.parametrize("route", [(), FM_INDEX], ids=["minimizers", "FM-index"])
@pytest.mark.parametrize("residues", ["N", "A", "AC"])
def test_long_matches_of_repeats_without_end_take_no_quadratic_time(residues, route):
    text = residues * (600_000 // len(residues))
    hits = run_pipeline("mum", nucleotides([text]), nucleotides([text]), {"maxmatch": True, "length": 599_998}, route,
                        backend="cpu")
    step = len(residues)
    wanted = [(q, t, 600_000 - max(q, t)) for q in range(0, 3, step) for t in range(0, 3, step) if 0 in (q, t)]
    found = zip(hits.alignments.query_start, hits.alignments.target_start, hits.alignments.score.astype(int))
    assert sorted(map(tuple, found)) == wanted


@pytest.mark.parametrize("length", [200, 1500, 1 << 31, (1 << 63) - 1])
def test_lengths_without_end(length):
    rng = np.random.default_rng(2)
    text = "".join(rng.choice(list("ACGT"), 3000))
    batches = [nucleotides(s) for s in ([text[500:2500] + text[300:600] + "A" * 400], [text, text[1000:], "A" * 300])]
    for mode in MODES:
        options = {mode: True, "length": length}
        wanted = run_pipeline("mum", *batches, options, SUFFIX_ARRAY)
        for backend in ("reference", "cpu"):
            assert_same_hits(wanted, run_pipeline("mum", *batches, options, backend=backend), f"{mode} {backend}")


def test_little_memory_is_not_exceeded_for_repeats():
    context = Context(options=MatchOptions())
    assert seed_reference.most_work(context, 1000) == 64_000
    assert seed_reference.most_work(replace(context, memory=80_000), 1000) == 64_000
    assert seed_reference.most_work(replace(context, memory=79_999), 1000) == np.inf
    assert seed_reference.most_work(replace(context, memory=79_999), 1000, unique=True) == 64_000


def test_longest_matches():
    text, query = np.array([9, 1, 2, 3, 4, 9, 1, 2, 3, 5, 9], np.uint8), np.array([8, 1, 2, 3, 4, 8, 2, 3, 8], np.uint8)
    rows = longest_matches(text, query, 2)
    assert sorted(map(tuple, rows.tolist())) == [(1, 1, 4), (6, 2, 2), (6, 7, 2)]


@settings(max_examples=60, deadline=None)
@given(sequences, st.sampled_from([1, -1]), st.booleans())
def test_strands_are_the_references(given_, frame, acgt_only):
    batch = nucleotides(given_[0])
    one, other = (module.strand_of(batch, frame, acgt_only) for module in (strands_cpu, seed_reference))
    assert one.symbols.tolist() == other.symbols.tolist() and one.starts.tolist() == other.starts.tolist()
