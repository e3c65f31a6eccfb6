"""Alphabets: which letters a sequence may have and the codes that stand for them.

Protein codes follow NCBIstdaa and nucleotide codes follow blastna, so that code 0 (gap) can serve as a sentinel for
proteins and the four bases are 0…3. Case is no part of a code: lower case is kept beside the residues as intervals.
"""

from dataclasses import field
from functools import cached_property

import numpy as np

from .classes import dataclass
from .errors import AlphabetError, UnknownNameError

_Bytes = bytes
INVALID = 255
"""Code of a byte that is no letter of the alphabet."""


@dataclass(frozen=True)
class Alphabet:
    """Letters in code order.

    Attributes:
        name: "protein" or "nucleotide".
        letters: the letter of each code, upper case.
        aliases: letters that read as another letter (U as T in nucleotides).
        unknown: the letter that stands for any residue, used for hard masking.
        complement_letters: for each code the letter that pairs with it on the other strand; empty for proteins.
    """

    name: str
    letters: str
    unknown: str
    aliases: dict[str, str] = field(default_factory=dict, hash=False)
    complement_letters: str = ""

    def __len__(self) -> int:
        return len(self.letters)

    def __reduce__(self) -> tuple:
        return (alphabet, (self.name,))

    @cached_property
    def codes(self) -> np.ndarray:
        """u8[256]: code of each byte, either case; ``INVALID`` elsewhere."""
        table = np.full(256, INVALID, np.uint8)
        pairs = [(letter, code) for code, letter in enumerate(self.letters)]
        pairs += [(letter, self.letters.index(other)) for letter, other in self.aliases.items()]
        for letter, code in pairs:
            table[ord(letter)] = table[ord(letter.lower())] = code
        table.setflags(write=False)
        return table

    @cached_property
    def bytes(self) -> np.ndarray:
        """u8[256]: upper-case letter of each code; "?" for codes that don't exist."""
        table = np.full(256, ord("?"), np.uint8)
        table[: len(self.letters)] = np.frombuffer(self.letters.encode(), np.uint8)
        table.setflags(write=False)
        return table

    @cached_property
    def complement(self) -> np.ndarray:
        """u8[256]: code of the complement of each code. Raises ``AlphabetError`` for an alphabet without strands."""
        if not self.complement_letters:
            raise AlphabetError(f"{self.name} sequences have no complement strand")
        table = np.full(256, INVALID, np.uint8)
        table[: len(self.letters)] = [self.letters.index(letter) for letter in self.complement_letters]
        table.setflags(write=False)
        return table

    @property
    def unknown_code(self) -> int:
        return self.letters.index(self.unknown)

    def encode(self, text: "str | _Bytes") -> np.ndarray:
        """u8[n] codes of ``text``; raises ``AlphabetError`` naming the first letter that doesn't belong."""
        raw = np.frombuffer(text.encode("latin-1", "replace") if isinstance(text, str) else text, np.uint8)
        codes = self.codes[raw]
        bad = np.flatnonzero(codes == INVALID)
        if bad.size:
            letter = chr(raw[bad[0]])
            raise AlphabetError(f"letter {letter!r} at position {bad[0] + 1} is not in the {self.name} alphabet")
        return codes

    def decode(self, codes: np.ndarray) -> str:
        """Upper-case text of u8[n] codes."""
        return self.bytes[codes].tobytes().decode("ascii")


PROTEIN = Alphabet("protein", "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ", unknown="X")
NUCLEOTIDE = Alphabet(
    "nucleotide",
    "ACGTRYMKWSBDHVN-",
    unknown="N",
    aliases={"U": "T"},
    complement_letters="TGCAYRKMWSVHDBN-",
)
_ALPHABETS = {a.name: a for a in (PROTEIN, NUCLEOTIDE)}


def alphabet(name: str) -> Alphabet:
    """The alphabet called ``name``."""
    if name not in _ALPHABETS:
        raise UnknownNameError("sequence type", name, list(_ALPHABETS))
    return _ALPHABETS[name]
