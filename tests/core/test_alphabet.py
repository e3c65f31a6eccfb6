"""Codes of letters."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import INVALID, NUCLEOTIDE, PROTEIN, alphabet
from seqloom.core.errors import AlphabetError, UnknownNameError


def test_codes_are_the_documented_ones() -> None:
    assert PROTEIN.encode("-ABCDEFGHIKLMNPQRSTVWXYZU*OJ").tolist() == list(range(28))
    assert NUCLEOTIDE.encode("ACGTRYMKWSBDHVN-").tolist() == list(range(16))
    assert (PROTEIN.unknown_code, NUCLEOTIDE.unknown_code) == (21, 14)
    assert (len(PROTEIN), len(NUCLEOTIDE)) == (28, 16)


def test_case_is_no_part_of_a_code_and_u_reads_as_t() -> None:
    assert np.array_equal(PROTEIN.encode("acdw"), PROTEIN.encode("ACDW"))
    assert NUCLEOTIDE.encode("uUtT").tolist() == [3, 3, 3, 3]
    assert NUCLEOTIDE.decode(NUCLEOTIDE.encode("acguN")) == "ACGTN"


@pytest.mark.parametrize("which", [PROTEIN, NUCLEOTIDE])
def test_every_other_byte_is_invalid(which) -> None:
    good = set(which.letters + which.letters.lower() + "".join(which.aliases) + "".join(which.aliases).lower())
    for byte in range(256):
        assert (which.codes[byte] == INVALID) == (chr(byte) not in good)
    assert not which.codes.flags.writeable
    assert not which.bytes.flags.writeable


@given(st.text("ACDEFGHIKLMNPQRSTVWXYZU*OJB-"))
def test_decode_undoes_encode(text: str) -> None:
    assert PROTEIN.decode(PROTEIN.encode(text)) == text


@pytest.mark.parametrize(("text", "message"), [
    ("AC!D", "letter '!' at position 3 is not in the protein alphabet"),
    (b"\x00", "position 1"),
    ("ACé", "letter 'é' at position 3"),
])
def test_a_letter_that_does_not_belong_is_named_with_its_place(text, message: str) -> None:
    with pytest.raises(AlphabetError, match="not in the protein alphabet") as caught:
        PROTEIN.encode(text)
    assert message in str(caught.value)


def test_complement_is_an_involution_and_pairs_the_codes() -> None:
    codes = np.arange(16, dtype=np.uint8)
    assert np.array_equal(NUCLEOTIDE.complement[NUCLEOTIDE.complement[codes]], codes)
    assert NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode("ACGTRYMKWSBDHVN-")]) == "TGCAYRKMWSVHDBN-"
    with pytest.raises(AlphabetError, match="protein sequences have no complement"):
        _ = PROTEIN.complement


def test_complement_of_an_ambiguity_code_stands_for_the_complements_of_its_bases() -> None:
    stands_for = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "M": "AC", "K": "GT", "W": "AT",
                  "S": "CG", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT", "-": ""}
    pair = {"A": "T", "C": "G", "G": "C", "T": "A"}
    for letter, bases in stands_for.items():
        other = NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(letter)])
        assert {pair[b] for b in bases} == set(stands_for[other])


def test_alphabets_are_found_by_name_and_stay_the_same_object_when_copied() -> None:
    assert alphabet("protein") is PROTEIN
    assert copy.deepcopy(NUCLEOTIDE) is NUCLEOTIDE
    assert pickle.loads(pickle.dumps(PROTEIN)) is PROTEIN
    with pytest.raises(UnknownNameError, match="unknown sequence type 'protien'; did you mean 'protein'"):
        alphabet("protien")
