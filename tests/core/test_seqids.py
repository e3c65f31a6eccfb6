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
    ("bbs|123", "bbs|123", "123", ""),
    ("pat|US|1234|3", "pat|US|1234|3", "US1234_3", ""),
    ("AAA12345", "gb|AAA12345|", "AAA12345", ""),
    ("CAA12345.1", "emb|CAA12345.1|", "CAA12345.1", ""),
    ("BAB1234567.1", "dbj|BAB1234567.1|", "BAB1234567.1", ""),
    ("WAB12345.1", "lcl|WAB12345.1", "WAB12345.1", ""),
    ("NU00096.3", "lcl|NU00096.3", "NU00096.3", ""),
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


@pytest.mark.parametrize(("name", "kind"), [
    ("U00096.3", "gb"), ("X12345.1", "emb"), ("D12345.1", "dbj"), ("N12345.1", "lcl"), ("CP000001", "gb"),
    ("AJ123456.1", "emb"), ("AB123456.1", "dbj"), ("BK123456.1", "tpg"), ("BR123456.1", "tpd"), ("AO123456.1", "lcl"),
    ("QQ123456.1", "lcl"), ("AAAA02000001.1", "gb"), ("CABC01000001.1", "emb"), ("JABCDE010000001.1", "gb"),
    ("CP0001.1", "lcl"), ("chr1", "lcl")])
def test_accessions_of_the_archives(name, kind):
    assert seq_id(name, protein=False).kind == kind


@pytest.mark.parametrize(("name", "whole", "short", "unversioned"), [
    ("gi|5|gb|AAA12345.1|X", "gi|5|gb|AAA12345.1|X", "AAA12345.1", "AAA12345"),
    ("lcl|own.2", "own.2", "own.2", "own.2"),
    ("gi|5", "gi|5", "5", "5"),
    ("pir||A12345", "pir||A12345", "A12345", "A12345"),
    ("pir|A123|XX", "pir|A123|XX", "A123", "A123"),
])
def test_what_tables_show(name, whole, short, unversioned):
    one = seq_id(name, protein=True)
    assert (one.whole, one.short, one.unversioned) == (whole, short, unversioned)
