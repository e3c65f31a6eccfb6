"""Parts of targets that are searched one by one, and the stretches of them in which words of hits may lie.

Targets are searched whole, and longer ones than ``CHUNK`` in chunks that overlap. A mask of the database changes that,
as in BLAST+ 2.12:

- Under a soft one words lie wholly in what isn't masked. What hits are extended over is as without it.
- Under a hard one what isn't masked is searched as if every stretch of it were a target of its own, from a multiple of
  four bases of the target on: up to three masked bases before it are there still. A target is stored as four bases to
  the byte. In the traceback masked bases are ``HARD``.

Words that are narrower than hits are looked for from the place on where the first hit of a stretch ends with one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.sequences import Intervals, SequenceBatch, offsets_of
from seqloom.plugins.nucleotide_blast.index_reference import BASES
from seqloom.plugins.nucleotide_blast.scoring import SMALLEST_WORD

CHUNK, CHUNK_OVERLAP = 5_000_000, 100
"""Longer targets are searched in chunks of so many bases that overlap by so many."""
GROUP = 4
"""Bases of a byte of a stored target."""
HARD = int(NUCLEOTIDE.codes[ord("B")])
"""What the peer reads in place of a hard-masked base: C, G or T, which scores more than N and is equal to none."""


def chunks_of(lengths: np.ndarray, chunk: int, overlap: int) -> tuple[np.ndarray, np.ndarray]:
    """Number i8[c] of the sequence of each chunk of sequences of i8[n] lengths, and where in it each begins, i8[c]:
    chunks of so many bases that overlap by so many, and at least one of every sequence."""
    counts = np.maximum(1, -(-(lengths - overlap) // (chunk - overlap)))
    numbers = np.repeat(np.arange(len(lengths)), counts)
    return numbers, (np.arange(len(numbers)) - np.repeat(offsets_of(counts)[:-1], counts)) * (chunk - overlap)


class TargetPieces(NamedTuple):
    """Pieces of the targets of a volume, in their order, with the stretches of them that a mask leaves.

    Attributes:
        targets: i8[p], position of the target of each.
        begins: i8[p], where each begins in its target: what column ``chunk`` of hits says.
        spans: i8[p, 2], the first place of the volume in it and the one behind it.
        opens: i8[s, 2], places of the volume likewise: stretches in which words of hits may lie, in order.
        bounds: i8[p + 1], the first of the stretches of each piece.
        masked: whether the targets have a mask.
    """

    targets: np.ndarray
    begins: np.ndarray
    spans: np.ndarray
    opens: np.ndarray
    bounds: np.ndarray
    masked: bool

    @property
    def of_opens(self) -> np.ndarray:
        """i8[s], the piece of each stretch."""
        return np.repeat(np.arange(len(self.targets)), np.diff(self.bounds))

    def first_word(self, stride: int) -> int:
        """Where in a stretch the first of the words is that are so many bases apart."""
        return stride - 1 if self.masked else 0

    def scanned_together(self, most: int) -> np.ndarray:
        """i8[u + 1], rising: pieces between two of these numbers can be scanned as one, by their stretches: where these
        don't overlap, in so many bases of a target, about."""
        if not self.masked or len(self.spans) < 2:
            return np.arange(len(self.spans) + 1)
        stretches = np.diff(self.bounds)
        apart = np.zeros(len(self.spans), np.bool_)  # from the piece before
        apart[1:] = ((self.targets[1:] != self.targets[:-1]) | (stretches[1:] == 0) | (stretches[:-1] == 0)
                     | (self.spans[1:, 0] + GROUP <= self.spans[:-1, 1])
                     | (self.begins[1:] // most != self.begins[:-1] // most))
        return np.concatenate([[0], np.flatnonzero(apart), [len(apart)]])

    def holding(self, places: np.ndarray) -> np.ndarray:
        """i8[n]: the pieces in whose stretches hits begin at some places of the volume."""
        opens = np.searchsorted(self.opens[:, 1], places, "right")
        return np.searchsorted(self.bounds, opens, "right") - 1

    def numbers(self, places: Any) -> Any:
        """i8[n]: the pieces that begin at some places of the volume, i8[n], and have bases."""
        return np.searchsorted(self.spans[:, 0], places, "right") - 1

    def ends(self, places: Any) -> Any:
        """i8[n]: where in the volume these end."""
        return self.spans[self.numbers(places), 1]


def pieces_of(context: Context) -> TargetPieces:
    """Those of the volume; made once."""
    targets, options = context.targets, context.options

    def make() -> TargetPieces:
        if not is_masked(options):
            return unmasked_pieces(np.asarray(targets.offsets))
        return soft_pieces(targets) if options.db_hard_mask is None else hard_pieces(targets)

    made: TargetPieces = context.index(BASES).kept("pieces", make)
    return made


def is_masked(options: Any) -> bool:
    """Whether a mask of the database holds under these pipeline options."""
    return any(getattr(options, name, None) is not None for name in ("db_soft_mask", "db_hard_mask"))


def unmasked_pieces(offsets: np.ndarray) -> TargetPieces:
    """Of targets with i8[k + 1] offsets: each whole, or in chunks."""
    targets, chunks = chunks_of(np.diff(offsets), CHUNK, CHUNK_OVERLAP)
    begins = offsets[targets] + chunks
    spans = np.stack([begins, np.minimum(begins + CHUNK, offsets[targets + 1])], axis=1)
    return TargetPieces(targets, chunks, spans, spans, np.arange(len(spans) + 1), False)


def soft_pieces(targets: SequenceBatch) -> TargetPieces:
    """The same pieces, and what a soft mask leaves of each."""
    whole, (_, left) = unmasked_pieces(np.asarray(targets.offsets)), unmasked(targets.soft, targets.offsets)
    # A stretch may be of several chunks. Those of a piece end behind where it begins, and begin before its end.
    first = np.searchsorted(left[:, 1], whole.spans[:, 0], "right")
    counts = np.maximum(0, np.searchsorted(left[:, 0], whole.spans[:, 1], "left") - first)
    bounds = offsets_of(counts)
    piece = np.repeat(np.arange(len(counts)), counts)
    opens = left[np.arange(bounds[-1]) - np.repeat(bounds[:-1] - first, counts)]
    opens = np.stack([np.maximum(opens[:, 0], whole.spans[piece, 0]), np.minimum(opens[:, 1], whole.spans[piece, 1])],
                     axis=1)
    return whole._replace(opens=opens, bounds=bounds, masked=True)


def hard_pieces(targets: SequenceBatch) -> TargetPieces:
    """What a hard mask leaves of targets, each stretch a piece, or in chunks."""
    of, left = unmasked(targets.hard, targets.offsets)
    before = targets.offsets[of]
    first = left[:, 0] - (left[:, 0] - before) % GROUP
    number, chunks = chunks_of(left[:, 1] - first, CHUNK, CHUNK_OVERLAP)
    begins = first[number] + chunks
    spans = np.stack([begins, np.minimum(begins + CHUNK, left[number, 1])], axis=1)
    opens = np.stack([np.maximum(begins, left[number, 0]), spans[:, 1]], axis=1)
    return TargetPieces(of[number], begins - before[number], spans, opens, np.arange(len(spans) + 1), True)


def unmasked(masked: Intervals, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What stretches, which don't touch, leave of sequences with i8[k + 1] offsets, where it may hold a word.

    Returns:
        i8[s], the sequence of each stretch, and i8[s, 2], its first place and the one behind it in all sequences.
    """
    counts = np.bincount(masked.sequence, minlength=len(offsets) - 1) + 1
    bounds = offsets_of(counts)
    of, base = np.repeat(np.arange(len(counts)), counts), offsets[masked.sequence]
    left = np.empty((bounds[-1], 2), np.int64)
    inner = np.ones((bounds[-1], 2), np.bool_)
    inner[bounds[:-1], 0] = inner[bounds[1:] - 1, 1] = False
    left[bounds[:-1], 0], left[bounds[1:] - 1, 1] = offsets[:-1], offsets[1:]
    left[inner[:, 0], 0], left[inner[:, 1], 1] = base + masked.end, base + masked.start
    long = left[:, 1] - left[:, 0] >= SMALLEST_WORD
    return of[long], left[long]


def hard_runs(targets: SequenceBatch) -> np.ndarray:
    """i8[m, 3], stretches of a volume that are hard-masked, with ``HARD``."""
    base = targets.offsets[targets.hard.sequence]
    return np.stack([base + targets.hard.start, base + targets.hard.end, np.full_like(base, HARD)], axis=1)


def aligned_target(targets: SequenceBatch, place: int, residues: bytes) -> bytes:
    """Residues of the target at a position of the volume as the traceback aligns them; the same where none are masked.

    residues: as they are.
    """
    stretches = targets.hard.of_sequence(place).tolist()
    if not stretches:
        return residues
    aligned = bytearray(residues)
    for start, end in stretches:
        aligned[start:end] = bytes([HARD]) * (end - start)
    return bytes(aligned)
