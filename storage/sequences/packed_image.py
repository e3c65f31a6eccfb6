"""The image of a nucleotide database: bases four in a byte, the first one highest, as kernels read them.

An ambiguity has any base there; what it is stands in the runs behind the bases. A stretch is mapped anew for whoever
asks for it, who may write to it: the pages that are written to become the process's own.
"""

import os
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...core.sequences import PackedResidues
from .residue_image import PAGE, Image, ImageWriter, mapped_file

_RUN = np.dtype([("start", "<i8"), ("end", "<i8"), ("code", "<i8")])
"""One run of equal ambiguities: its first place in the row of all bases, the place behind it, its code."""
_TURNED = np.array([(byte & 3) << 6 | (byte & 12) << 2 | byte >> 2 & 12 | byte >> 6 for byte in range(256)], np.uint8)
_QUADS = np.array([[byte >> shift & 3 for shift in (6, 4, 2, 0)] for byte in range(256)], np.uint8).view("<u4").ravel()


def turned(data: np.ndarray) -> np.ndarray:
    """u8[n]: four bases a byte with the first one highest where it is lowest, or the other way round."""
    return np.take(_TURNED, data, mode="clip")


class PackedImage(Image):
    """The image of nucleotides.

    Attributes:
        runs: records of ``_RUN``, in rising order.
    """

    kind = "packed"

    @staticmethod
    def bytes_of(residues: int) -> int:
        return -(-residues // 4)

    @staticmethod
    def fits(extra: int) -> bool:
        return extra >= PackedResidues.SPARE and (extra - PackedResidues.SPARE) % _RUN.itemsize == 0

    def _know(self, extra: bytes, file: int) -> None:
        self.runs = np.frombuffer(extra, _RUN, offset=PackedResidues.SPARE)
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
        own = self.runs[np.searchsorted(self.runs["end"], first, "right") : np.searchsorted(self.runs["start"], last)]
        return np.maximum(own["start"], first), np.minimum(own["end"], last), own["code"].copy()

    def unpack(self, stretches: Sequence[tuple[int, np.ndarray]]) -> bool:
        """Fill arrays u8[n] with codes from places on of the row of all bases; whether these match their checksums."""
        places = np.array([place for place, _ in stretches], np.int64)
        ends = places + np.array([len(out) for _, out in stretches], np.int64)
        if not all(map(self.sound, (places // 4).tolist(), (-(-ends // 4)).tolist())):
            return False
        for place, out in stretches:
            begin = place // 4
            quads = np.take(_QUADS, self.body[begin : -(-(place + len(out)) // 4)], mode="clip")
            out[:] = quads.view(np.uint8)[place - 4 * begin : place - 4 * begin + len(out)]
        low = np.searchsorted(self.runs["end"], places, "right")
        high = np.searchsorted(self.runs["start"], ends)
        for at in np.flatnonzero(low < high).tolist():
            place, out = stretches[at]
            for start, end, code in self.runs[low[at] : high[at]].tolist():
                out[max(0, start - place) : end - place] = code
        return True

    def wrong(self, first: int, codes: np.ndarray) -> str:
        """What is wrong with bases from ``first`` on, which are u8[n] ``codes`` in the database; "" if nothing."""
        own = np.empty(len(codes), np.uint8)
        if not self.unpack([(first, own)]):
            return f"{self.path.name}: bases from {first + 1:,} on don't match their checksum"
        if not np.array_equal(own, codes):
            return f"{self.path.name}: bases from {first + 1:,} on are not those of the database"
        return ""


class PackedImageWriter(ImageWriter):
    """Writes an image of chunks as they are stored."""

    def __init__(self, database: "str | Path") -> None:
        super().__init__(database, PackedImage)
        self._residues, self._runs = 0, [np.empty(0, _RUN)]

    def add_chunk(self, residues: int, data: np.ndarray, runs: np.ndarray) -> None:
        """Write so many residues of the next chunk. All but the last chunk have whole bytes."""
        self.add(turned(data))
        own = np.empty(len(runs), _RUN)
        own["start"] = runs["start"]
        own["start"] += self._residues
        own["end"] = own["start"] + runs["length"]
        own["code"] = runs["code"]
        self._runs.append(own)
        self._residues += residues

    def finish(self, about: str, extra: bytes = b"") -> bool:
        return super().finish(about, bytes(PackedResidues.SPARE) + np.concatenate(self._runs).tobytes())


__all__ = ["PackedImage", "PackedImageWriter", "turned"]
