"""The image of a database's residues: a plain file beside it, ``NAME.duckdb.residues``, that searches map.

Stages read residues from there where they lie, one sequence behind the other, a byte each or, of nucleotides, four in a
byte (``packed_image.py``), so that nothing is copied and processes share the pages. The database stays the truth. An
image is used only where it begins with what the database says of itself, fingerprint included, and has its size;
each block is compared with its checksum, and its codes with the alphabet, when a process first touches it. So it can be
deleted at any time, and what a power cut or anybody else left of one does no harm: residues are read from the database
then, and the image is made anew.

It is written by who makes the database, else by the first search that finds none and may write there. Until it is whole
it has no name, where the system has such files (Linux); elsewhere it has one of its own and is locked for as long, so
that the next writer removes what a killed one left. ``SEQLOOM_IMAGES=no`` keeps images from being made.
"""

import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np

PAGE = 4096
"""Bytes of the header, so that residues begin on a page."""
BLOCK = 4 << 20
"""Bytes of residues for each checksum."""
LEAST = BLOCK + 1
"""Residues of the smallest database with an image: chunks of smaller ones are read as fast."""
MOST_IN_SEARCH = 1 << 32
"""Residues of the largest database whose image a search makes beside its work."""
SPARE = 1 << 28
"""Bytes that must be free on the disk beside as many as an image has: the database itself comes first."""
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def path_of(database: "str | Path") -> Path:
    """Where the image of the database at a path is, if there is one."""
    return Path(f"{os.path.realpath(database)}.residues")


def header_of(kind: str, about: str) -> bytes:
    """What an image begins with."""
    return f"seqloom {kind} image 1\n{about}\n".encode().ljust(PAGE)


def crc32(data: "bytes | memoryview", before: int = 0) -> int:
    """That of ``zlib``, several times as fast."""
    from isal import isal_zlib

    return int(isal_zlib.crc32(data, before))


def clear(database: "str | Path") -> None:
    """Remove the image of the database at a path; one that can't be removed is never used."""
    with suppress(OSError):
        path_of(database).unlink()


def may_be_made(database: "str | Path", residues: int) -> bool:
    """Whether images are wanted, and the one of so many residues can be written and leaves room on the disk."""
    folder = path_of(database).parent
    return (residues >= LEAST and os.environ.get("SEQLOOM_IMAGES", "") != "no" and os.access(folder, os.W_OK)
            and _has_room(folder, 2 * residues))


def _has_room(where: "Path | int", wanted: int) -> bool:
    """Whether so many bytes and ``SPARE`` are free on the disk with a file or folder."""
    try:
        about = os.statvfs(where)
    except OSError:
        return False
    return about.f_bavail * about.f_frsize > wanted + SPARE


class Image:
    """An image that is mapped.

    The pages are private to who maps them, so that kernels see arrays as any others; as nobody writes, they stay those
    that all processes share.

    Attributes:
        path: the file.
        body: u8[n], all residues of the database as the image has them; of use where ``sound`` says so.
    """

    kind: str
    """Stands in the first line of the file."""

    def __init__(self, path: Path, file: int, mapped: mmap.mmap, body: int, most: int, extra: bytes,
                 checksums: bytes) -> None:
        self.path, self._mapped, self._most = path, mapped, most
        self.body = np.frombuffer(mapped, np.uint8, body, PAGE)
        self._checksums = np.frombuffer(checksums, "<u4")
        self._sound = np.zeros(len(self._checksums), np.bool_)
        self._know(extra, file)

    def _know(self, extra: bytes, file: int) -> None:
        """Take what stands between residues and checksums of the open file."""

    @staticmethod
    def bytes_of(residues: int) -> int:
        """That so many residues take."""
        return residues

    @staticmethod
    def fits(extra: int) -> bool:
        """Whether so many bytes may stand between residues and checksums."""
        return not extra

    @classmethod
    def open(cls, database: "str | Path", about: str, total: int, most: int) -> "tuple[Self | None, str]":
        """The image of the database at a path; or None and why there is none, "" where there is no such file.

        Args:
            about: what the database says of itself.
            total: residues.
            most: largest code of the alphabet.
        """
        path, header, body = path_of(database), header_of(cls.kind, about), cls.bytes_of(total)
        checked = 4 * -(-body // BLOCK)
        try:
            with open(path, "rb") as file:
                if file.read(PAGE) != header:
                    return None, f"{path.name} is of other sequences"
                size = os.fstat(file.fileno()).st_size
                extra = size - PAGE - body - checked - 4
                if extra < 0 or not cls.fits(extra):
                    return None, f"{path.name} is cut short or has more than it should"
                mapped = mapped_file(file.fileno(), size)
                trailer = mapped[PAGE + body : size]
                if crc32(trailer[:-4]).to_bytes(4, "little") != trailer[-4:]:
                    return None, f"{path.name} is damaged"
                return cls(path, file.fileno(), mapped, body, most, trailer[:extra], trailer[extra:-4]), ""
        except FileNotFoundError:
            return None, ""
        except (OSError, ValueError) as error:
            return None, f"{path.name}: {getattr(error, 'strerror', None) or error}"

    def sound(self, first: int, last: int) -> bool:
        """Whether bytes ``first`` … ``last`` − 1 are what was written; looked at when they are first asked for."""
        return all(self._sound[block] or self._compare(block) for block in range(first // BLOCK, -(-last // BLOCK)))

    def _compare(self, block: int) -> bool:
        content = self.body[block * BLOCK : (block + 1) * BLOCK]
        if crc32(content.data) != self._checksums[block] or not self._possible(content):
            return False
        self._sound[block] = True
        return True

    def _possible(self, content: np.ndarray) -> bool:
        """Whether every byte stands for a residue."""
        return True

    def _advise(self, what: str, first: int, last: int) -> None:
        begin = (PAGE + first) // PAGE * PAGE
        if hasattr(mmap, what) and last > first:
            with suppress(OSError):
                self._mapped.madvise(getattr(mmap, what), begin, PAGE + last - begin)


class ResidueImage(Image):
    """An image with a byte for each residue, which is its code."""

    kind = "residue"

    @property
    def residues(self) -> np.ndarray:
        """u8[n]: all residues of the database; of use where ``sound`` says so."""
        return self.body

    def _possible(self, content: np.ndarray) -> bool:
        return bool(content.max(initial=0) <= self._most)

    def wrong(self, first: int, codes: np.ndarray) -> str:
        """What is wrong with residues from ``first`` on, which are u8[n] ``codes`` in the database; "" if nothing."""
        if not self.sound(first, first + len(codes)):
            return f"{self.path.name}: residues from {first + 1:,} on don't match their checksum"
        if not np.array_equal(self.residues[first : first + len(codes)], codes):
            return f"{self.path.name}: residues from {first + 1:,} on are not those of the database"
        return ""

    def expect(self, first: int, last: int) -> None:
        """Say that residues ``first`` … ``last`` − 1 will be read soon."""
        self._advise("MADV_WILLNEED", first, last)

    def rest(self, first: int, last: int) -> None:
        """Say that residues ``first`` … ``last`` − 1 won't be read for a while: they no longer count as this process's
        memory."""
        self._advise("MADV_DONTNEED", first, last)


def mapped_file(file: int, size: int, begin: int = 0) -> mmap.mmap:
    """``size`` bytes of a file from a page on, of which what is written to stays this process's own."""
    return mmap.mmap(file, size, mmap.MAP_PRIVATE | _NO_RESERVE, mmap.PROT_READ | mmap.PROT_WRITE, offset=begin)


class ImageWriter:
    """Writes an image from residues that come piece by piece. Nobody sees it before ``finish``; an image that can't be
    written, since the disk is full for instance, is left out and nothing said.

    Args:
        database: path of the database.
        image: the kind of image.
    """

    def __init__(self, database: "str | Path", image: type[Image] = ResidueImage) -> None:
        self._path, self._image = path_of(database), image
        self._part: Path | None = None
        self._file: int | None = None
        self._checksums: list[int] = []
        self._fill = self._place = 0
        with suppress(OSError):
            self._file = self._begun()

    def _begun(self) -> int:
        """A new file, without a name where there are such."""
        flag = getattr(os, "O_TMPFILE", 0)
        if flag:
            with suppress(OSError):  # a file system that has none
                return os.open(self._path.parent, os.O_RDWR | flag, 0o666)
        self._sweep()
        self._part = self._path.with_name(f"{self._path.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
        file = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        _lock(file)
        return file

    def _sweep(self) -> None:
        """Remove what killed writers left."""
        for part in self._path.parent.glob(f"{self._path.name}.*.part"):
            with suppress(OSError):
                file = os.open(part, os.O_RDWR)
                try:
                    if _lock(file):
                        part.unlink(missing_ok=True)
                finally:
                    os.close(file)

    def add(self, residues: np.ndarray) -> None:
        """Write the next u8[n] bytes of residues."""
        view = np.ascontiguousarray(residues).data
        while view and self._file is not None:
            if not self._fill:
                self._checksums.append(0)
                if not _has_room(self._file, self._place):
                    self.discard()
                    return
            taken = view[: BLOCK - self._fill]
            try:
                self._write(taken, PAGE + self._place)
            except OSError:
                self.discard()
                return
            self._checksums[-1] = crc32(taken, self._checksums[-1])
            self._fill = (self._fill + len(taken)) % BLOCK
            self._place, view = self._place + len(taken), view[len(taken) :]

    def _write(self, data: "bytes | memoryview", place: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, place)  # type: ignore[arg-type]
            view, place = view[written:], place + written

    def finish(self, about: str, extra: bytes = b"") -> bool:
        """Give the file its name. Whether there is an image now.

        Args:
            about: what the database says of itself.
            extra: what stands between residues and checksums.
        """
        if self._file is None:
            return False
        listed = extra + np.array(self._checksums, "<u4").tobytes()
        try:
            if self._place >= self._image.bytes_of(LEAST):
                self._write(listed + crc32(listed).to_bytes(4, "little"), PAGE + self._place)
                self._write(header_of(self._image.kind, about), 0)
                self._publish()
                return True
        except OSError:
            pass
        finally:
            self.discard()
        return False

    def _publish(self) -> None:
        if self._part is not None:
            os.replace(self._part, self._path)
            self._part = None
            return
        with suppress(FileNotFoundError):
            self._path.unlink()  # of other sequences, or damaged
        with suppress(FileExistsError):  # someone else's, meanwhile
            # With a descriptor, which isn't looked at, Python takes the call that follows the link.
            os.link(f"/proc/self/fd/{self._file}", self._path, src_dir_fd=self._file, follow_symlinks=True)

    def discard(self) -> None:
        """Leave it out."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._part is not None:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)
            self._part = None


def _lock(file: int) -> bool:
    """Take a file as its writer; whether nobody else has it."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        return False
    return True


__all__ = ["Image", "ImageWriter", "ResidueImage", "clear", "may_be_made", "path_of"]
