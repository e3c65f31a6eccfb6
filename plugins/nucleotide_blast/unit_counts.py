"""How often each unit of a few bases occurs in a genome: what WindowMasker masks by (Morgulis et al. 2006).

A unit and its reverse complement are one, of which the smaller stands for both. Only units that occur at least
``t_low`` times are kept, and counts end at ``t_high``. Files are those of windowmasker, in its three kinds: text
("ascii"), pairs of numbers ("binary"), and a hash table of its own ("obinary", or as text "oascii").
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.errors import InputError, OptionError
from seqloom.core.output_files import is_database
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.nucleotide_blast.unit_counts_cpu import count_units, reverse_complements

LONGEST_UNIT = 16
BESIDE = ".counts"
"""Ending of the file beside a database that holds its counts."""
FORMATS = ("ascii", "binary")
"""Those that are written."""
_MOST = 500
"""Counts from here on are one when thresholds are looked for."""
_SHARES = (90.0, 99.0, 99.5, 99.8)
"""Percent of the different units that occur at most as often as t_low, t_extend, t_threshold and t_high say."""
_BASES_PER_UNIT = 5
SOURCE = "database "
"""Before the fingerprint of the database that counts are of, in the note of a file."""
_NOTE = "##note:"
_HAS_NOTES, _BINARY, _HASH, _HASH_WITH_BITS, _OASCII = 3, 0, 1, 2, b"AAAA"
_WORD = np.dtype("<u4")


@dataclass(frozen=True)
class UnitCounts:
    """Counts of a genome.

    Attributes:
        unit: bases of a unit.
        units: u4[m], two bits a base, rising, each the smaller of a unit and its reverse complement.
        counts: u4[m].
        low, extend, threshold, high: counts by which masking goes; see ``WindowMaskerOptions``.
        source: fingerprint of the database that they are of; "" where the file names none.
        skips: whether windows of units that all have counts below ``extend`` are skipped behind a low one, whatever
            score they are given; windowmasker does so where the file has a bit for each unit.
    """

    unit: int
    units: np.ndarray
    counts: np.ndarray
    low: int
    extend: int
    threshold: int
    high: int
    source: str = ""
    skips: bool = False


def unit_size(bases: int) -> int:
    """Bases of a unit for a genome of so many: the least for which five bases or fewer come on every unit."""
    size = 1
    while size < LONGEST_UNIT - 1 and bases >> (2 * size) >= _BASES_PER_UNIT:
        size += 1
    return size


@dataclass(frozen=True)
class Tally:
    """What was counted.

    Attributes:
        unit: bases of a unit.
        histogram: i8[500], how many units occur once, twice, …, 500 times and more; one and its reverse complement are
            two, unless they are the same.
        units, counts: as of ``UnitCounts``, of units that occur t_low times and more.
        thresholds: t_low, t_extend, t_threshold and t_high.
    """

    unit: int
    histogram: np.ndarray
    units: np.ndarray
    counts: np.ndarray
    thresholds: tuple[int, ...]

    def kept(self) -> UnitCounts:
        """With counts up to t_high."""
        low, extend, threshold, high = self.thresholds
        return UnitCounts(self.unit, self.units, np.minimum(self.counts, high), low, extend, threshold, high)


def tally(batches: Callable[[], Iterable[SequenceBatch]], unit: int, memory: int = 1 << 29) -> Tally:
    """Count the units of sequences, in as many parts as the memory is too small for; 4 bytes for each possible unit.

    Sequences are read once if all units fit, else twice for each part: what is kept depends on the counts of all.

    Raises:
        InputError: there is no unit without an ambiguity.
    """
    all_units = 1 << 2 * unit
    room = max(1, min(all_units, memory // 4))
    histogram, first = np.zeros(_MOST, np.int64), _counted(batches, unit, 0, room)
    starts = range(room, all_units, room)
    histogram += _histogram(unit, *first)
    for start in starts:
        histogram += _histogram(unit, *_counted(batches, unit, start, room))
    if not histogram.any():
        raise InputError(f"there are no {unit} bases in a row without an ambiguity, so there is nothing to count")
    shares = _shares(histogram, 1)[1]
    thresholds = tuple(int(np.searchsorted(shares, share)) + 1 for share in _SHARES)
    parts = [_frequent(first, thresholds[0])]
    parts += [_frequent(_counted(batches, unit, start, room), thresholds[0]) for start in starts]
    units, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Tally(unit, histogram, units, counts, thresholds)


def _counted(batches: Callable[[], Iterable[SequenceBatch]], unit: int, start: int, room: int,
             ) -> tuple[np.ndarray, np.ndarray]:
    """Units from ``start`` on, ``room`` of them, that occur, and their counts."""
    table = np.zeros(room, np.uint32)
    for batch in batches():
        count_units(batch.residues, batch.offsets, unit, start, table)
    units = np.flatnonzero(table)
    return (units + start).astype(np.uint32), table[units]


def _frequent(counted: tuple[np.ndarray, np.ndarray], least: int) -> tuple[np.ndarray, np.ndarray]:
    enough = counted[1] >= least
    return counted[0][enough], counted[1][enough]


def _histogram(unit: int, units: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """``Tally.histogram`` of some units."""
    weights = np.where(reverse_complements(units, unit) == units, 1, 2)
    return np.bincount(np.minimum(counts, _MOST) - 1, weights, _MOST).astype(np.int64)


def _shares(histogram: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """By count from 1 to 500: how many units occur at most so often, i8[500], and what percentage that is, f8[500].

    Those that occur less than ``least`` times count from the beginning.
    """
    sums = np.cumsum(histogram)
    sums[: least - 1] = sums[least - 2] if least > 1 else 0
    return sums, 100.0 * (sums / sums[-1])


def ascii_text(found: Tally, note: str = "") -> str:
    """As windowmasker writes counts as text."""
    kept = found.kept()
    notes = "\n".join(_notes(kept, note))
    lines = [f"##windowmasker-statistics-format-version:ascii 1.0.0\n{notes}\n{found.unit}\n"]
    lines += [f"{unit:x} {count}\n" for unit, count in zip(kept.units.tolist(), kept.counts.tolist(), strict=True)]
    sums, shares = _shares(found.histogram, max(1, kept.low))
    lines.append(f"\n# {found.histogram.sum()} ecodes\n")
    lines += [f"# {count}\t{total}\t{share:.6g}\n"
              for count, (total, share) in enumerate(zip(sums.tolist(), shares.tolist(), strict=True), 1)]
    lines.append("#\n")
    lines += [f"# {share:g}%% threshold at {value}\n" for share, value in zip(_SHARES, found.thresholds, strict=True)]
    names = ("t_low", "t_extend", "t_threshold", "t_high")
    lines.append("\n")
    lines += [f">{name} {value}\n" for name, value in zip(names, found.thresholds, strict=True)]
    return "".join([*lines, "\n"])


def binary_bytes(found: Tally, note: str = "") -> bytes:
    """As windowmasker writes counts as pairs of numbers."""
    kept = found.kept()
    lines = ["##windowmasker-statistics-format-version:binary 1.0.0", *_notes(kept, note)]
    notes = "".join(f"{line}\0" for line in lines).encode()
    pairs = np.column_stack([kept.units, kept.counts]).astype(_WORD)
    return b"".join([np.array([_HAS_NOTES, len(notes)], _WORD).tobytes(), notes,
                     np.array([_BINARY, found.unit], _WORD).tobytes(), pairs.tobytes(),
                     np.array(found.thresholds, _WORD).tobytes()])


def _notes(kept: UnitCounts, note: str) -> list[str]:
    return ["##windowmasker-statistics-algorithm-version:1.0.0",
            f"##parameters:unit={kept.unit} t_low={kept.low} t_high={kept.high}", *([_NOTE + note] if note else [])]


# ---- reading


def counts_file(path: str) -> str:
    """The file with the counts that ``path`` names: that beside it if it is a database, else ``path`` itself.

    Raises:
        InputError: no counts were made of the database.
    """
    if not os.path.isfile(path):
        raise InputError(f"{path}: there is no such file; give one of counts, as seqloom mask GENOME.fasta "
                         "--masker windowmasker --mk-counts makes")
    if not is_database(path):
        return path
    if not os.path.exists(path + BESIDE):
        raise InputError(f"{path} has no counts of units; make them: seqloom mask {path} --masker windowmasker "
                         "--mk-counts")
    return path + BESIDE


def read_counts(path: str) -> UnitCounts:
    """Counts from a file of windowmasker's or ours, or of a database.

    Raises:
        InputError: there is no such file, or it isn't one of counts, or is cut off.
    """
    path = counts_file(path)
    about = os.stat(path)
    return _read(path, about.st_mtime_ns, about.st_size)


@lru_cache(2)
def _read(path: str, changed: int, size: int) -> UnitCounts:
    """Kept for the next batch of queries; other times and sizes are other files."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        found = _parsed(data)
    except (ValueError, IndexError) as error:
        raise InputError(f"{path}: not a file of WindowMasker's counts, or a damaged one ({error}); seqloom mask "
                         "GENOME.fasta --masker windowmasker --mk-counts makes one") from None
    if not 1 <= found.unit <= LONGEST_UNIT:
        raise InputError(f"{path}: units of {found.unit} bases; give a whole file of counts")
    return found


def _parsed(data: bytes) -> UnitCounts:
    if data[:4] == np.array([_HAS_NOTES], _WORD).tobytes():
        begin = 8 + int(np.frombuffer(data, _WORD, 1, 4)[0])
        notes, data = data[8:begin].split(b"\0"), data[begin:]
    else:
        notes = []
        while data[:2] == b"##":
            line, _, data = data.partition(b"\n")
            notes.append(line)
    mark = (_NOTE + SOURCE).encode()
    named = [line[len(mark) :].split()[:1] for line in notes if line.startswith(mark)]
    source = named[0][0].decode("ascii") if named and named[0] else ""
    return replace(_counts(data), source=source)


def _counts(data: bytes) -> UnitCounts:
    """From what stands behind the notes.

    As in the peer, thresholds may be 0 in the plain binary format alone: those of a sequence without a unit are.
    """
    kind = int(np.frombuffer(data, _WORD, 1)[0])
    if kind == _BINARY:
        words = np.frombuffer(data, _WORD)
        return _sorted(int(words[1]), words[2:-4].reshape(-1, 2), words[-4:])
    if data[:4] == _OASCII:
        found = _hashed(np.array(data[4:].split(), np.int64))
    elif kind in (_HASH, _HASH_WITH_BITS):
        found = _hashed_binary(data, kind)
    else:
        found = _text(data.decode("ascii"))
    if min(found.low, found.extend, found.threshold, found.high) < 1:
        raise ValueError("a threshold is 0 or not there")
    return found


def _text(text: str) -> UnitCounts:
    thresholds: dict[str, int] = {}
    rows: list[list[str]] = []
    for line in io.StringIO(text):
        if line[0] == ">":
            name, value = line[1:].split()
            thresholds[name] = int(value)
        elif line[0] not in "#\n":
            rows.append(line.split())
    values = [thresholds.get(name, 0) for name in ("t_low", "t_extend", "t_threshold", "t_high")]
    units = np.array([(int(unit, 16), int(count)) for unit, count in rows[1:]], np.int64).reshape(-1, 2)
    (unit,) = rows[0]
    return _sorted(int(unit), units, values)


def _sorted(unit: int, pairs: np.ndarray, thresholds: Iterable[int]) -> UnitCounts:
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    low, extend, threshold, high = map(int, thresholds)
    return UnitCounts(unit, pairs[:, 0].astype(np.uint32), pairs[:, 1].astype(np.uint32), low, extend, threshold, high)


def _hashed_binary(data: bytes, kind: int) -> UnitCounts:
    head = np.frombuffer(data, _WORD, 10)
    unit, values, key_bits = (int(head[place]) for place in (1, 2, 3))
    at, has_bits = 40, 0
    if kind == _HASH_WITH_BITS:
        has_bits = int(np.frombuffer(data, _WORD, 1, at)[0])
        at += 4 + (4 * ((1 << 2 * unit) // 32) if has_bits else 0)
    table = np.frombuffer(data, _WORD, 1 << key_bits, at)
    listed = np.frombuffer(data, "<u2", values, at + 4 * len(table))
    found = _hashed(np.concatenate([head[1:], table, listed]).astype(np.int64))
    return replace(found, skips=bool(has_bits))


def _hashed(words: np.ndarray) -> UnitCounts:
    """From i8 words: unit, number of listed values, bits of a key, its offset, bits of a length, four thresholds, table
    and list.

    The key is cut out of the unit's bits; what is left, above and below it, tells units of one key apart. An entry of
    the table says how many units have the key: one stands there itself, several in the list.
    """
    unit, values, key_bits, offset, length_bits, *thresholds = words[:9].tolist()
    table = words[9 : 9 + (1 << key_bits)]
    listed = words[9 + len(table) : 9 + len(table) + values]
    if len(table) < 1 << key_bits or len(listed) < values:
        raise ValueError("cut off")
    lengths = table & ((1 << length_bits) - 1)
    alone = np.flatnonzero(lengths == 1)
    many = np.flatnonzero(lengths > 1)
    keys = np.repeat(many, lengths[many])
    within = np.arange(len(keys)) - np.repeat(np.cumsum(lengths[many]) - lengths[many], lengths[many])
    rows = listed[np.repeat(table[many] >> length_bits, lengths[many]) + within]
    keys = np.concatenate([alone, keys])
    rest = np.concatenate([table[alone] >> 24, rows >> 9])
    counts = np.concatenate([table[alone] >> length_bits & 0xFFF, rows & 0x1FF])
    below = rest & ((1 << offset) - 1)
    units = rest >> offset << (offset + key_bits) | keys << offset | below
    return _sorted(unit, np.column_stack([units, counts]), thresholds)


def make(batches: Callable[[], Iterable[SequenceBatch]], unit: int | None = None, genome_size: int | None = None,
         memory: int = 1 << 29) -> Tally:
    """Counts of the sequences that ``batches`` gives each time that it is called.

    Args:
        unit: bases of a unit; found from the size of the genome when left out.
        genome_size: bases of the genome; counted when left out.
        memory: bytes that a table of counts may take.

    Raises:
        OptionError: the unit is too long.
    """
    if unit is None:
        unit = unit_size(genome_size or sum(len(batch.residues) for batch in batches()))
    if not 1 <= unit <= LONGEST_UNIT:
        raise OptionError(f"a unit has 1 to {LONGEST_UNIT} bases, not {unit}")
    return tally(batches, unit, memory)
