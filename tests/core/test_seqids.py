"""Names in NCBI's notation, taken apart as makeblastdb 2.12 does with -parse_seqids."""

import pytest
from seqloom.core.seqids import SeqId, seq_id

PROTEINS = ("NP_001234.2", "P53508", "Q9VH48.1")


@pytest.mark.parametrize(("name", "text", "accession", "gi"), [
    ("sp|P53508|NAME_YEAST", "sp|P53508|NAME_YEAST", "P53508", ""),
    ("sp|P12345", "sp|P12345|", "P12345", ""),
    ("tr|Q9XYZ1|Q9XYZ1_HUMAN", "tr|Q9XYZ1|Q9XYZ1_HUMAN", "Q9XYZ1", ""),
    ("gi|12345|gb|AAA12345.1|", "gb|AAA12345.1|", "AAA12345.1", "12345"),
    ("emb|CAA12345.1|NAME", "emb|CAA12345.1|NAME", "CAA12345.1", ""),
    ("pdb|1ABC|A", "pdb|1ABC|A", "1ABC_A", ""),
    ("gnl|mydb|tag1", "gnl|mydb|tag1", "mydb:tag1", ""),
    ("lcl|loc1", "lcl|loc1", "loc1", ""),
    ("pir||A12345", "pir||A12345", "pir||A12345", ""),
    ("NP_001234.2", "ref|NP_001234.2|", "NP_001234.2", ""),
    ("NC_000913.3", "ref|NC_000913.3|", "NC_000913.3", ""),
    ("NZ_ABCD01000001.1", "ref|NZ_ABCD01000001.1|", "NZ_ABCD01000001.1", ""),
    ("P53508", "sp|P53508|", "P53508", ""),
    ("Q9VH48.1", "sp|Q9VH48.1|", "Q9VH48.1", ""),
    ("1XYZ_A", "pdb|1XYZ|A", "1XYZ_A", ""),
    ("chr1", "lcl|chr1", "chr1", ""),
    ("ENSP0001.1", "lcl|ENSP0001.1", "ENSP0001.1", ""),
    ("12345", "lcl|12345", "12345", ""),
])
def test_names_are_taken_apart(name, text, accession, gi):
    protein = not name.startswith("N") or name in PROTEINS
    assert seq_id(name, protein) == SeqId(text, accession, gi)
    if name in PROTEINS or not protein:
        assert seq_id(name, not protein) == SeqId(f"lcl|{name}", name)
