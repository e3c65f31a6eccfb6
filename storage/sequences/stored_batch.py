"""A volume of a sequence database, whose residues are read when they are asked for, from their image if it has one."""

from typing import Self

import numpy as np

from ...core.sequences import PackedResidues, SequenceBatch, UnreadBatch
from ...core.sparse import sparse
from .database import SequenceDatabase
from .packed_stretch import packed_stretch, unpack_stretches

BLOCK = 1 << 12
"""Residues that are read together where few are asked for."""
FETCHED_WHOLE = 1 << 22
"""Residues up to which sequences that are fetched are read whole."""


class StoredBatch(UnreadBatch):
    """Consecutive sequences of a database. From an image residues aren't copied: whoever asks for a stretch of them has
    that compared with its checksums, and nothing else."""

    @classmethod
    def in_database(cls, database: SequenceDatabase, begin: int, offsets: np.ndarray, ordinals: np.ndarray,
                    stored: np.ndarray, threads: int) -> Self:
        """The sequences with i8[k] ``stored`` ordinals in the database, numbered by i8[k] ``ordinals``.

        Args:
            begin: place of the first residue in the row of all.
            offsets: i8[k+1], from there.
            threads: that may read side by side.
        """
        end = begin + int(offsets[-1])

        def residues() -> np.ndarray:
            mapped = database.mapped(begin, end, threads, make=True)
            return mapped if mapped is not None else database.residues(np.array([begin]), np.array([end - begin]),
                                                                       threads)

        batch = cls.from_readers(database.alphabet, offsets, ordinals, residues, lambda: database.lower(stored))
        batch.__dict__["_stored"] = database, begin, stored, threads
        return batch

    def renumbered(self, ordinals: np.ndarray) -> SequenceBatch:
        """The same sequences with other global numbers."""
        if "_stored" not in self.__dict__:
            return super().renumbered(ordinals)
        database, begin, stored, threads = self._stored
        return self.in_database(database, begin, self.offsets, ordinals, stored, threads)

    def stretch(self, first: int, last: int) -> np.ndarray:
        if "_stored" in self.__dict__ and not self.loaded and not len(self.hard):
            database, begin, _, threads = self._stored
            mapped = database.mapped(begin + first, begin + last, threads, make=True)
            if mapped is not None:
                return mapped
            if last - first <= BLOCK:
                return database.residues(np.array([begin + first]), np.array([last - first]))
        return super().stretch(first, last)

    def packed(self) -> PackedResidues | None:
        if "_stored" not in self.__dict__ or self.loaded or self.alphabet.name != "nucleotide":
            return None
        database, begin, _, threads = self._stored
        return packed_stretch(database, begin, begin + self.total_residues, threads)

    def load(self) -> None:
        """Read the residues now; those of an image are brought into the system's cache meanwhile."""
        image = self._image(make=True)
        if image is None:
            super().load()
        else:
            image[0].expect(*image[1:])

    def rest(self) -> None:
        image = self._image()
        if image is not None:
            image[0].rest(*image[1:])

    def _image(self, make: bool = False) -> tuple | None:
        """The image with these residues and where they are in it; None if there is none, or they are read already."""
        if "_stored" not in self.__dict__:
            return None
        database, begin, _, _ = self._stored
        image = database.image(make)
        return None if image is None else (image, begin, begin + self.total_residues)


class FetchedBatch(UnreadBatch):
    """Long sequences of a database, of which as a rule but a few stretches are looked at: these are read alone, with
    what is beside them, and stay in memory."""

    @classmethod
    def in_database(cls, database: SequenceDatabase, whole: SequenceBatch, starts: np.ndarray,
                    stored: np.ndarray) -> Self:
        """Sequences of ``whole``, which has no residues, that begin at i8[k] ``starts`` in the row of all.

        stored: i8[k], their ordinals in the database.
        """
        batch = cls.from_readers(database.alphabet, whole.offsets, whole.ordinals,
                                 lambda: database.residues(starts, np.diff(whole.offsets)),
                                 lambda: database.lower(stored))
        batch.__dict__.update(names=whole.names, descriptions=whole.descriptions, _database=database, _starts=starts,
                              _stored=stored, _pieces=_pieces(starts, whole.offsets))
        return batch

    def renumbered(self, ordinals: np.ndarray) -> SequenceBatch:
        whole = SequenceBatch(self.alphabet, np.empty(0, np.uint8), self.offsets, ordinals, names=self.names,
                              descriptions=self.descriptions)
        return self.in_database(self._database, whole, self._starts, self._stored)

    def around(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        if "_pieces" not in self.__dict__ or self.loaded:
            return super().around(first, last)
        with self._reading:
            if "_some" not in self.__dict__:
                blocks = -(-self.total_residues // BLOCK)
                self.__dict__["_some"] = sparse(self.total_residues, 0), np.zeros(blocks, np.bool_)
            codes, there = self._some
            wanted = np.zeros(len(there) + 1, np.int64)
            some = last > first
            np.add.at(wanted, first[some] // BLOCK, 1)
            np.add.at(wanted, (last[some] - 1) // BLOCK + 1, -1)
            new = (np.cumsum(wanted[:-1]) > 0) & ~there
            self._read(codes, new)
            there |= new
        found: np.ndarray = codes
        return found

    def _read(self, codes: np.ndarray, blocks: np.ndarray) -> None:
        """Read bool[b] blocks into codes."""
        edges = np.flatnonzero(np.diff(blocks.astype(np.int8), prepend=0, append=0)) * BLOCK
        low, high = np.minimum(edges, len(codes)).reshape(-1, 2).T
        begins, ends, starts = self._pieces
        first, last = np.searchsorted(ends, low, "right"), np.searchsorted(begins, high)
        parts = last - first
        part = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        piece = np.repeat(first, parts) + part
        own = np.maximum(np.repeat(low, parts), begins[piece])
        size = np.minimum(np.repeat(high, parts), ends[piece]) - own
        unpack_stretches(self._database, np.stack([starts[piece] - begins[piece] + own, own, size], axis=1), codes)


def _pieces(starts: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Begins and ends of what is in one piece in a batch and in the row of all, and where it begins there."""
    new = np.append(True, starts[1:] != starts[:-1] + np.diff(offsets)[:-1])
    begins = offsets[:-1][new]
    return begins, np.append(begins[1:], offsets[-1]), starts[new]


__all__ = ["FETCHED_WHOLE", "FetchedBatch", "StoredBatch"]
