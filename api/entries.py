"""Single sequences of a database, or stretches of them, as blastdbcmd writes them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import IO, Any

import numpy as np
from seqloom.core.classes import dataclass

from .core.alphabet import PROTEIN
from .core.errors import InputError, UsageError
from .core.seqids import SeqId, seq_id
from .core.sequences import Intervals, SequenceBatch, offsets_of
from .database import Database

WIDTH = 80
"""Residues per line."""
AT_ONCE = 500
"""Entries whose residues are in memory together."""
_RANGE = re.compile("([0-9]+)(?:-([0-9]*))?")
_JOINED = "\x01"
"""Between the definitions of a sequence that has several."""


@dataclass(frozen=True)
class Entry:
    """A stretch of a sequence.

    Attributes:
        name: of the sequence, whole or its accession.
        first, last: from 1 on, or None for the beginning and the end.
        minus: whether the other strand is wanted.
    """

    name: str
    first: int | None = None
    last: int | None = None
    minus: bool = False


@dataclass(frozen=True)
class Found:
    """A stretch that was looked up.

    Attributes:
        first, last: i8 bounds from 0, half-open; length: of the whole sequence.
        residues: of the stretch, along its strand.
    """

    entry: Entry
    ordinal: int
    name: str
    description: str
    length: int
    taxid: int
    protein: bool
    first: int
    last: int
    residues: str

    @property
    def id(self) -> SeqId:
        return seq_id(self.name, self.protein)

    @property
    def place(self) -> str:
        """``:3-7``, ``:c7-3`` on the other strand, nothing for a whole sequence."""
        if self.entry.first is None and self.entry.last is None:
            return ""
        ends = self.first + 1, self.last
        return f":c{ends[1]}-{ends[0]}" if self.entry.minus else f":{ends[0]}-{ends[1]}"


def bounds(text: str) -> tuple[int, int | None]:
    """First and last residue of ``3-7``, ``3-`` (to the end) or ``3``.

    Raises:
        UsageError: it says no range.
    """
    found = _RANGE.fullmatch(text)
    if not found:
        raise UsageError(f"-range takes FIRST-LAST or FIRST- (to the end), not '{text}'")
    first = int(found[1])
    last = int(found[2]) if found[2] else None if "-" in text else first
    if first < 1:
        raise UsageError(f"-range {text}: residues are counted from 1")
    if last is not None and last < first:
        raise UsageError(f"-range {text}: the first residue lies behind the last")
    return first, last


def entries_of(lines: Iterable[str], where: str) -> Iterator[Entry]:
    """One a line: a name and perhaps, in any order, a range and a strand.

    Raises:
        UsageError: a line has something else.
    """
    for number, line in enumerate(lines, 1):
        name, *more = line.split() or [""]
        if not name:
            continue
        first = last = None
        minus = False
        for word in more:
            if word in ("plus", "minus"):
                minus = word == "minus"
            elif _RANGE.fullmatch(word):
                first, last = bounds(word)
            else:
                raise UsageError(f"{where}: line {number}: '{word}' is no range (FIRST-LAST) and no strand (plus or "
                                 "minus)")
        yield Entry(name, first, last, minus)


def look_up(database: Database, entries: Sequence[Entry] | None) -> Iterator[Found]:
    """Entries in their order, or all sequences; some are in memory at a time.

    Raises:
        InputError: one isn't there, or has no such stretch. All are looked up before the first is given.
    """
    base = database._database
    if entries is None:
        places: Iterator[tuple[Entry, int]] = ((Entry(""), ordinal) for ordinal in range(base.sequences))
    else:
        base.ordinals({entry.name for entry in entries})  # says which aren't there
        found = base.find_accessions({entry.name for entry in entries})
        numbers = [found[entry.name] for entry in entries]
        _check(database, entries, numbers)
        places = zip(entries, numbers)
    while some := list(islice(places, AT_ONCE)):
        yield from _read(database, some)


def _check(database: Database, entries: Sequence[Entry], numbers: Sequence[int]) -> None:
    """Refuse stretches that begin behind the end of their sequence, and other strands of proteins."""
    base = database._database
    for entry in entries:
        if entry.minus and base.alphabet is PROTEIN:
            raise UsageError(f"{base.path}: '{entry.name}' is a protein, which has no other strand; leave out -strand")
    cut = [(entry, number) for entry, number in zip(entries, numbers) if entry.first is not None]
    wanted = np.unique(np.array([number for _, number in cut], np.int64))
    lengths = dict(zip(wanted.tolist(), base.rows(wanted)["length"].tolist())) if cut else {}
    for entry, number in cut:
        if entry.first is not None and entry.first > lengths[number]:
            raise InputError(f"{base.path}: '{entry.name}' has {lengths[number]:,} residues, and a stretch from "
                             f"{entry.first:,} on is wanted")


def _read(database: Database, some: Sequence[tuple[Entry, int]]) -> Iterator[Found]:
    base = database._database
    ordinals, back = np.unique(np.array([number for _, number in some], np.int64), return_inverse=True)
    table, lower = base.rows(ordinals), base.lower(ordinals)
    for (entry, number), place in zip(some, back.tolist()):
        length, start = int(table["length"][place]), int(table["start"][place])
        first = (entry.first or 1) - 1
        last = min(length, entry.last or length)
        codes = base.residues(np.array([start + first]), np.array([last - first]))
        soft = np.clip(np.array(lower.of_sequence(place), np.int64).reshape(-1, 2) - first, 0, last - first)
        batch = SequenceBatch(base.alphabet, codes, offsets_of([len(codes)]), np.zeros(1, np.int64),
                              Intervals.of((0, a, b) for a, b in soft.tolist() if a < b), names=[""])
        text = batch.text(0)
        if entry.minus:
            text = text[::-1].translate(_complement(base.alphabet))
        yield Found(entry, number, table["name"][place], table["description"][place] or "", length,
                    int(table["taxid"][place]), base.alphabet is PROTEIN, first, last, text)


def _complement(alphabet: Any) -> dict[int, int]:
    letters, others = alphabet.letters, alphabet.complement_letters
    return str.maketrans(letters + letters.lower(), others + others.lower())


# ---- writing

_NOT_KNOWN: dict[str, str] = dict.fromkeys("LCSNBK", "N/A") | {"P": "-1", "e": "0"}
"""What blastdbcmd prints of what isn't known: names of taxa, protein groups, membership."""


def _constant(text: str, found: Found) -> str:
    return text


_FIELDS: dict[str, Callable[[Found], str]] = {
    "s": lambda found: found.residues, "a": lambda found: found.id.accession,
    "g": lambda found: found.id.gi or "N/A", "o": lambda found: str(found.ordinal),
    "i": lambda found: found.id.text, "t": lambda found: found.description,
    "l": lambda found: str(found.length), "T": lambda found: str(found.taxid), "X": lambda found: str(found.taxid),
    **{name: partial(_constant, text) for name, text in _NOT_KNOWN.items()},
}
"""Of ``-outfmt``, by letter; as of a database that was made with -parse_seqids."""
_REFUSED = {"h": "hashes of sequences aren't kept; seqloom db info gives a fingerprint of the database",
            "m": "masks aren't kept; seqloom mask gives them"}
_SPECIFIER = re.compile("%(.?)", re.DOTALL)


def check_entry_format(outfmt: str) -> None:
    """Refuse a format that has no field, or one that isn't there.

    Raises:
        UsageError: says which.
    """
    letters = _SPECIFIER.findall(outfmt)
    if not letters:
        raise UsageError(f"-outfmt '{outfmt}' has no field; give %f for FASTA, or some of %{' %'.join(_FIELDS)}")
    for letter in letters:
        if letter in _REFUSED:
            raise UsageError(f"-outfmt %{letter}: {_REFUSED[letter]}")
        if letter != "f" and letter not in _FIELDS:
            raise UsageError(f"-outfmt %{letter}: there is no such field; known: %f %{' %'.join(_FIELDS)}")


def write_entries(found: Iterable[Found], stream: IO[str], outfmt: str = "%f", line_length: int = WIDTH,
                  first_only: bool = False, ctrl_a: bool = False) -> None:
    """Write entries as FASTA or by fields, a line for each.

    Args:
        outfmt: ``%f`` for FASTA, or text with fields such as ``%a``.
        line_length: residues per line of FASTA.
        first_only: of a sequence with several definitions the first.
        ctrl_a: join several by that character.
    """
    check_entry_format(outfmt)
    fasta = "f" in _SPECIFIER.findall(outfmt)
    for one in found:
        if not fasta:
            parts = _SPECIFIER.split(outfmt)  # every second is a field's letter
            stream.write("".join(_FIELDS[part](one) if n % 2 else part for n, part in enumerate(parts)) + "\n")
            continue
        title = one.description.split(_JOINED)[0] if first_only else one.description
        title = title if ctrl_a else title.replace(_JOINED, " >")
        stream.write(f">{one.name}{one.place} {title}".rstrip(" ") + "\n")
        for start in range(0, len(one.residues), line_length):
            stream.write(one.residues[start : start + line_length] + "\n")
