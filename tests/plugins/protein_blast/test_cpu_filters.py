"""The compiled filters (scan by pair, scan by diagonal) against the reference."""

import numpy as np
import pytest
import seqloom
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.kernels.simd import BYTE_LANES
from seqloom.core.records import Pairs
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.protein_blast.diagonals_cpu import SegmentDiagonalsCpu
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals
from seqloom.plugins.protein_blast.scan_cpu import UngappedScanCpu
from seqloom.plugins.protein_blast.scan_reference import UngappedScan

from tests.plugins.protein_blast.stages import AMINO, context_of, drawn, related, same

CUTOFFS = [0, 1, 2, 11, 30, 60, 127, 128, 129, 254, 255, 256, 300]


@settings(max_examples=80, deadline=None)
@given(related(), st.sampled_from(CUTOFFS), st.sampled_from(["BLOSUM62", "PAM30", "BLOSUM45"]))
def test_scan_and_diagonals(texts: tuple[list[str], list[str]], cutoff: int, matrix: str) -> None:
    context = context_of(*texts, cutoff=cutoff, matrix=matrix)
    pairs = same(UngappedScan, UngappedScanCpu, context)
    every = same(SegmentDiagonals, SegmentDiagonalsCpu, context)
    narrowed = same(SegmentDiagonals, SegmentDiagonalsCpu, context, pairs)
    if cutoff:  # a pair is left in exactly if it has a diagonal
        assert every.rows() == narrowed.rows()
        left = {(row["query"], row["target"]) for row in pairs.rows()}
        assert {(row["query"], row["target"]) for row in every.rows()} == left


@settings(max_examples=10, deadline=None)
@given(related(longest=40, targets=3 * BYTE_LANES), st.sampled_from([20, 50]))
def test_more_targets_than_lanes(texts: tuple[list[str], list[str]], cutoff: int) -> None:
    context = context_of(*texts, cutoff=cutoff)
    same(UngappedScan, UngappedScanCpu, context)
    same(SegmentDiagonals, SegmentDiagonalsCpu, context)


def scoring_with_itself(total: int) -> str:
    """A text whose BLOSUM62 score with itself is ``total``: alanines (4) and glutamates (5)."""
    return "A" * (total // 4 - total % 4) + "E" * (total % 4)


@pytest.mark.parametrize("cutoff", [250, 254, 255, 256, 260, 1000])
def test_scores_around_the_ceiling_of_eight_bits(cutoff: int) -> None:
    totals = [126, 127, 128, 129, 253, 254, 255, 256, 257, 383, 510, 511, 512, 1000, 4000]
    texts = [scoring_with_itself(total) for total in totals]
    # Behind and ahead of what counts: residues that pull the sum down and up again.
    asked = [*texts, "WWW" + "P" * 9 + texts[5], texts[7] + "G" * 3 + texts[6]]
    found = [*texts, "C" * 20 + texts[6] + "W", texts[5] + "D" + texts[5]]
    context = context_of(asked, found, cutoff=cutoff)
    pairs = same(UngappedScan, UngappedScanCpu, context)
    scores = {(row["query"] - 5, row["target"] - 1000): row["score"] for row in pairs.rows()}
    assert [scores.get((n, n)) for n in range(len(totals))] == [t if t >= cutoff else None for t in totals]
    same(SegmentDiagonals, SegmentDiagonalsCpu, context, pairs)


@pytest.mark.parametrize("length", [1, 2, BYTE_LANES - 1, BYTE_LANES, BYTE_LANES + 1, 3 * BYTE_LANES + 5, 1000, 5000])
def test_lengths(length: int) -> None:
    generator = np.random.default_rng(length)
    query = drawn(generator, length, AMINO)
    found = [query, query[::-1], query[length // 2 :], drawn(generator, 7), drawn(generator, 300, AMINO), "", "W",
             query[: length // 3] + "PPPP" + query[length // 3 :]]
    for cutoff in (1, 25, 41, 255) if length < 5000 else (41,):  # the reference takes seconds for each
        context = context_of([query], found, cutoff=cutoff)
        same(SegmentDiagonals, SegmentDiagonalsCpu, context, same(UngappedScan, UngappedScanCpu, context))


def test_masked_residues_score_as_x_and_invalid_queries_are_left_out() -> None:
    text = "MKVLAAGIVGLCHWWDRNKLMW"
    batch = SequenceBatch.of(PROTEIN, [text, "X" * 30, "", text])
    masked = SequenceBatch(PROTEIN, batch.residues, batch.offsets, batch.ordinals, hard=Intervals.of([(0, 8, 16)]))
    context = context_of(masked, [text, "X" * 40], cutoff=1)
    pairs = same(UngappedScan, UngappedScanCpu, context)
    scores = {(row["query"], row["target"]): row["score"] for row in pairs.rows()}
    assert {query for query, _ in scores} == {5, 8}
    assert scores[5, 1000] < scores[8, 1000]
    same(SegmentDiagonals, SegmentDiagonalsCpu, context)


def test_pairs_in_any_order_and_of_some_queries_only() -> None:
    generator = np.random.default_rng(3)
    asked = [drawn(generator, 50, AMINO) for _ in range(3)]
    context = context_of(asked, [*asked, *(text[10:] for text in asked)], cutoff=20)
    pairs = Pairs({"query": [7, 5, 5], "target": [1005, 1003, 1000], "score": [0, 0, 0]})
    found = same(SegmentDiagonals, SegmentDiagonalsCpu, context, pairs)
    assert {(row["query"], row["target"]) for row in found.rows()} == {(5, 1000), (5, 1003), (7, 1005)}
    none = Pairs({"query": [], "target": [], "score": []})
    assert len(same(SegmentDiagonals, SegmentDiagonalsCpu, context, none)) == 0


def test_words_that_score_more_with_others_than_with_themselves() -> None:
    """BXP scores 12 with itself in BLOSUM45 and 14, the threshold, with DLP."""
    queries = {"q": "KIEAVAKCSPAEHIPXVGBXPNIGFKMFHGLEARRQLGXC"}
    targets = SequenceBatch.of(PROTEIN, ["ELGLSADTDMADMIPELRDLPFLSNSDAHSYHPHRLGREF"])
    options = {"evalue": 1000.0, "matrix": "BLOSUM45", "comp_based_stats": "0"}
    found = [seqloom.search("blastp", queries, targets, backend="cpu", store=False, **options,
                            settings=[f"seed.scan.enabled={on}"]).alignments.column("score").to_pylist()
             for on in ("true", "false")]
    assert found[0] == found[1] == [43]
