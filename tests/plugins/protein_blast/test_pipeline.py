"""The blastp pipeline as a whole: independence of how work is cut, options, masking, and invalid queries.

Agreement with the peer is tested in tests/gold/test_blastp.py.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import CompositionError
from seqloom.core.records import Hits, Pairs
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.testing import assert_same_hits, check_pipeline, check_stage, run_pipeline

from tests.plugins.protein_blast.proteins import families

STAGES = (
    "neighbourhood-words",
    "neighbourhood-dfa",
    "ungapped-scan",
    "word-hits",
    "dfa-hits",
    "two-hit-diagonals",
    "two-hit-ungapped",
    "segment-alignments",
    "preliminary-gapped",
    "adjusted-traceback",
    "final-traceback",
    "finite-size-evalue",
    "winnowed-alignments",
    "rank-targets",
)


@pytest.fixture(scope="module")
def data():
    return families()


def run(data, **options) -> Hits:
    return run_pipeline("blastp", *data, options)


@pytest.mark.parametrize("name", STAGES)
def test_declarations(name):
    check_stage(name)


def test_results_do_not_depend_on_how_the_work_is_cut(data):
    check_pipeline("blastp", *data, {"evalue": 1.0}, least=15)


def test_segments_neither(data):
    check_pipeline("blastp", *data, {"ungapped": True, "comp_based_stats": "0"}, least=15)


@pytest.mark.parametrize("stages, settings", [
    (["extend.adjusted=final-traceback"], []), ([], ["extend.adjusted.enabled=no"])])
def test_preliminary_alignments_are_not_reported(data, stages, settings):
    with pytest.raises(CompositionError, match=r"'extend\.gapped' gives preliminary ones.*have nothing to do"):
        run_pipeline("blastp", *data, stages=stages, settings=settings)


@pytest.mark.parametrize("options", [
    {"culling_limit": 2}, {"best_hit_overhang": 0.1}, {"subject_besthit": True, "comp_based_stats": "0"},
    {"cut_early": True, "max_target_seqs": 1}])
def test_those_that_go_for_the_sake_of_others_neither(data, options):
    check_pipeline("blastp", *data, {**options, "evalue": 100.0}, least=4)


def test_restricted_and_masked_searches_neither(data):
    check_pipeline("blastp", *data, {"evalue": 1e-5, "seg": "yes", "max_target_seqs": 3}, least=4)


def test_the_automaton_finds_the_same(data):
    stages = ["index.words=neighbourhood-dfa", "seed.words=dfa-hits"]
    assert_same_hits(run(data), run_pipeline("blastp", *data, stages=stages))
    assert_same_hits(run(data), run_pipeline("blastp", *data, backend="cpu", stages=stages))  # on diagonals


@pytest.mark.parametrize("options", [{}, {"evalue": 1e-3, "seg": "yes"}, {"evalue": 1000, "soft_masking": True},
                                     {"comp_based_stats": "2"}, {"comp_based_stats": "1", "evalue": 1e-3}])
def test_the_scan_leaves_out_no_hit(data, options):
    scanned = run_pipeline("blastp", *data, options, settings=["seed.scan.enabled=true"])
    assert_same_hits(run(data, **options), scanned)


def test_an_automaton_without_its_scan_is_refused(data):
    with pytest.raises(CompositionError, match=r"seed\.words"):
        run_pipeline("blastp", *data, stages=["index.words=neighbourhood-dfa"])


def test_ranking_and_ties(data):
    hits = run(data)
    for query in range(len(data[0])):
        evalues = hits.evalue[hits.query == query]
        assert (np.diff(evalues) >= 0).all()
    last, twin = len(data[1]) - 1, 1
    ranks = {int(target): place for place, target in enumerate(hits.target.tolist()) if hits.query[place] == 1}
    assert ranks[last] + 1 == ranks[twin]  # of equal targets the later one comes first


def test_cuts_keep_the_best(data):
    everything, few = run(data, evalue=1000), run(data, evalue=1000, max_target_seqs=2, max_hsps=1)
    for query in range(len(data[0])):
        best = everything.target[everything.query == query][:2]
        assert few.target[few.query == query].tolist() == best.tolist()
    assert len(few.alignments) == len(few)
    covering = run(data, qcov_hsp_perc=50).alignments
    lengths = data[0].lengths[covering.query]
    assert (100 * (covering.query_end - covering.query_start) / lengths >= 49.5).all()


def test_paths_lead_from_start_to_end(data):
    alignments = run(data).alignments
    assert len(alignments) > 10
    for row in alignments.rows():
        spans = {1: 0, 2: 0, 7: 0, 8: 0}
        for run_ in row["path"]:
            spans[run_ & 15] += run_ >> 4
        assert spans[1] + spans[7] + spans[8] == row["query_end"] - row["query_start"]
        assert spans[2] + spans[7] + spans[8] == row["target_end"] - row["target_start"]
        assert row["length"] == sum(spans.values()) and row["identities"] == spans[7]


def test_a_wider_search_space_only_raises_evalues(data):
    small, large = run(data, evalue=1e-3), run(data, evalue=1e-3, dbsize=10**9)
    kept = dict(zip(zip(small.query, small.target), small.evalue))
    assert 0 < len(large) <= len(small)
    assert all(evalue > kept[key] for key, evalue in zip(zip(large.query, large.target), large.evalue))


def test_plain_evalues_of_a_given_space(data):
    alignments = run(data, searchsp=10**6, comp_based_stats="0").alignments
    assert alignments.evalue == pytest.approx(1e6 * 2.0**-alignments.bit_score)


def test_hard_and_soft_masks(data):
    queries = SequenceBatch.of(PROTEIN, ["A" * 40 + PROTEIN.decode(data[0][0]), "A" * 60])
    targets = SequenceBatch.of(PROTEIN, ["A" * 50, PROTEIN.decode(data[0][0]), "A" * 40 + PROTEIN.decode(data[0][0])])
    run_plain = partial(run, comp_based_stats="0")
    assert len(run_plain((queries, targets))) > 2
    hard = run_plain((queries, targets), seg="yes")
    assert set(zip(hard.query.tolist(), hard.target.tolist())) == {(0, 1), (0, 2)}
    soft = run_plain((queries, targets), seg="yes", soft_masking=True)
    assert soft.score.tolist()[0] > hard.score.tolist()[0]
    lower = replace(queries, lower=hard_mask(queries))
    assert_same_hits(run_plain((lower, targets), lcase_masking=True), hard)


def hard_mask(queries: SequenceBatch):
    return registry().masker("seg")().intervals(queries)


def test_queries_without_statistics_find_nothing(data):
    queries = SequenceBatch.of(PROTEIN, ["X" * 50, PROTEIN.decode(data[0][1]), "", "MK"])
    assert set(run((queries, data[1])).query.tolist()) == {1}


def test_seeds_can_be_narrowed_to_pairs(data):
    """Word hits for chosen pairs are those of all pairs that belong to them."""
    from seqloom.core.context import Context, SearchSpace
    from seqloom.plugins.protein_blast.index_reference import NeighbourhoodWords
    from seqloom.plugins.protein_blast.options import BlastpOptions
    from seqloom.plugins.protein_blast.scoring import protein_scoring
    from seqloom.plugins.protein_blast.seed_reference import WordHits

    queries, targets = data
    options = BlastpOptions()
    scoring = protein_scoring(queries, SearchSpace(10**6, 100), options)
    context = Context(queries=queries, targets=targets, scoring=scoring, options=options)
    index = NeighbourhoodWords().run(context, queries)
    context = replace(context, indexes={index.kind: index})
    whole = WordHits().run(context, None)
    pairs = Pairs({"query": [1, 3, 0], "target": [4, 4, 9], "score": [0, 0, 0]})
    chosen = {(1, 4), (3, 4), (0, 9)}
    kept = np.array([pair in chosen for pair in zip(whole.query.tolist(), whole.target.tolist())])
    assert kept.any()
    assert WordHits().run(context, pairs).rows() == whole.take(kept).rows()


def test_short_preset():
    targets = SequenceBatch.of(PROTEIN, ["MKWCHYFRNDPWWQ", "GGGSGGGSGGGSGG"])
    queries = SequenceBatch.of(PROTEIN, ["WCHYFRNDPW"])
    (hit,) = run_pipeline("blastp-short", queries, targets).rows()
    assert hit["target"] == 0 and hit["evalue"] < 1e-3


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_an_anchor_at_the_end_of_a_sequence_makes_a_smaller_box(backend):
    """blastp 2.12 -window_size 0 doesn't report 40-47 / 1-5, score 20: its preliminary box lies in that of 22."""
    query = SequenceBatch.of(PROTEIN, ["WWAAXXWAWA*WAAXWWAXAWWWWAX*X*XWA*XWWX*XW**AAXWA"])
    target = SequenceBatch.of(PROTEIN, ["W*AWAXWX*AX*AWWXWXAW*XA"])
    options = {"window_size": 0, "evalue": 1e4, "matrix": "PAM30", "searchsp": 10_000, "seg": "no",
               "comp_based_stats": "0"}
    found = run_pipeline("blastp", query, target, options, backend=backend).alignments
    names = ("query_start", "query_end", "target_start", "target_end", "score")
    assert list(zip(*(found.data[name].tolist() for name in names), strict=True)) == [
        (6, 24, 0, 17, 55), (0, 9, 13, 20, 35), (22, 40, 0, 17, 34), (30, 46, 3, 15, 26), (35, 46, 0, 7, 22)]
