"""A volume of a sequence database, whose residues are read when they are asked for, from their image if it has one."""

from typing import Self

import numpy as np

from ...core.sequences import PackedResidues, SequenceBatch, UnreadBatch
from .database import SequenceDatabase
from .packed_stretch import packed_stretch


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


__all__ = ["StoredBatch"]
