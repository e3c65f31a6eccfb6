"""What a model database says of itself and of each of its models, and the checksums that tie models to their rows."""

import zlib
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from seqloom.core.classes import dataclass

LONGEST = 2**31 - 1
"""Positions that a model may have: lengths are i4."""
ALPHABETS = ("protein", "nucleotide")
PARTS = {"head": "heads", "body": "bodies", "text": "texts"}
"""What is kept of a model, and the columns of chunks with it."""
COLUMNS = ["ordinal", "name", "accession", "description", "length", "chunk",
            *(f"{part}_{what}" for part in PARTS for what in ("start", "bytes", "checksum"))]
"""Of table ``models`` but for its last, the digest."""


@dataclass(frozen=True)
class Facts:
    """What table ``database`` says, with the file's revision."""

    title: str
    alphabet: str
    reader: str
    packing: int
    models: int
    positions: int
    longest: int
    shortest: int
    fingerprint: str
    created: datetime
    revision: str

    def wrong(self) -> str:
        """What of it can't be; empty if all can."""
        numbers = (self.packing, self.models, self.positions, self.longest, self.shortest)
        if any(value is None for value in (self.title, self.alphabet, self.reader, *numbers, self.fingerprint,
                                           self.created)):
            return "its table database lacks a value"
        if self.alphabet not in ALPHABETS:
            return f"it says that its models are of {self.alphabet} sequences"
        if min(numbers) < 0 or not self.shortest <= self.longest <= min(self.positions, LONGEST) or (
                self.positions > self.models * self.longest):
            return "its numbers make no sense"
        return ""


@dataclass(frozen=True)
class Rows:
    """Rows of table ``models``: columns of equal length, in order of ``ordinals``."""

    ordinals: np.ndarray
    names: list[str]
    accessions: list[str]
    descriptions: list[str]
    lengths: np.ndarray
    chunks: np.ndarray
    head_starts: np.ndarray
    head_sizes: np.ndarray
    head_checksums: np.ndarray
    body_starts: np.ndarray
    body_sizes: np.ndarray
    body_checksums: np.ndarray
    text_starts: np.ndarray
    text_sizes: np.ndarray
    text_checksums: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def part(self, first: int, last: int) -> "Rows":
        """Rows first … last − 1 of these."""
        return Rows(*(column[first:last] for column in vars(self).values()))

    def about(self, place: int) -> bytes:
        """What a row says of its model, apart from where it is."""
        return about(int(self.ordinals[place]), self.names[place], self.accessions[place], self.descriptions[place],
                     int(self.lengths[place]))


def about(ordinal: int, name: str, accession: str, description: str, length: int) -> bytes:
    """What a row says of its model, as bytes that no other row has."""
    return "\n".join((str(ordinal), name, accession, description, str(length), "")).encode("utf-8", "surrogatepass")


def checksum(said: bytes, data: bytes) -> int:
    """CRC-32 of what a row says and of the model's bytes: finds every flipped byte, and what belongs to another row."""
    return zlib.crc32(data, zlib.crc32(said))


def model_digest(said: bytes, text: str) -> bytes:
    """SHA-256 of a model: what its row says, and the text that it was read from."""
    import hashlib

    digest = hashlib.sha256(said)
    digest.update(text.encode("utf-8", "surrogateescape"))
    return digest.digest()


def fingerprint(kind: str, reader: str, digests: Sequence[bytes]) -> str:
    """Hexadecimal fingerprint of a database from the digests of all models, in order."""
    import hashlib

    digest = hashlib.sha256(f"seqloom models 1\n{kind}\n{reader}\n{len(digests)}\n".encode())
    for part in digests:
        digest.update(part)
    return digest.hexdigest()[:32]
