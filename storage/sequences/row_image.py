"""The image of a database's rows: a plain file beside it, ``NAME.duckdb.rows``, with what a search asks of sequences,
their names, descriptions, lengths and stretches in lower case, and what the database says of itself.

With it a search doesn't open the database, which takes DuckDB longer than many a search. As other images it may be
deleted at any time. It is used only where the file of the database is the one that it was made of: by its size, the
time of its last change, and its headers, which every change rewrites; where no log stands beside that; and only whole,
by its checksum. The first search without a budget that opens a larger database makes it, where it may write there
(``SEQLOOM_IMAGES=no`` keeps it from doing so). Databases with taxids or stored indexes have none: a search asks for
more of them.
"""

import json
import mmap
import os
from contextlib import suppress
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.sequences import offsets_of
from ..duck.durable import HEADERS, descriptor, log_of, undo_of
from ..duck.revisions import HEAD
from . import residue_image
from .facts import Facts
from .residue_image import crc32

if TYPE_CHECKING:
    from .database import SequenceDatabase

_BEGIN = b"seqloom rows 1\n"
_CHECKSUM = 4
_MASK = ("sequence", "start", "end")
MOST, MOST_SEQUENCES = 16 << 20, 1 << 17
"""Bytes and sequences of the largest image: beyond, a search takes much longer than to open a database."""


def path_of(database: "str | Path") -> Path:
    """Where the image of the database at a path is, if there is one."""
    return Path(f"{os.path.realpath(database)}.rows")


def clear(database: "str | Path") -> None:
    """Remove the image of the database at a path; one that can't be removed is never used."""
    with suppress(OSError):
        path_of(database).unlink()


class RowImage:
    """An image that is of a database as it is.

    Attributes:
        facts: what the database says of itself.
        lengths: i4[n] of its sequences.
        masks: ``sequence``, ``start`` and ``end``, i4[m], of all stretches in lower case, in rising order.
    """

    def __init__(self, facts: Facts, numbers: np.ndarray, texts: memoryview) -> None:
        count = facts.sequences
        self.facts, self.lengths, self._texts = facts, numbers[:count], texts
        self.masks = dict(zip(_MASK, numbers[3 * count :].reshape(3, -1), strict=True))
        self._starts = offsets_of(self.lengths.astype(np.int64))
        self._bounds = offsets_of(numbers[count : 3 * count].astype(np.int64))

    @classmethod
    def open(cls, database: "str | Path") -> "Self | None":
        """The image of the database at a path, if there is one that may be used."""
        try:
            with open(path_of(database), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if not len(_BEGIN) < size <= MOST:
                    return None
                data = memoryview(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ))
            body, head = data[:-_CHECKSUM], len(_BEGIN) + 4
            if data[: len(_BEGIN)] != _BEGIN or crc32(body).to_bytes(_CHECKSUM, "little") != data[-_CHECKSUM:]:
                return None
            first = head + int.from_bytes(data[head - 4 : head], "little")
            said = json.loads(bytes(data[head:first]))
            if said["file"] != _file(database):
                return None
            facts = Facts(**{**said["facts"], "created": datetime.fromisoformat(said["facts"]["created"])})
            numbers = np.frombuffer(body, "<i4", 3 * (facts.sequences + said["masks"]), first).astype(np.int32)
            return cls(facts, numbers, body[first + numbers.nbytes :])
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def rows(self, ordinals: np.ndarray) -> dict[str, np.ndarray]:
        """As ``SequenceDatabase.rows``, of those that there are."""
        ordinals = ordinals[(ordinals >= 0) & (ordinals < len(self.lengths))]
        names, descriptions = (self._texts_of(2 * ordinals + kind) for kind in range(2))
        return {"ordinal": ordinals, "name": names, "description": descriptions, "length": self.lengths[ordinals],
                "start": self._starts[ordinals], "taxid": np.zeros(len(ordinals), np.int32)}

    def _texts_of(self, places: np.ndarray) -> np.ndarray:
        found = np.empty(len(places), object)
        bounds = zip(self._bounds[places].tolist(), self._bounds[places + 1].tolist(), strict=True)
        found[:] = [str(self._texts[first:last], "utf-8") for first, last in bounds]
        return found

    def wrong(self, database: "SequenceDatabase") -> str:
        """What of it isn't what the database says; "" if all is."""
        table = database.rows(np.arange(database.sequences))
        own = self.rows(np.arange(len(self.lengths)))
        own, table = {**own, **self.masks}, {**table, **database.masks()}
        alike = self.facts == database._about and all(np.array_equal(own[name], table[name]) for name in table)
        return "" if alike else f"{path_of(database.path).name} isn't what the database says"


def make(database: "SequenceDatabase") -> None:
    """Write the image of a database that is open for reading, if it may have one and there is none; quietly leave it
    where that can't be done."""
    path = path_of(database.path)
    if (database.revision != HEAD["sequences"] or database.sequences > MOST_SEQUENCES
            or not residue_image.may_be_made(database.path, database.total_residues)
            or (file := _file(database.path)) is None or database._run(
                "SELECT 1 FROM indexes UNION ALL SELECT 1 FROM sequences WHERE taxid IS NOT NULL LIMIT 1")):
        return
    [(size,)] = database._run("SELECT sum(12 + strlen(name) + strlen(description)) + 12 * (SELECT count(*) FROM masks "
                              "WHERE kind = 'lower') "
                              "FROM sequences")
    if size > MOST - (1 << 16):
        return
    table, masks = database.rows(np.arange(database.sequences)), database.masks()
    texts = [text.encode() for row in zip(table["name"].tolist(), table["description"].tolist(), strict=True)
             for text in row]
    facts = {**database._about._asdict(), "created": database.created.isoformat()}
    said = json.dumps({"file": file, "facts": facts, "masks": len(masks["start"])}).encode()
    numbers = np.concatenate([table["length"], [len(text) for text in texts], *(masks[name] for name in _MASK)])
    body = b"".join((_BEGIN, len(said).to_bytes(4, "little"), said, numbers.astype("<i4").tobytes(), *texts))
    for left in path.parent.glob(f"{escape(path.name)}.*.part"):  # of killed processes; another one does without
        with suppress(OSError):
            left.unlink()
    part = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        part.write_bytes(body + crc32(body).to_bytes(_CHECKSUM, "little"))
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _file(database: "str | Path") -> list[Any] | None:
    """What is other as soon as the file of a database is; None where not all of the database stands there."""
    if log_of(database).exists() or undo_of(database).exists():
        return None
    # Closing a descriptor of one's own would take DuckDB's lock from the file.
    there = descriptor(database)
    number = os.open(database, os.O_RDONLY) if there is None else there
    try:
        about = os.fstat(number)
        return [about.st_size, about.st_mtime_ns, crc32(os.pread(number, HEADERS, 0))]
    finally:
        if there is None:
            os.close(number)


__all__ = ["MOST", "RowImage", "clear", "make", "path_of"]
