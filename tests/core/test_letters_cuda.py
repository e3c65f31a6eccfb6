"""Letters are packed three to a word, and unpacked where the words stand: in numba's simulator here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN, Alphabet

from tests.simulator import simulated

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

letters_cuda = pytest.importorskip("seqloom.core.letters_cuda")


@settings(deadline=None)
@given(st.integers(0, 5), st.sampled_from([1, 8, 24, 64, 1000, 4096]), st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_letters_are_packed(blocks: int, size: int, before: int, seed: int) -> None:
    letters = np.random.default_rng(seed).integers(0, 32, before + 3 * size * blocks).astype(np.uint8)[before:]
    words = np.zeros(size * blocks + 1, np.uint16)
    letters_cuda.pack(letters, words[:-1], size)
    assert words[-1] == 0
    there = letters_cuda.arrived(letters, size).reshape(blocks, 3 * size)
    assert (there[:, : 2 * size] == words[:-1].view(np.uint8).reshape(blocks, 2 * size)).all()


@given(st.lists(st.integers(0, 31), max_size=60), st.sampled_from([1, 2, 8]))
def test_a_word_holds_letters_that_are_apart(letters: list[int], size: int) -> None:
    there = letters_cuda.arrived(np.array(letters, np.uint8), size).tolist()
    block = 3 * size
    whole = len(letters) // block * block
    for begin in range(0, whole, block):
        for k in range(size):
            word = there[begin + 2 * k] | there[begin + 2 * k + 1] << 8
            assert [word >> shift & 31 for shift in (0, 5, 10)] == [letters[begin + k + n * size] for n in range(3)]
    assert there[whole:] == letters[whole:]


def test_letters_of_the_alphabets_can_go_packed_and_those_of_larger_ones_not() -> None:
    assert letters_cuda.packable(PROTEIN) and letters_cuda.packable(NUCLEOTIDE)
    many = "".join(map(chr, range(64, 64 + 33)))
    assert letters_cuda.packable(Alphabet("many", many[:32], "A"))
    assert not letters_cuda.packable(Alphabet("many", many, "A"))


def test_letters_are_unpacked_in_the_simulator() -> None:
    done = simulated("-m", "tests.core.letters_on_device")
    assert done.returncode == 0, done.stderr[-2000:]
