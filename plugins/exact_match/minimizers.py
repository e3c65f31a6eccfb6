"""Minimizers: which short words of a text stand for it, and how a table of them is laid out.

A match of ``length`` letters covers a window of w ≤ length − k + 1 words of k letters, and which word of a window has
the least hash depends on nothing outside it. So two texts that share the match share the place of its least words, and
both need to keep only these: about 2 / (w + 1) of all places. All other copies of a match have the word in the same
bucket of the table, so whether something occurs twice is a look at that bucket.

Source: S. Schleimer, D. Wilkerson & A. Aiken, "Winnowing", SIGMOD 2003; M. Roberts et al., Bioinformatics 20 (2004).
"""

from typing import NamedTuple

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.plugins.exact_match.symbols import letters_in_order

KIND = "minimizers"

_WIDEST = 128
"""Words of a window at most: around a word as many letters are looked at, however often it occurs."""
_BUCKET_FACTOR, _SCRAMBLE_FACTOR = np.uint32(0x9E3779B1), np.uint32(0x2C1B3C6D)


class Words(NamedTuple):
    """The words that are hashed: ``letters`` letters of ``bits`` bits each, windows of ``window`` words."""

    bits: int
    letters: int
    window: int


def words_of(alphabet: Alphabet, length: int) -> Words:
    """The words with which matches of at least ``length`` letters are found.

    Words are long enough to be rare, and windows of some 8 words where the length leaves room for them; of more where
    it leaves more, but no more than make minimizers rare as well.
    """
    bits, usual, most = (2, 14, 16) if len(alphabet) <= 16 else (5, 5, 6)
    letters = min(length, max(usual, min(most, length - 7)))
    return Words(bits, letters, min(length - letters + 1, _WIDEST))


def word_codes(alphabet: Alphabet) -> np.ndarray:
    """u8[256]: what a symbol adds to a word. Rare symbols share a code: a word only proposes, the symbols decide."""
    codes = np.zeros(256, np.uint8)
    for symbol, letter in enumerate(letters_in_order(alphabet)):
        codes[symbol] = max(0, "ACGT".find(letter)) if len(alphabet) <= 16 else symbol
    return codes


def scrambled(words: np.ndarray) -> np.ndarray:
    """u4: a bijection of 32 bits that gives the order of words."""
    words = (words ^ (words >> np.uint32(15))) * _SCRAMBLE_FACTOR
    return words ^ (words >> np.uint32(13))


def buckets(hashes: np.ndarray, bits: int) -> np.ndarray:
    """i8: bucket of each hash in a table of ``2**bits``."""
    return ((hashes * _BUCKET_FACTOR) >> np.uint32(32 - bits)).astype(np.int64)


def table_bits(count: int) -> tuple[int, int]:
    """Bits of the bucket number and of the sieve's: two to four buckets for each of ``count`` minimizers."""
    bits = max(8, min(28, int(count).bit_length() + 1))
    return bits, min(30, bits + 3)


def minimizers(text: np.ndarray, codes: np.ndarray, words: Words) -> tuple[np.ndarray, np.ndarray]:
    """i8[m] places and u4[m] hashes of the words of u8 ``text`` that are least in some window, equal ones all."""
    count = len(text) - words.letters + 1
    if count < words.window:
        return np.empty(0, np.int64), np.empty(0, np.uint32)
    coded = codes[text].astype(np.uint32)
    packed = np.zeros(count, np.uint32)
    for place in range(words.letters):
        packed = packed << np.uint32(words.bits) | coded[place : place + count]
    hashes = scrambled(packed)
    least = np.lib.stride_tricks.sliding_window_view(hashes, words.window).min(axis=1)
    around = np.pad(least, words.window - 1)
    greatest = np.lib.stride_tricks.sliding_window_view(around, words.window).max(axis=1)
    places = np.flatnonzero(greatest == hashes)
    return places, hashes[places]
