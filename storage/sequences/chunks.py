"""Chunks of residues as they are stored: their checksums, and whether one can be what it is said to be."""

import zlib

import numpy as np

from ...core.alphabet import INVALID, Alphabet
from .packing import RUN


def unsound(kind: Alphabet, residues: int, data: bytes, ambiguities: bytes) -> str:
    """Why a chunk can't be what was written of ``residues`` residues, whatever its checksum; empty if it can."""
    packed = -(-residues // 4) if kind.name == "nucleotide" else residues
    if packed != len(data) or len(ambiguities) % RUN.itemsize:
        return f"{residues:,} residues in {len(data):,} bytes"
    codes = np.frombuffer(data, np.uint8) if kind.name == "protein" else np.empty(0, np.uint8)
    runs = np.frombuffer(ambiguities, RUN)
    if max(int(codes.max(initial=0)), int(runs["code"].max(initial=0))) > largest_code(kind):
        return "codes outside the alphabet"
    if len(runs) and int((runs["start"].astype(np.int64) + runs["length"]).max()) > residues:
        return "ambiguous bases behind its end"
    return ""


def largest_code(kind: Alphabet) -> int:
    """Of the residues of an alphabet."""
    return int((kind.codes[kind.codes != INVALID]).max())


def checksum(data: bytes, ambiguities: bytes) -> int:
    """CRC-32 of a chunk as it is stored: finds every flipped byte."""
    return zlib.crc32(ambiguities, zlib.crc32(data))
