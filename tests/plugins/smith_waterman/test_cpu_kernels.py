"""The CPU back end of exact Smith–Waterman: equal to the reference in every width, and to parasail."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.kernels.cpu import SIMD_LEVELS
from seqloom.core.records import DELETE, INSERT, MATCH, Hits
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.smith_waterman import trace_cpu
from seqloom.plugins.smith_waterman import wavefront_cpu as scalar_cpu
from seqloom.plugins.smith_waterman.extend_cpu import SmithWatermanTracebackCpu
from seqloom.plugins.smith_waterman.extend_reference import trace
from seqloom.plugins.smith_waterman.matrices import nucleotide_matrix, printed_matrix
from seqloom.plugins.smith_waterman.reach import reach_of
from seqloom.plugins.smith_waterman.recurrence_reference import Packed
from seqloom.plugins.smith_waterman.scoring import SmithWatermanOptions, SmithWatermanScoring
from seqloom.plugins.smith_waterman.wavefront_cpu import scalar_score, scalar_trace
from seqloom.testing import assert_same_hits, check_pipeline, run_pipeline

from tests.plugins.smith_waterman.kernels import AMINO_ACIDS, alignments, assert_equal_to_reference, cpu_scores, related

ROOT = Path(__file__).parents[3]
RESIDUES = AMINO_ACIDS + "BZX*UOJ"
proteins = st.one_of(st.text(AMINO_ACIDS, max_size=40), st.text("WAX", max_size=40), st.text(RESIDUES, max_size=25),
                     st.sampled_from(["", "W", "X" * 30, "A" * 30, "*" * 9, "-W-", "W" * 24 + "A"]))
costs = st.sampled_from([(11, 1), (0, 1), (3, 0), (0, 0), (9, 2), (40, 20), (126, 1), (127, 1), (300, 200),
                         (40_000, 1)])


def protein_scoring(gap_open: int = 11, gap_extend: int = 1, name: str = "BLOSUM62",
                    times: int = 1) -> SmithWatermanScoring:
    return SmithWatermanScoring(printed_matrix(name) * times, gap_open, gap_extend)


def batch(texts: list[str]) -> SequenceBatch:
    return SequenceBatch.of(PROTEIN, texts)


@settings(max_examples=100, deadline=None)
@given(proteins, st.lists(proteins, min_size=1, max_size=5), costs, st.sampled_from([1, 11, 12, 24, 3000]))
def test_small_pairs_equal_the_reference(query, targets, gap_costs, times):
    assert_equal_to_reference(batch([query]), batch(targets), protein_scoring(*gap_costs, times=times))


@pytest.mark.gold
@pytest.mark.parametrize("level", SIMD_LEVELS)
def test_every_width_equals_the_reference(level):
    environment = {**os.environ, "SEQLOOM_SIMD": level}
    done = subprocess.run([sys.executable, "-m", "tests.plugins.smith_waterman.kernels", "10"], cwd=ROOT, text=True,
                          env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    if level != "avx512":
        assert done.stdout.strip() == {"avx2": "32", "portable": "16"}[level]


@pytest.mark.parametrize("score", [
    *range(115, 130), *range(226, 234), *range(253, 258), *range(32_755, 32_769), *range(65_506, 65_514),
    *range(65_533, 65_538)])
def test_scores_around_the_limits_of_lanes(score):
    # W scores 11 and A 4 against themselves, so that every large number is made of them.
    fours = next(n for n in range(11) if (score - 4 * n) % 11 == 0)
    text = "W" * ((score - 4 * fours) // 11) + "A" * fours
    targets = ["W", text, text[: len(text) // 2], "C" * 50, text[::-1], ""]
    found = cpu_scores(PROTEIN.encode(text), batch(targets), protein_scoring())
    assert found[1] == score and found[0] == 11 and found[3] == 0 and found[5] == 0
    row = alignments(SmithWatermanTracebackCpu, batch([text]), batch(targets), protein_scoring()).alignments.rows()[1]
    assert (row["score"], row["query_start"], row["query_end"], row["target_end"]) == (score, 0, len(text), len(text))
    assert row["path"] == [len(text) << 4 | MATCH]


@pytest.mark.parametrize(("largest", "least"), [
    *((n, -n) for n in (126, 127, 128, 129, 32_766, 32_767, 32_768, 40_000, 70_000_000)),
    (100, -32_768), (100, -32_769), (1000, -65_535), (1000, -500_000_000),
])
def test_residue_scores_around_the_limits_of_lanes(largest, least):
    matrix = np.where(np.eye(len(PROTEIN), dtype=bool), largest, least).astype(np.int32)
    rng = np.random.default_rng(largest)
    for gap_open, gap_extend in ((largest, 0), (0, largest), (3, 1), (2 * largest, 2 * largest)):
        queries, targets = related(rng, "ACD", 40)
        assert_equal_to_reference(batch(queries), batch(targets), SmithWatermanScoring(matrix, gap_open, gap_extend))


def test_nucleotides_equal_the_reference_on_both_strands():
    rng = np.random.default_rng(5)
    for match, mismatch, gap_open, gap_extend in ((2, -3, 5, 2), (1, -1, 0, 1), (5, -4, 10, 0), (100, -200, 300, 20)):
        scoring = SmithWatermanScoring(nucleotide_matrix(match, mismatch), gap_open, gap_extend, frames=(1, -1))
        queries, targets = related(rng, "ACGTN", 60)
        back = [NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(t)][::-1]) for t in targets]
        queries, targets = (SequenceBatch.of(NUCLEOTIDE, texts) for texts in (queries, targets[::2] + back[::3]))
        assert_equal_to_reference(queries, targets, scoring)


def test_large_pairs_are_traced_alike_in_lanes_and_one_by_one(monkeypatch):
    rng = np.random.default_rng(8)
    queries, targets = (batch(texts) for texts in related(rng, AMINO_ACIDS, 700))
    assert trace_cpu.block_columns(max(queries.lengths), max(targets.lengths)) < max(targets.lengths)  # several blocks
    in_lanes = alignments(SmithWatermanTracebackCpu, queries, targets, protein_scoring())
    monkeypatch.setattr("seqloom.plugins.smith_waterman.extend_cpu.MOST_BYTES", 0)
    alone = alignments(SmithWatermanTracebackCpu, queries, targets, protein_scoring())
    assert_same_hits(in_lanes, alone)


@pytest.mark.parametrize(("block", "most", "working"), [(8, 1000, 1 << 24), (8, 5, 1 << 24), (16, 1000, 1 << 17),
                                                           (128, 70, 0)])
def test_queues_and_blocks_of_any_size_give_the_same_alignments(monkeypatch, block, most, working):
    for name, value in (("_USUAL_BLOCK", block), ("ROUND_TARGETS", most), ("ROUND_BYTES", working)):
        monkeypatch.setattr(trace_cpu, name, value)
    rng = np.random.default_rng(block + most)
    for residues, times in ((AMINO_ACIDS, 1), ("AW", 1), ("AWLKGE", 25)):
        queries, targets = related(rng, residues, 70)
        more = [text for _ in range(2) for text in related(rng, residues, 70)[1]]
        assert_equal_to_reference(batch(queries), batch(targets + more),
                                   protein_scoring(11 * times, times, times=times))


def test_scores_and_paths_of_a_long_pair():
    parasail = pytest.importorskip("parasail")
    rng = np.random.default_rng(4)
    query = "".join(rng.choice(list(AMINO_ACIDS), 3000))
    target = query[:900] + query[1400:2000] + "".join(rng.choice(list(AMINO_ACIDS), 500)) + query[2000:]
    scoring = protein_scoring()
    theirs = parasail.sw(query, target, 12, 1, parasail.blosum62).score
    assert cpu_scores(PROTEIN.encode(query), batch([target]), scoring) == [theirs]
    row = alignments(SmithWatermanTracebackCpu, batch([query]), batch([target]), scoring).alignments.rows()[0]
    assert row["score"] == theirs == rescored(row, PROTEIN.encode(query), PROTEIN.encode(target), scoring)


def rescored(row: dict, query: np.ndarray, target: np.ndarray, scoring: SmithWatermanScoring) -> int:
    """Score of an alignment's path, which must use up both aligned stretches."""
    i, j, score = row["query_start"], row["target_start"], 0
    for run in row["path"]:
        length, operation = run >> 4, run & 15
        if operation in (INSERT, DELETE):
            score -= scoring.gap_open + length * scoring.gap_extend
        else:
            score += int(scoring.matrix[query[i : i + length], target[j : j + length]].sum())
            assert ((query[i : i + length] == target[j : j + length]) == (operation == MATCH)).all()
        i, j = i + length * (operation != DELETE), j + length * (operation != INSERT)
    assert (i, j) == (row["query_end"], row["target_end"])
    return score


@settings(max_examples=60, deadline=None)
@given(proteins, proteins, costs)
def test_paths_have_the_score_that_is_reported(query, target, gap_costs):
    scoring = protein_scoring(*gap_costs)
    hits = alignments(SmithWatermanTracebackCpu, batch([query]), batch([target]), scoring)
    row = hits.alignments.rows()[0]
    assert row["score"] == rescored(row, PROTEIN.encode(query), PROTEIN.encode(target), scoring)
    assert [row["score"]] == cpu_scores(PROTEIN.encode(query), batch([target]), scoring)


def test_scores_are_parasails():
    parasail = pytest.importorskip("parasail")
    queries, targets = related(np.random.default_rng(6), AMINO_ACIDS + "BZX*", 300)
    targets = [t for t in targets if t]
    for name, gap_open, gap_extend in (("BLOSUM62", 11, 1), ("BLOSUM62", 5, 0), ("PAM250", 14, 2)):
        theirs = [parasail.sw(queries[2], t, gap_open + gap_extend, gap_extend, getattr(parasail, name.lower())).score
                  for t in targets]
        ours = cpu_scores(PROTEIN.encode(queries[2]), batch(targets), protein_scoring(gap_open, gap_extend, name))
        assert ours == theirs


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(-2, 2), st.sampled_from([1, 3000]))
def test_scores_that_hits_say_are_looked_for_and_no_more_than_that(seed, off, times):
    rng, scoring = np.random.default_rng(seed), protein_scoring(times=times)
    queries, targets = (batch(texts) for texts in related(rng, AMINO_ACIDS, 50))
    query = queries.take(1, 2)
    scores = np.array(cpu_scores(query[0], targets, scoring))
    wrong = np.where(rng.random(len(scores)) < 0.1, scores + off, scores)
    context = Context(queries=query, targets=targets, scoring=scoring, options=SmithWatermanOptions())
    high = np.flatnonzero(scores > 0)
    hits, plain = (Hits({"query": np.full(len(high), query.ordinals[0]), "target": targets.ordinals[high],
                         "score": said}) for said in (wrong[high], np.zeros(len(high), np.int64)))
    found, wanted = (SmithWatermanTracebackCpu().run(context, given_) for given_ in (hits, plain))
    assert_same_hits(found, hits.with_alignments(wanted.alignments))
    assert [row["score"] for row in found.alignments.rows()] == scores[high].tolist()


def test_hard_masked_targets_are_searched_as_unknown():
    query = "WCWCWCWCHH"
    targets = batch([query, query])
    masked = SequenceBatch(targets.alphabet, targets.residues, targets.offsets, targets.ordinals,
                           hard=Intervals.of([(1, 0, 8)]), names=targets.names)
    found = cpu_scores(PROTEIN.encode(query), masked, protein_scoring())
    assert found == [4 * (11 + 9) + 16, 16]


def test_long_targets_are_aligned_in_pieces_as_if_whole(monkeypatch):
    rng = np.random.default_rng(12)
    monkeypatch.setattr("seqloom.plugins.common.stretches_cpu.LEAST_PIECE", 1)
    for _ in range(12):
        query = "".join(rng.choice(list("ACGT"), rng.integers(1, 25)))
        fillers = ["".join(rng.choice(list("ACGT" if n % 2 else "AT"), rng.integers(0, 90))) for n in range(30)]
        target = query[:9].join(fillers) + query + query[: len(query) // 2].join(fillers[:9])
        options = {"match": 2, "mismatch": -1, "gapopen": int(rng.integers(0, 3)), "gapextend": int(rng.integers(1, 3))}
        check_pipeline("sw-nucleotide", SequenceBatch.of(NUCLEOTIDE, [query, query[::-1]]),
                       SequenceBatch.of(NUCLEOTIDE, [target, query, target[::-1], ""]), options,
                       backends=("reference", "cpu"))
        reach = reach_of(SmithWatermanScoring(nucleotide_matrix(2, -1), 1, options["gapextend"]), [len(query)])
        pieces = Stretches.of(SequenceBatch.of(NUCLEOTIDE, [target, query]), np.arange(2), reach)
        assert (pieces.lengths <= 5 * reach).all() and (pieces.owners == 1).sum() == 1


@pytest.mark.parametrize("queries", [1, 4])
def test_threads_change_nothing(queries):
    batches = [batch(texts) for texts in related(np.random.default_rng(10), AMINO_ACIDS, 200)]
    alone, together = (run_pipeline("sw", batches[0].take(0, queries), batches[1], {"evalue": 1e6}, backend="cpu",
                                    threads=threads) for threads in (1, 3))
    assert len(alone)
    assert_same_hits(alone, together)


@pytest.mark.parametrize(("pipeline", "alphabet", "residues", "options"), [
    ("sw", PROTEIN, AMINO_ACIDS, {"evalue": 100.0}), ("sw", PROTEIN, AMINO_ACIDS, {"max_target_seqs": 3}),
    ("sw", PROTEIN, AMINO_ACIDS, {"gapopen": 1, "gapextend": 3, "min_score": 30}),
    ("sw", PROTEIN, AMINO_ACIDS, {"score_only": True}),
    ("sw-nucleotide", NUCLEOTIDE, "ACGT", {"evalue": 100.0}),
    ("sw-nucleotide", NUCLEOTIDE, "ACGT", {"strand": "minus"}),
    ("sw-nucleotide", NUCLEOTIDE, "ACGT", {"match": 7, "mismatch": -1, "min_score": 60}),
], ids=str)
def test_pipelines_give_the_same_on_both_back_ends(pipeline, alphabet, residues, options):
    queries, targets = related(np.random.default_rng(7), residues, 60)
    check_pipeline(pipeline, SequenceBatch.of(alphabet, queries), SequenceBatch.of(alphabet, targets), options,
                   backends=("reference", "cpu"))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 200), st.sampled_from([(11, 1), (0, 1), (3, 0), (0, 0), (9, 2), (2, 1)]),
       st.sampled_from([1, 1 << 24]), st.sampled_from(["ACDEFGHIKLMNPQRSTVWY", "WA", "W"]), st.integers(1, 3))
def test_pairs_in_wide_numbers_equal_the_reference(seed, length, gap_costs, times, residues, strips):
    rng, scoring = np.random.default_rng(seed), protein_scoring(*gap_costs, times=times)
    query = PROTEIN.encode(residues)[rng.integers(0, len(residues), length)]
    kept = query[rng.random(length) < 0.9]
    target = np.insert(kept, np.sort(rng.integers(0, len(kept) + 1, 9)), query[:1].repeat(9)[:9]) if length else query
    codes, places = np.unique(query, return_inverse=True)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for stride in (lambda rows: strips * scalar_cpu.LANES, scalar_cpu._stride):
            patch.setattr(scalar_cpu, "_stride", stride)
            found.append(scalar_trace(scoring.matrix[codes].astype(np.int64), places, query, target, *gap_costs))
    [wanted] = trace(query, Packed.of([target], scoring))
    for traced in found:
        assert traced[:5] == wanted[:5] and traced.path.tolist() == wanted.path
    assert scalar_score(scoring.matrix[codes].astype(np.int64), places, target, *gap_costs) == wanted.score


def test_a_score_beyond_32_bits():
    text = PROTEIN.encode("W" * 60)
    scores = np.full((1, 28), 1 << 30, np.int64)
    found = scalar_trace(scores, np.zeros(60, np.int64), text, text, 1, 1)
    assert found.score == 60 << 30 and found.path.tolist() == [60 << 4 | MATCH]
