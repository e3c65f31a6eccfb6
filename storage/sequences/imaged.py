"""A sequence database's image of residues: sought when it is first asked for, made where there is none, left alone
where it is damaged."""

import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...core.alphabet import Alphabet
from ...core.engine.threads import run_tasks
from ...core.sequences import PackedResidues
from . import residue_image
from .chunks import largest_code
from .facts import Facts
from .packed_image import PackedImage, PackedImageWriter
from .residue_image import Image, ImageWriter, ResidueImage

_log = logging.getLogger("seqloom")


class Imaged:
    """What an open database can do with its image. Its methods may be called from several threads."""

    path: Path
    read_only: bool
    alphabet: Alphabet
    total_residues: int
    _about: Facts
    _lock: Any
    _image: Image | None = None
    _image_sought = _image_missed = False

    def chunk(self, chunk: int) -> tuple[int, np.ndarray, np.ndarray]:
        raise NotImplementedError

    @property
    def chunk_residues(self) -> int:
        """Residues of every chunk but the last."""
        return self._about.chunk_residues

    def open_image(self) -> "tuple[ResidueImage | PackedImage | None, str]":
        """The image, if there is one that is of this database, and what is wrong with it otherwise."""
        kind = ResidueImage if self.alphabet.name == "protein" else PackedImage
        return kind.open(self.path, self._about.said, self.total_residues, largest_code(self.alphabet))

    def image(self, make: bool = False) -> ResidueImage | None:
        """The image of all residues as bytes; None where there is none.

        Args:
            make: make it if it isn't there, where that can be done in reasonable time.
        """
        image = self._any_image(make) if self.alphabet.name == "protein" else None
        return image if isinstance(image, ResidueImage) else None

    def packed_image(self, make: bool = False) -> PackedImage | None:
        """The image of all bases, four in a byte, as ``image``."""
        image = self._any_image(make) if self.alphabet.name == "nucleotide" else None
        return image if isinstance(image, PackedImage) else None

    def _any_image(self, make: bool) -> Image | None:
        with self._lock:
            if not self.read_only:
                return None
            if not self._image_sought:
                self._image_sought = True
                self._image, _ = self.open_image()
            if self._image is None and make and not self._image_missed:
                self._image_missed = not self._make_image()
            return self._image

    def _make_image(self) -> bool:
        packed = self.alphabet.name == "nucleotide"
        if (self.total_residues > residue_image.MOST_IN_SEARCH or (packed and self.chunk_residues % 4)
                or not residue_image.may_be_made(self.path, self.total_residues)):
            return False
        writer = PackedImageWriter(self.path) if packed else ImageWriter(self.path)
        try:
            for number in range(-(-self.total_residues // self.chunk_residues)):
                residues, data, runs = self.chunk(number)
                if isinstance(writer, PackedImageWriter):
                    writer.add_chunk(residues, data, runs)
                else:
                    writer.add(data)
        except BaseException:
            writer.discard()
            raise
        if writer.finish(self._about.said):
            self._image, _ = self.open_image()
        return self._image is not None

    def mapped(self, first: int, last: int, threads: int = 1, make: bool = False) -> np.ndarray | None:
        """u8[last − first] codes of a stretch of the row of all residues where they lie in the image, compared with
        their checksums; None without an image. One that is damaged is left alone from then on, and removed.

        Args:
            threads: that may compare side by side.
            make: see ``image``.
        """
        image = self.image(make)
        if image is None:
            return None
        cuts = [*range(first, last, residue_image.BLOCK), last]
        if not all(run_tasks(threads, lambda cut: image.sound(*cut), list(pairwise(cuts)), "read")):
            self._forsake(image)
            return None
        return image.residues[first:last]

    def mapped_bases(self, first: int, last: int) -> PackedResidues | None:
        """Bases ``first`` … ``last`` − 1 of the row of all as they lie in the image, which is made if it isn't there.
        As ``mapped`` otherwise."""
        image = self.packed_image(make=True)
        found = image.stretch(first, last) if image is not None else None
        if image is not None and found is None:
            self._forsake(image)
        return found

    def unpacked(self, spans: np.ndarray, codes: np.ndarray) -> bool:
        """As ``PackedImage.unpack``, from the image of bases, if there is one; whether it has them."""
        image = self.packed_image()
        first, last = spans[:, 0].min(initial=0), (spans[:, 0] + spans[:, 2]).max(initial=0)
        if image is None or first < 0 or last > self.total_residues:
            return False
        if not image.unpack(spans, codes):
            self._forsake(image)
            return False
        return True

    def _forsake(self, image: Image) -> None:
        with self._lock:
            if self._image is image:
                self._image, self._image_missed = None, True
                residue_image.clear(self.path)
                _log.warning("%s is damaged; residues are read from %s itself", image.path, self.path.name)


__all__ = ["Imaged"]
