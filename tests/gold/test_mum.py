"""Lines of ``mum`` against mummer's on E. coli K-12, byte for byte."""

import pytest

from tests.plugins.exact_match.mummer import seqloom_lines
from tests.shared import needs_shared, read_fasta, read_text

pytestmark = needs_shared


def compare(queries: str, gold: str, options: dict, flags: str) -> None:
    references, searched = (dict(zip(*read_fasta(f"data/genomes/{name}"), strict=True))
                            for name in ("ecoli_k12_mg1655.fasta.gz", queries))
    assert seqloom_lines(references, searched, options, flags) == read_text(f"gold/{gold}.mums.gz")


def test_all_maximal_matches_of_genes():
    compare("qmix20.fasta", "mummer.qmix20.maxmatch_l15_b_c", {"maxmatch": True, "length": 15, "both": True}, "c F L")


@pytest.mark.gold
def test_all_maximal_matches_of_reads():
    compare("reads100_1k.fasta", "mummer.reads1k.maxmatch_l30_b_c", {"maxmatch": True, "length": 30, "both": True},
            "c F L")


@pytest.mark.gold
def test_matches_unique_in_the_reference():
    compare("q100k.fasta", "mummer.q100k.mumreference_l20_b_c_n",
            {"mumreference": True, "length": 20, "both": True, "acgt_only": True}, "c F L")
