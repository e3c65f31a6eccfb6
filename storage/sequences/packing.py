"""Nucleotides at two bits each: four residues a byte, and the runs of residues that are none of A, C, G, T kept apart.

The first residue of four stands in the lowest bits of its byte. A residue inside a run has the bits 00, and the last
byte is filled up with 00, so that equal sequences have equal bytes.
"""

import numpy as np

RUN = np.dtype([("start", "<u4"), ("length", "<u4"), ("code", "u1")])
"""One run of equal ambiguous residues: first position, length, code."""

_AT_ONCE = 1 << 15
"""Bytes that are unpacked at a time: numpy makes numbers of eight times their size of them, which stay in the cache."""
_SHIFTS = np.uint32(1 << 24 | 1 << 18 | 1 << 12 | 1 << 6)
_QUADS = np.array([[byte >> shift & 3 for shift in (0, 2, 4, 6)] for byte in range(256)], np.uint8).view("<u4").ravel()


def pack(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pack u8[n] nucleotide codes.

    Returns:
        u8[⌈n/4⌉], and the runs of codes above 3 as ``RUN`` records in order of position.
    """
    runs = ambiguous_runs(codes)
    padded = np.zeros(-(-len(codes) // 4) * 4, np.uint8)
    padded[: len(codes)] = codes
    if len(runs):
        padded[padded > 3] = 0
    # One multiplication moves the two low bits of all four bytes into the top byte; no two terms meet.
    return (padded.view("<u4") * _SHIFTS >> np.uint32(24)).astype(np.uint8), runs


def ambiguous_runs(codes: np.ndarray) -> np.ndarray:
    """Runs of equal codes above 3 in u8[n] ``codes``, as ``RUN`` records."""
    places = np.flatnonzero(codes > 3)
    if not len(places):
        return np.empty(0, RUN)
    residues = codes[places]
    first = np.ones(len(places), bool)
    first[1:] = (np.diff(places) != 1) | (residues[1:] != residues[:-1])
    begin = np.flatnonzero(first)
    runs = np.empty(len(begin), RUN)
    runs["start"] = places[begin]
    runs["length"] = np.diff(np.append(begin, len(places)))
    runs["code"] = residues[begin]
    return runs


def unpack(data: np.ndarray, residues: int, runs: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """u8[residues] codes from what ``pack`` gave; written to ``out`` where that is given."""
    if out is None:
        out = np.empty(residues, np.uint8)
    whole = residues // 4
    aligned = out.ctypes.data % 4 == 0 and out.flags.c_contiguous
    for first in range(0, whole, _AT_ONCE):
        last = min(first + _AT_ONCE, whole)
        if aligned:
            np.take(_QUADS, data[first:last], out=out[4 * first : 4 * last].view("<u4"), mode="clip")
        else:
            out[4 * first : 4 * last] = np.take(_QUADS, data[first:last], mode="clip").view(np.uint8)
    if residues % 4:
        out[4 * whole :] = _QUADS[data[whole:]].view(np.uint8)[: residues % 4]
    if len(runs):
        lengths = runs["length"].astype(np.int64)
        places = np.arange(lengths.sum()) + np.repeat(runs["start"] - (np.cumsum(lengths) - lengths), lengths)
        out[places] = np.repeat(runs["code"], lengths)
    return out
