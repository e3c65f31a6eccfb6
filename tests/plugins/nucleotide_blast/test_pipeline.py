"""The nucleotide BLAST pipelines as a whole: independence of how work is cut, options, strands, odd queries.

Agreement with the peer is tested in tests/gold/test_blastn.py.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import OptionError
from seqloom.core.records import path_text
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.common.nucleotide_statistics import residue_scores, ungapped_karlin
from seqloom.plugins.nucleotide_blast.traceback_reference import start_point
from seqloom.testing import assert_same_hits, check_pipeline, check_stage, run_pipeline

from tests.plugins.nucleotide_blast.sequences import batch, homologues, random_bases, relative, reverse_complement

PIPELINES = ("blastn", "blastn-short", "megablast", "dc-megablast")
STAGES = (
    "nucleotide-word-table",
    "nucleotide-bases",
    "nucleotide-word-hits",
    "discontiguous-word-table",
    "discontiguous-word-hits",
    "strand-diagonal",
    "nucleotide-ungapped",
    "nucleotide-segments",
    "nucleotide-xdrop",
    "nucleotide-greedy",
    "nucleotide-xdrop-traceback",
    "nucleotide-greedy-traceback",
    "search-space-evalue",
    "winnowed-nucleotide-xdrop",
    "winnowed-nucleotide-greedy",
)


@pytest.mark.parametrize("name", STAGES)
def test_declarations(name):
    check_stage(name)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_results_do_not_depend_on_how_the_work_is_cut(pipeline):
    check_pipeline(pipeline, *homologues(), {"evalue": 0.1})


@pytest.mark.parametrize("pipeline, options", [
    ("blastn", {"culling_limit": 2}), ("megablast", {"best_hit_overhang": 0.1}),
    ("dc-megablast", {"subject_besthit": True})])
def test_those_that_go_for_the_sake_of_others_do_not_either(pipeline, options):
    check_pipeline(pipeline, *homologues(), {**options, "evalue": 0.1})


@pytest.mark.parametrize("pipeline, options", [
    ("blastn", {"ungapped": True}), ("megablast", {"ungapped": True, "culling_limit": 1, "word_size": 12}),
    ("blastn", {"window_size": 30, "off_diagonal_range": 4}), ("megablast", {"window_size": 60, "word_size": 12})])
def test_nor_do_segments_and_pairs_of_hits(pipeline, options):
    check_pipeline(pipeline, *homologues(), {**options, "evalue": 10.0})


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("code, paired", [("B", True), ("N", True), ("M", True), ("R", False), ("T", False)])
def test_a_hit_that_begins_with_an_ambiguity_pairs_with_one_further_back(code, paired, backend):
    """The low bits of these codes are those of the G before the second hit, whose place is that of the ambiguity."""
    query = f"AGAAGAAGAAGAADAANAAG{code}AAGAAGAAGAA"
    target = "AGAAGAAGAAGCAGAGGAAGCAGTCCAGAAGAAGAAGAAGAA"
    options = {"window_size": 30, "off_diagonal_range": 10, "word_size": 11, "ungapped": True, "reward": 1,
               "penalty": -5, "dust": "no", "strand": "plus"}
    rows = run_pipeline("megablast", batch(query), batch(target), options, backend=backend).alignments.rows()
    found = {tuple(row[name] for name in ("query_start", "query_end", "target_start", "target_end")) for row in rows}
    assert found == {(21, 32, 28, 39)} | ({(21, 32, 31, 42)} if paired else set())


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_hits_at_one_place_of_a_target_come_by_their_places_in_the_query(backend):
    """In small tables, also where words are whole: a hit finds those that wait on diagonals nearby when it comes."""
    options = {"window_size": 19, "off_diagonal_range": 7, "word_size": 5, "ungapped": True, "dust": "no",
               "strand": "plus", "evalue": 1000.0}
    found = run_pipeline("blastn", batch("TTTATTTATTTATT"), batch("TTTATTTGATTATT"), options, backend=backend)
    rows = [(row["query_start"], row["query_end"], row["target_start"], row["target_end"])
            for row in found.alignments.rows()]
    assert rows == [(0, 14, 0, 14), (5, 10, 9, 14)]


@pytest.mark.parametrize("options, message", [
    ({"best_hit_overhang": 0.5}, "below 0.5"),
    ({"culling_limit": 1, "best_hit_score_edge": 0.1}, "exclude each other")])
def test_ways_to_leave_alignments_out_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        run_pipeline("blastn", batch("ACGT"), batch("ACGT"), options)


def test_other_queries_do_not_matter():
    queries, targets = homologues(3)
    together = run_pipeline("blastn", queries, targets)
    for query in range(len(queries)):
        alone = run_pipeline("blastn", queries.take(query, query + 1), targets)
        assert_same_hits(alone, together.take(together.query == query))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_reverse_strand_mirrors_the_forward_one(pipeline):
    source = random.Random(7)
    query = random_bases(source, 300)
    target = relative(source, query, 0.05)
    forward = run_pipeline(pipeline, batch(query), batch(target), {"strand": "plus"}).alignments.rows()[0]
    backward = run_pipeline(pipeline, batch(reverse_complement(query)), batch(target), {"strand": "minus"})
    row = backward.alignments.rows()[0]
    assert (row["query_frame"], row["target_frame"]) == (1, -1)
    assert (row["target_start"], row["target_end"]) == (forward["target_start"], forward["target_end"])
    assert (row["query_start"], row["query_end"]) == (300 - forward["query_end"], 300 - forward["query_start"])
    assert row["path"] == forward["path"][::-1]
    assert (row["score"], row["evalue"], row["identities"]) == tuple(
        forward[name] for name in ("score", "evalue", "identities")
    )


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_path_and_counts_agree_with_the_bases(pipeline):
    queries, targets = homologues(5)
    alignments = run_pipeline(pipeline, queries, targets, {"evalue": 1e-3}).alignments
    assert len(alignments) > 5
    for row in alignments.rows():
        operations = [(run >> 4, run & 15) for run in row["path"]]
        assert sum(n for n, op in operations if op != 2) == row["query_end"] - row["query_start"]
        assert sum(n for n, op in operations if op != 1) == row["target_end"] - row["target_start"]
        assert sum(n for n, op in operations if op == 7) == row["identities"] == row["positives"]
        assert row["length"] == row["identities"] + row["mismatches"] + row["gaps"]


def test_a_query_finds_itself():
    query = random_bases(random.Random(8), 200)
    for pipeline in PIPELINES:
        best = run_pipeline(pipeline, batch(query), batch("ACGTT" + query)).alignments
        assert path_text(best.path[0]) == "200=" and best.target_start[0] == 5
        assert best.score[0] == 200 * (1 if pipeline in ("megablast", "blastn-short") else 2)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_queries_that_cannot_be_found_are_passed_over(pipeline):
    text = random_bases(random.Random(9), 100)
    queries = batch("", "A", "ACGTACG", "N" * 50, text)
    assert set(run_pipeline(pipeline, queries, batch(text, "", "NNNN")).query.tolist()) == {4}


def test_masked_bases_seed_nothing_but_are_aligned():
    text = random_bases(random.Random(10), 90)
    low = text[:40] + "CA" * 30 + text[40:]
    found = run_pipeline("blastn", batch(low), batch(low)).alignments
    assert path_text(found.path[0]) == "150="
    assert not len(run_pipeline("blastn", batch("CA" * 40), batch("CA" * 40)))
    assert len(run_pipeline("blastn", batch("CA" * 40), batch("CA" * 40), {"dust": "no"}))


def test_hard_masking_keeps_bases_out_of_the_score_and_in_the_report():
    text = random_bases(random.Random(11), 100)
    low = text[:50] + "CA" * 10 + text[50:]
    soft = run_pipeline("blastn", batch(low), batch(low)).alignments
    hard = run_pipeline("blastn", batch(low), batch(low), {"soft_masking": "false"}).alignments
    assert hard.score[0] < soft.score[0] and path_text(hard.path[0]) == "120="


def test_lower_case_can_be_masked():
    text = random_bases(random.Random(12), 60)
    queries = batch(text[:30] + text[30:].lower())
    targets = batch(text[30:])
    assert len(run_pipeline("blastn", queries, targets, {"dust": "no"}))
    assert not len(run_pipeline("blastn", queries, targets, {"dust": "no", "lcase_masking": "true"}))
    assert queries.lower.rows() == Intervals.of([(0, 30, 60)]).rows()


def test_identity_and_coverage_limits():
    source = random.Random(13)
    query = random_bases(source, 300)
    targets = batch(relative(source, query, 0.15), relative(source, query, 0.02), query[:120])
    assert set(run_pipeline("blastn", batch(query), targets, {"perc_identity": 95}).target.tolist()) == {1, 2}
    covering = run_pipeline("blastn", batch(query), targets, {"qcov_hsp_perc": 60, "evalue": 1e-3})
    assert set(covering.target.tolist()) == {0, 1}


def test_targets_are_ranked_without_ungapped_segments_that_cover_too_little():
    source, other = random.Random(19), str.maketrans("ACGT", "CGTA")
    query = random_bases(source, 300)
    worse = query[100:112] + "".join(base.translate(other) if n % 4 == 3 else base
                                     for n, base in enumerate(query[112:202]))
    targets = batch(query[:58] + random_bases(source, 80) + worse,
                    query[220:250] + query[250].translate(other) + query[251:280] + random_bases(source, 9))
    found = run_pipeline("blastn", batch(query), targets, {"ungapped": "true", "dust": "no"})
    assert found.target.tolist() == [0, 1] and found.score.tolist() == [116, 115]
    covering = run_pipeline("blastn", batch(query), targets, {"ungapped": "true", "dust": "no", "qcov_hsp_perc": 20})
    assert covering.target.tolist() == [1, 0] and covering.score[1] < 115


def test_statistics_follow_the_search_space():
    query = random_bases(random.Random(14), 100)
    small = run_pipeline("blastn", batch(query), batch(query), {"searchsp": 1000}).alignments
    large = run_pipeline("blastn", batch(query), batch(query), {"searchsp": 1_000_000}).alignments
    assert np.isclose(large.evalue[0] / small.evalue[0], 1000)
    assert large.bit_score[0] == small.bit_score[0]


def test_ambiguities_of_the_target_cost_what_they_should():
    query = random_bases(random.Random(15), 100)
    found = run_pipeline("blastn", batch(query), batch(query[:50] + "NN" + query[52:])).alignments
    assert found.score[0] == 2 * 98 - 2 * 2 and path_text(found.path[0]) == "50=2X48="


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reward": 1, "penalty": -7}, "known ratios"),
        ({"gapopen": 1, "gapextend": 1}, "known: "),
        ({"dust": "often"}, "--dust"),
        ({"word_size": 3}, "word-size"),
        ({"off_diagonal_range": 3}, "--window-size is 0"),
        ({"greedy": True}, "linear gap costs"),
    ],
)
def test_options_without_statistics_or_meaning_are_refused(options, words):
    with pytest.raises(OptionError, match=words):
        run_pipeline("blastn", *homologues(), options)


def test_templates_exist_for_some_lengths_only():
    for options in ({"word_size": 10}, {"template_length": 17}):
        with pytest.raises(OptionError, match="template"):
            run_pipeline("dc-megablast", *homologues(), options)


def test_aligners_refuse_gap_costs_that_are_not_theirs():
    text = batch(random_bases(random.Random(16), 100))
    with pytest.raises(OptionError, match="linear"):
        run_pipeline("megablast", text, text, {"gapopen": 2, "gapextend": 2})
    with pytest.raises(OptionError, match="gap costs"):
        run_pipeline("blastn", text, text, {"gapopen": 0, "gapextend": 0})


def test_megablast_can_be_given_the_other_aligner():
    text = batch(random_bases(random.Random(17), 100))
    found = run_pipeline("megablast", text, text, {"gapopen": 2, "gapextend": 2, "greedy": False})
    assert found.alignments.score.tolist() == [100]


def test_ambiguities_score_their_mean():
    scores = residue_scores(2, -3)
    assert (scores[0, 4], scores[14, 0], scores[0, 5], scores[14, 14]) == (-1, -2, -3, -2)
    assert np.array_equal(scores, scores.T)


def test_lambda_is_that_of_the_composition_without_n():
    scores = residue_scores(2, -3)

    def lambda_of(text):
        return ungapped_karlin(scores, batch(text)[0]).lambda_

    assert np.isclose(ungapped_karlin(scores).lambda_, 0.6337, atol=1e-4)
    assert np.isclose(lambda_of("ANNA-"), 0.6337, atol=1e-4) and np.isclose(lambda_of("ACGGTC"), 0.6337, atol=1e-4)
    # blastn prints 1.71 for this query.
    short = ungapped_karlin(residue_scores(1, -3), batch("RRRRYYYYACGTACGTACGTAGCTAGC")[0])
    assert np.isclose(short.lambda_, 1.71, atol=5e-3)
    assert ungapped_karlin(scores, batch("RRYY")[0]) is None and ungapped_karlin(scores, batch("NN")[0]) is None


def test_traceback_starts_in_a_run_of_equal_bases():
    run, other = random_bases(random.Random(18), 30), "ACGTACGTAC"
    query, target = batch(other + run + other)[0].tobytes(), batch("CATGCATGCA" + run + other)[0].tobytes()
    hsp = replace(Hsp(0, 0, 50, 0, 50), anchor_query=20, anchor_target=20)
    assert start_point(hsp, query, target) == (20, 20)
    assert start_point(replace(hsp, anchor_query=2, anchor_target=2), query, target) == (18, 18)
    # The run through the saved point counts where it lies before the alignment, too.
    short = replace(hsp, query_start=36, target_start=36, anchor_query=38, anchor_target=38)
    assert start_point(short, query, target) == (38, 38)


def test_a_gap_in_a_repeat_lies_where_the_peer_has_it():
    """Where in a run of equal bases the traceback starts decides which of several places a gap takes."""
    query = ("TAAATAAATAAATAAATAAACTAATCGGCGGCCGTTTATGTATACCAATAAATATTGGCCTCGAAACCACGCTGTACCCG"
             "CCGCTGTCTCCGCCGCTGTACCCGCGGCTGTAC")
    target = ("TAAATAAATAAATAAATAAACCAATCGGCGGCTGTTTATGTATACCAATATTGGCCCCGAAACCACGCTGTACCCGTGGC"
              "TGCCTCCTCCGCTGTGCCCGCGGTTGTAC")
    hits = run_pipeline("dc-megablast", SequenceBatch.of(NUCLEOTIDE, [query]), SequenceBatch.of(NUCLEOTIDE, [target]),
                        {"dust": "no", "template_length": 16, "template_type": "optimal"})
    # as blastn of BLAST+ 2.12: 9-A-A-A-T8TC…
    assert path_text(hits.alignments.path[0]).startswith("9=4D8=1X")


def test_hits_of_both_strands_on_one_diagonal_are_two_hits():
    """Both strands of a query lie end to end: a hit at the end of one and one at the beginning of the other count."""
    query = "AGAGAGAGAAAAAAAAAAAAAAAAAAAAAAAAAAATTTTTTTTTTT"
    target = ("CTACCGCTACCGCTACGGGGGGGGAAAAAAAAAAAAAAAAAAAAAAAAATAAATTTTTTTTTTTTTTTTTTTTTTTTTTTTT"
              "CTCTCTCTCTCTCTCTCTCTCTCTCTCTCTCTCTCTCTCTAGAGAGAGAGGGGGG")
    hits = run_pipeline("dc-megablast", SequenceBatch.of(NUCLEOTIDE, [query]), SequenceBatch.of(NUCLEOTIDE, [target]),
                        {"dust": "no", "template_length": 16, "template_type": "optimal"})
    found = hits.alignments
    names = "query_start", "query_end", "target_start", "target_end", "score"
    rows = set(zip(*(found.data[name].tolist() for name in names), strict=True))
    # as blastn of BLAST+ 2.12
    assert rows == {(0, 46, 42, 88, 82), (5, 46, 23, 64, 72), (0, 46, 41, 90, 71), (0, 35, 63, 98, 50)}
