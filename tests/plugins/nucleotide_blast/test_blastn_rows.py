"""Small searches whose rows are those that blastn of NCBI BLAST+ 2.12 prints; each turns on one rule."""

import io

import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.formats.writer_tabular import Tabular
from seqloom.testing import run_pipeline

from tests.plugins.exact_match.mummer import MemoryReport

BASES = "ATTCCCGTAATCTACGATTAAGTCACAACCAAACCATGGATTACGGTCTGCGTTGGAATC"


def rows(pipeline: str, query: str, target: str, fields: str, options: dict | None = None) -> list[str]:
    """The lines of ``-outfmt "6 FIELDS"`` with blanks for tabs."""
    queries, targets = (SequenceBatch.of(NUCLEOTIDE, [text], [name]) for text, name in ((query, "q"), (target, "t")))
    hits = run_pipeline(pipeline, queries, targets, options or {})
    stream = io.StringIO()
    Tabular().write(MemoryReport(queries, targets, hits, {"target_type": "nucleotide"}), stream, fields.split())
    return stream.getvalue().replace("\t", " ").splitlines()


def test_an_alignment_that_is_not_similar_enough_is_not_cut_to_a_part_that_is():
    query = "ATTGGTCTGGGTAGGGCTTCGATTCGTCGGGGTAGGGCTTCGATTGGTCTGGGTAGGGCTTCG"
    options = {"dust": "no", "perc_identity": 95}
    found = rows("blastn-short", query, "TAGGGCTTCGATTCGGGTAGG", "qstart qend sstart send score", options)
    assert found == ["12 26 1 15 15", "33 45 1 13 13", "54 63 1 10 10", "9 15 15 21 7", "51 57 15 21 7"]


def test_statistics_without_gaps_are_those_of_the_querys_composition():
    found = rows("blastn-short", "RACGTACGTACGTAGCTAGC", "ACGTACGTACGTAGCTAGCTAGCTAGCTAGCTAGC",
                 "qstart qend sstart send score bitscore evalue")
    assert len(found) == 11
    assert found[:3] == ["2 20 1 19 19 39.4 6.70e-10", "2 13 12 1 12 25.1 1.40e-05", "2 20 5 23 11 23.0 5.79e-05"]


def test_equal_scores_on_both_strands_come_by_the_last_digits_of_their_evalues():
    found = rows("blastn-short", "TTGAAATTTCC", "AAATTTC", "qstart qend sstart send score")
    assert found == ["4 10 1 7 7", "3 9 7 1 7"]


def test_which_alignments_of_a_target_stay_doesnt_depend_on_their_evalues():
    found = rows("blastn-short", "TTGAAATTTCC", "AAATTTC", "qstart qend sstart send score", {"max_hsps": 1})
    assert found == ["3 9 7 1 7"]


@pytest.mark.parametrize(("penalty", "evalue"), [(-3, "3.34e-25"), (-5, "2.89e-30"), (-7, "2.40e-30")])
def test_odd_scores_are_rounded_down_for_evalues_with_linear_gaps_too(penalty, evalue):
    target = BASES[:30] + "C" + BASES[31:]
    options = {"reward": 2, "penalty": penalty}
    assert rows("megablast", BASES, target, "score evalue", options) == [f"{118 + penalty} {evalue}"]


def test_ambiguities_are_never_positive():
    target = BASES[:18] + "W" + BASES[19:]
    options = {"reward": 5, "penalty": -4, "gapopen": 10, "gapextend": 6}
    assert rows("blastn", BASES, target, "nident positive ppos btop", options) == ["59 59 98.33 18TW41"]


def test_coverage_by_unique_stretches_of_the_target_counts_these_once():
    other = "AGGGCCGTGCCAAGTGCAGTTGTAGTGCCGTATTTGTGGCATGAGCCCGGGCAAAGTTTT"
    found = rows("blastn", BASES + other + BASES, BASES, "qstart qend qcovs qcovhsp qcovus")
    assert found == ["1 60 67 33 33", "121 180 67 33 33"]
    turned = NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(BASES)][::-1])
    found = rows("blastn", BASES, BASES[:40] + other + turned[:45], "qstart qend sstart send qcovs qcovus")
    assert found == ["16 60 145 101 100 100", "1 40 1 40 100 100"]


def test_a_query_without_statistics_finds_nothing():
    assert rows("blastn", "R" * 12 + "Y" * 12, "A" * 12 + "C" * 12, "score", {"dust": "no", "word_size": 4}) == []
