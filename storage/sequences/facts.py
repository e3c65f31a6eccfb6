"""What a sequence database says of itself."""

from datetime import datetime

from seqloom.core.classes import NamedTuple

from .fingerprint import BLOCK_RESIDUES

CHUNK_RESIDUES = {"protein": BLOCK_RESIDUES, "nucleotide": 4 * BLOCK_RESIDUES}
"""Residues of a chunk: 4 MiB of packed residues."""
LONGEST = 2**31 - 1
"""Residues that a sequence may have: positions are i4."""


class Facts(NamedTuple):
    """What table ``database`` says, with the file's revision and whether there are masks."""

    title: str
    alphabet: str
    chunk_residues: int
    sequences: int
    total_residues: int
    longest: int
    shortest: int
    fingerprint: str
    created: datetime
    parsed_names: bool
    revision: str
    masked: bool

    @property
    def said(self) -> str:
        """What an image of the residues says of the database."""
        return f"{self.fingerprint} {self.alphabet} {self.sequences} {self.total_residues}"

    def wrong(self) -> str:
        """What of it can't be; empty if all can."""
        numbers = (self.chunk_residues, self.sequences, self.total_residues, self.longest, self.shortest)
        if any(value is None for value in (self.title, self.alphabet, *numbers, self.fingerprint, self.created)):
            return "its table database lacks a value"
        if self.alphabet not in CHUNK_RESIDUES:
            return f"it says that it holds {self.alphabet} sequences"
        if not 0 < self.chunk_residues <= LONGEST or min(numbers) < 0:
            return "its numbers make no sense"
        if (not self.shortest <= self.longest <= min(self.total_residues, LONGEST)
                or self.total_residues > self.sequences * self.longest):
            return "its lengths make no sense"
        return ""
