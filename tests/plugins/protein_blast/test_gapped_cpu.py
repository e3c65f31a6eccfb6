"""Gapped extension and traceback on the CPU against the reference: the same records from the same segments."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, SearchSpace
from seqloom.core.records import Alignments, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.culling import Hsp, purge_common_endpoints
from seqloom.plugins.protein_blast import traceback_cpu
from seqloom.plugins.protein_blast.gapped_cpu import PreliminaryGappedCpu, in_report_order
from seqloom.plugins.protein_blast.gapped_reference import PreliminaryGapped
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.score_cpu import evalues
from seqloom.plugins.protein_blast.scoring import protein_scoring
from seqloom.plugins.protein_blast.traceback_cpu import FinalTracebackCpu
from seqloom.plugins.protein_blast.traceback_reference import FinalTraceback
from seqloom.testing import assert_same_records

from tests.plugins.protein_blast.segments import inputs


def both_stages(context: Context, seeds: Seeds) -> tuple[Alignments, Alignments]:
    preliminary = PreliminaryGapped().run(context, seeds)
    final = FinalTraceback().run(context, preliminary)
    for threads in (1, 3):
        several = replace(context, threads=threads)
        assert_same_records(preliminary, PreliminaryGappedCpu().run(several, seeds), "preliminary")
        assert_same_records(final, FinalTracebackCpu().run(several, preliminary), "final")
    return preliminary, final


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 25),
       st.sampled_from([{}, {"evalue": 1e-6}, {"evalue": 1e-30}, {"evalue": 1000.0}, {"xdrop_gap": 0.5},
                        {"xdrop_gap_final": 120.0, "xdrop_gap": 60.0}, {"searchsp": 10**10},
                        {"matrix": "PAM30", "gapopen": 9, "gapextend": 1}, {"evalue": 1e-3, "dbsize": 10**8}]))
def test_records_are_those_of_the_reference(seed, repeats, segments, options):
    both_stages(*inputs(seed, repeats, segments, **options))


@pytest.mark.parametrize("options", [{}, {"evalue": 1e-20}])
def test_many_alignments_of_a_pair(options):
    preliminary, final = both_stages(*inputs(11, 4, 120, **options))
    pairs = len(np.unique(preliminary.query * 100 + preliminary.target))
    assert len(preliminary) > 2 * pairs
    assert len(final) > pairs


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 40_000), st.integers(1, 40_000), st.integers(1, 40_000)), max_size=40),
       st.sampled_from([{}, {"searchsp": 3 * 10**12}, {"dbsize": 12345}, {"matrix": "BLOSUM45"}]))
def test_evalues_are_bit_for_bit_those_of_one_alignment(rows, options):
    batch = SequenceBatch.of(PROTEIN, ["MKVLAAGW"])
    scoring = protein_scoring(batch, SearchSpace(10**7, 10**4), BlastpOptions(**options))
    table = np.array(rows, np.int64).reshape(-1, 3)
    assert evalues(scoring, *table.T).tolist() == [scoring.evalue(*row) for row in rows]


few = st.integers(0, 3)


@given(st.lists(st.lists(st.tuples(st.integers(1, 3), few, few, few, few, few), max_size=12), max_size=4))
def test_ends_are_purged_as_in_the_reference(pairs):
    rows = [(score, qs, qs + q + 1, ts, ts + t + 1, anchor, anchor, pair)
            for pair, hsps in enumerate(pairs) for score, qs, q, ts, t, anchor in hsps]
    wanted = [hsp for pair in range(len(pairs))
              for hsp in purge_common_endpoints([Hsp(*row[:7], evalue=pair) for row in rows if row[7] == pair])]
    found = np.array(rows, np.int64).reshape(-1, 8)
    kept = found[in_report_order(found)].tolist()
    assert [tuple(row) for row in kept] == [
        (h.score, h.query_start, h.query_end, h.target_start, h.target_end, h.anchor_query, h.anchor_target, h.evalue)
        for h in wanted]


def test_some_pairs_are_begun_again():
    context, seeds = inputs(5, 2, 60, evalue=1e-12, comp_based_stats="0")
    both_stages(context, seeds)
    assert context.counters["begun again in full"] > 0


def test_nothing_comes_of_nothing():
    context, seeds = inputs(1, 1, 1)
    nothing = seeds.take(np.zeros(len(seeds), bool))
    assert len(PreliminaryGappedCpu().run(context, nothing)) == 0
    assert len(FinalTracebackCpu().run(context, Alignments.empty())) == 0


def test_room_for_choices_and_paths_grows(monkeypatch):
    context, seeds = inputs(3, 4, 40)
    preliminary = PreliminaryGapped().run(context, seeds)
    monkeypatch.setattr(traceback_cpu, "FIRST_CHOICES", 64)
    monkeypatch.setattr(traceback_cpu, "FIRST_RUNS", 8)
    assert_same_records(FinalTraceback().run(context, preliminary), FinalTracebackCpu().run(context, preliminary))
