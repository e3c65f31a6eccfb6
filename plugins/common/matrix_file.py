"""Substitution matrices of users: text files as BLAST and HMMER read them.

The first line names the columns, a residue each; then there is a row of whole numbers for each, which may begin with
its residue. What follows ``#`` is a comment. An option that names such a file holds its text in one form
(``matrix_text``) from when it is read on, so that a run can be resumed and written without the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray
from seqloom.core.alphabet import NUCLEOTIDE, Alphabet
from seqloom.core.errors import InputError

from .matrices import AMBIGUOUS, FORBIDDEN

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
BASES = "ACGT"
MEMBERS: dict[str, Mapping[str, str]] = {
    "protein": {**{residue: AMBIGUOUS[residue] for residue in "BZ"}, "U": "C", **dict.fromkeys("XOJ", AMINO_ACIDS)},
    "nucleotide": {"R": "AG", "Y": "CT", "M": "AC", "K": "GT", "W": "AT", "S": "CG", "B": "CGT", "D": "AGT",
                   "H": "ACT", "V": "ACG", "N": BASES},
}
"""What each residue that a matrix may lack stands for, by alphabet."""
_ANY = "XOJ"
"""Amino acids of which the first, any, stands for the others."""
_SCORE = re.compile(r"[+-]?[0-9]{1,4}")
_REMEDY = "write a line of residues, then a line of whole numbers for each"


def matrix_text(path: str, alphabet: Alphabet) -> str:
    """The matrix of a file, in the form that ``scores_of_text`` reads, headed by the file's name.

    Raises:
        InputError: the file can't be read, or isn't a matrix of whole numbers for all 20 amino acids or the four bases;
            names file and line.
    """
    try:
        with open(path, encoding="latin-1") as stream:
            residues, scores = _read(stream, path, alphabet)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; give a file with a scoring matrix") from None
    rows = [" ".join(map(str, row)) for row in scores.tolist()]
    return "\n".join([f"# {' '.join(path.split())}", " ".join(residues), *rows])


def file_of(text: str) -> str:
    """The path that a text of ``matrix_text`` comes from."""
    return text.partition("\n")[0].removeprefix("# ")


def scores_of_text(text: str, alphabet: Alphabet) -> tuple[str, NDArray[np.int64]]:
    """Residues of a text of ``matrix_text``, in its order, and their scores, i8[n, n]."""
    return _read(text.splitlines(), file_of(text), alphabet)


@cache
def whole_matrix(text: str, alphabet: Alphabet) -> NDArray[np.int32]:
    """A text of ``matrix_text`` over all codes of its alphabet, read-only i4[a, a], in raw score units.

    A residue that the text lacks scores the mean over all that it may mean, rounded down (U as C, O and J as X, which
    is any amino acid); ``*`` scores the lowest of all. The gap code scores as in the matrices that are built in.
    """
    residues, given = scores_of_text(text, alphabet)
    size = len(alphabet)
    matrix = np.full((size, size), FORBIDDEN, np.int32)
    members = {residue: [residues.index(m) for m in _members(residue, residues, alphabet)]
               for residue in alphabet.letters if residue != "-"}
    for a, first in members.items():
        for b, second in members.items():
            pairs = given[np.ix_(first, second)]
            score = pairs.sum() // pairs.size if pairs.size else given.min()
            matrix[alphabet.letters.index(a), alphabet.letters.index(b)] = score
    matrix.setflags(write=False)
    return matrix


def _members(residue: str, residues: str, alphabet: Alphabet) -> str:
    """Those of a matrix's residues whose scores a residue takes the mean of; none for ``*`` where it isn't there."""
    if residue in residues:
        return residue
    if residue in _ANY and _ANY[0] in residues:
        return _ANY[0]
    return MEMBERS[alphabet.name].get(residue, "")


def _read(lines: Iterable[str], path: str, alphabet: Alphabet) -> tuple[str, NDArray[np.int64]]:
    wanted, what = (BASES, "four bases") if alphabet is NUCLEOTIDE else (AMINO_ACIDS, "20 residues")
    columns: list[str] = []
    rows: list[list[int]] = []
    for number, line in enumerate(lines, 1):
        where, words = f"{path}, line {number}", line.partition("#")[0].split()
        if not words:
            continue
        if not columns:
            columns = _columns(words, alphabet)
            if not columns or not set(wanted) <= set(columns):
                raise InputError(f"{where}: columns must be the {what}, others at will, once each; {_REMEDY}")
            continue
        if len(rows) == len(columns):
            raise InputError(f"{where}: there is a row too many; {_REMEDY}")
        residue = columns[len(rows)]
        if _columns(words[:1], alphabet):
            if _columns(words[:1], alphabet) != [residue]:
                raise InputError(f"{where}: the row of {residue} begins with '{words[0]}'; order rows as columns are")
            words = words[1:]
        if len(words) != len(columns):
            raise InputError(f"{where}: {len(columns)} scores are wanted for {residue}, not {len(words)}; {_REMEDY}")
        if not all(map(_SCORE.fullmatch, words)):
            raise InputError(f"{where}: scores must be whole numbers of up to four digits; {_REMEDY}")
        rows.append([int(word) for word in words])
    if not columns or len(rows) < len(columns):
        raise InputError(f"{path}: it has {len(rows)} of {len(columns) or len(wanted)} rows; {_REMEDY}")
    return "".join(columns), np.array(rows, np.int64)


def _columns(words: list[str], alphabet: Alphabet) -> list[str]:
    """Residues, as the alphabet has them, that words name; none where one isn't a residue or is there twice."""
    residues = [alphabet.aliases.get(word.upper(), word.upper()) for word in words]
    if any(len(r) != 1 or r == "-" or r not in alphabet.letters for r in residues) or len(set(residues)) < len(words):
        return []
    return residues
