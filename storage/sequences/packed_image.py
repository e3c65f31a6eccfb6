"""The image of a nucleotide database: bases four in a byte, the first one highest, as kernels read them.

An ambiguity has any base there; what it is stands in the runs behind the bases. A stretch is mapped anew for whoever
asks for it, who may write to it: the pages that are written to become the process's own.
"""

import os
import weakref
from pathlib import Path

import numpy as np

from ...core.sequences import PackedResidues
from . import residue_image
from .residue_image import PAGE, Image, ImageWriter, mapped_file

_BYTES_OF_RUN = 24
_TURNED = np.array([(byte & 3) << 6 | (byte & 12) << 2 | byte >> 2 & 12 | byte >> 6 for byte in range(256)], np.uint8)


def turned(data: np.ndarray) -> np.ndarray:
    """u8[n]: four bases a byte with the first one highest where it is lowest, or the other way round."""
    return np.take(_TURNED, data, mode="clip")


class PackedImage(Image):
    """The image of nucleotides.

    Attributes:
        runs: i8[m, 3], of each run of equal ambiguities, in rising order, its first place in the row of all bases, the
            place behind it, and its code.
    """

    kind = "packed"

    @staticmethod
    def bytes_of(residues: int) -> int:
        return -(-residues // 4)

    @staticmethod
    def fits(extra: int) -> bool:
        return extra >= PackedResidues.SPARE and (extra - PackedResidues.SPARE) % _BYTES_OF_RUN == 0

    def _know(self, extra: bytes, file: int) -> None:
        self.runs = np.frombuffer(extra, "<i8", offset=PackedResidues.SPARE).reshape(-1, 3).astype(np.int64)
        self._file = os.dup(file)  # whatever has its name later
        weakref.finalize(self, os.close, self._file)

    def stretch(self, first: int, last: int) -> PackedResidues | None:
        """Bases ``first`` … ``last`` − 1 of the row of all; None if they don't match their checksums."""
        begin, end = first // 4, -(-last // 4)
        if not self.sound(begin, end):
            return None
        page = (PAGE + begin) // PAGE * PAGE
        # Whoever has read checksums of pages needn't keep them: the mapping that is given has them from the same cache.
        self._advise("MADV_DONTNEED", begin, end)
        size = PAGE + end + PackedResidues.SPARE - page
        data = np.frombuffer(mapped_file(self._file, size, page), np.uint8, offset=PAGE + begin - page)
        starts, ends, codes = self._runs_in(first, last)
        return PackedResidues(data, first % 4, starts - first, ends - starts, codes)

    def _runs_in(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts, ends and codes, i8[m] each, of runs within bases ``first`` … ``last`` − 1."""
        own = self.runs[np.searchsorted(self.runs[:, 1], first, "right") : np.searchsorted(self.runs[:, 0], last)]
        return np.maximum(own[:, 0], first), np.minimum(own[:, 1], last), own[:, 2].copy()

    def unpack(self, spans: np.ndarray, codes: np.ndarray) -> bool:
        """Fill stretches of u1 ``codes`` with codes of bases; whether these match their checksums.

        spans: i8[s, 3], place of the first base in the row of all, place in ``codes``, bases.
        """
        from .unpacking_cpu import mark_runs, unpack_spans

        begins, ends = spans[:, 0] // 4, (spans[:, 0] + spans[:, 2] + 3) // 4
        size = residue_image.BLOCK
        blocks = {*zip((begins // size).tolist(), (-(-ends // size)).tolist(), strict=True)}
        if not all(self.sound(first * size, last * size) for first, last in blocks):
            return False
        unpack_spans(self.body, spans, codes, codes[: len(codes) & ~3].view(np.uint32))
        mark_runs(self.runs, spans, codes)
        return True

    def wrong(self, first: int, codes: np.ndarray) -> str:
        """What is wrong with bases from ``first`` on, which are u8[n] ``codes`` in the database; "" if nothing."""
        own = np.empty(len(codes), np.uint8)
        if not self.unpack(np.array([[first, 0, len(codes)]], np.int64), own):
            return f"{self.path.name}: bases from {first + 1:,} on don't match their checksum"
        if not np.array_equal(own, codes):
            return f"{self.path.name}: bases from {first + 1:,} on are not those of the database"
        return ""


class PackedImageWriter(ImageWriter):
    """Writes an image of chunks as they are stored."""

    def __init__(self, database: "str | Path") -> None:
        super().__init__(database, PackedImage)
        self._residues, self._runs = 0, [np.empty((0, 3), np.int64)]

    def add_chunk(self, residues: int, data: np.ndarray, runs: np.ndarray) -> None:
        """Write so many residues of the next chunk. All but the last chunk have whole bytes."""
        self.add(turned(data))
        starts = runs["start"].astype(np.int64) + self._residues
        self._runs.append(np.stack([starts, starts + runs["length"], runs["code"]], axis=1).astype(np.int64))
        self._residues += residues

    def finish(self, about: str, extra: bytes = b"") -> bool:
        return super().finish(about, bytes(PackedResidues.SPARE) + np.concatenate(self._runs).astype("<i8").tobytes())


__all__ = ["PackedImage", "PackedImageWriter", "turned"]
