"""Images of stored indexes: copies of their pieces in plain files beside the database, for searches to map into memory.

A search that looks few things up then reads only the pages that it touches, and processes share them. The database
stays the truth: an image is used only where it begins with all that the database says of the piece, letter by letter,
and has its size; it can be deleted at any time. Images are written and cleared away by whoever has the database open
for writing, hence by one process at a time. What a killed one leaves has another name, and is removed by whoever opens
the database for writing next or lists its indexes.
"""

import mmap
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

import numpy as np

PAGE = 4096
"""Bytes; headers are padded to whole pages, so that what is aligned in a piece is so in memory."""
MOST = 128
"""Images that a process maps at a time: each stays open as a file, of which some systems allow 256."""

_mapped: "WeakSet[mmap.mmap]" = WeakSet()


@dataclass(frozen=True)
class Image:
    """The file from which a piece of an index is mapped.

    Attributes:
        path: where it is, if there is one.
        header: what it must begin with.
        nbytes: of the piece, which stands behind the header.
    """

    path: Path
    header: bytes
    nbytes: int

    @property
    def name(self) -> str:
        """For people: file and folder."""
        return f"{self.path.parent.name}/{self.path.name}"

    def open(self) -> tuple[np.ndarray | None, str]:
        """u1[nbytes], the piece mapped; or None and why it can't be, which is empty where nothing is wrong.

        The pages are private to who maps them, so that arrays can be written to as those that were read: kernels are
        compiled for either kind apart. As nobody does, the pages stay those that all processes share.
        """
        try:
            with open(self.path, "rb") as file:
                start, size = file.read(len(self.header)), os.fstat(file.fileno()).st_size
                if not self.header.startswith(start):
                    return None, f"{self.name} is of another index"
                if size != len(self.header) + self.nbytes:
                    return None, f"{self.name} has {size:,} bytes instead of {len(self.header) + self.nbytes:,}"
                if len(_mapped) >= MOST:
                    return None, ""
                whole = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            return None, f"{self.name}: {error.strerror}"
        _mapped.add(whole)
        return np.frombuffer(whole, np.uint8)[len(self.header) :], ""

    def write(self, parts: Iterable[bytes]) -> None:
        """Make the file, or replace it, by the bytes of the piece: whole, or not at all.

        Raises:
            OSError: the disk is full, or the folder can't be written to.
        """
        part = self.path.with_name(f"{self.path.name}.part")
        self.path.parent.mkdir(exist_ok=True)
        try:
            with open(part, "wb") as file:
                file.write(self.header)
                for data in parts:
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())  # else a power cut might leave the name and not the content
            os.replace(part, self.path)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def image(database: Path, number: int, piece: int, about: str, nbytes: int) -> Image:
    """The image of a piece of an index of the database at a path.

    Args:
        number, piece: which index and which of its pieces.
        about: all that the database says of them.
        nbytes: of the piece.
    """
    text = f"seqloom index image 1\n{about}\n".encode()
    return Image(_folder(database) / f"index_{number}_{piece}.image", text.ljust(-(-len(text) // PAGE) * PAGE), nbytes)


def clear(database: Path, kept: Collection[Path] = ()) -> None:
    """Remove the images of the database at a path but those that are ``kept``; what can't be removed is never used."""
    _remove(_folder(database), [path for path in _folder(database).glob("index_*.image*") if path not in kept])


def clear_unfinished(database: Path) -> None:
    """Remove what a killed process left of images; only while the database is open, so that nobody else writes any."""
    unfinished = [*_folder(database).glob("index_*.image.part")]
    if unfinished:
        _remove(_folder(database), unfinished)


def _remove(folder: Path, images: Iterable[Path]) -> None:
    for path in images:
        with suppress(OSError):
            path.unlink()
    with suppress(OSError):  # holds images, or something else, or isn't there
        folder.rmdir()


def _folder(database: Path) -> Path:
    """``NAME.duckdb.indexes`` beside the file that the path leads to."""
    return Path(f"{os.path.realpath(database)}.indexes")


__all__ = ["Image", "clear", "clear_unfinished", "image"]
