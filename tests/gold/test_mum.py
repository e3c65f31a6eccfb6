"""Lines of ``mum`` against mummer's on E. coli K-12, byte for byte."""

import pytest

from tests.plugins.exact_match.mummer import seqloom_lines
from tests.shared import needs_shared, read_fasta, read_text

pytestmark = needs_shared

SUFFIX_ARRAY = ("index.references=suffix-array", "seed.matches=maximal-matches")
FM_INDEX = ("index.references=fm-index", "seed.matches=fm-matches")
BOTH = {"both": True}
CASES = {
    "qmix20.maxmatch_l15_b_c": ("qmix20.fasta", {"maxmatch": True, "length": 15, **BOTH}, "c F L"),
    "reads1k.maxmatch_l30_b_c": ("reads100_1k.fasta", {"maxmatch": True, "length": 30, **BOTH}, "c F L"),
    "q100k.mumreference_l20_b_c_n": ("q100k.fasta", {"mumreference": True, "length": 20, "acgt_only": True, **BOTH},
                                     "c F L"),
    "strainpair.mum_l20": ("ecoli_atcc11775.fasta.gz", {"mum": True, "length": 20}, ""),
    "strainpair.mum_l20_b_c": ("ecoli_atcc11775.fasta.gz", {"mum": True, "length": 20, **BOTH}, "c"),
    "strainpair.mumreference_l20_b_c": ("ecoli_atcc11775.fasta.gz", {"mumreference": True, "length": 20, **BOTH}, "c"),
    "strainpair.maxmatch_l40_b_c": ("ecoli_atcc11775.fasta.gz", {"maxmatch": True, "length": 40, **BOTH}, "c"),
}


def compare(case: str, **how) -> None:
    queries, options, flags = CASES[case]
    references, searched = (dict(zip(*read_fasta(f"data/genomes/{name}"), strict=True))
                            for name in ("ecoli_k12_mg1655.fasta.gz", queries))
    assert seqloom_lines(references, searched, options, flags, **how) == read_text(f"gold/mummer.{case}.mums.gz")


@pytest.mark.parametrize("case", CASES)
def test_lines_are_mummers(case):
    compare(case, backend="cpu")


@pytest.mark.parametrize("case", CASES)
def test_lines_are_mummers_by_the_fm_index(case):
    compare(case, backend="cpu", stages=FM_INDEX)


def test_lines_are_mummers_by_the_reference():
    compare("qmix20.maxmatch_l15_b_c", backend="reference")


@pytest.mark.gold
@pytest.mark.parametrize("case", [c for c in CASES if not c.startswith("strainpair")])
def test_lines_are_mummers_by_the_suffix_array(case):
    compare(case, backend="reference", stages=SUFFIX_ARRAY)
    compare(case, backend="cpu", stages=SUFFIX_ARRAY)


@pytest.mark.gold
def test_a_genome_by_the_suffix_array():
    compare("strainpair.mum_l20_b_c", backend="cpu", stages=SUFFIX_ARRAY)
