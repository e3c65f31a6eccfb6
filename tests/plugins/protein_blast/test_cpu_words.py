"""The compiled word index, word hits and ungapped extensions against the reference."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context
from seqloom.core.records import Seeds
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Shape
from seqloom.plugins.protein_blast.dfa_cpu import DfaHitsCpu, NeighbourhoodDfaCpu, first_alike
from seqloom.plugins.protein_blast.dfa_reference import DfaHits, NeighbourhoodDfa
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals
from seqloom.plugins.protein_blast.index_cpu import NeighbourhoodWordsCpu
from seqloom.plugins.protein_blast.index_reference import NeighbourhoodWords
from seqloom.plugins.protein_blast.scan_reference import UngappedScan
from seqloom.plugins.protein_blast.seed_cpu import WordHitsCpu
from seqloom.plugins.protein_blast.seed_reference import WordHits
from seqloom.plugins.protein_blast.sort_diagonal_cpu import TwoHitDiagonalsCpu
from seqloom.plugins.protein_blast.sort_diagonal_reference import ORDER, TwoHitDiagonals, packed_keys
from seqloom.plugins.protein_blast.ungapped_cpu import TwoHitUngappedCpu
from seqloom.plugins.protein_blast.ungapped_reference import TwoHitUngapped, UngappedOptions
from seqloom.testing import assert_same_records

from tests.plugins.protein_blast.stages import context_of, drawn, in_order, related, same, sequences

MATRICES = ["BLOSUM62", "PAM30", "PAM250"]
HIT = ("query", "target", "target_pos", "query_pos")
masks = st.none() | st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 20)), max_size=4)


def masked(texts: list[str], rows: list[tuple[int, int, int]] | None, soft: bool) -> SequenceBatch:
    """Queries with masked stretches (query, start, length), cut to the queries' lengths."""
    batch = SequenceBatch.of(PROTEIN, texts)
    mask = np.zeros(batch.total_residues, bool)
    for query, start, length in rows or []:
        if query < len(batch):
            begin, end = batch.offsets[query : query + 2]
            mask[min(begin + start, end) : min(begin + start + length, end)] = True
    return replace(batch, **{"soft" if soft else "hard": Intervals.from_mask(mask, batch.offsets)})


def assert_same_index(context: Context) -> None:
    wanted = NeighbourhoodWords().run(context, context.queries)
    found = NeighbourhoodWordsCpu().run(context, context.queries)
    assert wanted.kind == found.kind and wanted.parameters == found.parameters
    for name in ("starts", "query", "position"):
        assert wanted[name].dtype == found[name].dtype and np.array_equal(wanted[name], found[name]), name


@settings(max_examples=60, deadline=None)
@given(sequences(1, 4, 40, empty=True), masks, st.booleans(), st.sampled_from([(2, 8), (3, 11), (3, 8), (4, 17)]),
       st.integers(-3, 6), st.sampled_from(MATRICES))
def test_index(texts: list[str], mask: list | None, soft: bool, size: tuple[int, int], more: int, matrix: str) -> None:
    queries = masked(texts, mask, soft)
    assert_same_index(context_of(queries, [], word_size=size[0], threshold=size[1] + more, matrix=matrix))


@pytest.mark.parametrize("word_size, threshold", [(2, 1), (3, 0.5), (3, 1), (3, 40), (4, 1000), (6, 24), (7, 1000)])
def test_thresholds_that_all_words_or_none_reach(word_size: int, threshold: float) -> None:
    assert_same_index(context_of(["WCWXA", "AAA", "MK*"], [], word_size=word_size, threshold=threshold))


@settings(max_examples=60, deadline=None)
@given(related(), masks, st.booleans(), st.sampled_from([(2, 8), (3, 11), (3, 9), (4, 18), (6, 21), (7, 30)]),
       st.integers(1, 60), st.sampled_from(MATRICES))
def test_word_hits(texts: tuple[list[str], list[str]], mask: list | None, soft: bool, size: tuple[int, int],
                   cutoff: int, matrix: str) -> None:
    """All hits, those of the pairs that the scan leaves, and those on the diagonals that it leaves."""
    queries = masked(texts[0], mask, soft)
    context = context_of(queries, texts[1], cutoff, word_size=size[0], threshold=size[1], matrix=matrix)
    same(WordHits, WordHitsCpu, context, order=HIT)
    pairs = UngappedScan().run(context, None)
    same(WordHits, WordHitsCpu, context, pairs, order=HIT)
    same(WordHits, WordHitsCpu, context, SegmentDiagonals().run(context, pairs), order=HIT)


AUTOMATA = st.sampled_from([(2, 8), (3, 11), (3, 9)])


@settings(max_examples=40, deadline=None)
@given(related(), masks, st.booleans(), AUTOMATA, st.integers(1, 60), st.sampled_from(MATRICES))
def test_the_automaton(texts: tuple[list[str], list[str]], mask: list | None, soft: bool, size: tuple[int, int],
                       cutoff: int, matrix: str) -> None:
    """Its arrays, and the hits of all targets, of pairs and of diagonals; in the order of the table's hits."""
    queries = masked(texts[0], mask, soft)
    context = context_of(queries, texts[1], cutoff, word_size=size[0], threshold=size[1], matrix=matrix)
    assert_same_automaton(context)
    words = NeighbourhoodDfaCpu().run(context, queries)
    context = replace(context, indexes={**context.indexes, words.kind: words})
    assert_same_records(WordHits().run(context, None), same(DfaHits, DfaHitsCpu, context))
    pairs = UngappedScan().run(context, None)
    assert_same_records(WordHits().run(context, pairs), same(DfaHits, DfaHitsCpu, context, pairs))
    diagonals = SegmentDiagonals().run(context, pairs)
    assert_same_records(WordHits().run(context, diagonals), same(DfaHits, DfaHitsCpu, context, diagonals))


def assert_same_automaton(context: Context) -> None:
    wanted = NeighbourhoodDfa().run(context, context.queries)
    found = NeighbourhoodDfaCpu().run(context, context.queries)
    assert wanted.kind == found.kind and wanted.parameters == found.parameters
    assert set(wanted.arrays) == set(found.arrays)
    for name in wanted.arrays:
        assert wanted[name].dtype == found[name].dtype and np.array_equal(wanted[name], found[name]), name


def test_automata_of_long_words_and_of_none() -> None:
    for texts in (["MKWWCHFWAVLXX*WWPG", "", "WWWWWWWW"], [""], ["AC"]):
        assert_same_automaton(context_of(texts, [], word_size=4, threshold=18))


def test_lists_that_are_alike() -> None:
    lists = [[], [3], [1, 2], [3], [], [1, 2, 3], [1, 2], [2, 1], [-5], [-5]] * 40
    starts = np.cumsum([0, *map(len, lists)])
    values = np.array([value for one in lists for value in one])
    assert first_alike(starts, values).tolist() == [lists.index(one) for one in lists]


def test_words_of_five_on_diagonals() -> None:
    """Sums of five scores fit the lanes; a table of all such words is too large for a quick test."""
    context = context_of(["MKWWCHFWAVLXX*WWPG" * 3], ["MKWWCHFYAVLXX*WWPG" * 3, "WWWWWWW"], cutoff=1, word_size=5,
                         threshold=30, matrix="PAM30")
    diagonals = SegmentDiagonals().run(context, None)
    found = WordHitsCpu().run(context, diagonals)
    matrix, expected = context.scoring.matrix, set()
    query = context.queries[0]
    for place in range(2):
        target = context.targets[place]
        for i in range(len(query) - 4):
            for j in range(len(target) - 4):
                ours, theirs = query[i : i + 5], target[j : j + 5]
                if matrix[ours, theirs].sum() >= 30 or (ours == theirs).all():
                    expected.add((place, i, j))
    places = context.targets.locate(found.target).tolist()
    assert expected >= set(zip(places, found.query_pos.tolist(), found.target_pos.tolist(), strict=True))
    places = context.targets.locate(diagonals.target).tolist()
    on = set(zip(places, (diagonals.target_pos - diagonals.query_pos).tolist(), strict=True))
    assert len(found) == sum((place, j - i) in on for place, i, j in expected) > 20


def test_more_hits_than_were_made_room_for() -> None:
    context = context_of(["WCWCWC" * 50], ["WCWCWC" * 60, "CWCWCW" * 60], cutoff=1)
    hits = same(WordHits, WordHitsCpu, context, order=HIT)
    assert len(hits) > 60_000
    diagonals = SegmentDiagonals().run(context, None)
    same(WordHits, WordHitsCpu, context, diagonals, order=HIT)
    few = diagonals.take(np.arange(len(diagonals)) % 50 == 3)
    assert len(same(WordHits, WordHitsCpu, context, few, order=HIT)) > 8 * len(few) + 1024


def sorted_hits(context: Context) -> Seeds:
    """Word hits in the order of their diagonals, as extensions take them."""
    hits = WordHits().run(context, None)
    columns = hits.data
    return hits.take(np.lexsort((columns["target_pos"], columns["target_pos"] - columns["query_pos"],
                                 columns["target"], columns["query"])))


@settings(max_examples=80, deadline=None)
@given(related(), st.sampled_from([0, 0, 3, 10, 40]), st.sampled_from([1, 12, 25, 41]),
       st.sampled_from([(2, 9), (3, 11), (4, 18), (6, 19)]), st.sampled_from([0.5, 3.0, 7.0, 20.0]),
       st.sampled_from(MATRICES))
def test_ungapped_extensions(texts: tuple[list[str], list[str]], window: int, cutoff: int, size: tuple[int, int],
                             x_drop: float, matrix: str) -> None:
    context = context_of(*texts, cutoff=cutoff, window_size=window, word_size=size[0], threshold=size[1],
                         xdrop_ungap=x_drop, matrix=matrix)
    hits = sorted_hits(context)
    found = same(TwoHitUngapped, TwoHitUngappedCpu, context, hits)
    for scores in ("pssm", "matrix"):  # auto is the matrix here
        for stage in (TwoHitUngapped, TwoHitUngappedCpu):
            assert_same_records(found, stage(UngappedOptions(scores, "off")).run(context, hits))


@pytest.mark.parametrize("stage", [TwoHitUngapped, TwoHitUngappedCpu])
def test_position_specific_matrices_are_planned_for(stage: type[TwoHitUngapped]) -> None:
    """What they take beyond the matrix is what the footprint says, or somewhat less; auto makes none."""
    generator = np.random.default_rng(3)
    # Scores that Python keeps an object each for, of most residues.
    query = drawn(generator, 5_000, "WC")
    context = context_of([query], [query[50:90]], cutoff=1, matrix="PAM30")
    hits = sorted_hits(context).take(np.arange(40))
    shape = Shape(1, len(query), len(query), 1, 40, 40)
    taken, said = {}, {}
    for scores in ("matrix", "auto", "pssm"):
        made = stage(UngappedOptions(scores))
        made.run(context, hits)
        tracemalloc.start()
        made.run(context, hits)
        taken[scores], said[scores] = tracemalloc.get_traced_memory()[1], made.footprint(shape).host
        tracemalloc.stop()
    own = said["pssm"] - said["matrix"]
    assert said["auto"] == said["matrix"] and taken["auto"] < taken["matrix"] + own / 10
    assert own / 2 < taken["pssm"] - taken["matrix"] <= own


def test_no_hits_at_all() -> None:
    context = context_of(["MKVLAAG"], ["PPPPPPP", ""], cutoff=1)
    empty = sorted_hits(context)
    assert len(empty) == 0
    assert len(same(TwoHitUngapped, TwoHitUngappedCpu, context, empty)) == 0
    no_diagonal = SegmentDiagonals().run(context, None).take(np.zeros(0, np.int64))
    assert len(same(WordHits, WordHitsCpu, context, no_diagonal)) == 0


def test_repeats_whose_hits_lie_on_every_diagonal() -> None:
    context = context_of(["ARNDCQEGHI" * 20], ["ARNDCQEGHI" * 30, "WCHYFRNDPW" * 5], cutoff=41)
    found = same(TwoHitUngapped, TwoHitUngappedCpu, context, sorted_hits(context))
    assert len(found) > 40


def test_the_sort_by_diagonal() -> None:
    """Both back ends share it; what it gives is the order that extensions rely on, without lone hits."""
    from seqloom.installed import registry

    context = context_of(["ARNDCQEGHI" * 8, "MKVLAAGIVGLCHWW"], ["ARNDCQEGHI" * 5, "MKVLAAGWWGLCHWW"], cutoff=1)
    sorter = registry().sorter("msd-radix", "reference")
    context = replace(context, sorters={"msd-radix": sorter})
    hits = same(TwoHitDiagonals, TwoHitDiagonalsCpu, context, WordHits().run(context, None))
    (keys,) = packed_keys(hits)
    assert len(hits) > 50 and (np.diff(keys.astype(np.int64)) > 0).all()
    assert TwoHitDiagonals.gives_order == ORDER
    assert len(in_order(hits, HIT)) == len(hits)
