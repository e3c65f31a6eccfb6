"""Ranking of targets and the order of their alignments, strands included."""

from unittest import mock

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.records import Alignments
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.common import rank_reference
from seqloom.plugins.common.rank_reference import RankTargets
from seqloom.plugins.protein_blast.options import BlastpOptions


def ranked(rows: list[dict], **options):
    """Rows of (target, evalue, score, query span, target span, frame), all of one query of 100 residues."""
    queries = SequenceBatch.of(NUCLEOTIDE, ["ACGTG" * 20])
    context = Context(queries=queries, options=BlastpOptions(**options), sorters=registry().sorters("reference"))
    columns = {name: np.array([row.get(name, 1) for row in rows]) for name in ("target", "score", "evalue")}
    for side in ("query", "target"):
        spans = [row.get(f"{side}_span", (0, 10)) for row in rows]
        columns[f"{side}_start"] = np.array([start for start, _ in spans])
        columns[f"{side}_end"] = np.array([end for _, end in spans])
    ones = np.ones(len(rows), np.int8)
    frames = np.array([row.get("frame", 1) for row in rows], np.int8)
    zeros = np.zeros(len(rows), np.int32)
    records = Alignments({**columns, "query": zeros, "query_frame": frames, "target_frame": ones})
    return RankTargets().run(context, records)


def test_targets_by_evalue_then_score_then_later_first():
    rows = [
        {"target": 3, "evalue": 1e-5, "score": 50},
        {"target": 4, "evalue": 1e-9, "score": 70},
        {"target": 5, "evalue": 1e-5, "score": 50},
        {"target": 6, "evalue": 1e-5, "score": 51},
        {"target": 7, "evalue": 1e-200, "score": 500},
        {"target": 8, "evalue": 0.0, "score": 400},
    ]
    assert ranked(rows).target.tolist() == [7, 8, 4, 6, 5, 3]
    assert ranked(rows, max_target_seqs=3).target.tolist() == [7, 8, 4]
    assert ranked([]).target.tolist() == []


def test_alignments_of_a_target_and_their_cuts():
    rows = [
        {"evalue": 1e-5, "score": 50, "target_span": (30, 40)},
        {"evalue": 1e-5, "score": 50, "target_span": (20, 40), "query_span": (0, 60)},
        {"evalue": 1e-7, "score": 60, "target_span": (70, 80)},
        {"evalue": 1e-5, "score": 50, "target_span": (20, 45)},
    ]
    assert ranked(rows).alignments.target_end.tolist() == [80, 45, 40, 40]
    assert ranked(rows, max_hsps=2).alignments.target_end.tolist() == [80, 45]
    assert ranked(rows, qcov_hsp_perc=60.4).alignments.query_end.tolist() == [60]
    assert len(ranked(rows, qcov_hsp_perc=60.6)) == 0
    assert len(ranked(rows, qcov_hsp_perc=60.4, max_hsps=1)) == 0


def test_scores_that_were_equal_by_rounding_only_are_cut_by_what_they_were():
    rows = [{"evalue": 2e-9, "score": 50, "target_span": (0, 10)},
            {"evalue": 1e-9, "score": 50, "target_span": (20, 30)}]
    assert ranked(rows, max_hsps=1).alignments.target_end.tolist() == [30]


def test_ties_on_the_opposite_strand_are_counted_from_the_other_end():
    spans = [(10, 20), (30, 40)]
    for frame, first in ((1, 10), (-1, 30)):
        rows = [{"query_span": span, "frame": frame} for span in spans]
        assert ranked(rows).alignments.query_start.tolist()[0] == first


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(1, 12), st.integers(1, 8))
@example(616, 33, 1, 4)  # a query with alignments on one strand alone, among others with some on both
def test_queries_are_ranked_some_at_a_time_as_all_together(seed, count, at_once, number):
    """Records come in the order of volumes, so that those of a query needn't stand together."""
    generator = np.random.default_rng(seed)
    queries = SequenceBatch.of(NUCLEOTIDE, ["ACGTG" * 20] * number)
    context = Context(queries=queries, options=BlastpOptions(max_target_seqs=3, max_hsps=2),
                      sorters=registry().sorters("reference"))
    start, low = generator.integers(0, 50, count), generator.integers(0, 50, count)
    frames = generator.choice([-1, 1], (2, count)).astype(np.int8)
    records = Alignments({
        "query": generator.integers(0, number, count).astype(np.int32), "target": generator.integers(0, 6, count),
        "evalue": generator.choice([0.0, 1e-5, 1e-3], count), "score": generator.integers(40, 44, count),
        "query_start": start, "query_end": start + generator.integers(1, 50, count), "target_start": low,
        "target_end": low + generator.integers(1, 50, count), "query_frame": frames[0], "target_frame": frames[1]})
    together = RankTargets().run(context, records)
    with mock.patch.object(rank_reference, "AT_ONCE", at_once):
        parted = RankTargets().run(context, records)
    assert repr(parted.rows()) == repr(together.rows())
    assert repr(parted.alignments.rows()) == repr(together.alignments.rows())
