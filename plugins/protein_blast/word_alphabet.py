"""The symbols that words consist of: residues, or classes of residues for words of six and seven.

With classes a word's score is that of query residues against classes of the target: the logarithm of the mean frequency
ratio of a class, in hundredths of the matrix's unit (BLAST+ 2.12; classes after Edgar 2004). Residues that are in no
class are in no word.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.classes import dataclass
from seqloom.plugins.common.karlin_tables import UNGAPPED
from seqloom.plugins.common.matrices import frequency_ratios, protein_matrix
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import background

CLASSES = {6: "ST IJV LM KR EQZ A G BD P N F Y H C W", 7: "IJLMV AST BDENZ KQR G FY P H C W"}
"""Classes of residues by the size of the words that are made of them."""
UNITS = 100
"""Scores of classes in a unit of the matrix."""


@dataclass(frozen=True)
class WordAlphabet:
    """How words of a size are written and scored.

    Attributes:
        size: residues of a word.
        symbols: number of symbols.
        codes: u1[28], the symbol of every residue; `symbols` where there is none.
        scores: i4[28, symbols], of a query residue against a symbol.
        threshold: least score of a neighbour.
    """

    size: int
    symbols: int
    codes: np.ndarray
    scores: np.ndarray
    threshold: int

    @property
    def own_scores(self) -> np.ndarray:
        """i4[28]: of every residue against its own symbol; 0 where it has none."""
        known = np.flatnonzero(self.codes < self.symbols)
        scores = np.zeros(len(self.codes), np.int32)
        scores[known] = self.scores[known, self.codes[known]]
        return scores

    @property
    def pair_scores(self) -> np.ndarray:
        """i4[28, 28]: of a query residue against the symbol of a target's; far below 0 where either has none."""
        known = np.flatnonzero(self.codes < self.symbols)
        scores = np.full((len(self.codes), len(self.codes)), self.forbidden, np.int32)
        scores[np.ix_(known, known)] = self.scores[np.ix_(known, self.codes[known])]
        return scores

    @property
    def forbidden(self) -> int:
        """A score that no word with it makes up for."""
        return -(1 << 24)

    @property
    def words(self) -> int:
        """Number of different words."""
        return self.symbols**self.size

ABOVE_ALL = 1 << 20
"""A threshold that no word reaches."""


def word_alphabet(options: BlastpOptions) -> WordAlphabet:
    """Of the words that a search with these options looks for."""
    if options.word_size in CLASSES:
        codes, scores = _classes(options.matrix, options.word_size)
        unit = UNITS
    else:
        codes, scores, unit = np.arange(len(PROTEIN), dtype=np.uint8), protein_matrix(options.matrix), 1
    threshold = int(unit * options.word_threshold()) if unit > 1 else options.neighbour_threshold()
    threshold = threshold or ABOVE_ALL  # as the peer has it: words without neighbours
    return WordAlphabet(options.word_size, scores.shape[1], codes, scores, threshold)


@cache
def _classes(matrix: str, word_size: int) -> tuple[np.ndarray, np.ndarray]:
    """`codes` and `scores` of classes of residues."""
    classes = [[PROTEIN.letters.index(letter) for letter in word] for word in CLASSES[word_size].split()]
    frequencies, ratios = background().tolist(), frequency_ratios(matrix)
    codes = np.full(len(PROTEIN), len(classes), np.uint8)
    scores = np.full((len(PROTEIN), len(classes)), -(1 << 15), np.int32)
    unit = UNITS / UNGAPPED[matrix][0]
    for symbol, members in enumerate(classes):
        codes[members] = symbol
        whole = 0.0
        for member in members:
            whole += frequencies[member]
        for residue in range(len(PROTEIN)):
            mean = 0.0
            for member in members:
                mean += ratios[residue, member] * (frequencies[member] / whole)
            if mean >= 1e-8:
                score = math.log(mean) * unit
                scores[residue, symbol] = int(score + (0.5 if score > 0 else -0.5))
    return codes, scores
