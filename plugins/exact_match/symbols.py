"""Symbols of exact matching: residues in the order of their lower-case bytes, then what ends a match.

This is the order in which MUMmer sorts suffixes: residues, then rejected residues (where only a, c, g and t match),
then the separators between sequences, then the end of the text.
"""

from functools import cache
from itertools import pairwise

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.sequences import SequenceBatch

NEVER = 255
"""Query symbol that equals no symbol of a text."""


@cache
def residues_in_order(alphabet: Alphabet) -> str:
    """Residues of the alphabet by their lower-case bytes; a residue's symbol is its place here."""
    return "".join(sorted(alphabet.letters, key=str.lower))


def rejected(alphabet: Alphabet) -> int:
    """Symbol of residues that can't match; behind it come ``separator`` and ``end``."""
    return len(alphabet)


def separator(alphabet: Alphabet) -> int:
    """Symbol between two sequences."""
    return len(alphabet) + 1


def end(alphabet: Alphabet) -> int:
    """Symbol behind the last sequence, the greatest."""
    return len(alphabet) + 2


@cache
def symbol_table(alphabet: Alphabet, acgt_only: bool, bad: int) -> np.ndarray:
    """u8[256]: symbol of each code; with ``acgt_only`` every residue but A, C, G and T is ``bad``."""
    table = np.full(256, bad, np.uint8)
    for symbol, residue in enumerate(residues_in_order(alphabet)):
        if not acgt_only or residue in "ACGT":
            table[alphabet.letters.index(residue)] = symbol
    return table


@cache
def complement_table(alphabet: Alphabet) -> np.ndarray:
    """u8[256]: code of each residue's complement as MUMmer takes it; a gap becomes the unknown residue."""
    table = alphabet.complement.copy()
    table[alphabet.letters.index("-")] = alphabet.unknown_code
    return table


def target_text(batch: SequenceBatch, acgt_only: bool) -> tuple[np.ndarray, np.ndarray]:
    """All sequences of a batch as one text: separators between them, the end symbol last.

    Returns:
        u8[n] symbols, and i8[k] place in the text where each sequence starts.
    """
    symbols = batch.residues.tobytes().translate(
        symbol_table(batch.alphabet, acgt_only, rejected(batch.alphabet)).tobytes())
    parts = [symbols[first:last] for first, last in pairwise(batch.offsets.tolist())] or [symbols]
    text = np.frombuffer(bytearray([separator(batch.alphabet)]).join([*parts, b""]), np.uint8)
    text[-1] = end(batch.alphabet)
    return text, batch.offsets[:-1] + np.arange(len(batch), dtype=np.int64)
