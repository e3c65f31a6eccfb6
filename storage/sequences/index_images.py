"""Images of stored indexes: copies of their pieces in plain files beside the database, for searches to map into memory.

A search that looks few things up then reads only the pages that it touches, and processes share them. The database
stays the truth: an image is used only where it begins with all that the database says of the piece, character by
character, has its size, and matches the checksums at its end; it can be deleted at any time. They are compared once
for a file: ``index_0_0.image.sound`` beside ``index_0_0.image`` says which file, by its number, size and times, was
found to be as it was written, and whether its arrays were found to make sense. Whoever may not write there looks at all
of it at every search.

Images are written and cleared away by whoever has the database open for writing, hence by one process at a time. What a
killed one leaves has another name, and is removed by whoever opens the database for writing next or lists its indexes.
"""

import mmap
import os
import zlib
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

import numpy as np
from seqloom.core.classes import NamedTuple

PAGE = 4096
"""Bytes; headers are padded to whole pages, so that what is aligned in a piece is so in memory."""
MOST = 128
"""Images that a process maps at a time: each stays open as a file, of which some systems allow 256."""

BLOCK = 4 << 20
"""Bytes for each checksum."""
MOST_THREADS = 4
"""Threads that compare checksums."""
SOUND = ".sound"
"""End of the name of a mark."""
SENSIBLE = "arrays make sense\n"
"""Last line of a mark where not only the checksums were compared."""

_sound: set[str] = set()
"""Marks of files that this process has found to be sound."""
_mapped: "WeakSet[mmap.mmap]" = WeakSet()


class Image(NamedTuple):
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

    @property
    def mark(self) -> Path:
        """Where it is written down that the file was found sound."""
        return self.path.with_name(f"{self.path.name}{SOUND}")

    def open(self, verified: bool = True,
             wrong: "Callable[[np.ndarray], str] | None" = None) -> tuple[np.ndarray | None, str]:
        """u1[nbytes], the piece mapped; or None and why it can't be, which is empty where nothing is wrong.

        The pages are private to who maps them, so that arrays can be written to as those that were read: kernels are
        compiled for either kind apart. As nobody does, the pages stay those that all processes share.

        Args:
            verified: compare with the checksums, unless that was done for this file before.
            wrong: says what is wrong with the content beside that; not asked if it found nothing in this file before.
        """
        whole_size = len(self.header) + self.nbytes + 4 * (-(-self.nbytes // BLOCK) + 1)
        try:
            with open(self.path, "rb") as file:
                start, about = file.read(len(self.header)), os.fstat(file.fileno())
                if not self.header.startswith(start):
                    return None, f"{self.name} is of another index"
                if about.st_size != whole_size:
                    return None, f"{self.name} has {about.st_size:,} bytes instead of {whole_size:,}"
                if len(_mapped) >= MOST:
                    return None, ""
                whole = mmap.mmap(file.fileno(), whole_size, access=mmap.ACCESS_COPY)
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            return None, f"{self.name}: {error.strerror}"
        _mapped.add(whole)
        content = np.frombuffer(whole, np.uint8)[len(self.header) :]
        wanted, content = content[self.nbytes :].tobytes(), content[: self.nbytes]
        if verified:
            said = _said(about, wanted)
            if not self._found_sound(said) and not _matches(content, wanted):
                return None, f"{self.name} is damaged"
            known = said + SENSIBLE if wrong else said
            if not self._found_sound(known):
                why = wrong(content) if wrong else ""
                if why:
                    return None, f"{self.name}: {why}"
                self._mark_sound(known)
        return content, ""

    def write(self, parts: Iterable[bytes]) -> None:
        """Make the file, or replace it, by the bytes of the piece: whole, or not at all.

        Raises:
            OSError: the disk is full, or the folder can't be written to.
        """
        part = self.path.with_name(f"{self.path.name}.part")
        self.path.parent.mkdir(exist_ok=True)
        checksums, fill = [0], 0
        try:
            with open(part, "wb") as file:
                file.write(self.header)
                for data in parts:
                    file.write(data)
                    view = memoryview(data)
                    while view:
                        if fill == BLOCK:
                            checksums.append(0)
                            fill = 0
                        taken = view[: BLOCK - fill]
                        checksums[-1] = zlib.crc32(taken, checksums[-1])
                        fill, view = fill + len(taken), view[len(taken) :]
                trailer = _trailer(checksums if self.nbytes else [])
                file.write(trailer)
                file.flush()
                os.fsync(file.fileno())  # else a power cut might leave the name and not the content
            os.replace(part, self.path)
            self._mark_sound(_said(os.stat(self.path), trailer))
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def _found_sound(self, said: str) -> bool:
        if said in _sound:
            return True
        with suppress(OSError, ValueError):
            there = self.mark.read_text(encoding="utf-8")
            _sound.update({there, there.removesuffix(SENSIBLE)})
        return said in _sound

    def _mark_sound(self, said: str) -> None:
        _sound.add(said)
        temporary = self.mark.with_name(f"{self.mark.name}.{os.getpid()}.part")
        try:
            temporary.write_text(said, encoding="utf-8")
            os.replace(temporary, self.mark)
        except OSError:  # not our folder, or a full disk: it is compared again
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _said(about: os.stat_result, trailer: bytes) -> str:
    """What a mark says of a file."""
    return f"{about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns} {trailer[-4:].hex()}\n"


def _trailer(checksums: list[int]) -> bytes:
    """What stands at the end of an image: the checksum of each block, and that of these."""
    listed = np.array(checksums, "<u4").tobytes()
    return listed + zlib.crc32(listed).to_bytes(4, "little")


def _matches(content: np.ndarray, trailer: bytes) -> bool:
    """Whether u1[n] ``content`` has the checksums of a trailer."""
    blocks = [content[place : place + BLOCK].data for place in range(0, len(content), BLOCK)]
    with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
        return _trailer([*pool.map(zlib.crc32, blocks)]) == trailer


def image(database: Path, number: int, piece: int, about: str, nbytes: int) -> Image:
    """The image of a piece of an index of the database at a path.

    Args:
        number, piece: which index and which of its pieces.
        about: all that the database says of them.
        nbytes: of the piece.
    """
    text = f"seqloom index image 2\n{about}\n".encode()
    return Image(_folder(database) / f"index_{number}_{piece}.image", text.ljust(-(-len(text) // PAGE) * PAGE), nbytes)


def clear(database: Path, kept: Collection[Path] = ()) -> None:
    """Remove the images of the database at a path but those that are ``kept``; what can't be removed is never used."""
    names = {name for path in kept for name in (path.name, f"{path.name}{SOUND}")}
    _remove(_folder(database), [path for path in _folder(database).glob("index_*.image*") if path.name not in names])


def clear_unfinished(database: Path) -> None:
    """Remove what a killed process left of images; only while the database is open, so that nobody else writes any."""
    unfinished = [*_folder(database).glob("index_*.image*.part")]
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
