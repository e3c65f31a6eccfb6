"""Bases in place of ambiguities. That they equal those of a BLAST database is tested in tests/gold/test_blastn.py."""

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.nucleotide_statistics import BASES_OF_CODE
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideBasesCpu
from seqloom.plugins.nucleotide_blast.index_reference import NucleotideBases
from seqloom.plugins.nucleotide_blast.random_bases import LaggedFibonacci, replace_ambiguities


def test_each_ambiguity_becomes_one_of_its_bases():
    codes = NUCLEOTIDE.encode("RYMKWSBDHVNACGT" * 50)
    bases = replace_ambiguities(codes)
    assert all(base in BASES_OF_CODE[code] for base, code in zip(bases.tolist(), codes.tolist(), strict=True))
    assert len(set(bases[codes == 14].tolist())) == 4


def test_bases_depend_on_the_sequence_length_alone():
    codes = NUCLEOTIDE.encode("NNNNNNNNNNNNNNNN" + "ACGT" * 4)
    assert np.array_equal(replace_ambiguities(codes), replace_ambiguities(codes))
    shorter = replace_ambiguities(codes[:-1])
    assert not np.array_equal(shorter[:16], replace_ambiguities(codes)[:16])


def test_sequence_without_ambiguities_is_kept():
    codes = NUCLEOTIDE.encode("ACGT")
    assert replace_ambiguities(codes) is codes


def test_generator_has_31_bits_and_repeats_from_its_seed():
    first, second = LaggedFibonacci.seeded(7), LaggedFibonacci.seeded(7)
    draws = [first.draw() for _ in range(100)]
    assert draws == [second.draw() for _ in range(100)]
    assert max(draws) < 2**31 and len(set(draws)) == 100


def test_compiled_bases_are_the_same():
    texts = ["RYMKWSBDHVNACGT" * 50, "ACGT" * 9, "N" * 700, "A", "N", ""]
    batch = SequenceBatch.of(NUCLEOTIDE, texts)
    context = Context(options=None)
    wanted, found = (stage().run(context, batch)["bases"] for stage in (NucleotideBases, NucleotideBasesCpu))
    assert np.array_equal(wanted, found) and wanted.dtype == found.dtype
