"""Minimizers: which short words of a text stand for it, and how a table of them is laid out.

A match of ``length`` residues covers a window of w ≤ length − k + 1 words of k residues, and which word of a window has
the least hash depends on nothing outside it. So two texts that share the match share the place of its least words, and
both need to keep only these: about 2 / (w + 1) of all places. All other copies of a match have the word in the same
bucket of the table, so whether something occurs twice is a look at that bucket.

Source: S. Schleimer, D. Wilkerson & A. Aiken, "Winnowing", SIGMOD 2003; M. Roberts et al., Bioinformatics 20 (2004).
"""


import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, Alphabet
from seqloom.core.classes import NamedTuple

from .symbols import NEVER, residues_in_order

KIND = "minimizers"

_WIDEST = 128
"""Words of a window at most: around a word as many residues are looked at, however often it occurs."""
_BUCKET_FACTOR, _SCRAMBLE_FACTOR = np.uint32(0x9E3779B1), np.uint32(0x2C1B3C6D)


class Words(NamedTuple):
    """The words that are hashed: ``residues`` residues of ``bits`` bits each, windows of ``window`` words."""

    bits: int
    residues: int
    window: int


def words_of(alphabet: Alphabet, length: int) -> Words:
    """The words with which matches of at least ``length`` residues are found.

    Words are long enough to be rare, and windows of some 8 words where the length leaves room for them; of more where
    it leaves more, but no more than make minimizers rare as well.
    """
    bits, usual, most = (2, 14, 16) if len(alphabet) <= 16 else (5, 5, 6)
    residues = min(length, max(usual, min(most, length - 7)))
    return Words(bits, residues, min(length - residues + 1, _WIDEST))


def expected_count(text: int, length: int) -> int:
    """Minimizers to be expected in so many symbols of genomes, whose windows are the smaller ones, or of proteins.

    Texts that repeat a few residues over and over have more.
    """
    return -(-text * 2 // (words_of(NUCLEOTIDE, length).window + 1))


def table_bytes(count: int) -> int:
    """Bytes of the table of so many minimizers: heads of buckets, places, sieve."""
    bits, fine = table_bits(count)
    return (4 << bits) + 4 * count + (1 << fine >> 3)


def word_codes(alphabet: Alphabet) -> np.ndarray:
    """u8[256]: what a symbol adds to a word. Rare symbols share a code: a word only proposes, the symbols decide."""
    codes = np.zeros(256, np.uint8)
    for symbol, residue in enumerate(residues_in_order(alphabet)):
        codes[symbol] = max(0, "ACGT".find(residue)) if len(alphabet) <= 16 else symbol
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
    """i8[m] places and u4[m] hashes of the words of u8 ``text`` that are least in some window, equal ones all.

    No match covers a window that holds ``NEVER``: such windows don't count.
    """
    count = len(text) - words.residues + 1
    if count < words.window:
        return np.empty(0, np.int64), np.empty(0, np.uint32)
    coded = codes[text].astype(np.uint32)
    packed = np.zeros(count, np.uint32)
    for place in range(words.residues):
        packed = packed << np.uint32(words.bits) | coded[place : place + count]
    hashes = scrambled(packed)
    least = np.lib.stride_tricks.sliding_window_view(hashes, words.window).min(axis=1)
    bounds = np.concatenate([[0], np.cumsum(text == NEVER)])
    least[bounds[words.window + words.residues - 1 :] > bounds[: len(least)]] = 0
    around = np.pad(least, words.window - 1)
    greatest = np.lib.stride_tricks.sliding_window_view(around, words.window).max(axis=1)
    places = np.flatnonzero(greatest == hashes)
    return places, hashes[places]
