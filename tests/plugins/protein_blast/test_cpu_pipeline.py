"""The whole of blastp on the CPU against the reference back end, bit for bit, for many options and kinds of input."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.records import DELETE, INSERT
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Shape, Stage
from seqloom.plugins.common.rank_reference import RankTargets
from seqloom.plugins.protein_blast.diagonals_cpu import SegmentDiagonalsCpu
from seqloom.plugins.protein_blast.gapped_cpu import PreliminaryGappedCpu
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.seed_cpu import WordHitsCpu
from seqloom.testing import assert_same_hits, check_pipeline, run_pipeline

from tests.plugins.protein_blast.proteins import families
from tests.plugins.protein_blast.stages import AMINO, drawn, related

OPTIONS = [
    {}, {"evalue": 1e-5}, {"evalue": 1000}, {"seg": "yes"}, {"seg": "yes", "soft_masking": True},
    {"word_size": 2}, {"word_size": 4, "threshold": 16}, {"threshold": 13}, {"window_size": 0}, {"window_size": 12},
    {"matrix": "BLOSUM45"}, {"matrix": "PAM30"}, {"matrix": "BLOSUM80", "gapopen": 9, "gapextend": 1},
    {"xdrop_ungap": 2, "xdrop_gap": 5, "xdrop_gap_final": 7}, {"xdrop_gap": 40, "xdrop_gap_final": 100},
    {"comp_based_stats": "1"}, {"comp_based_stats": "2"}, {"comp_based_stats": "3", "seg": "yes"},
    {"comp_based_stats": "2", "matrix": "PAM70", "evalue": 100, "xdrop_gap_final": 400},
    {"use_sw_tback": True, "evalue": 1e-3}, {"comp_based_stats": "0", "use_sw_tback": True, "evalue": 1e-3},
    {"max_target_seqs": 2, "max_hsps": 1}, {"dbsize": 10**9}, {"searchsp": 10**6}, {"qcov_hsp_perc": 40},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "defaults")
def test_options(options: dict) -> None:
    data = families(3, 20, 7)
    wanted = run_pipeline("blastp", *data, options)
    assert len(wanted) > 2
    assert_same_hits(wanted, run_pipeline("blastp", *data, options, backend="cpu"))


def test_any_cut_of_the_work() -> None:
    check_pipeline("blastp", *families(3, 25, 9), {"evalue": 1.0}, ("reference", "cpu"), least=10)


@pytest.mark.parametrize("stages", [[], ["seed.scan=ungapped-scan"]], ids=str)
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_filter_on_and_off(backend: str, stages: list[str]) -> None:
    data = families(3, 20, 11)
    wanted = run_pipeline("blastp", *data)
    for switch in ("true", "false"):
        settings = [f"seed.scan.enabled={switch}"]
        assert_same_hits(wanted, run_pipeline("blastp", *data, stages=stages, settings=settings, backend=backend))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_alignments_end_where_every_score_is_significant(backend: str) -> None:
    one, other = "MKHRLQQVADTWWQRVLGDV", "CCYFNEPWHKIDLLMMTRS"
    queries, targets = (SequenceBatch.of(PROTEIN, [text]) for text in (one + other, f"{other}PGPGPGPGS{one}"))
    found = run_pipeline("blastp", queries, targets, {"evalue": 1e9, "use_sw_tback": True}, backend=backend)
    assert len(found.alignments) > 1


def test_alignments_that_begin_with_a_gap() -> None:
    """A repeat beside the boxes of better alignments: the path of some begins with a gap, which stays."""
    queries, targets = (SequenceBatch.of(PROTEIN, [text]) for text in (
        "PPPKFYNTEYSEGEYKTMYSEGEYNTEYSEGENPTEYSEGEYNTEYSEGEKGLELSKWKVVDNS",
        "GGNIAGMDIWKNSEMTSYNTEHDEGEWNTEYSEGETHTHYSEGEAYMF"))
    chosen = {"use_sw_tback": True, "evalue": 10, "comp_based_stats": "0"}
    wanted, found = (run_pipeline("blastp", queries, targets, chosen, backend=b) for b in ("reference", "cpu"))
    path = wanted.alignments.path
    assert any(path.values[first] & 15 in (INSERT, DELETE) for first in path.offsets[:-1])
    assert_same_hits(wanted, found)


@settings(max_examples=40, deadline=None)
@given(related(longest=70, targets=8), st.sampled_from([{}, {"window_size": 0}, {"word_size": 2}, {"seg": "yes"},
                                                                 {"comp_based_stats": "1"}, {"comp_based_stats": "2"}]),
       st.sampled_from([1e-3, 10.0, 1e4]))
def test_hard_input(texts: tuple[list[str], list[str]], options: dict, evalue: float) -> None:
    queries, targets = (SequenceBatch.of(PROTEIN, part) for part in texts)
    chosen = {"evalue": evalue, **options}
    assert_same_hits(run_pipeline("blastp", queries, targets, chosen),
                     run_pipeline("blastp", queries, targets, chosen, backend="cpu"))


def test_scores_beyond_eight_bits_and_long_sequences() -> None:
    generator = np.random.default_rng(17)
    query = drawn(generator, 1500, AMINO)
    targets = SequenceBatch.of(PROTEIN, [query, query[400:] + query[:700], query[::2], query[:60], "W" * 400, "MK", ""])
    queries = SequenceBatch.of(PROTEIN, [query, "W" * 300, query[:5]])
    wanted = run_pipeline("blastp", queries, targets)
    assert len(wanted) > 4 and int(wanted.alignments.score.max()) > 5000
    assert_same_hits(wanted, run_pipeline("blastp", queries, targets, backend="cpu"))


def test_short_queries_with_their_own_preset() -> None:
    targets = SequenceBatch.of(PROTEIN, ["MKWCHYFRNDPWWQ", "GGGSGGGSGGGSGG", "PWDNRFYHCWKM"])
    queries = SequenceBatch.of(PROTEIN, ["WCHYFRNDPW", "MKWCH"])
    check_pipeline("blastp-short", queries, targets, backends=("reference", "cpu"))


def test_the_scan_counts_what_it_leaves_out() -> None:
    from seqloom.core.engine.memory import MemorySink

    data = families(3, 30, 13)
    sink = MemorySink()
    run_pipeline("blastp", *data, {"evalue": 1e-3}, backend="cpu", sink=sink)
    stats = sink.stats[0]
    left = stats["seed.scan"].counters["pairs left out"]
    assert 20 < left < len(data[0]) * len(data[1])


AVERAGE = Shape(queries=100, query_residues=40_000, longest_query=5_000, targets=20_000, target_residues=9_000_000,
                longest_target=35_000, database_targets=20_000, database_residues=9_000_000, share=0.01)


@pytest.mark.parametrize("stage", [SegmentDiagonalsCpu, WordHitsCpu, PreliminaryGappedCpu, RankTargets])
def test_footprints_follow_the_evalue_limit(stage: type[Stage]) -> None:
    """What passes the filters is more at loose limits, and no more than there is; cutting a volume needs less."""

    def need(evalue: float, shape: Shape = AVERAGE) -> int:
        return stage().footprint(replace(shape, options=BlastpOptions(evalue=evalue))).host

    assert need(1e-5) <= need(10) < need(1e5) <= need(1e12) == need(1e15) < need(1e-5) * 1e6
    half = replace(AVERAGE, queries=50, query_residues=20_000)
    cut = replace(AVERAGE, targets=10_000, target_residues=4_500_000)
    for evalue in (10, 1e5):
        assert need(evalue, half) < need(evalue)
        assert need(evalue, cut) <= need(evalue)
