"""Characters as codes of a few bits against a plain count of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.records import Ragged
from seqloom.plugins.common.sort_words_cpu import coding_of

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from seqloom.core.cuda.staged_transfer import words_of
from seqloom.plugins.sorting.character_codes import CharacterCodes, character_codes, fill_codes

ALPHABETS = [b"ACGT", b"ACGTN", b"ab", b"x", b"ACDEFGHIKLMNPQRS", b"acgtACGT", bytes(range(256))]


def filled(values: np.ndarray, how: CharacterCodes, first: int = 0) -> tuple[list[int], bool]:
    """Codes of the characters from number ``first`` on, and whether one has none."""
    out, strange = np.empty(-(-len(values) // 8) - first, how.dtype), np.zeros(1, np.uint8)
    fill_codes(out, first, words_of((values, how.bits, how.tables, strange)))
    numbers = [int(number) for number in out]
    codes = [number >> how.bits * place & (1 << how.bits) - 1 for number in numbers for place in range(8)]
    return codes[: len(values) - 8 * first], bool(strange[0])


@given(st.sampled_from(ALPHABETS), st.integers(1, 10_000), st.integers(0, 2**32 - 1))
def test_codes_are_those_of_the_characters(characters: bytes, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.choice(np.frombuffer(characters, np.uint8), count)
    keys = Ragged(np.array([0, count]), values)
    coding = coding_of(keys)
    how = character_codes(coding)
    first = int(generator.integers(0, -(-count // 8)))
    codes, strange = filled(values, how, first)
    assert not strange and how.codes[codes].tolist() == coding.codes[values[8 * first :]].tolist()


@pytest.mark.parametrize(("characters", "bits"), [*zip(ALPHABETS, [2, 4, 1, 1, 4, 8, 8], strict=True)])
def test_bits_are_few(characters: bytes, bits: int) -> None:
    values = np.frombuffer(characters, np.uint8)
    assert character_codes(coding_of(Ragged(np.array([0, len(values)]), values))).bits == bits


@given(st.sampled_from(ALPHABETS[:5]), st.integers(0, 5000), st.integers(0, 255))
def test_a_character_without_a_code_is_seen(characters: bytes, place: int, character: int) -> None:
    values = np.resize(np.frombuffer(characters, np.uint8), 5001)
    how = character_codes(coding_of(Ragged(np.array([0, len(values)]), values)))
    values[place] = character
    assert filled(values, how)[1] == (character not in characters)
